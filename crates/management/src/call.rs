//! One request, as the objects see it: who asks, for what, with which parts of the path.

use crate::arguments::text;
use crate::event_tail::EventTail;
use crate::guesses::Guesses;
use crate::history::History;
use crate::options::{Member, Options};
use crate::pieces::Cut;
use crate::query::Query;
use crate::range::{Ranges, Rates};
use crate::refusal::Refusal;
use crate::sampler::Sampler;
use crate::samples::Samples;
use crate::snapshot::Snapshot;
use crate::unread::Unread;
use broker::{Administrator, Broker, Progress, QueueView, User, Vhost, View};
use hyper::HeaderMap;
use hyper::body::Bytes;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

/// What all requests share.
#[derive(Debug)]
pub struct Api {
    /// The broker.
    pub broker: Arc<Broker>,
    /// What the API was started with.
    pub options: Options,
    /// What was and how fast it changes.
    pub sampler: Sampler,
    /// A permit for each listener of events.
    pub listeners: Arc<Semaphore>,
    /// A permit for each client that follows a firehose.
    pub tracers: Arc<Semaphore>,
    /// Who has been wrong too often.
    pub guesses: Guesses,
    /// What waits to be read.
    pub unread: Arc<Unread>,
    /// How far the rebalance of leaders is that this node does, or what came of its last one.
    pub rebalancing: Arc<Mutex<Progress>>,
    /// The last events, while other nodes ask for them.
    pub event_tail: EventTail,
}

/// A request whose asker may make it.
pub struct Call<'a> {
    /// What all requests share.
    pub api: &'a Api,
    /// Who asks.
    pub user: User,
    /// They operate the node: no permission is asked for.
    pub operator: bool,
    /// Another node asks for them: for what is on this node alone. It has looked at their rights.
    pub for_node: bool,
    /// The path, as it was asked for.
    pub path: String,
    /// What exists at this moment.
    pub view: Arc<View>,
    /// The parts of the path that the route names, decoded.
    pub parts: Vec<(&'static str, String)>,
    /// What stands after the question mark.
    pub query: Query,
    /// The samples that it asks for, or why there are none.
    pub ranges: Result<Ranges, String>,
    /// What existed when it was asked for; `view` is of it.
    pub snapshot: &'a Snapshot,
    /// How much of a long answer is made at a time.
    pub cut: Cut,
    /// What stands above the body.
    pub headers: &'a HeaderMap,
    /// The body.
    pub body: &'a Bytes,
}

/// What lists of declared objects call ranges that make no sense; everything else calls them a `bad_request`.
pub const BAD_RANGE: &str = "invalid_range_parameters";

/// What RabbitMQ calls a virtual host that is missing where something is to be changed.
pub const NO_VHOST: &str = "vhost_not_found";

/// The queues of a virtual host that clients declared: not what exchanges keep.
pub fn queues_of(vhost: &Vhost) -> impl Iterator<Item = &Arc<QueueView>> {
    vhost.queues()
}

