//! A request that has come, and who it is from.

use crate::access::{self, Asker, Peer, Right};
use crate::audit::Change;
use crate::call::Api;
use crate::errand::{Errand, text_of};
use crate::guesses::Login;
use crate::login;
use crate::long_answer::LongAnswer;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::snapshot::Snapshot;
use hyper::body::Bytes;
use hyper::header;
use hyper::http::request::Parts;
use std::sync::Arc;
use std::time::Instant;

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

    /// Finds out who asks, and does what they want; what is left of a long answer comes beside its first piece.
    /// `counted` if the login counts as a wrong one already.
    pub fn reply(self, errand: Errand, counted: bool, api: &Arc<Api>) -> (Reply, Option<LongAnswer>) {
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
            Err(refusal) => return (refusal.into(), None),
        };
        let (name, change) = (asker.user.name.clone(), Change::of(&self.head, self.peer));
        let snapshot = Snapshot::of(api.broker.view());
        let headers = self.head.headers;
        let outcome = errand.run(api, &snapshot, asker.clone(), &headers, &self.body);
        if let Some(change) = change {
            change.write(&name, &outcome);
        }
        let mut reply = outcome.unwrap_or_else(Reply::from);
        if reply.rest.is_none() {
            reply.squeeze(&headers);
            return (reply, None);
        }
        let rest = LongAnswer::after(&mut reply, errand, asker, headers, snapshot, api.clone());
        (reply, Some(rest))
    }
}
