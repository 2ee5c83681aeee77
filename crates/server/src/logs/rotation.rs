//! When a log file is full: RabbitMQ's `log.file.rotation.*`.

use super::clock::civil;

const HOUR: u64 = 3_600;
const DAY: u64 = 24 * HOUR;

/// When the log goes on in a new file, and how many old ones stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rotation {
    /// `log.file.rotation.date`.
    pub date: Option<Moment>,
    /// `log.file.rotation.size`: the file has this many bytes or more.
    pub size: Option<u64>,
    /// `log.file.rotation.count`: so many old files stay, as `NAME.0` (the last one), `NAME.1` and so on; with 0, none.
    pub count: usize,
}

/// A moment that comes again, in UTC as all times of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// `$D16`: each day at this hour.
    Daily { hour: u64 },
    /// `$W0D23`: each week on this day (0 is Sunday) at this hour.
    Weekly { day: u64, hour: u64 },
    /// `$M1D0`: each month on this date, or its last if it is shorter, at this hour.
    Monthly { day: u64, hour: u64 },
}

impl Moment {
    /// Reads RabbitMQ's notation; `$D` alone is at midnight.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('$')?;
        let number = |digits: &str, least: u64, most: u64| match digits {
            "" => Some(0),
            _ if digits.len() > 2 || !digits.bytes().all(|it| it.is_ascii_digit()) => None,
            _ => digits.parse().ok().filter(|n| (least..=most).contains(n)),
        };
        if let Some(hour) = text.strip_prefix('D') {
            let hour = number(hour, 0, 23)?;
            return Some(Self::Daily { hour });
        }
        let (kind, rest) = text.split_at_checked(1)?;
        let (day, hour) = rest.split_once('D').unwrap_or((rest, ""));
        if day.is_empty() {
            return None;
        }
        let hour = number(hour, 0, 23)?;
        match kind {
            "W" => Some(Self::Weekly {
                day: number(day, 0, 6)?,
                hour,
            }),
            "M" => Some(Self::Monthly {
                day: number(day, 1, 31)?,
                hour,
            }),
            _ => None,
        }
    }

    /// The number of the period that a second since 1970 is in; it rises by one at each such moment.
    pub fn period(self, second: u64) -> u64 {
        match self {
            Self::Daily { hour } => (second + DAY - hour * HOUR) / DAY,
            // The first of January 1970 was a Thursday, day 4.
            Self::Weekly { day, hour } => (second + 4 * DAY + 7 * DAY - day * DAY - hour * HOUR) / (7 * DAY),
            Self::Monthly { day, hour } => {
                let shifted = second + DAY - hour * HOUR;
                let today = civil(shifted - DAY);
                // Where the month is shorter, its last day is the day.
                let reached =
                    u64::from(today.day().unsigned_abs()) >= day || today.day() == today.days_in_month();
                let month = i64::from(today.year()) * 12 + i64::from(today.month());
                month.unsigned_abs() + u64::from(reached)
            }
        }
    }
}

impl Rotation {
    /// True if a file of `size` bytes, last written in the second `last`, is not to be written at `now`.
    pub fn is_due(&self, size: u64, last: u64, now: u64) -> bool {
        let full = self.size.is_some_and(|most| size >= most);
        let over = self
            .date
            .is_some_and(|moment| moment.period(now) > moment.period(last));
        size > 0 && (full || over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_in_rabbitmq() {
        for (text, moment) in [
            ("$D", Moment::Daily { hour: 0 }),
            ("$D0", Moment::Daily { hour: 0 }),
            ("$D23", Moment::Daily { hour: 23 }),
            ("$W0D23", Moment::Weekly { day: 0, hour: 23 }),
            ("$W5", Moment::Weekly { day: 5, hour: 0 }),
            ("$M1D0", Moment::Monthly { day: 1, hour: 0 }),
            ("$M31D6", Moment::Monthly { day: 31, hour: 6 }),
        ] {
            assert_eq!(Moment::parse(text), Some(moment), "{text}");
        }
        for text in [
            "", "$", "D0", "$D24", "$W7D1", "$WD1", "$M0D0", "$M32", "$X1", "$D+1", "$D 1", "$é",
        ] {
            assert_eq!(Moment::parse(text), None, "{text}");
        }
    }

    /// Seconds from 2026-11-21 00:00 (a Saturday).
    const SATURDAY: u64 = 1_795_219_200;

    #[test]
    fn a_period_begins_at_its_moment() {
        for (moment, begin) in [
            (Moment::Daily { hour: 16 }, SATURDAY + 16 * HOUR),
            (Moment::Weekly { day: 0, hour: 23 }, SATURDAY + DAY + 23 * HOUR),
            (Moment::Weekly { day: 6, hour: 0 }, SATURDAY),
            (Moment::Monthly { day: 21, hour: 2 }, SATURDAY + 2 * HOUR),
            // November has 30 days.
            (Moment::Monthly { day: 31, hour: 0 }, SATURDAY + 9 * DAY),
            (Moment::Monthly { day: 1, hour: 0 }, SATURDAY + 10 * DAY),
        ] {
            let before = moment.period(begin - 1);
            assert_eq!(moment.period(begin), before + 1, "{moment:?}");
            let again = (1..800).find(|hours| moment.period(begin + hours * HOUR) > before + 1);
            let expected = match moment {
                Moment::Daily { .. } => 24,
                Moment::Weekly { .. } => 7 * 24,
                Moment::Monthly { day: 21, .. } => 30 * 24,
                Moment::Monthly { .. } => 31 * 24,
            };
            assert_eq!(again, Some(expected), "{moment:?}");
        }
    }

    #[test]
    fn a_file_is_full_by_size_or_by_date_and_an_empty_one_never() {
        let rotation = Rotation {
            date: Some(Moment::Daily { hour: 0 }),
            size: Some(100),
            count: 3,
        };
        assert!(rotation.is_due(100, SATURDAY, SATURDAY));
        assert!(!rotation.is_due(99, SATURDAY, SATURDAY + DAY - 1));
        assert!(rotation.is_due(99, SATURDAY, SATURDAY + DAY));
        assert!(!rotation.is_due(0, SATURDAY, SATURDAY + DAY));
        assert!(!Rotation::default().is_due(u64::MAX, 0, SATURDAY));
    }
}
