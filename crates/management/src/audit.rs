//! Who changed what, and who looked at messages without consuming them: a line of the log, in the area `audit`, for each such
//! request. Bodies, in which there are passwords, are not part of it.

use crate::access::Peer;
use crate::refusal::Refusal;
use crate::reply::Reply;
use hyper::Method;
use hyper::http::request::Parts;

/// A request that asks for a change.
#[derive(Debug)]
pub struct Change {
    verb: Method,
    path: String,
    peer: Peer,
}

impl Change {
    /// `None` if the request only looks at objects, or is a client's work: messages published and got.
    pub fn of(head: &Parts, peer: Peer) -> Option<Self> {
        let path = head.uri.path();
        let looks = matches!(head.method, Method::GET | Method::HEAD);
        let works = path.ends_with("/publish") || path.ends_with("/get");
        let reads = path.starts_with("/api/leveret/queues/") && path.contains("/messages");
        (reads || (!looks && !works)).then(|| Self {
            verb: head.method.clone(),
            path: path.to_owned(),
            peer,
        })
    }

    /// Writes down what became of it.
    pub fn write(&self, user: &str, outcome: &Result<Reply, Refusal>) {
        let Self { verb, path, peer } = self;
        match outcome {
            Ok(_) => tracing::info!(area = "audit", "user '{user}' from {peer}: {verb} {path}"),
            Err(refusal) => tracing::warn!(
                area = "audit",
                "user '{user}' from {peer}: {verb} {path} was refused with {}",
                refusal.status()
            ),
        }
    }
}
