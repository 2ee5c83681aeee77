//! The little languages of values, as stream-perf-test reads them.

use crate::cli::settings::parts;
use crate::failure::Failure;
use protocol::stream::OffsetSpec;
use std::time::Duration;

fn usage<T>(text: String) -> Result<T, Failure> {
    Err(Failure::Usage(text))
}

/// `10m30s`, `5 ms`, `200us`, `1h`, and what ISO 8601 has of fixed length: `PT10M30S`, `P5DT8H`.
///
/// # Errors
/// If it is neither.
pub fn duration(long: &str, text: &str) -> Result<Duration, Failure> {
    let bare: String = text.chars().filter(|it| !it.is_whitespace()).collect();
    let read = if bare.starts_with(['P', 'p']) {
        iso(&bare)
    } else {
        units(&bare)
    };
    match read {
        Some(duration) => Ok(duration),
        None => usage(format!(
            "--{long} is '{text}': write a time such as 10m30s, 5ms or PT15M."
        )),
    }
}

fn iso(text: &str) -> Option<Duration> {
    let span: jiff::Span = text.parse().ok()?;
    if span.get_years() != 0 || span.get_months() != 0 || span.get_weeks() != 0 {
        return None;
    }
    let days = i64::from(span.get_days()).checked_mul(86_400)?;
    let seconds = span
        .days(0)
        .to_duration(jiff::SpanRelativeTo::days_are_24_hours())
        .ok()?;
    let seconds = seconds.checked_add(jiff::SignedDuration::from_secs(days))?;
    seconds.try_into().ok()
}

/// Numbers with units, one behind the other; 0 needs none.
fn units(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut all = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        let unit = &rest[digits..];
        let end = unit.find(|it: char| it.is_ascii_digit()).unwrap_or(unit.len());
        let seconds = match &unit[..end] {
            "h" => 3_600.0,
            "m" => 60.0,
            "s" => 1.0,
            "ms" => 1e-3,
            "us" | "µs" => 1e-6,
            "ns" => 1e-9,
            _ => return None,
        };
        all = all.checked_add(Duration::try_from_secs_f64(number * seconds).ok()?)?;
        rest = &unit[end..];
    }
    (!text.is_empty()).then_some(all)
}

/// `10` or `1-10` or `1..10`: the first and the last number.
///
/// # Errors
/// If it is none of these, or the last one is not above the first.
pub fn range(long: &str, text: &str) -> Result<(u32, u32), Failure> {
    let normal = text.replace("..", "-");
    let number = |text: &str| text.parse::<u32>().ok().filter(|it| *it > 0);
    let read = match normal.split_once('-') {
        None => number(&normal).map(|count| (1, count)),
        Some((from, to)) => number(from).zip(number(to)).filter(|(from, to)| from < to),
    };
    match read {
        Some(range) => Ok(range),
        None => usage(format!(
            "'{text}' is not valid, valid example values: 10, 1-10 (--{long})."
        )),
    }
}

/// `a,b,c`, or `1..15` for all numbers between.
///
/// # Errors
/// For a range that is none, or of more than 100,000 numbers.
pub fn filter_values(text: &str) -> Result<Vec<String>, Failure> {
    let Some((from, to)) = text.split_once("..") else {
        return Ok(parts(text));
    };
    match from.parse::<i32>().ok().zip(to.parse::<i32>().ok()) {
        Some((from, to)) if from <= to && to.abs_diff(from) < 100_000 => {
            Ok((from..=to).map(|it| it.to_string()).collect())
        }
        _ => usage(format!(
            "'{text}' is not valid, valid example values: 1..10, 1..20 (--filter-value-set)."
        )),
    }
}

/// Where a subscription begins.
///
/// # Errors
/// If it is neither a word, a number nor a time.
pub fn offset(text: &str) -> Result<OffsetSpec, Failure> {
    match text.to_ascii_lowercase().as_str() {
        "first" => return Ok(OffsetSpec::First),
        "last" => return Ok(OffsetSpec::Last),
        "next" => return Ok(OffsetSpec::Next),
        _ => {}
    }
    if let Ok(offset) = text.parse() {
        return Ok(OffsetSpec::Offset(offset));
    }
    match text.parse::<jiff::Timestamp>() {
        Ok(time) => Ok(OffsetSpec::Timestamp(time.as_millisecond())),
        Err(_) => usage(format!(
            "'{text}' is not a valid offset value, valid values are 'first', 'last', 'next', an unsigned long, or an ISO 8601 formatted timestamp (eg. 2020-06-03T07:45:54Z)"
        )),
    }
}

/// `10-5`: chunks at first, and after how many of them as many are asked for; `10` is `10-5`.
///
/// # Errors
/// If it is none, or with these credits a consumer would stop for good.
pub fn credits(text: &str) -> Result<(u16, u16), Failure> {
    let read = match text.split_once('-') {
        Some((first, every)) => first.parse::<u16>().ok().zip(every.parse::<u16>().ok()),
        None => text.parse::<u16>().ok().map(|first| (first, (first / 2).max(1))),
    };
    match read {
        Some((first, every)) if every >= 1 && first >= every => Ok((first, every)),
        _ => usage(format!(
            "'{text}' is not valid, valid example values: 10-5, 5-2 (--credits; the second not 0 and not above the first)."
        )),
    }
}

