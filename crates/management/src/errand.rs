//! What a request wants done: from the parts of its path to a handler's answer.

use crate::access::{self, Asker, Right};
use crate::call::{Api, Call};
use crate::pieces::Cut;
use crate::query::Query;
use crate::range::Ranges;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::route::Handler;
use crate::snapshot::Snapshot;
use hyper::body::Bytes;
use hyper::header::{HeaderMap, HeaderName};

/// How often something is tried again because somebody else was asked about rights: each time they are asked about all
/// that was met.
const ROUNDS: usize = 16;

/// What a request wants done, once it is known who asks.
pub struct Errand {
    /// What the asker must be.
    pub right: Right,
    /// What answers.
    pub handler: Handler,
    /// The whole path.
    pub path: String,
    /// The parts of the path.
    pub parts: Vec<(&'static str, String)>,
    /// What stands after the question mark.
    pub query: Query,
    /// It changes nothing, so it may be done again.
    pub reads: bool,
    /// How much of a long answer is made at a time.
    pub cut: Cut,
}

impl Errand {
    /// Does it for this asker, with what existed then.
    ///
    /// # Errors
    /// The asker may not, or the handler refuses.
    pub fn run(
        &self,
        api: &Api,
        snapshot: &Snapshot,
        asker: Asker,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Result<Reply, Refusal> {
        let Asker {
            user,
            operator,
            for_node,
        } = asker;
        let (parts, query) = (self.parts.clone(), self.query.clone());
        let mut named = parts.iter();
        let vhost = named
            .find(|(name, _)| *name == "vhost")
            .map(|(_, vhost)| vhost.as_str());
        let vhost = vhost.map(str::to_owned);
        let call = Call {
            api,
            user,
            operator,
            for_node,
            path: self.path.clone(),
            view: snapshot.view.clone(),
            snapshot,
            ranges: Ranges::of(&query),
            query,
            cut: self.cut,
            headers,
            body,
            parts,
        };
        let act = || {
            if !call.for_node {
                access::check(&call.view, &call.user, self.right, vhost.as_deref())?;
            }
            (self.handler)(&call)
        };
        let mut outcome = act();
        // Whoever had to be asked about rights has answered: it is tried again, unless it has been done.
        for _ in 0..ROUNDS {
            if outcome.is_ok() && !self.reads || !call.user.has_asked() {
                break;
            }
            outcome = act();
        }
        outcome
    }
}

/// A header's text.
pub fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}
