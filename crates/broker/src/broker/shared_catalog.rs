//! A broker follows what several nodes decide.

use super::Broker;
use crate::groups::NodeId;
use crate::groups::catalog::Follower;
use crate::groups::membership::{Companion, Peer, drained, peers};
use catalog::View;
use catalog::shared::{Contents, Happened};
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

impl Follower for CatalogFollower {
    fn happened(&self, happened: &[Happened]) {
        if let Some(last) = happened.last() {
            self.follow(&last.view, |broker| broker.topology().take_over(happened));
        }
    }

    fn resumed(&self, contents: &Contents) {
        let view = contents.view();
        self.follow(view, |broker| broker.topology().reconcile(view));
    }
}
