//! Why a request was refused, in RabbitMQ's words and status codes.

use broker::RefusalKind;
use serde_json::{Map, Value, json};

/// A refusal: a status and, mostly, RabbitMQ's `{"error": …, "reason": …}`.
#[derive(Clone, Debug, PartialEq)]
pub enum Refusal {
    /// 400: the request makes no sense, or contradicts what exists.
    BadRequest(Value),
    /// 400 with an error name of its own.
    Invalid(&'static str, String),
    /// 400: definitions of which nothing is imported, with a report on all that is refused.
    Unimported(String, Box<Value>),
    /// 401 without a body: nobody said who asks.
    Anonymous,
    /// 401: the credentials are wrong. RabbitMQ writes this one with a z.
    Credentials,
    /// 401: the user may not do this.
    NotAuthorised(String),
    /// 403: a page of another site wants to change something.
    Foreign,
    /// 404: there is no such path or object.
    NotFound,
    /// 404 for what the asker may not see, and for what is missing beneath a write.
    Missing(String),
    /// 405: the path knows other verbs.
    NotAllowed,
    /// 410: it was there.
    Gone(String),
    /// 412: it is protected.
    Precondition(String),
    /// 400: the body is larger than the API takes (RabbitMQ 4.3: no 413).
    TooLarge,
    /// 429: too many wrong logins; this one was not looked at.
    Guesses,
    /// 503: the asker has not read what it asked for before.
    Unread,
    /// 503: the node takes no clients for the time being.
    Suspended,
    /// 503: what is asked for cannot be had now.
    Unavailable(&'static str),
    /// 503: this node of the cluster says nothing.
    Unreachable(String),
    /// 500: a defect of this broker.
    Internal(String),
}

impl Refusal {
    /// 400 with this reason.
    pub fn bad_request(reason: impl Into<String>) -> Self {
        Self::BadRequest(Value::String(reason.into()))
    }

    /// 401 with this reason.
    pub fn not_authorised(reason: &str) -> Self {
        Self::NotAuthorised(reason.to_owned())
    }

    /// The broker's refusal by the status codes that RabbitMQ's API has for them. It tells nobody which permission is missing.
    pub fn of_broker(refusal: &broker::Refusal) -> Self {
        if let broker::Refusal::ProtectedVhost { .. } = refusal {
            return Self::Precondition(refusal.to_string());
        }
        match refusal.kind() {
            RefusalKind::NotFound => Self::Missing(refusal.to_string()),
            RefusalKind::AccessRefused => Self::not_authorised("Access refused."),
            RefusalKind::Internal => Self::Internal(refusal.to_string()),
            _ => Self::bad_request(refusal.to_string()),
        }
    }

    /// HTTP's status code.
    pub fn status(&self) -> u16 {
        match self {
            Self::BadRequest(_) | Self::Invalid(..) | Self::Unimported(..) | Self::TooLarge => 400,
            Self::Anonymous | Self::Credentials | Self::NotAuthorised(_) => 401,
            Self::Foreign => 403,
            Self::NotFound | Self::Missing(_) => 404,
            Self::NotAllowed => 405,
            Self::Gone(_) => 410,
            Self::Precondition(_) => 412,
            Self::Guesses => 429,
            Self::Internal(_) => 500,
            Self::Suspended | Self::Unread | Self::Unavailable(_) | Self::Unreachable(_) => 503,
        }
    }

    /// The body, if there is one.
    pub fn body(&self) -> Option<Value> {
        let body = |error: &str, reason: &Value| Some(json!({"error": error, "reason": reason}));
        match self {
            Self::BadRequest(reason) => body("bad_request", reason),
            Self::Invalid(error, reason) => body(error, &reason.as_str().into()),
            Self::Unimported(reason, report) => {
                Some(json!({"error": "bad_request", "reason": reason, "report": report}))
            }
            Self::Anonymous | Self::NotAllowed => None,
            Self::Credentials => body("not_authorized", &"Not_Authorized".into()),
            Self::NotAuthorised(reason) => body("not_authorised", &reason.as_str().into()),
            Self::Foreign => body(
                "forbidden",
                &"pages of another site change nothing here; management.cors.allow_origins names those that may".into(),
            ),
            Self::NotFound => body("Object Not Found", &"Not Found".into()),
            Self::Missing(reason) => body("not_found", &reason.as_str().into()),
            Self::Gone(reason) => body("gone", &reason.as_str().into()),
            Self::Precondition(reason) => body("precondition_failed", &reason.as_str().into()),
            Self::TooLarge => body("bad_request", &"Exceeded HTTP request body size limit".into()),
            Self::Guesses => body(
                "too_many_requests",
                &"too many wrong logins of this user or from this address: try again in ten seconds".into(),
            ),
            Self::Unread => body(
                "service_unavailable",
                &"answers to earlier requests from this address wait to be read".into(),
            ),
            Self::Suspended => body(
                "service_unavailable",
                &"the node is in maintenance or its listeners are suspended".into(),
            ),
            Self::Unavailable(reason) => body("service_unavailable", &(*reason).into()),
            Self::Unreachable(node) => body(
                "service_unavailable",
                &format!("node {node} did not answer in time").into(),
            ),
            Self::Internal(reason) => body("internal_server_error", &reason.as_str().into()),
        }
    }
}

impl From<broker::Refusal> for Refusal {
    fn from(refusal: broker::Refusal) -> Self {
        Self::of_broker(&refusal)
    }
}

/// Refuses a body that lacks one of these members.
///
/// # Errors
/// All that it lacks, in RabbitMQ's words.
pub fn need(body: &Map<String, Value>, names: &[&str]) -> Result<(), Refusal> {
    let lacks = |name: &&str| !body.contains_key(*name);
    let missing: Vec<&str> = names.iter().copied().filter(lacks).collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Refusal::bad_request(missing_keys(&missing))),
    }
}

