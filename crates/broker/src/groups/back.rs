//! A group that has one member left hands its queue back to its node's own journal.

use super::handover::{self, ATTEMPTS, Begun, Contents, Successor};
use super::host::{ReplicatedHost, State, sort};
use super::node_groups::NodeGroups;
use super::replicated::Replicated;
use crate::node::promise::{Batches, Promise};
use cluster::GroupId;
use model::{Journaled, Timestamp};
use queue::{HandOver, store};
use std::fmt;
use std::sync::{Arc, OnceLock};
use storage::JournalId;

/// So many requests of nodes wait at most, and so long, in milliseconds; then the queue goes on as it is.
const WAITING: usize = 4_096;
const WAITS_MS: u64 = 2_000;

/// A queue that is handed back.
pub(super) struct Back<M: Replicated> {
    queue: JournalId,
    attempts: u32,
    change: Arc<Change>,
    /// What nodes have asked meanwhile. Once it is handed back they ask again.
    requests: Vec<M::Request>,
    /// Since when, by the clock of those who ask; `None` while nobody waits.
    since: Option<Timestamp>,
}

impl<M: Replicated> Back<M> {
    fn is_late(&self, now: Timestamp) -> bool {
        let waits = |since: Timestamp| now.0.saturating_sub(since.0) > WAITS_MS;
        self.requests.len() >= WAITING || self.since.is_some_and(waits)
    }
}

struct Change {
    groups: Arc<NodeGroups>,
    group: GroupId,
    successor: Arc<dyn Successor>,
    contents: OnceLock<Contents>,
}

impl Batches for Change {
    fn synced(self: Arc<Self>, _: u64) {
        let groups = self.groups.clone();
        groups.node().pager.write(move |_| {
            // The batch has forgotten what it had; this takes it out of memory.
            handover::forget(&self.groups, self.group, None);
            // It may be synced before whoever wrote it has said where it is.
            self.successor.begin(*self.contents.wait());
        });
    }
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is handed back", self.group)
    }
}

impl<M: Replicated> ReplicatedHost<M> {
    /// The queue is handed back from now on.
    pub fn begin_back(&mut self, queue: JournalId, successor: Arc<dyn Successor>) {
        let change = Change {
            groups: self.groups().clone(),
            group: self.group(),
            successor,
            contents: OnceLock::new(),
        };
        self.back = Some(Box::new(Back {
            queue,
            attempts: ATTEMPTS,
            change: Arc::new(change),
            requests: Vec::new(),
            since: None,
        }));
        if let State::Turned(host) = &mut self.state {
            // What an entry's place in the log has made it order, it orders now.
            host.handle(Timestamp(0), M::ask_store(store::Request::MoveOut));
        }
    }

    /// A node asks this while the queue is handed back.
    pub fn waits(&mut self, now: Timestamp, request: M::Request) {
        if let Some(back) = &mut self.back {
            back.since.get_or_insert(now);
            back.requests.push(request);
        }
    }

    /// Goes on with that, if everything is committed that was decided.
    pub(super) fn go_back(&mut self, act: &mut dyn FnMut(M::Effect)) {
        let now = self.groups().node().now();
        let (Some(back), State::Turned(host)) = (&mut self.back, &mut self.state) else {
            return;
        };
        if back.is_late(now) {
            return self.give_up_back(act);
        }
        if !host.holds_nothing() || !host.journal.is_settled_alone() {
            return;
        }
        match host.machine.hand_over(1) {
            HandOver::Contents(contents) => {
                let mut bytes = Vec::new();
                contents.encode(&mut bytes);
                let begun = Begun {
                    group: back.change.group,
                    segments: host.journal.segments(),
                };
                let promise = Promise::Batch(back.change.clone(), 0);
                let log = &back.change.groups.node().log;
                let written = handover::take_back(log, back.queue, begun, &bytes, promise);
                let _ = back.change.contents.set(written);
                back.requests = Vec::new();
                // Whatever its disk answers from now on, nothing more comes of it.
                self.state = State::Stopped;
            }
            HandOver::Waits => {}
            HandOver::Elsewhere if back.attempts > 0 => {
                back.attempts -= 1;
                host.handle(Timestamp(0), M::ask_store(store::Request::MoveOut));
                host.commit(|effect, journal| sort(effect, journal, act));
            }
            HandOver::Elsewhere => self.give_up_back(act),
        }
    }

    /// The queue stays the group's, and goes on with what nodes have asked meanwhile.
    fn give_up_back(&mut self, act: &mut dyn FnMut(M::Effect)) {
        let Some(back) = self.back.take() else { return };
        let now = self.groups().node().now();
        for request in back.requests {
            // It has led all the time.
            let _ = self.handle(now, request);
        }
        self.commit(act);
        back.change.successor.given_up();
    }
}
