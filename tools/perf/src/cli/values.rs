//! The little languages of values, as PerfTest reads them. Where its texts may be parsed by scripts, ours begin alike.

use crate::failure::Failure;
use model::table::{Table, Value};
use std::time::Duration;

fn usage<T>(text: String) -> Result<T, Failure> {
    Err(Failure::Usage(text))
}

/// `k=v,k=v`: true and false are booleans, whole numbers are longs, all else is text; a later one of the same name wins.
///
/// A dead-letter exchange of `amq.default` is the default exchange. PerfTest cuts a value at a second `=`; it is kept here.
///
/// # Errors
/// For an entry without a name or without `=`, which PerfTest reads as an empty text.
pub fn pairs(long: &str, lists: &[String]) -> Result<Table, Failure> {
    let mut table = Table::new();
    for entry in lists
        .iter()
        .flat_map(|list| list.split(','))
        .filter(|entry| !entry.trim().is_empty())
    {
        let (name, text) = match entry.split_once('=') {
            Some((name, text)) if (1..=255).contains(&name.len()) => (name, text),
            _ => {
                let write = "write NAME=VALUE, the name of 1 to 255 bytes.";
                return usage(format!("--{long} has the entry '{entry}': {write}"));
            }
        };
        table.insert(name, typed(name, text));
    }
    Ok(table)
}

fn typed(name: &str, text: &str) -> Value {
    match (name, text) {
        ("x-dead-letter-exchange", "amq.default") => "".into(),
        ("x-single-active-consumer", text) => text.eq_ignore_ascii_case("true").into(),
        (_, "true") => true.into(),
        (_, "false") => false.into(),
        (_, text) => text.parse::<i64>().map_or_else(|_| text.into(), Value::from),
    }
}

/// `k=v,k=v` as texts.
///
/// # Errors
/// For an entry without a name or without `=`.
pub fn texts(long: &str, lists: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let mut all: Vec<(String, String)> = Vec::new();
    for entry in lists
        .iter()
        .flat_map(|list| list.split(','))
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
    {
        match entry.split_once('=') {
            Some((name, text)) if !name.trim().is_empty() => {
                let (name, text) = (name.trim(), text.trim());
                all.retain(|(known, _)| known != name);
                all.push((name.to_owned(), text.to_owned()));
            }
            _ => return usage(format!("--{long} has the entry '{entry}': write NAME=VALUE.")),
        }
    }
    Ok(all)
}

/// `20gb`, `500mb`, `1000`: bytes; the units are powers of 1000, as in PerfTest.
///
/// # Errors
/// If it is none, or beyond what a long holds.
pub fn bytes(text: &str) -> Result<i64, Failure> {
    let digits = text.trim_end_matches(|it: char| it.is_ascii_alphabetic());
    let factor = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" => Some(1),
        "kb" => Some(1_000),
        "mb" => Some(1_000_000),
        "gb" => Some(1_000_000_000),
        "tb" => Some(1_000_000_000_000),
        _ => None,
    };
    let number = digits
        .parse::<i64>()
        .ok()
        .filter(|_| digits.bytes().all(|it| it.is_ascii_digit()));
    match number
        .zip(factor)
        .and_then(|(number, factor)| number.checked_mul(factor))
    {
        Some(bytes) => Ok(bytes),
        None => usage(format!(
            "'{text}' is not a valid byte capacity, valid example values: 100gb, 50mb"
        )),
    }
}

/// An ISO 8601 duration of days and less, as the argument `x-max-age`: whole seconds.
///
/// # Errors
/// If it is none, or not positive.
pub fn max_age(text: &str) -> Result<String, Failure> {
    let Some((seconds, nanos)) = iso_duration(text) else {
        return usage(format!(
            "'{text}' is not a valid duration, valid example values: PT15M, PT10H"
        ));
    };
    if seconds < 0 || (seconds == 0 && nanos <= 0) {
        return usage(format!("'{text}' is not a valid duration, it must be positive"));
    }
    Ok(format!("{seconds}s"))
}

