//! Numbers with units, as RabbitMQ reads them. Two notations exist, and they disagree about `MB`.

/// A size in information units: `500`, `50MB`, `2GiB`. Used for watermarks (memory and disk).
///
/// `k`, `kB`, `M`, `MB`, … count in thousands, `Ki`, `KiB`, … in 1,024s; letter case is free and no blank may stand
/// between number and unit. (RabbitMQ's own comments call `k` and `M` binary; its code, 4.3.6, counts them
/// decimal, and we follow the code.)
pub fn information_units(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits_only(digits)?;
    let factor = match text.get(digits.len()..)?.to_ascii_lowercase().as_str() {
        "" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_u64.pow(2),
        "g" | "gb" => 1_000_u64.pow(3),
        "t" | "tb" => 1_000_u64.pow(4),
        "p" | "pb" => 1_000_u64.pow(5),
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        "pi" | "pib" => 1 << 50,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// A size in Cuttlefish's `bytesize`: `131072`, `128KB`, `1MB`; every unit counts in 1,024s. Used for frame sizes.
pub fn byte_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = digits_only(digits)?;
    let factor = match text.get(digits.len()..)? {
        "" => 1,
        "kb" | "KB" => 1 << 10,
        "mb" | "MB" => 1 << 20,
        "gb" | "GB" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// A duration in Cuttlefish's form, in milliseconds: `1500`, `30s`, `1h30m`; weeks (`w`) are the longest unit, `f` (a
/// fortnight) aside.
pub fn duration_ms(text: &str) -> Option<u64> {
    if let Some(ms) = digits_only(text) {
        return Some(ms);
    }
    let mut total = 0_u64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, tail) = rest.split_at(digits);
        let unit = tail
            .find(|c: char| !c.is_ascii_alphabetic())
            .unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit);
        let factor = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            "w" => 604_800_000,
            "f" => 1_209_600_000,
            _ => return None,
        };
        total = total.checked_add(digits_only(number)?.checked_mul(factor)?)?;
        rest = tail;
    }
    (!text.is_empty()).then_some(total)
}

/// A share, such as `0.6`, between `least` and `most` (both allowed).
pub fn share(text: &str, least: f64, most: f64) -> Option<f64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let value: f64 = if plain { text.parse().ok()? } else { return None };
    (least..=most).contains(&value).then_some(value)
}

/// A whole number without sign, blank or underscore, between `least` and `most` (both allowed).
pub fn whole(text: &str, least: u64, most: u64) -> Option<u64> {
    digits_only(text).filter(|n| (least..=most).contains(n))
}

fn digits_only(text: &str) -> Option<u64> {
    // `str::parse` would also take a leading `+`.
    if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn information_units_are_those_of_rabbitmq() {
        for (text, bytes) in [
            ("500", 500),
            ("5k", 5_000),
            ("5K", 5_000),
            ("5kB", 5_000),
            ("5Ki", 5_120),
            ("5kib", 5_120),
            ("5KiB", 5_120),
            ("5M", 5_000_000),
            ("5mb", 5_000_000),
            ("5MiB", 5_242_880),
            ("5GB", 5_000_000_000),
            ("5Gi", 5_368_709_120),
            ("5TiB", 5_497_558_138_880),
            ("5P", 5_000_000_000_000_000),
        ] {
            assert_eq!(information_units(text), Some(bytes), "{text}");
        }
        for text in [
            "",
            "MB",
            "5 MB",
            "1.5GB",
            "5b",
            "5B",
            "5X",
            "-5",
            "+5",
            "5MB ",
            "99999999999PB",
            "٣",
        ] {
            assert_eq!(information_units(text), None, "{text:?}");
        }
    }

    #[test]
    fn byte_sizes_count_in_1024s() {
        assert_eq!(byte_size("128"), Some(128));
        assert_eq!(byte_size("128KB"), Some(131_072));
        assert_eq!(byte_size("1mb"), Some(1_048_576));
        assert_eq!(byte_size("1GB"), Some(1_073_741_824));
        for text in ["1M", "1MiB", "1K", "Kb", "", "1Kb"] {
            assert_eq!(byte_size(text), None, "{text:?}");
        }
    }

    #[test]
    fn durations_are_those_of_cuttlefish() {
        for (text, ms) in [
            ("1500", 1_500),
            ("30s", 30_000),
            ("1h30m", 5_400_000),
            ("7d", 604_800_000),
            ("5ms", 5),
        ] {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        for text in ["", "s", "5x", "-1s", "1 h", "5s5", "99999999999999999w"] {
            assert_eq!(duration_ms(text), None, "{text:?}");
        }
    }

    #[test]
    fn shares_and_whole_numbers_keep_their_bounds() {
        assert_eq!(share("0.6", 0.0, 1.0), Some(0.6));
        assert_eq!(share("1", 0.0, 1.0), Some(1.0));
        for text in ["1.1", "-0.1", "nan", "inf", "1e-1", "", "."] {
            assert_eq!(share(text, 0.0, 1.0), None, "{text:?}");
        }
        assert_eq!(whole("65535", 0, 65_535), Some(65_535));
        assert_eq!(whole("65536", 0, 65_535), None);
        assert_eq!(whole("0", 1, 2), None);
    }

    proptest! {
        #[test]
        fn plain_numbers_are_bytes(n: u64) {
            prop_assert_eq!(information_units(&n.to_string()), Some(n));
            prop_assert_eq!(byte_size(&n.to_string()), Some(n));
        }

        #[test]
        fn any_text_is_answered(text in "\\PC{0,40}") {
            let _ = (information_units(&text), byte_size(&text), share(&text, 0.0, 1.0), duration_ms(&text));
        }
    }
}
