//! Values as RabbitMQ prints them in error texts and logs: as Erlang terms.
//!
//! A string at the top is printed bare, everything else as Erlang's `~tp` prints it, without its line breaks.

use super::{Table, Value};
use std::fmt::{self, Display, Write};

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongStr(bytes) | Self::Binary(bytes) => f.write_str(&String::from_utf8_lossy(bytes)),
            other => write_term(f, other),
        }
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('[')?;
        for (at, (name, value)) in self.iter().enumerate() {
            f.write_str(if at == 0 { "{" } else { ",{" })?;
            write_binary(f, name)?;
            write!(f, ",{},", value.type_name())?;
            write_term(f, value)?;
            f.write_char('}')?;
        }
        f.write_char(']')
    }
}

fn write_term(f: &mut fmt::Formatter<'_>, value: &Value) -> fmt::Result {
    match value {
        Value::Bool(it) => write!(f, "{it}"),
        Value::Byte(it) => write!(f, "{it}"),
        Value::UnsignedByte(it) => write!(f, "{it}"),
        Value::Short(it) => write!(f, "{it}"),
        Value::UnsignedShort(it) => write!(f, "{it}"),
        Value::SignedInt(it) => write!(f, "{it}"),
        Value::UnsignedInt(it) => write!(f, "{it}"),
        Value::Long(it) => write!(f, "{it}"),
        Value::Timestamp(it) => write!(f, "{it}"),
        // Erlang widens a 32-bit float when it reads it.
        Value::Float(it) => write_float(f, f64::from(*it)),
        Value::Double(it) => write_float(f, *it),
        Value::Decimal { scale, value } => write!(f, "{{{scale},{value}}}"),
        Value::LongStr(bytes) | Value::Binary(bytes) => write_binary(f, bytes),
        Value::Void => f.write_str("undefined"),
        Value::Table(table) => write!(f, "{table}"),
        Value::Array(items) => {
            f.write_char('[')?;
            for (at, item) in items.iter().enumerate() {
                write!(f, "{}{},", if at == 0 { "{" } else { ",{" }, item.type_name())?;
                write_term(f, item)?;
                f.write_char('}')?;
            }
            f.write_char(']')
        }
    }
}

/// Bytes as Erlang's `~tp` prints a binary: `<<"text">>` or `<<1,2,3>>`.
#[derive(Clone, Copy, Debug)]
pub struct Term<'a>(pub &'a [u8]);

impl Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_binary(f, self.0)
    }
}

/// Printable UTF-8 as `<<"text">>` (with `/utf8` if it is more than ASCII), everything else as numbers.
fn write_binary(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    if bytes.is_empty() {
        return f.write_str("<<>>");
    }
    match std::str::from_utf8(bytes) {
        Ok(text) if text.chars().all(printable) => {
            f.write_str("<<\"")?;
            for c in text.chars() {
                match escape(c) {
                    Some(letter) => write!(f, "\\{letter}")?,
                    None => f.write_char(c)?,
                }
            }
            f.write_str(if text.is_ascii() { "\">>" } else { "\"/utf8>>" })
        }
        _ => {
            for (at, byte) in bytes.iter().enumerate() {
                write!(f, "{}{byte}", if at == 0 { "<<" } else { "," })?;
            }
            f.write_str(">>")
        }
    }
}

fn printable(c: char) -> bool {
    !c.is_control() || escape(c).is_some()
}

fn escape(c: char) -> Option<char> {
    Some(match c {
        '"' => '"',
        '\\' => '\\',
        '\n' => 'n',
        '\r' => 'r',
        '\t' => 't',
        '\u{8}' => 'b',
        '\u{b}' => 'v',
        '\u{c}' => 'f',
        '\u{1b}' => 'e',
        _ => return None,
    })
}

/// The fewest digits that read back the same, written with an exponent where that is shorter, or where the
/// number is too large for all of its digits to mean something: `100.0`, `1.0e3`, `0.001`, `1.0e-5`.
fn write_float(f: &mut fmt::Formatter<'_>, value: f64) -> fmt::Result {
    const EXACT_INTEGERS: f64 = 9_007_199_254_740_992.0;
    if !value.is_finite() {
        return write!(f, "{value}");
    }
    let scientific = format!("{:e}", value.abs());
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return write!(f, "{value}");
    };
    let Ok(exponent) = exponent.parse::<i32>() else {
        return write!(f, "{value}");
    };
    let digits = mantissa.replace('.', "");
    let length = digits.len() as i32;
    let place = if value == 0.0 { 1 } else { exponent + 1 };
    let cost = (place - 1).to_string().len() as i32 + 1 + if length == 1 { 2 } else { 1 };
    let fixed = if place < 0 {
        2 - place <= cost
    } else if place >= length {
        place - length + 2 <= cost && value.abs() < EXACT_INTEGERS
    } else {
        true
    };
    if value.is_sign_negative() {
        f.write_char('-')?;
    }
    if !fixed {
        let rest = if length == 1 { "0" } else { &digits[1..] };
        return write!(f, "{}.{rest}e{exponent}", &digits[..1]);
    }
    if place <= 0 {
        return write!(f, "0.{}{digits}", "0".repeat(place.unsigned_abs() as usize));
    }
    if place >= length {
        return write!(f, "{digits}{}.0", "0".repeat((place - length) as usize));
    }
    let (whole, part) = digits.split_at(place as usize);
    write!(f, "{whole}.{part}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_erlang_prints_them() {
        for text in [
            "1.0",
            "0.1",
            "0.001",
            "0.0001",
            "1.0e-5",
            "1.5e-5",
            "100.0",
            "1.0e3",
            "12345.0",
            "1.0e22",
            "1.5e10",
            "123456789012.0",
            "-2.5",
            "0.0",
            "-0.0",
            "9.007199254740992e15",
            "12345678.5",
            "0.0012345",
            "1.2e5",
        ] {
            assert_eq!(Value::Double(text.parse().unwrap()).to_string(), text);
        }
    }

    #[test]
    fn terms_print_as_erlang_prints_them() {
        let items = vec![
            Value::from("a"),
            Value::Long(5),
            true.into(),
            Value::Void,
            Value::Timestamp(5),
        ];
        assert_eq!(
            Value::Array(items).to_string(),
            "[{longstr,<<\"a\">>},{long,5},{bool,true},{void,undefined},{timestamp,5}]"
        );
        let table = Table::new()
            .with("a", "é")
            .with("b", Value::Decimal { scale: 1, value: 2 });
        assert_eq!(
            Value::Table(table).to_string(),
            "[{<<\"a\">>,longstr,<<\"é\"/utf8>>},{<<\"b\">>,decimal,{1,2}}]"
        );
        assert_eq!(Value::from("plain").to_string(), "plain");
        let table = Table::new()
            .with("", Value::Binary(vec![1, 2]))
            .with("q", "a\"b\\c\n");
        assert_eq!(
            table.to_string(),
            "[{<<>>,binary,<<1,2>>},{<<\"q\">>,longstr,<<\"a\\\"b\\\\c\\n\">>}]"
        );
    }
}