/// `5` or `5:10`: seconds before the first attempt and between the others.
///
/// # Errors
/// If it is none of these, or 0.
pub fn pauses(long: &str, text: &str) -> Result<(Duration, Duration), Failure> {
    let number = |text: &str| {
        text.parse::<u32>()
            .ok()
            .filter(|it| *it > 0)
            .map(|it| Duration::from_secs(it.into()))
    };
    let read = match text.split_once(':') {
        Some((first, next)) => number(first).zip(number(next)),
        None => number(text).map(|it| (it, it)),
    };
    match read {
        Some(pauses) => Ok(pauses),
        None => usage(format!(
            "--{long} is '{text}': write seconds, such as 5, or 5:10 for 5 s at first and 10 s then."
        )),
    }
}

/// The names of numbered streams, as stream-perf-test makes them.
///
/// # Errors
/// If there is not exactly one name or pattern to number.
pub fn numbered(names: &[String], (from, to): (u32, u32)) -> Result<Vec<String>, Failure> {
    if (from, to) == (1, 1) {
        return Ok(names.to_vec());
    }
    let [name] = names else {
        return usage("Enter only 1 stream when --stream-count is specified.".into());
    };
    let Some((head, pattern)) = name.split_once('%') else {
        let digits = to.to_string().len();
        return Ok((from..=to).map(|it| format!("{name}-{it:0digits$}")).collect());
    };
    let Some((width, tail)) = pattern
        .split_once('d')
        .filter(|(width, tail)| width.bytes().all(|it| it.is_ascii_digit()) && !tail.contains('%'))
    else {
        return usage(format!(
            "--streams is '{name}': write a pattern with one number in it, such as stream-%d or stream-%03d."
        ));
    };
    let digits: usize = width.parse().unwrap_or(0);
    let number = |it: u32| match width.starts_with('0') {
        true => format!("{it:0digits$}"),
        false => format!("{it:digits$}"),
    };
    Ok((from..=to)
        .map(|it| format!("{head}{}{tail}", number(it)))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_gos_or_isos() {
        for (text, ms) in [
            ("10m30s", 630_000.0),
            ("5 ms", 5.0),
            ("200us", 0.2),
            ("1.5s", 1_500.0),
            ("0", 0.0),
            ("PT10M30S", 630_000.0),
            ("P5DT8H", 460_800_000.0),
        ] {
            let read = duration("max-age", text).unwrap();
            assert!((read.as_secs_f64() * 1e3 - ms).abs() < 1e-6, "{text}: {read:?}");
        }
        for text in ["", "5", "5d", "P1Y", "-5s", "ms", "1e9h"] {
            assert!(duration("max-age", text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_of_streams_and_filter_values_may_be_ranges() {
        assert_eq!(range("stream-count", "10"), Ok((1, 10)));
        assert_eq!(range("stream-count", "3..7"), range("stream-count", "3-7"));
        for text in ["0", "7-3", "3-3", "x", "1-2-3", "-1"] {
            assert!(range("stream-count", text).is_err(), "{text}");
        }
        assert_eq!(
            filter_values("1..3"),
            Ok(["1", "2", "3"].map(str::to_owned).to_vec())
        );
        assert_eq!(filter_values("a, b"), Ok(["a", "b"].map(str::to_owned).to_vec()));
        assert!(filter_values("1..").is_err() && filter_values("1..1000000").is_err());
    }

    #[test]
    fn streams_are_numbered_with_as_many_digits_as_the_last_one_needs() {
        let names = |name: &str, range| numbered(&[name.to_owned()], range).map(|all| all.join(" "));
        assert_eq!(names("s", (1, 1)), Ok("s".into()));
        assert_eq!(names("s", (9, 10)), Ok("s-09 s-10".into()));
        assert_eq!(names("s%da", (1, 2)), Ok("s1a s2a".into()));
        assert_eq!(names("s-%03d", (1, 2)), Ok("s-001 s-002".into()));
        assert!(names("s%x", (1, 2)).is_err() && names("%d%d", (1, 2)).is_err());
        assert!(numbered(&["a".into(), "b".into()], (1, 2)).is_err());
    }

    #[test]
    fn offsets_credits_and_pauses_are_read() {
        assert_eq!(offset("NEXT"), Ok(OffsetSpec::Next));
        assert_eq!(offset("18446744073709551615"), Ok(OffsetSpec::Offset(u64::MAX)));
        assert_eq!(offset("1970-01-01T00:00:01Z"), Ok(OffsetSpec::Timestamp(1_000)));
        assert!(offset("yesterday").is_err());
        assert_eq!(credits("10-5"), Ok((10, 5)));
        assert_eq!((credits("10"), credits("1")), (Ok((10, 5)), Ok((1, 1))));
        assert!(credits("5-10").is_err() && credits("0").is_err() && credits("1-0").is_err());
        let seconds = Duration::from_secs;
        assert_eq!(pauses("x", "5:1"), Ok((seconds(5), seconds(1))));
        assert!(pauses("x", "0").is_err() && pauses("x", "5:").is_err());
    }
}
