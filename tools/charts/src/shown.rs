//! Numbers for people.

/// What stands where there is no figure.
pub const NONE: &str = "–";

/// Three significant digits below 1,000, whole numbers in groups of three above.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size >= 999.5 {
        return grouped(value.round());
    }
    let decimals = match size {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        0.0 => 0,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// At most so many decimals, and no zeros behind the last one that means something.
pub fn shortest(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// A time in microseconds as `µs`, `ms` or `s`.
pub fn time_us(us: f64) -> String {
    match us {
        us if us < 1_000.0 => format!("{} µs", number(us)),
        us if us < 1_000_000.0 => format!("{} ms", number(us / 1_000.0)),
        us => format!("{} s", number(us / 1_000_000.0)),
    }
}

/// A share in per cent; below a tenth of one it is nothing.
pub fn percent(percent: f64) -> String {
    let percent = if percent < 0.1 { 0.0 } else { percent };
    format!("{} %", shortest(percent, 1))
}

/// A size as MB, as the kernel's and the brokers' own pages count them.
pub fn megabytes(bytes: u64) -> String {
    format!("{} MB", number(bytes as f64 / 1e6))
}

/// The text, or a dash.
pub fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

fn grouped(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 { format!("-{out}") } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_mean_something() {
        let shown = [0.0, 0.1234, 1.5, 12.34, 123.4, 999.9, 8_554_002.0, -1_234.0].map(number);
        assert_eq!(
            shown,
            ["0", "0.12", "1.50", "12.3", "123", "1,000", "8,554,002", "-1,234"]
        );
    }

    #[test]
    fn times_and_sizes_have_their_units() {
        assert_eq!(
            [12.0, 1_500.0, 2_500_000.0].map(time_us),
            ["12.0 µs", "1.50 ms", "2.50 s"]
        );
        assert_eq!(megabytes(165_000_000), "165 MB");
        assert_eq!(or_none(None), NONE);
    }
}
