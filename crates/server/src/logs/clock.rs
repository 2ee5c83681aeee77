//! The time of day for log lines, in UTC, without a calendar library.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A moment; prints as `2026-11-21 02:00:00.123`.
pub struct WallTime(Duration);

impl WallTime {
    pub fn now() -> Self {
        // A clock before 1970 prints as 1970; a log line is no place to fail.
        Self(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl fmt::Display for WallTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        let millis = self.0.subsec_millis();
        write!(
            f,
            "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millis:03}"
        )
    }
}

/// Year, month and day of a day counted from 1970-01-01.
pub(super) fn date(day: u64) -> (u64, u64, u64) {
    // Years run from March here, so that the leap day is the last of its year; 719,468 days lie between
    // 0000-03-01 and 1970-01-01, and the calendar repeats every 400 years of 146,097 days.
    let day = day + 719_468;
    let (era, day_of_era) = (day / 146_097, day % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, day_of_month)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, millis: u64) -> String {
        WallTime(Duration::from_secs(seconds) + Duration::from_millis(millis)).to_string()
    }

    #[test]
    fn known_moments() {
        assert_eq!(at(0, 0), "1970-01-01 00:00:00.000");
        assert_eq!(at(951_782_400, 1), "2000-02-29 00:00:00.001");
        assert_eq!(at(1_709_251_199, 999), "2024-02-29 23:59:59.999");
        assert_eq!(at(1_795_226_400, 123), "2026-11-21 02:00:00.123");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01 00:00:00.000");
    }

    #[test]
    fn days_follow_each_other() {
        let mut last = date(0);
        for day in 1..200_000 {
            let next = date(day);
            let (year, month, day) = next;
            assert!(
                next > last && (1..=12).contains(&month) && (1..=31).contains(&day),
                "{year}-{month}-{day}"
            );
            last = next;
        }
    }
}
