//! Times as people write them: milliseconds since the Unix epoch, `2026-03-01T12:30:00Z` (RFC 3339), or how long ago, `15m`.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

/// The time in milliseconds since the Unix epoch, if it is `now_ms` now; `None` if the text is no time.
pub fn parse(text: &str, now_ms: u64) -> Option<u64> {
    if let Ok(ms) = text.parse() {
        return Some(ms);
    }
    ago(text)
        .map(|ms| now_ms.saturating_sub(ms))
        .or_else(|| rfc3339(text))
}

fn ago(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let ms = match unit {
        "s" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(ms)
}

/// Without a zone it is UTC; a day alone is no time.
fn rfc3339(text: &str) -> Option<u64> {
    text.find(['T', 't', ' '])?;
    let in_utc = || {
        let moment = text.parse::<DateTime>().ok()?.to_zoned(TimeZone::UTC).ok()?;
        Some(moment.timestamp())
    };
    let moment = text.parse::<Timestamp>().ok().or_else(in_utc)?;
    u64::try_from(moment.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_three_forms() {
        let now = 1_000_000_000;
        for (text, ms) in [
            ("1700000000123", 1_700_000_000_123),
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29T12:30:00Z", 951_827_400_000),
            ("2024-03-01 00:00", 1_709_251_200_000),
            ("2023-11-14T23:13:20.5+01:00", 1_700_000_000_500),
            ("15m", now - 900_000),
            ("2h", now - 7_200_000),
            ("999999d", 0),
        ] {
            assert_eq!(parse(text, now), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "m",
            "-5m",
            "5w",
            "yesterday",
            "2024-13-01T00:00:00Z",
            "2024-01-01T25:00:00Z",
            "2024-01-01",
            "99999999999999999999d",
            "1969-12-31T23:59:59Z",
            "2024-01-01T00:00:00+é",
            "é",
        ] {
            assert_eq!(parse(text, 0), None, "{text}");
        }
    }
}
