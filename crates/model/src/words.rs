//! Numbers as people read them in a sentence.

const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];

/// So many of something: `1 message`, `3 messages`.
pub fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// The same with its verb: `1 message is`, `3 messages are`.
pub fn counted_are(count: u64, noun: &str) -> String {
    let verb = if count == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(count, noun))
}

/// A number of bytes in a unit that fits it: `512 bytes`, `6.8 KiB`.
pub fn size(bytes: u64) -> String {
    if bytes < 1024 {
        return counted(bytes, "byte");
    }
    let mut amount = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    // What would be shown as 1024.0 belongs to the next unit.
    while amount >= 1023.95 && units.len() > 0 {
        amount /= 1024.0;
        unit = units.next();
    }
    format!("{amount:.1} {}", unit.copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!(counted_are(1, "message"), "1 message is");
        assert_eq!(counted_are(0, "message"), "0 messages are");
        assert_eq!(counted(2, "consumer"), "2 consumers");
    }

    #[test]
    fn sizes_have_the_unit_that_fits() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (1023, "1023 bytes"),
            (7_000, "6.8 KiB"),
            (256_000_000, "244.1 MiB"),
            ((1 << 30) - 1, "1.0 GiB"),
            (5 << 40, "5.0 TiB"),
            (5 << 50, "5120.0 TiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }
}
