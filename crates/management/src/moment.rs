//! Times as people write them: milliseconds since the Unix epoch, `2026-03-01T12:30:00Z` (RFC 3339), or how long ago, `15m`.

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

/// Seconds may be left out and may have fractions; without a zone it is UTC.
fn rfc3339(text: &str) -> Option<u64> {
    let (date, time) = text.split_once(['T', 't', ' '])?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let mut clock = clock.splitn(3, ':');
    let hours: i64 = clock.next()?.parse().ok()?;
    let minutes: i64 = clock.next()?.parse().ok()?;
    let seconds: f64 = clock.next().unwrap_or("0").parse().ok()?;
    let in_range = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hours)
        && (0..60).contains(&minutes)
        && (0.0..61.0).contains(&seconds);
    if !in_range {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hours) * 60 + minutes - offset_minutes(zone)?;
    u64::try_from(minutes * 60_000 + (seconds * 1000.0) as i64).ok()
}

/// How far a zone such as `+02:00` is ahead of UTC.
fn offset_minutes(zone: &str) -> Option<i64> {
    let sign = match zone.chars().next() {
        None | Some('Z' | 'z') => return (zone.len() <= 1).then_some(0),
        Some('-') => -1,
        Some(_) => 1,
    };
    let (hours, minutes) = zone.get(1..)?.split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    ((0..24).contains(&hours) && (0..60).contains(&minutes)).then_some(sign * (hours * 60 + minutes))
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the leap day is a year's last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year / 4 - year / 100 + year / 400;
    // March 1st of the year 0 was 719,468 days earlier.
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
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
