//! Text in addresses, with percent encoding as RFC 3986 and HTML forms have it, and in server-sent events.

use std::fmt::Write;

/// Undoes percent encoding; with `plus`, a plus sign is a space (queries). `None` if it is not UTF-8 then, or an escape is cut.
pub fn decode(text: &str, plus: bool) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => hex(bytes.next()?)? << 4 | hex(bytes.next()?)?,
            b'+' if plus => b' ',
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

/// Encodes every byte but letters, digits and `-._~`.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for &byte in bytes {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).map(|value| value as u8)
}

/// An event of this kind with one line of JSON.
pub fn event(kind: &str, line: &str) -> String {
    let mut text = String::with_capacity(line.len() + 32);
    // Writing to a string does not fail.
    let _ = write!(text, "event: {kind}\ndata: {line}\n\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_and_broken_ones_refused() {
        assert_eq!(decode("%2F%c3%A9+", false).unwrap(), "/é+");
        assert_eq!(encode("a/b~é".as_bytes()), "a%2Fb~%C3%A9");
        assert_eq!(decode("a+b%2f", true).unwrap(), "a b/");
        for broken in ["%", "%2", "%zz", "%ff"] {
            assert_eq!(decode(broken, false), None, "{broken}");
        }
    }
}
