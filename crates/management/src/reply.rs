//! What a request is answered with.

use crate::gzip;
use crate::refusal::Refusal;
use crate::telling::Telling;
use hyper::HeaderMap;
use serde_json::Value;
use std::hash::{DefaultHasher, Hasher};

/// An answer, ready for HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP's status code.
    pub status: u16,
    /// The body, if there is one.
    pub body: Option<Vec<u8>>,
    /// The body is in gzip's form.
    pub squeezed: bool,
    /// What the body is, in HTTP's words.
    pub content_type: &'static str,
    /// Where a created object is.
    pub location: Option<String>,
    /// The answer to a request without credentials: browsers ask for some.
    pub asks_for_credentials: bool,
    /// Browsers offer to store the body under this name.
    pub download: Option<String>,
    /// What tells this answer from earlier and later ones to the same question: HTTP's `ETag`.
    pub etag: Option<String>,
    /// The body is a piece of a longer one, which goes on with this part.
    pub rest: Option<usize>,
    /// The body are events as they come about, instead.
    pub events: Option<Telling>,
}

impl Reply {
    /// 200 with this JSON.
    pub fn json(value: &Value) -> Self {
        Self::with_status(200, value)
    }

    /// This status with this JSON.
    pub fn with_status(status: u16, value: &Value) -> Self {
        Self {
            body: Some(value.to_string().into_bytes()),
            ..Self::empty(status)
        }
    }

    /// Makes the body smaller if the asker takes it so.
    pub fn squeeze(&mut self, asked: &HeaderMap) {
        let squeezed = self.body.as_ref().and_then(|body| gzip::squeeze(asked, body));
        if let Some(squeezed) = squeezed {
            (self.body, self.squeezed) = (Some(squeezed), true);
        }
    }

    /// The same with a tag of its body, or 304 if the asker names that tag as one of what it has (`If-None-Match`). The
    /// tag is a weak one: the body may be squeezed.
    pub fn unless_known(self, known: Option<&str>) -> Self {
        let mut hasher = DefaultHasher::new();
        hasher.write(self.body.as_deref().unwrap_or_default());
        self.unless_tag_known(hasher.finish(), known)
    }

    /// The same for an answer whose body is told from others by this number.
    pub fn unless_tag_known(self, tag: u64, known: Option<&str>) -> Self {
        let tag = format!("\"{tag:016x}\"");
        let mut known = known
            .into_iter()
            .flat_map(|known| known.split(','))
            .map(str::trim);
        let is_known = known.any(|one| one == "*" || one.trim_start_matches("W/") == tag);
        let etag = Some(format!("W/{tag}"));
        match is_known {
            true => Self {
                etag,
                ..Self::empty(304)
            },
            false => Self { etag, ..self },
        }
    }

    /// 200 with these bytes, to be stored under this name.
    pub fn octets(bytes: Vec<u8>, name: String) -> Self {
        Self {
            body: Some(bytes),
            content_type: "application/octet-stream",
            download: Some(name),
            ..Self::empty(200)
        }
    }

    /// 200 with a piece of JSON, and with which part it goes on.
    pub fn piece((body, rest): (Vec<u8>, Option<usize>)) -> Self {
        Self {
            body: Some(body),
            rest,
            ..Self::empty(200)
        }
    }

    /// 200 with this text.
    pub fn text(text: String) -> Self {
        Self {
            body: Some(text.into_bytes()),
            content_type: "text/plain",
            ..Self::empty(200)
        }
    }

    /// A status alone: 201 for what was created, 204 for what was so already or is gone.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            body: None,
            squeezed: false,
            content_type: "application/json",
            location: None,
            asks_for_credentials: false,
            download: None,
            etag: None,
            rest: None,
            events: None,
        }
    }
}

impl From<Refusal> for Reply {
    fn from(refusal: Refusal) -> Self {
        Self {
            body: refusal.body().map(|body| body.to_string().into_bytes()),
            asks_for_credentials: refusal == Refusal::Anonymous,
            ..Self::empty(refusal.status())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_whose_tag_the_asker_has_is_not_sent_again() {
        let answer = Reply::json(&serde_json::json!({"a": 1}));
        let first = answer.clone().unless_known(None);
        let tag = first.etag.clone().unwrap();
        assert_eq!((first.status, &first.body), (200, &answer.body));
        for known in [&tag, tag.trim_start_matches("W/"), &format!("\"x\", {tag}"), "*"] {
            let again = answer.clone().unless_known(Some(known));
            assert_eq!(
                (again.status, again.body, again.etag.as_ref()),
                (304, None, Some(&tag)),
                "{known}"
            );
        }
        let other = Reply::json(&serde_json::json!({"a": 2})).unless_known(Some(&tag));
        assert_eq!(other.status, 200);
    }
}
