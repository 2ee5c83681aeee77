//! A broker follows what several nodes decide.

use super::Broker;
use crate::clients::close_reason::CloseReason;
use crate::groups::catalog::{Follower, OwnRequest};
use crate::groups::membership::{CATALOG_GROUP, Companion, Peer, drained, peers};
use crate::groups::{NodeId, Observer};
use crate::queues::queue_of;
use catalog::shared::{Contents, Happened};
use catalog::{Record, View};
use cluster::{Event, GroupId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Takes over what was decided, or keeps it until there is a broker.
pub struct CatalogFollower {
    companion: Option<Arc<dyn Companion>>,
    following: Mutex<Following>,
}

#[derive(Default)]
struct Following {
    broker: Weak<Broker>,
    /// What exists, as long as there is no broker.
    view: Option<View>,
    /// The members, as they were told last, and those in maintenance.
    members: Vec<Peer>,
    drained: BTreeSet<NodeId>,
}

impl CatalogFollower {
    /// One who tells this one who the members are.
    pub fn new(companion: Option<Arc<dyn Companion>>) -> Arc<Self> {
        let following = Mutex::default();
        Arc::new(Self { companion, following })
    }

    /// What exists, as long as there is no broker.
    pub fn view(&self) -> Option<View> {
        self.lock().view.clone()
    }

    /// Here is the broker. What was decided since it looked at the view is taken over.
    pub fn connect(&self, broker: &Arc<Broker>) {
        if let Some(groups) = broker.groups() {
            let observer: Arc<dyn Observer> = broker.clone();
            groups.observed_by(Arc::downgrade(&observer));
        }
        let mut following = self.lock();
        following.broker = Arc::downgrade(broker);
        if let Some(view) = following.view.take() {
            broker.topology().reconcile(&view);
        }
    }

    fn follow(&self, view: &View, take_over: impl FnOnce(&Broker)) {
        let mut following = self.lock();
        if let Some(companion) = &self.companion {
            let members = peers(view);
            if members != following.members {
                companion.members(&members);
                following.members = members;
            }
            let drained = drained(view);
            if drained != following.drained {
                companion.drained(&drained);
                following.drained = drained;
            }
        }
        match following.broker.upgrade() {
            Some(broker) => {
                drop(following);
                take_over(&broker);
            }
            None => following.view = Some(view.clone()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Following> {
        self.following.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How a node stands among those that decide what exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogStanding {
    /// Who leads, by its name, if that is known.
    pub leader: Option<String>,
    /// It is this node.
    pub leads: bool,
    /// The term that this node knows of.
    pub term: u64,
    /// How many requests are decided for good, as far as this node knows, and how many of them it has applied.
    pub committed: u64,
    pub applied: u64,
    /// It may believe what it has applied: see [`Broker::is_stale`].
    pub is_fresh: bool,
}

impl Broker {
    /// How this node stands among those that decide what exists, if there are others.
    pub fn catalog_standing(&self) -> Option<CatalogStanding> {
        let shared = self.shared_catalog()?;
        let status = self.groups().and_then(|groups| groups.status(CATALOG_GROUP))?;
        let (committed, applied) = shared.versions();
        let view = self.view();
        let name =
            |member: cluster::MemberId| view.node_name(catalog::NodeId(member.node.0.into())).to_owned();
        Some(CatalogStanding {
            leads: status.leader == Some(status.me),
            leader: status.leader.map(name).filter(|name| !name.is_empty()),
            term: status.term,
            committed,
            applied,
            is_fresh: shared.is_fresh(),
        })
    }

    /// The virtual host is deleted, through whichever node: nobody is connected to it any more.
    pub(crate) fn vhost_is_gone(&self, vhost: &str) {
        let reason = CloseReason::VhostDeleted(vhost.to_owned());
        self.sessions().close(&reason, |open| *open.vhost == *vhost);
        self.firehose().forget(vhost);
    }

    /// The user is deleted, through whichever node: nobody is connected in its name any more.
    pub(crate) fn user_is_gone(&self, user: &str) {
        let reason = CloseReason::UserDeleted(user.to_owned());
        self.sessions().close(&reason, |open| *open.user == *user);
    }

    fn follow_end(&self, record: &Record) {
        match record {
            Record::VhostDeleted { name } => self.vhost_is_gone(name),
            Record::UserDeleted { name } => self.user_is_gone(name),
            _ => {}
        }
    }
}

impl Observer for Broker {
    fn damaged(&self, group: GroupId) {
        if let Some(queue) = queue_of(group) {
            self.topology().copy_is_damaged(queue);
        }
    }

    fn observe(&self, event: Event) {
        if let Event::Unknown {
            group,
            to: Some(member),
            ..
        } = event
            && let Some(queue) = queue_of(group)
        {
            self.topology().copy_is_awaited(queue, member.life);
        }
    }
}

impl Follower for CatalogFollower {
    fn happened(&self, happened: &[Happened], own: &[Option<OwnRequest>]) {
        if let Some(last) = happened.last() {
            self.follow(&last.view, |broker| {
                broker.topology().take_over(happened, own);
                let records = happened.iter().flat_map(|it| &it.records);
                records.for_each(|record| broker.follow_end(record));
            });
        }
    }

    fn resumed(&self, contents: &Contents) {
        let view = contents.view();
        self.follow(view, |broker| {
            let before = broker.view();
            broker.topology().reconcile(view);
            let vhosts = before.vhosts().filter(|it| view.vhost(&it.name).is_none());
            vhosts.for_each(|it| broker.vhost_is_gone(&it.name));
            let users = before.users().filter(|it| view.user(&it.name).is_none());
            users.for_each(|it| broker.user_is_gone(&it.name));
        });
    }
}
