//! What only streams and their consumers say: ages, and where a consumer begins.

use crate::refusal::ArgumentFault;
use model::table::{Table, Value};

/// The largest segment that may be asked for, in bytes, as in RabbitMQ.
pub(super) const SEGMENT_MOST: i64 = 3_000_000_000;

/// How large the filter of a chunk may be, in bytes.
const FILTER_SIZES: std::ops::RangeInclusive<i64> = 16..=255;

/// The most filter values that a consumer may name.
const FILTERS_MOST: usize = 255;

const SECOND_MS: u64 = 1_000;
const DAY_MS: u64 = 86_400 * SECOND_MS;

/// The milliseconds that a text like `7D` means: a number and one of Y (365 days), M (30 days), D, h, m and s. `None` if it is
/// something else, or nothing.
pub fn age_ms(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit_ms = match unit {
        "Y" => 365 * DAY_MS,
        "M" => 30 * DAY_MS,
        "D" => DAY_MS,
        "h" => 3_600 * SECOND_MS,
        "m" => 60 * SECOND_MS,
        "s" => SECOND_MS,
        _ => return None,
    };
    if number.is_empty() || !number.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let ms = number.parse::<u64>().ok()?.checked_mul(unit_ms)?;
    (ms > 0).then_some(ms)
}

/// Checks what must not be too large, in RabbitMQ's words.
pub(super) fn check_sizes(arguments: &Table) -> Result<(), (&'static str, ArgumentFault)> {
    let said = |name| arguments.get(name).and_then(Value::as_integer);
    let name = "x-stream-max-segment-size-bytes";
    if said(name).is_some_and(|bytes| bytes > SEGMENT_MOST) {
        return Err((
            name,
            ArgumentFault::Words(format!("Exceeded max value for {name}")),
        ));
    }
    let name = "x-stream-filter-size-bytes";
    if said(name).is_some_and(|bytes| !FILTER_SIZES.contains(&bytes)) {
        return Err((name, ArgumentFault::Words(format!("Invalid value for {name}"))));
    }
    Ok(())
}

/// With which message of a stream a consumer begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StreamOffset {
    /// With the oldest one that is there.
    First,
    /// With the last chunk.
    Last,
    /// With what comes next.
    #[default]
    Next,
    /// With this one, or the oldest one behind it.
    Offset(u64),
    /// With the chunk that was written at this time, in milliseconds since the Unix epoch, or the first one after it.
    Time(u64),
    /// The same, with a time so many milliseconds ago.
    Ago(u64),
}

/// What a consumer of a stream asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamArguments {
    /// `x-stream-offset`.
    pub offset: StreamOffset,
    /// `x-stream-filter`: only chunks that may have something with one of these values; all, if there is none.
    pub filter: Vec<Vec<u8>>,
    /// `x-stream-match-unfiltered`: chunks, too, that have something without a value.
    pub unfiltered: bool,
}

impl StreamArguments {
    /// Reads the arguments of a consumer.
    ///
    /// # Errors
    /// The argument that is wrong, and how.
    pub fn read(arguments: &Table) -> Result<Self, (&'static str, ArgumentFault)> {
        let value = |name| arguments.get(name);
        Ok(Self {
            offset: value(OFFSET).map_or(Ok(StreamOffset::default()), |it| wrong(OFFSET, offset(it)))?,
            filter: value(FILTER).map_or(Ok(Vec::new()), |it| wrong(FILTER, filter(it)))?,
            unfiltered: value(UNFILTERED) == Some(&Value::Bool(true)),
        })
    }
}

const OFFSET: &str = "x-stream-offset";
const FILTER: &str = "x-stream-filter";
const UNFILTERED: &str = "x-stream-match-unfiltered";

fn wrong<T>(name: &'static str, read: Result<T, String>) -> Result<T, (&'static str, ArgumentFault)> {
    read.map_err(|reason| (name, ArgumentFault::Value(reason)))
}

fn offset(value: &Value) -> Result<StreamOffset, String> {
    if let Some(number) = value.as_integer() {
        // What is below the first one is the first one.
        return Ok(StreamOffset::Offset(u64::try_from(number).unwrap_or(0)));
    }
    match value {
        Value::Timestamp(seconds) => Ok(StreamOffset::Time(seconds.saturating_mul(SECOND_MS))),
        Value::LongStr(_) => {
            let text = value.as_str().unwrap_or("not UTF-8");
            match text {
                "first" => Ok(StreamOffset::First),
                "last" => Ok(StreamOffset::Last),
                "next" => Ok(StreamOffset::Next),
                interval => {
                    let ago = age_ms(interval).map(StreamOffset::Ago);
                    let told = if interval.is_empty() {
                        ""
                    } else {
                        &format!("\"{interval}\"")
                    };
                    ago.ok_or_else(|| format!("{{invalid_stream_offset_arg,{{longstr,<<{told}>>}}}}"))
                }
            }
        }
        other => Err(format!("{{invalid_stream_offset_arg,{}}}", other.type_name())),
    }
}

fn filter(value: &Value) -> Result<Vec<Vec<u8>>, String> {
    let text = |value: &Value| {
        let bytes = value.as_bytes().map(<[u8]>::to_vec);
        bytes.ok_or_else(|| format!("{{invalid_filter_value,{}}}", value.type_name()))
    };
    match value {
        Value::Array(values) if values.len() <= FILTERS_MOST => values.iter().map(text).collect(),
        Value::Array(_) => Err("too_many_filter_values".into()),
        other => text(other).map(|one| vec![one]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_numbers_with_a_unit() {
        for (text, ms) in [
            ("7D", 7 * DAY_MS),
            ("1Y", 365 * DAY_MS),
            ("2M", 60 * DAY_MS),
            ("1h", 3_600_000),
            ("5m", 300_000),
            ("30s", 30_000),
        ] {
            assert_eq!(age_ms(text), Some(ms));
        }
        for text in [
            "",
            "D",
            "1",
            "1W",
            "-1D",
            "1.5h",
            "0s",
            "+1s",
            "99999999999999Y",
            "\u{e9}",
        ] {
            assert_eq!(age_ms(text), None, "{text}");
        }
    }

    #[test]
    fn a_consumer_says_where_it_begins_and_what_it_wants_to_see() {
        let read =
            |value: Value| StreamArguments::read(&Table::new().with(OFFSET, value)).map(|it| it.offset);
        let text = |text: &str| Value::LongStr(text.as_bytes().into());
        assert_eq!(read(text("first")), Ok(StreamOffset::First));
        assert_eq!(read(text("1h")), Ok(StreamOffset::Ago(3_600_000)));
        assert_eq!(read(7_i64.into()), Ok(StreamOffset::Offset(7)));
        assert_eq!(read(Value::Timestamp(2)), Ok(StreamOffset::Time(2_000)));
        assert!(read(text("soon")).is_err());
        assert_eq!(read((-1_i64).into()), Ok(StreamOffset::Offset(0)));
        assert_eq!(
            StreamArguments::read(&Table::new()),
            Ok(StreamArguments::default())
        );
        let values = Value::Array(vec![text("a"), text("b")]);
        let filtered = StreamArguments::read(&Table::new().with(FILTER, values)).unwrap();
        assert_eq!(filtered.filter, [b"a".to_vec(), b"b".to_vec()]);
    }
}
