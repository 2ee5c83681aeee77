//! What a request wants done, and by whom: from the head and the body to a handler's answer.

use crate::access::{self, Asker, Peer, Right};
use crate::audit::Change;
use crate::call::{Api, Call};
use crate::guesses::Login;
use crate::login;
use crate::query::Query;
use crate::range::Ranges;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use std::time::Instant;

/// How often something is tried again because somebody else was asked about rights: each time they are asked about all that was met.
const ROUNDS: usize = 16;

/// A request whose body is there, before it is known who asks.
pub struct Visit {
    head: Parts,
    body: Bytes,
    peer: Peer,
    /// The header that says who asks, or a form that says the same.
    authorization: Option<String>,
    right: Right,
    /// What tells the login from others, if there is one that may be wrong.
    pub login: Option<Login>,
}

impl Visit {
    /// The request to this path.
    pub fn of(head: Parts, body: Bytes, peer: Peer, path: &str, right: Right, api: &Api) -> Self {
        let authorization = match path == login::PATH {
            true => Some(login::authorization(&body)),
            false => text_of(&head.headers, header::AUTHORIZATION).map(str::to_owned),
        };
        let login = match (peer, &authorization, right) {
            (_, _, Right::Anyone) | (Peer::Operator, ..) | (_, None, _) => None,
            (Peer::Network(address), Some(text), _) => {
                let user = access::user_of(text).unwrap_or_default();
                Some(api.guesses.login(address.ip(), &user, text))
            }
        };
        Self {
            head,
            body,
            peer,
            authorization,
            right,
            login,
        }
    }

    /// True if no password would be looked at: there is a token, or whoever asks is on the machine and operates the node.
    fn may_be_believed(&self) -> bool {
        let text = self.authorization.as_deref();
        matches!(self.peer, Peer::Operator) || text.is_some_and(access::is_token)
    }

    /// Finds out who asks, and does what they want. `counted` if the login counts as a wrong one already.
    pub fn reply(self, errand: Errand, counted: bool, api: &Api) -> Reply {
        let asker = match self.right {
            Right::Anyone => Ok(Asker::nobody()),
            _ if api.options.disable_basic_auth && !self.may_be_believed() => {
                Err(Refusal::not_authorised("HTTP access denied: basic auth disabled"))
            }
            _ => access::identify(&api.broker, self.authorization.as_deref(), self.peer),
        };
        if let Some(login) = self.login {
            match &asker {
                Ok(_) => api.guesses.right(login, Instant::now()),
                Err(_) => api.guesses.wrong(login, counted, Instant::now()),
            }
        }
        let asker = match asker {
            Ok(asker) => asker,
            Err(refusal) => return refusal.into(),
        };
        let (name, change) = (asker.user.name.clone(), Change::of(&self.head, self.peer));
        let outcome = errand.run(api, asker, &self.head.headers, &self.body);
        if let Some(change) = change {
            change.write(&name, &outcome);
        }
        let mut reply = outcome.unwrap_or_else(Reply::from);
        reply.squeeze(&self.head.headers);
        reply
    }
}

/// What a request wants done, once it is known who asks.
pub struct Errand {
    /// What the asker must be.
    pub right: Right,
    /// What answers.
    pub handler: routes::Handler,
    /// The parts of the path.
    pub parts: Vec<(&'static str, String)>,
    /// What stands after the question mark.
    pub query: Query,
    /// It changes nothing, so it may be done again.
    pub reads: bool,
}

impl Errand {
    /// Does it for this asker.
    ///
    /// # Errors
    /// The asker may not, or the handler refuses.
    pub fn run(self, api: &Api, asker: Asker, headers: &HeaderMap, body: &Bytes) -> Result<Reply, Refusal> {
        let Asker { user, operator } = asker;
        let Self {
            right,
            handler,
            parts,
            query,
            reads,
        } = self;
        let view = api.broker.view();
        let mut named = parts.iter();
        let vhost = named
            .find(|(name, _)| *name == "vhost")
            .map(|(_, vhost)| vhost.as_str());
        let vhost = vhost.map(str::to_owned);
        let call = Call {
            api,
            user,
            operator,
            view,
            ranges: Ranges::of(&query),
            query,
            headers,
            body,
            parts,
        };
        let act = || {
            access::check(&call.view, &call.user, right, vhost.as_deref())?;
            handler(&call)
        };
        let mut outcome = act();
        // Whoever had to be asked about rights has answered: it is tried again, unless it has been done.
        for _ in 0..ROUNDS {
            if outcome.is_ok() && !reads || !call.user.has_asked() {
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