fn iso_duration(text: &str) -> Option<(i64, i64)> {
    let span: jiff::Span = text.parse().ok()?;
    // Only what has the same length always, as in Java.
    if !text.contains(['P', 'p']) || span.get_years() != 0 || span.get_months() != 0 || span.get_weeks() != 0
    {
        return None;
    }
    let seconds = i64::from(span.get_days())
        .checked_mul(86_400)?
        .checked_add(i64::from(span.get_hours()).checked_mul(3_600)?)?
        .checked_add(span.get_minutes().checked_mul(60)?)?
        .checked_add(span.get_seconds())?;
    let nanos = span
        .get_milliseconds()
        .checked_mul(1_000_000)?
        .checked_add(span.get_microseconds().checked_mul(1_000)?)?;
    Some((seconds, nanos.checked_add(span.get_nanoseconds())?))
}

/// Where in a stream to begin, as the argument `x-stream-offset`.
///
/// # Errors
/// If it is neither a word, a number nor a time.
pub fn stream_offset(text: &str) -> Result<Value, Failure> {
    let word = text.to_ascii_lowercase();
    if matches!(word.as_str(), "first" | "last" | "next") {
        return Ok(word.into());
    }
    if let Ok(offset) = text.parse::<u64>() {
        return Ok(Value::Long(offset.cast_signed()));
    }
    match text
        .parse::<jiff::Timestamp>()
        .map(|time| u64::try_from(time.as_second()))
    {
        Ok(Ok(seconds)) => Ok(Value::Timestamp(seconds)),
        _ => usage(format!(
            "'{text}' is not a valid stream offset value. Write first, last, next, a number, or a time such as \
             2022-06-03T07:45:54Z."
        )),
    }
}

/// `VALUE:SECONDS`, several, of the flag with this long name.
///
/// # Errors
/// If one of them is anything else.
pub fn variable(long: &str, list: &[String]) -> Result<Vec<(u32, Duration)>, Failure> {
    let read = |text: &String| {
        let (value, seconds) = text.split_once(':')?;
        let value = value.parse::<i32>().ok().and_then(|it| u32::try_from(it).ok())?;
        let seconds = seconds.parse::<i32>().ok().filter(|it| *it > 0)?;
        Some((value, Duration::from_secs(u64::from(seconds.unsigned_abs()))))
    };
    let all: Option<Vec<_>> = list.iter().map(read).collect();
    match all {
        Some(all) => Ok(all),
        None => usage(format!(
            "Invalid variable value definition: {}. Should be [VALUE]:[DURATION] with VALUE integer >= 0 and DURATION \
             integer > 0: correct --{long}.",
            list.iter()
                .find(|text| read(text).is_none())
                .map_or("", String::as_str)
        )),
    }
}

/// `30` or `30-60`, in seconds. The end belongs to the range in PerfTest, up to the last millisecond of it.
///
/// # Errors
/// If it is anything else, or the end is not behind the beginning.
pub fn pause(text: &str) -> Result<(Duration, Duration), Failure> {
    let second = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        text.parse::<u32>()
            .ok()
            .filter(|_| digits)
            .map(|it| Duration::from_secs(it.into()))
    };
    let range = match text.trim().split_once('-') {
        None => second(text.trim()).map(|pause| (pause, pause)),
        Some((from, to)) => second(from).zip(second(to)),
    };
    match range {
        None => usage(format!(
            "Incorrect argument for connection recovery interval. Must be e.g. 30 or 30-60, and is '{text}'."
        )),
        Some((from, to)) if text.contains('-') && to <= from => usage(format!(
            "Wrong interval min-max values: {text}. Write the smaller number first."
        )),
        Some(range) => Ok(range),
    }
}

