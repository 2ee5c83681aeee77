//! A consumer of another node, as the leader of its queue knows it.

use super::message::Notice;
use super::peer::Requests;
use model::ConsumerId;
use queue::{ConsumerSettings, Request};
use std::mem;

/// What goes back into a window at once, at the most: a whole one.
const MOST_BYTES: u64 = u32::MAX as u64;

/// See the module.
#[derive(Debug)]
pub struct Consumer {
    /// Its name here.
    pub id: ConsumerId,
    /// The node has named it in this session.
    pub named: bool,
    settings: ConsumerSettings,
    /// What it was sent and has not passed on to its client, in bytes; and what of it was sent in earlier sessions.
    used: u64,
    used_before: u64,
    /// It came with much of what another leader had sent it, and gets nothing before that is passed on: each change of leader
    /// could fill its window once more.
    drains: bool,
    /// It gets nothing until it is known what of the last session was lost, which comes before anything else.
    halts: bool,
}

impl Consumer {
    /// One that is new in this term, and was sent so many bytes before.
    pub fn new(id: ConsumerId, settings: ConsumerSettings, outstanding: u64) -> Self {
        Self {
            id,
            named: true,
            settings,
            used: outstanding,
            used_before: 0,
            drains: must_drain(outstanding, &settings),
            halts: false,
        }
    }

    /// It is to get nothing for now.
    pub fn waits(&self) -> bool {
        self.drains || self.halts || self.settings.paused
    }

    /// What it gets counts as settled.
    pub fn no_ack(&self) -> bool {
        self.settings.no_ack
    }

    /// It is sent so many bytes.
    pub fn sent(&mut self, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
    }

    /// It was told to wait.
    pub fn is_paused(&mut self) {
        self.settings.paused = true;
    }

    /// The session ends: what was sent in it may not have come, nor what the consumer passed on.
    pub fn session_ends(&mut self, requests: &mut Requests) {
        self.used_before = self.used;
        self.named = false;
        self.halt(requests);
    }

    /// It gets nothing more before the next session has begun.
    pub fn halt(&mut self, requests: &mut Requests) {
        if !self.waits() {
            let (consumer, reply) = (self.id, None);
            requests.push(Request::Pause { consumer, reply });
        }
        self.halts = true;
    }

    /// What was lost of the last session goes back to the queue.
    pub fn goes_on(&mut self, requests: &mut Requests) {
        if mem::take(&mut self.halts) {
            self.resume_if_due(requests);
        }
    }

    /// What the queue had for it, and it was not sent, goes back to the queue.
    pub fn not_sent(&mut self, bytes: u64, requests: &mut Requests) {
        self.sent(bytes);
        self.flow(bytes, requests);
    }

    fn resume_if_due(&self, requests: &mut Requests) {
        if !self.waits() {
            let consumer = self.id;
            requests.push(Request::Resume { consumer });
        }
    }

    /// A session begins, and of what it was sent before so much has not been passed on. The rest was, or was lost.
    pub fn named_again(&mut self, settings: ConsumerSettings, outstanding: u64, requests: &mut Requests) {
        self.named = true;
        let back = self.used_before.saturating_sub(outstanding);
        self.used_before = 0;
        self.flow(back, requests);
        if self.settings.prefetch != settings.prefetch {
            self.limit(settings.prefetch, requests);
        }
        match (self.settings.paused, settings.paused) {
            (false, true) => self.pause(requests),
            (true, false) => self.resume(requests),
            _ => {}
        }
    }

    /// The node says something of it.
    pub fn told(&mut self, notice: Notice, requests: &mut Requests) {
        match notice {
            Notice::Flow { bytes, .. } => self.flow(bytes.into(), requests),
            Notice::Limit { prefetch, .. } => self.limit(prefetch, requests),
            Notice::Pause { .. } => self.pause(requests),
            Notice::Resume { .. } => self.resume(requests),
            Notice::PutBack { .. } | Notice::Remove { .. } | Notice::Use => {}
        }
    }

    /// A window goes back, and the message that went beyond it, and no more, whatever the node says it had.
    fn flow(&mut self, bytes: u64, requests: &mut Requests) {
        let consumer = self.id;
        self.used = self.used.saturating_sub(bytes);
        match self.drains {
            false => {
                for bytes in [
                    bytes.min(MOST_BYTES),
                    bytes.saturating_sub(MOST_BYTES).min(MOST_BYTES),
                ] {
                    let bytes = bytes as u32;
                    requests.extend((bytes > 0).then_some(Request::Flow { consumer, bytes }));
                }
            }
            true if !must_drain(self.used, &self.settings) => {
                self.drains = false;
                self.resume_if_due(requests);
            }
            true => {}
        }
    }

    fn limit(&mut self, prefetch: u32, requests: &mut Requests) {
        self.settings.prefetch = prefetch;
        let consumer = self.id;
        requests.push(Request::Limit { consumer, prefetch });
    }

    fn pause(&mut self, requests: &mut Requests) {
        self.settings.paused = true;
        let (consumer, reply) = (self.id, None);
        requests.push(Request::Pause { consumer, reply });
    }

    fn resume(&mut self, requests: &mut Requests) {
        self.settings.paused = false;
        self.resume_if_due(requests);
    }
}

/// True if a consumer has to pass on some of what it was sent before it gets a whole window. Front ends give back half a
/// window at once, so less than that may stay with them for long.
fn must_drain(used: u64, settings: &ConsumerSettings) -> bool {
    used > u64::from(settings.window / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_says_it_had_more_than_there_is_gets_back_a_window_and_not_a_request_for_each() {
        let settings = ConsumerSettings {
            no_ack: false,
            exclusive: false,
            prefetch: 0,
            priority: 0,
            window: u32::MAX,
            paused: false,
        };
        for drains in [u64::MAX, 7] {
            let mut consumer = Consumer::new(ConsumerId(1), settings, drains);
            consumer.sent(u64::MAX - 1);
            consumer.session_ends(&mut Requests::new());
            let mut requests = Requests::new();
            consumer.named_again(settings, 0, &mut requests);
            consumer.goes_on(&mut requests);
            assert!(requests.len() <= 3, "{}", requests.len());
            assert!(!consumer.waits());
        }
    }
}
