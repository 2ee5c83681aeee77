//! The sessions that are open, for what concerns many of them.

use crate::clients::alarms::AlarmReason;
use crate::clients::close_reason::CloseReason;
use crate::clients::outbox::{Event, Outbox};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

/// One of them.
pub struct OpenSession {
    pub vhost: Arc<str>,
    /// The user's name.
    pub user: Arc<str>,
    pub outbox: Arc<Outbox>,
}

/// All of them, by the ids of their connections.
#[derive(Default)]
pub struct OpenSessions(RwLock<HashMap<u64, OpenSession>>);

impl OpenSessions {
    /// One more. It is told of the alarm that is on.
    pub fn add(&self, id: u64, session: OpenSession, alarm: impl FnOnce() -> Option<AlarmReason>) {
        let mut sessions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        // Under the lock, so that no change of the alarm falls between the two.
        if let Some(reason) = alarm() {
            session.outbox.push(Event::Alarm(Some(reason)));
        }
        sessions.insert(id, session);
    }

    /// This one is closed.
    pub fn remove(&self, id: u64) {
        let mut sessions = self.0.write().unwrap_or_else(PoisonError::into_inner);
        sessions.remove(&id);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Ends the connections of which `which` is true, and says how many these are: 320 with this text.
    pub fn close(&self, reason: &CloseReason, which: impl Fn(&OpenSession) -> bool) -> usize {
        self.send(which, || Event::Close(reason.clone()))
    }

    /// Tells all of them of an alarm, or that there is none any more.
    pub fn announce(&self, alarm: Option<AlarmReason>) {
        self.send(|_| true, || Event::Alarm(alarm));
    }

    fn send(&self, which: impl Fn(&OpenSession) -> bool, event: impl Fn() -> Event) -> usize {
        let sessions = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let chosen = sessions.values().filter(|session| which(session));
        chosen.map(|session| session.outbox.send(event())).count()
    }
}
