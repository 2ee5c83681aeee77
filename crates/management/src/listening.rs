//! A listener of events: what it is told at each turn, as long as it may be told.

use crate::access::{self, Asker, Peer, Right};
use crate::call::Api;
use crate::errand::{Errand, text_of};
use crate::pieces::Cut;
use crate::query::Query;
use crate::refusal::Refusal;
use crate::routes;
use crate::snapshot::Snapshot;
use crate::subscription::Answer;
use crate::tap::Tap;
use crate::telling::{Telling, TraceFilter};
use crate::text::event;
use broker::{Broker, User};
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap};
use std::sync::Arc;

/// A listener of events.
pub struct Listening {
    /// What it wants to know.
    pub telling: Telling,
    /// Open from the first turn on, if a firehose is looked at.
    pub tap: Option<Tap>,
    /// The api.
    pub api: Arc<Api>,
    /// What it asked with.
    pub headers: HeaderMap,
    /// Where it is.
    pub peer: Peer,
}

impl Listening {
    /// One turn: what is told, or what is told last.
    pub fn turn(&mut self) -> Result<String, String> {
        let authorization = text_of(&self.headers, header::AUTHORIZATION);
        let asker = access::identify(&self.api.broker, authorization, self.peer);
        match &mut self.telling {
            Telling::Changes(subscription) => {
                let (api, headers) = (&self.api, &self.headers);
                subscription.turn(|path, query| ask(api, headers, asker.clone()?, path, query))
            }
            Telling::Trace(wanted) => {
                let told = Self::look(&self.api.broker, asker, wanted, &mut self.tap);
                told.map_err(|refusal| last_word(&refusal))
            }
            Telling::Happenings(happenings) => administrator(&self.api.broker, asker)
                .map(|_| happenings.turn())
                .map_err(|refusal| last_word(&refusal)),
            Telling::Log(following) => administrator(&self.api.broker, asker)
                .map(|_| following.turn(&self.api.options.log_tail))
                .map_err(|refusal| last_word(&refusal)),
            Telling::Elsewhere(observed) => {
                administrator(&self.api.broker, asker.clone()).map_err(|refusal| last_word(&refusal))?;
                let query = Query::of(observed.words());
                let told =
                    asker.and_then(|asker| ask(&self.api, &self.headers, asker, &observed.path, query));
                // A node that says nothing for a while may go on.
                let body = told.ok().and_then(|(_, body)| body).unwrap_or_default();
                Ok(observed.turn(&serde_json::from_slice(&body).unwrap_or_default()))
            }
        }
    }

    /// What has passed through a virtual host, if whoever asks is an administrator still.
    fn look(
        broker: &Arc<Broker>,
        asker: Result<Asker, Refusal>,
        wanted: &TraceFilter,
        tap: &mut Option<Tap>,
    ) -> Result<String, Refusal> {
        let user = administrator(broker, asker)?;
        let tap = match tap {
            Some(tap) => tap,
            None => tap.insert(Tap::open(broker, user, wanted.clone())?),
        };
        tap.turn()
    }
}

/// What the API answers to a listener that asks for this.
fn ask(
    api: &Arc<Api>,
    headers: &HeaderMap,
    asker: Asker,
    path: &str,
    query: Query,
) -> Result<Answer, Refusal> {
    let (route, parts) = routes::find(path).ok_or(Refusal::NotFound)?;
    let (right, handler) = route.handler("GET").ok_or(Refusal::NotAllowed)?;
    let errand = Errand {
        right,
        handler,
        path: path.to_owned(),
        parts,
        query,
        reads: true,
        cut: Cut::Whole,
    };
    let snapshot = Snapshot::of(api.broker.view());
    match errand.run(api, &snapshot, asker, headers, &Bytes::new())? {
        reply if reply.events.is_some() => Err(Refusal::NotFound),
        reply => Ok((reply.status, reply.body)),
    }
}

/// Whoever listens, if they are an administrator still.
fn administrator(broker: &Broker, asker: Result<Asker, Refusal>) -> Result<User, Refusal> {
    let user = asker?.user;
    access::check(&broker.view(), &user, Right::Administrator, None)?;
    Ok(user)
}

/// What a listener is told before an answer ends that went on.
fn last_word(refusal: &Refusal) -> String {
    match refusal {
        Refusal::Credentials | Refusal::Anonymous => event("expired", "{}"),
        other => event("refused", &other.body().unwrap_or_default().to_string()),
    }
}
