//! The time of day for log lines, in UTC.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use std::fmt;
use std::time::SystemTime;

/// A moment; prints as `2026-11-21 02:00:00.123`.
pub struct WallTime(Timestamp);

impl WallTime {
    pub fn now() -> Self {
        // A clock that is beyond the calendar prints as 1970; a log line is no place to fail.
        Self(Timestamp::try_from(SystemTime::now()).unwrap_or(Timestamp::UNIX_EPOCH))
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let it = Offset::UTC.to_datetime(self.0);
        write!(
            f,
            "{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{:03}",
            it.year(),
            it.month(),
            it.day(),
            it.hour(),
            it.minute(),
            it.second(),
            it.millisecond()
        )
    }
}

/// The calendar's view of a second since 1970; the last one that it knows stands for all later ones.
pub(super) fn civil(second: u64) -> DateTime {
    let moment = i64::try_from(second).map(Timestamp::from_second);
    let moment = moment.ok().and_then(Result::ok).unwrap_or(Timestamp::MAX);
    Offset::UTC.to_datetime(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64, millis: i32) -> String {
        WallTime(Timestamp::new(seconds, millis * 1_000_000).unwrap()).to_string()
    }

    #[test]
    fn known_moments() {
        assert_eq!(at(0, 0), "1970-01-01 00:00:00.000");
        assert_eq!(at(951_782_400, 1), "2000-02-29 00:00:00.001");
        assert_eq!(at(1_709_251_199, 999), "2024-02-29 23:59:59.999");
        assert_eq!(at(1_795_226_400, 123), "2026-11-21 02:00:00.123");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01 00:00:00.000");
    }
}
