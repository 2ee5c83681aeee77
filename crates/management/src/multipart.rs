//! Forms with files (`multipart/form-data`, RFC 7578), as browsers and `curl -F` send them, in a body that is there as a whole.

/// The longest boundary (RFC 2046, section 5.1.1), in bytes.
const BOUNDARY_MOST: usize = 70;

/// What a form's parts are separated by, if the type of a body says that it is such a form. A boundary that can't be one is empty.
pub fn boundary(content_type: &str) -> Option<&str> {
    let (kind, parameters) = content_type.split_once(';').unwrap_or((content_type, ""));
    if !kind.trim().eq_ignore_ascii_case("multipart/form-data") {
        return None;
    }
    let boundary = parameter(parameters, "boundary").unwrap_or_default();
    Some(if boundary.len() > BOUNDARY_MOST {
        ""
    } else {
        boundary
    })
}

/// The value of the form's field of this name: the first one, byte by byte. `None` if there is none, or the form is cut short.
pub fn field<'a>(body: &'a [u8], boundary: &str, name: &str) -> Option<&'a [u8]> {
    if boundary.is_empty() {
        return None;
    }
    let opening = format!("--{boundary}");
    let between = format!("\r\n--{boundary}");
    let mut rest = match body.strip_prefix(opening.as_bytes()) {
        Some(rest) => rest,
        // What stands before the first part means nothing.
        None => split(body, between.as_bytes())?.1,
    };
    while !rest.starts_with(b"--") {
        // Blanks may follow a boundary.
        let (blanks, part) = split(rest, b"\r\n")?;
        if !blanks.iter().all(|byte| b" \t".contains(byte)) {
            return None;
        }
        let (part, after) = split(part, between.as_bytes())?;
        rest = after;
        let (head, value) = match part.strip_prefix(b"\r\n") {
            Some(value) => (&b""[..], value),
            None => split(part, b"\r\n\r\n")?,
        };
        if is_named(head, name) {
            return Some(value);
        }
    }
    None
}

/// True if the lines above a part say that it is the field of this name.
fn is_named(head: &[u8], name: &str) -> bool {
    let Ok(head) = std::str::from_utf8(head) else {
        return false;
    };
    let mut dispositions = head.split("\r\n").filter_map(|line| {
        let (header, value) = line.split_once(':')?;
        header
            .trim()
            .eq_ignore_ascii_case("content-disposition")
            .then_some(value)
    });
    let parameters = dispositions.next().and_then(|value| value.split_once(';'));
    parameters.is_some_and(|(_, parameters)| parameter(parameters, "name") == Some(name))
}

/// A parameter's value, with or without quotes. What is escaped within quotes stays so.
fn parameter<'a>(mut parameters: &'a str, wanted: &str) -> Option<&'a str> {
    loop {
        let (name, after) = parameters.split_once('=')?;
        let (value, rest) = match after.strip_prefix('"') {
            Some(quoted) => {
                let end = end_of_quoted(quoted)?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => {
                let end = after.find(';').unwrap_or(after.len());
                (after[..end].trim(), &after[end..])
            }
        };
        if name.trim_matches([';', ' ', '\t']).eq_ignore_ascii_case(wanted) {
            return Some(value);
        }
        parameters = rest;
    }
}

/// Where the quotes close.
fn end_of_quoted(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

fn split<'a>(bytes: &'a [u8], at: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let start = bytes.windows(at.len()).position(|window| window == at)?;
    Some((&bytes[..start], &bytes[start + at.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boundary_is_read_with_and_without_quotes() {
        for (kind, wanted) in [
            ("multipart/form-data; boundary=x1", Some("x1")),
            ("Multipart/Form-Data;charset=utf-8; Boundary=\"a;b\"", Some("a;b")),
            ("multipart/form-data", Some("")),
            ("application/json", None),
        ] {
            assert_eq!(boundary(kind), wanted, "{kind}");
        }
        let long = format!("multipart/form-data; boundary={}", "x".repeat(71));
        assert_eq!(boundary(&long), Some(""));
    }

    #[test]
    fn a_field_is_found_among_others_and_its_bytes_stay_as_they_are() {
        let body = b"before\r\n--b\r\nContent-Disposition: form-data; name=\"file2\"\r\n\r\nno\r\n--b \r\n\
            content-disposition: form-data; filename=\"name=\\\"file\\\"\"; name=\"file\"\r\nContent-Type: application/json\r\n\r\n\
            {\"a\":\r\n\r\n--1}\r\n--b--\r\nafter";
        assert_eq!(field(body, "b", "file"), Some(&b"{\"a\":\r\n\r\n--1}"[..]));
        assert_eq!(field(body, "b", "file2"), Some(&b"no"[..]));
        assert_eq!(field(body, "b", "file3"), None);
    }

    #[test]
    fn a_form_that_is_cut_short_has_no_field() {
        let whole = b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nvalue\r\n--b--";
        assert_eq!(field(whole, "b", "file"), Some(&b"value"[..]));
        for end in 0..whole.len() - 4 {
            assert_eq!(field(&whole[..end], "b", "file"), None, "{end}");
        }
        assert_eq!(field(whole, "", "file"), None);
        assert_eq!(field(b"--b\r\n\r\nno head\r\n--b--", "b", "file"), None);
    }
}
