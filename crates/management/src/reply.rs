//! What a request is answered with.

use crate::events::Telling;
use crate::gzip;
use crate::refusal::Refusal;
use hyper::HeaderMap;
use serde_json::Value;

/// An answer, ready for HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// HTTP's status code.
    pub status: u16,
    /// JSON, if there is a body and nothing else is said.
    pub body: Option<Vec<u8>>,
    /// The body is in gzip's form.
    pub squeezed: bool,
    /// The body is whatever it is.
    pub is_octets: bool,
    /// Where a created object is.
    pub location: Option<String>,
    /// The answer to a request without credentials: browsers ask for some.
    pub asks_for_credentials: bool,
    /// Browsers offer to store the body under this name.
    pub download: Option<String>,
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

    /// 200 with these bytes, to be stored under this name.
    pub fn octets(bytes: Vec<u8>, name: String) -> Self {
        Self {
            body: Some(bytes),
            is_octets: true,
            download: Some(name),
            ..Self::empty(200)
        }
    }

    /// A status alone: 201 for what was created, 204 for what was so already or is gone.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            body: None,
            squeezed: false,
            is_octets: false,
            location: None,
            asks_for_credentials: false,
            download: None,
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
