//! Forms with files (`multipart/form-data`, RFC 7578), as browsers and `curl -F` send them, in a body that is there as a whole.

use http_body_util::{BodyDataStream, Full};
use hyper::body::Bytes;
use multer::{Multipart, parse_boundary};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// What a request brings: its body or, if its type says that the body is a form, the form's first field of this name, byte by
/// byte. `None` if the form has no such field, or is cut short before the field's end.
pub fn document(content_type: Option<&str>, body: &Bytes, field: &str) -> Option<Bytes> {
    match content_type.map(parse_boundary) {
        Some(Ok(boundary)) => at_once(value(body.clone(), boundary, field))?,
        Some(Err(multer::Error::NoBoundary)) => None,
        _ => Some(body.clone()),
    }
}

async fn value(body: Bytes, boundary: String, name: &str) -> Option<Bytes> {
    let mut form = Multipart::new(BodyDataStream::new(Full::new(body)), boundary);
    while let Some(field) = form.next_field().await.ok()? {
        if field.name() == Some(name) {
            return field.bytes().await.ok();
        }
    }
    None
}

/// The outcome of what never waits, because all that it asks for is there.
fn at_once<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(body: &'static [u8], name: &str) -> Option<Bytes> {
        document(
            Some("multipart/form-data; boundary=b"),
            &Bytes::from_static(body),
            name,
        )
    }

    #[test]
    fn only_a_form_is_looked_into() {
        const FORM: &[u8] = b"--a;b\r\nContent-Disposition: form-data; name=file\r\n\r\nvalue\r\n--a;b--";
        for (kind, wanted) in [
            (None, Some(FORM)),
            (Some("application/json"), Some(FORM)),
            (Some("nonsense"), Some(FORM)),
            (Some("multipart/form-data"), None),
            (Some("multipart/form-data; boundary=x1"), None),
            (
                Some("Multipart/Form-Data;charset=utf-8; Boundary=\"a;b\""),
                Some(b"value"),
            ),
        ] {
            assert_eq!(
                document(kind, &Bytes::from_static(FORM), "file").as_deref(),
                wanted,
                "{kind:?}"
            );
        }
    }

    #[test]
    fn a_field_is_found_among_others_and_its_bytes_stay_as_they_are() {
        let body = b"before\r\n--b\r\nContent-Disposition: form-data; name=\"file2\"\r\n\r\nno\r\n--b \r\n\
            content-disposition: form-data; filename=\"name=\\\"file\\\"\"; name=\"file\"\r\nContent-Type: application/json\r\n\r\n\
            {\"a\":\r\n\r\n--1}\r\n--b--\r\nafter";
        assert_eq!(field(body, "file").as_deref(), Some(&b"{\"a\":\r\n\r\n--1}"[..]));
        assert_eq!(field(body, "file2").as_deref(), Some(&b"no"[..]));
        assert_eq!(field(body, "file3"), None);
    }

    #[test]
    fn a_form_that_is_cut_short_has_no_field() {
        const WHOLE: &[u8] = b"--b\r\nContent-Disposition: form-data; name=file\r\n\r\nvalue\r\n--b--";
        assert_eq!(field(WHOLE, "file").as_deref(), Some(&b"value"[..]));
        for end in 0..WHOLE.len() - 4 {
            assert_eq!(field(&WHOLE[..end], "file"), None, "{end}");
        }
        assert_eq!(field(b"--b\r\n\r\nno head\r\n--b--", "file"), None);
    }
}