/// A pattern with `%d` (also `%05d`, `%5d`, `%-5d`, `%x`, `%s`, `%%`) for a number, as `String.format` fills it in.
///
/// # Errors
/// If it asks for anything else.
pub fn numbered(pattern: &str, number: u32) -> Result<String, Failure> {
    let mut name = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('%') {
        name.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest
            .find(|it: char| it.is_ascii_alphabetic() || it == '%')
            .unwrap_or(rest.len());
        let (how, kind) = (&rest[..end], rest[end..].chars().next());
        let (left, zeros) = (how.starts_with('-'), how.starts_with('0'));
        let width = how.trim_start_matches(['-', '0']);
        let width = if width.is_empty() {
            Some(0)
        } else {
            width.parse::<usize>().ok().filter(|it| *it <= 200)
        };
        let text = match kind {
            Some('%') if how.is_empty() => Some("%".to_owned()),
            Some('d' | 's') => Some(number.to_string()),
            Some('x') => Some(format!("{number:x}")),
            _ => None,
        };
        let Some((width, text)) = width.zip(text) else {
            return usage(format!(
                "--queue-pattern is '{pattern}': write %d where the number goes, and %% for a %."
            ));
        };
        match (left, zeros) {
            (true, _) => name.push_str(&format!("{text:<width$}")),
            (false, true) => name.push_str(&format!("{text:0>width$}")),
            (false, false) => name.push_str(&format!("{text:>width$}")),
        }
        rest = &rest[end + 1..];
    }
    name.push_str(rest);
    if name.len() > 255 {
        return usage(format!(
            "--queue-pattern gives the name '{name}', which is longer than 255 bytes: write a shorter one."
        ));
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(list: &[&str]) -> Vec<String> {
        list.iter().map(|it| (*it).to_owned()).collect()
    }

    #[test]
    fn arguments_are_typed_as_by_perftest() {
        let lists = strings(&[
            "x-max-length=10,x-a=true,x-b=false,x-c=1.5,x-d=",
            "x-max-length=20,e=",
            "x-k=a=b",
        ]);
        let table = pairs("queue-args", &lists).unwrap();
        let wanted = Table::new()
            .with("x-max-length", 20_i64)
            .with("x-a", true)
            .with("x-b", false)
            .with("x-c", "1.5")
            .with("x-d", "")
            .with("e", "")
            .with("x-k", "a=b");
        assert_eq!(table, wanted);
        let lists = strings(&["x-dead-letter-exchange=amq.default,x-single-active-consumer=True,x-n=-5"]);
        let wanted = Table::new()
            .with("x-dead-letter-exchange", "")
            .with("x-single-active-consumer", true)
            .with("x-n", -5_i64);
        assert_eq!(pairs("queue-args", &lists).unwrap(), wanted);
        assert!(pairs("queue-args", &strings(&["=5"])).is_err());
        assert!(pairs("queue-args", &strings(&["5"])).is_err());
    }

    #[test]
    fn a_later_label_of_the_same_name_wins() {
        let lists = strings(&["type=publisher,type=consumer,deployment=low-latency"]);
        let wanted =
            [("type", "consumer"), ("deployment", "low-latency")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(texts("metrics-tags", &lists).unwrap(), wanted);
        assert!(texts("metrics-tags", &strings(&["a"])).is_err());
    }

    #[test]
    fn sizes_have_units_of_powers_of_a_thousand() {
        let table = [
            ("0", 0),
            ("5", 5),
            ("10kb", 10_000),
            ("50MB", 50_000_000),
            ("20gb", 20_000_000_000),
        ];
        for (text, wanted) in table {
            assert_eq!(bytes(text), Ok(wanted), "{text}");
        }
        for text in ["", "gb", "-5", "+5", "5 mb", "5kib", "99999999tb", "1.5gb", "µ"] {
            let told = bytes(text).unwrap_err().to_string();
            assert_eq!(
                told,
                format!("'{text}' is not a valid byte capacity, valid example values: 100gb, 50mb")
            );
        }
    }

    #[test]
    fn ages_are_whole_seconds() {
        for (text, wanted) in [
            ("PT10M30S", "630s"),
            ("P5DT8H", "460800s"),
            ("PT1.9S", "1s"),
            ("pt1h", "3600s"),
        ] {
            assert_eq!(max_age(text).as_deref(), Ok(wanted), "{text}");
        }
        for text in ["", "10", "P1Y", "P1M", "P1W", "1h", "P"] {
            let told = max_age(text).unwrap_err().to_string();
            assert!(
                told.ends_with("is not a valid duration, valid example values: PT15M, PT10H"),
                "{text}: {told}"
            );
        }
        for text in ["PT0S", "-PT5S"] {
            assert!(
                max_age(text)
                    .unwrap_err()
                    .to_string()
                    .ends_with("it must be positive"),
                "{text}"
            );
        }
    }

    #[test]
    fn offsets_are_words_numbers_or_times() {
        assert_eq!(stream_offset("FIRST"), Ok("first".into()));
        assert_eq!(stream_offset("7"), Ok(Value::Long(7)));
        assert_eq!(
            stream_offset("2022-06-03T07:45:54Z"),
            Ok(Value::Timestamp(1_654_242_354))
        );
        assert_eq!(
            stream_offset("2022-06-03T09:45:54+02:00"),
            Ok(Value::Timestamp(1_654_242_354))
        );
        for text in ["", "soon", "-1", "1900-01-01T00:00:00Z"] {
            assert!(
                stream_offset(text)
                    .unwrap_err()
                    .to_string()
                    .contains("is not a valid stream offset value."),
                "{text}"
            );
        }
    }

    #[test]
    fn variable_values_hold_for_seconds() {
        let all = variable("variable-rate", &strings(&["200:60", "0:20"])).unwrap();
        assert_eq!(
            all,
            [(200, Duration::from_secs(60)), (0, Duration::from_secs(20))]
        );
        for text in ["", "5", ":5", "5:", "5:0", "-1:5", "1:2:3", "9999999999:1"] {
            let told = variable("variable-rate", &strings(&["1:1", text]))
                .unwrap_err()
                .to_string();
            assert!(
                told.starts_with(&format!("Invalid variable value definition: {text}. Should be")),
                "{told}"
            );
        }
    }

    #[test]
    fn pauses_are_fixed_or_drawn_from_a_range() {
        let seconds = Duration::from_secs;
        assert_eq!(pause("5"), Ok((seconds(5), seconds(5))));
        assert_eq!(pause(" 30-60 "), Ok((seconds(30), seconds(60))));
        assert!(
            pause("9-3")
                .unwrap_err()
                .to_string()
                .starts_with("Wrong interval min-max values: 9-3")
        );
        for text in ["", "a", "5-", "-5", "1-2-3", "+5"] {
            assert!(
                pause(text)
                    .unwrap_err()
                    .to_string()
                    .starts_with("Incorrect argument"),
                "{text}"
            );
        }
    }

    #[test]
    fn patterns_are_filled_in_as_by_java() {
        let table = [
            ("perf-%d", "perf-7"),
            ("%05d", "00007"),
            ("<%3d>", "<  7>"),
            ("<%-3d>", "<7  >"),
            ("%d-%d", "7-7"),
            ("100%%-%x", "100%-7"),
            ("plain", "plain"),
        ];
        for (pattern, wanted) in table {
            assert_eq!(numbered(pattern, 7).as_deref(), Ok(wanted));
        }
        for pattern in ["%", "%f", "%9999d", "%é", "a%"] {
            assert!(numbered(pattern, 7).is_err(), "{pattern}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_a_reader_panic(text in "\\PC{0,12}|[%0-9:,=.PTDHMSptkmgb-]{0,12}") {
            let list = [text.clone()];
            let _ = (pairs("x", &list), texts("x", &list), bytes(&text), max_age(&text));
            let _ = (stream_offset(&text), variable("x", &list), pause(&text), numbered(&text, 3));
        }
    }
}