impl Call<'_> {
    /// How an object changes, as far as the request asks for it.
    pub fn rates<'s>(&self, samples: &'s Samples, history: Option<&'s History>) -> Rates<'s> {
        Rates {
            history,
            now: samples.now,
            ranges: self.ranges.as_ref().copied().unwrap_or_default(),
        }
    }

    /// True if the request wants no statistics, only what was declared.
    pub fn is_quiet(&self) -> bool {
        self.query.flag("disable_stats")
    }

    /// Refuses samples that are too many or none at all, under the name that RabbitMQ has for this.
    ///
    /// # Errors
    /// Such are asked for.
    pub fn check_samples(&self, error: &'static str) -> Result<(), Refusal> {
        match &self.ranges {
            Err(reason) if !self.is_quiet() => Err(Refusal::Invalid(error, reason.clone())),
            _ => Ok(()),
        }
    }

    /// The asker, as whoever changes something.
    pub fn administrator(&self) -> Administrator<'_> {
        self.api.broker.administrator(&self.user.name)
    }

    /// A part of the path; empty if the route does not name it.
    pub fn part(&self, name: &str) -> &str {
        self.given(name).unwrap_or_default()
    }

    /// A part of the path, if the route names it.
    pub fn given(&self, name: &str) -> Option<&str> {
        let mut parts = self.parts.iter();
        parts
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value.as_str())
    }

    /// A header's text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The virtual host of the path.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn vhost(&self) -> Result<&Arc<Vhost>, Refusal> {
        self.view.vhost(self.part("vhost")).ok_or(Refusal::NotFound)
    }

    /// The virtual host of the path, in which something is to be changed: RabbitMQ says there what is missing.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn target_vhost(&self) -> Result<&Arc<Vhost>, Refusal> {
        let vhost = self.view.vhost(self.part("vhost"));
        vhost.ok_or_else(|| Refusal::Missing(NO_VHOST.into()))
    }

    /// The virtual hosts whose objects the asker may see: that of the path, or all it may enter. Administrators enter all.
    /// Another node says which those are, unless it is all.
    ///
    /// # Errors
    /// There is no virtual host as in the path.
    pub fn visible_vhosts(&self) -> Result<Vec<&Arc<Vhost>>, Refusal> {
        if self.given("vhost").is_some() {
            return self.vhost().map(|vhost| vec![vhost]);
        }
        let vhosts = self.view.vhosts();
        if self.for_node {
            let body = self.json()?;
            let Some(named) = body.get("vhosts").and_then(Value::as_array) else {
                return Ok(vhosts.collect());
            };
            let named: BTreeSet<&str> = named.iter().filter_map(Value::as_str).collect();
            return Ok(vhosts.filter(|vhost| named.contains(&*vhost.name)).collect());
        }
        Ok(vhosts.filter(|vhost| self.may_enter(&vhost.name)).collect())
    }

    /// The same, and who watches the node sees all.
    ///
    /// # Errors
    /// There is no virtual host as in the path.
    pub fn watched_vhosts(&self) -> Result<Vec<&Arc<Vhost>>, Refusal> {
        match self.given("vhost") {
            None if self.is_monitor() => Ok(self.view.vhosts().collect()),
            _ => self.visible_vhosts(),
        }
    }

    /// True if the asker may see what is in a virtual host.
    pub fn may_enter(&self, vhost: &str) -> bool {
        self.has_tag("administrator") || self.user.enters(&self.view, vhost)
    }

    /// True if the asker has the tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.user.tags.iter().any(|known| known == tag)
    }

    /// True if the asker sees all of the node, not only what is in its virtual hosts.
    pub fn is_monitor(&self) -> bool {
        self.has_tag("administrator") || self.has_tag("monitoring")
    }

    /// Nothing if the path names this node.
    ///
    /// # Errors
    /// It names another one.
    pub fn here(&self) -> Result<(), Refusal> {
        match self.part("node") == self.api.options.node {
            true => Ok(()),
            false => Err(Refusal::NotFound),
        }
    }

    /// All nodes of the cluster by name, be it this one alone.
    pub fn members(&self) -> Vec<Member> {
        let alone = || Member {
            name: self.api.options.node.clone(),
            is_running: true,
            links: None,
        };
        match &self.api.options.members {
            Some(members) => (members.list)(),
            None => vec![alone()],
        }
    }

    /// Refuses an object that is to be kept by another node than this one (`node` in the body).
    ///
    /// # Errors
    /// It is named, and not ours; or it is no text.
    pub fn refuse_other_node(&self, body: &Map<String, Value>) -> Result<(), Refusal> {
        match text(body, "node")? {
            Some(node) if node != self.api.options.node => Err(Refusal::bad_request(format!(
                "Node {node} is not a cluster member"
            ))),
            _ => Ok(()),
        }
    }

    /// The body, which is to be a JSON object; no body is an empty one.
    ///
    /// # Errors
    /// It is something else.
    pub fn json(&self) -> Result<Map<String, Value>, Refusal> {
        if self.body.is_empty() {
            return Ok(Map::new());
        }
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(Refusal::bad_request("not_json")),
        }
    }
}
