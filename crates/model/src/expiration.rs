//! The property `expiration`: a time to live as text.

use std::fmt;

/// The longest time to live and the longest `x-expires`: ten years, in milliseconds (RabbitMQ's `MAX_EXPIRY_TIMER`).
pub const LONGEST_MS: u64 = 315_360_000_000;

/// Why an expiration is none. `Display` gives the Erlang term that RabbitMQ shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpirationError {
    /// It does not begin like a number.
    NoInteger,
    /// Something follows the number.
    Leftover(String),
    /// Below zero.
    Negative(String),
    /// Above [`LONGEST_MS`].
    TooLarge(String),
}

impl fmt::Display for ExpirationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoInteger => f.write_str("no_integer"),
            Self::Leftover(rest) => write!(f, "{{leftover_string,{rest:?}}}"),
            Self::Negative(number) => write!(f, "{{value_negative,{number}}}"),
            Self::TooLarge(number) => write!(f, "{{value_too_large,{number}}}"),
        }
    }
}

impl std::error::Error for ExpirationError {}

/// The time to live that an `expiration` says, in milliseconds: decimal digits, perhaps with a sign (RabbitMQ reads them as
/// Erlang's `string:to_integer` does).
///
/// # Errors
/// What RabbitMQ finds wrong with it.
pub fn expiration_ms(text: &[u8]) -> Result<u64, ExpirationError> {
    let (negative, unsigned) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let digits = unsigned.iter().take_while(|octet| octet.is_ascii_digit()).count();
    let (digits, rest) = unsigned.split_at(digits);
    if digits.is_empty() {
        return Err(ExpirationError::NoInteger);
    }
    if !rest.is_empty() {
        return Err(ExpirationError::Leftover(
            String::from_utf8_lossy(rest).into_owned(),
        ));
    }
    let significant = digits
        .iter()
        .position(|digit| *digit != b'0')
        .unwrap_or(digits.len() - 1);
    let number: String = digits[significant..]
        .iter()
        .map(|digit| char::from(*digit))
        .collect();
    if negative && number != "0" {
        return Err(ExpirationError::Negative(format!("-{number}")));
    }
    match number.parse::<u64>() {
        Ok(ms) if ms <= LONGEST_MS => Ok(ms),
        _ => Err(ExpirationError::TooLarge(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read off RabbitMQ 4.3.6.
    #[test]
    fn expirations_are_read_and_refused_as_rabbitmq_does() {
        for (text, ms) in [
            ("0", 0),
            ("60000", 60_000),
            ("+5", 5),
            ("05", 5),
            ("-0", 0),
            ("315360000000", LONGEST_MS),
        ] {
            assert_eq!(expiration_ms(text.as_bytes()), Ok(ms), "{text}");
        }
        for (text, complaint) in [
            ("", "no_integer"),
            ("a", "no_integer"),
            (" 5", "no_integer"),
            ("1.5", "{leftover_string,\".5\"}"),
            ("-1", "{value_negative,-1}"),
            ("315360000001", "{value_too_large,315360000001}"),
            (
                "99999999999999999999999",
                "{value_too_large,99999999999999999999999}",
            ),
        ] {
            assert_eq!(expiration_ms(text.as_bytes()).unwrap_err().to_string(), complaint);
        }
    }
}