/// The texts that a body must have under these names.
///
/// # Errors
/// All that it lacks, in RabbitMQ's words, or the first that is no text.
pub fn needed_texts<'a, const N: usize>(
    body: &'a Map<String, Value>,
    names: [&str; N],
) -> Result<[&'a str; N], Refusal> {
    need(body, &names)?;
    let mut texts = [""; N];
    for (text, name) in texts.iter_mut().zip(names) {
        let found = body.get(name).and_then(Value::as_str);
        *text = found.ok_or_else(|| Refusal::bad_request(format!("{name} is not text")))?;
    }
    Ok(texts)
}

/// RabbitMQ's word for members that a body lacks: Erlang's terms, broken into lines as Erlang prints them.
pub fn missing_keys(names: &[&str]) -> String {
    let terms: Vec<String> = names
        .iter()
        .map(|name| format!("{{key_missing,{name}}}"))
        .collect();
    let line = terms.join(",");
    match line.len() < 76 {
        true => format!("[{line}]"),
        false => format!("[{}]", terms.join(",\n ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_rabbitmqs() {
        let body = |refusal: Refusal| refusal.body().map(|body| body.to_string());
        assert_eq!(
            body(Refusal::NotFound).unwrap(),
            r#"{"error":"Object Not Found","reason":"Not Found"}"#
        );
        assert_eq!(
            body(Refusal::Credentials).unwrap(),
            r#"{"error":"not_authorized","reason":"Not_Authorized"}"#
        );
        assert_eq!(body(Refusal::Anonymous), None);
        assert_eq!(
            missing_keys(&["write", "read"]),
            "[{key_missing,write},{key_missing,read}]"
        );
        assert_eq!(
            missing_keys(&["properties", "payload", "payload_encoding"]),
            "[{key_missing,properties},\n {key_missing,payload},\n {key_missing,payload_encoding}]"
        );
    }
}
