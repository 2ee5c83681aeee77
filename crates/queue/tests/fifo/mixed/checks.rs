//! What must be so after each step: the queue is as the naive one, nobody was passed over, and the journal alone makes
//! the same queue.

use super::{Consumer, Known, Naive, State, properties};
use crate::world::{Event, World, body};
use model::{BlockBuilder, Machine, Seq, Timestamp};
use queue::fifo::{QueueSettings, Request, Sorting, Standing};
use std::sync::Arc;

impl Naive {
    /// The best went first, or of fair groups the first of each.
    pub(super) fn check_order(&self, ready: Vec<Known>, went: &[Known]) {
        let fair = matches!(self.settings.sorting, Sorting::FairKey(_));
        for group in 0..4 {
            let ranks = |list: &[Known]| {
                let those = list.iter().filter(|it| !fair || it.group == group);
                let mut ranks: Vec<_> = those.map(|it| it.rank).collect();
                ranks.sort_unstable();
                ranks
            };
            let (mut best, went) = (ranks(&ready), ranks(went));
            best.truncate(went.len());
            assert_eq!(went, best, "the best should have gone");
        }
    }

    /// Nobody holds more than it may, and of several only the first one gets messages in a queue with a single active one.
    /// Who got something had nobody of a higher priority before it who could have got it.
    pub(super) fn check_consumers(&self, events: &[Event]) {
        let mut lowest = i64::MAX;
        for event in events {
            if let Event::Delivered(id, _) = event {
                let got = self.consumers.iter().find(|it| it.id == id.0).unwrap();
                lowest = lowest.min(got.priority);
            }
        }
        for Consumer {
            id,
            prefetch,
            priority,
        } in &self.consumers
        {
            let holds = |it: &&Known| matches!(it.state, State::Held { by: Some(by), .. } if by == *id);
            let count = self.known.iter().filter(holds).count();
            assert!(count <= *prefetch as usize);
            let may = self.active == Some(*id) || !self.settings.single_active;
            assert!(may || count == 0, "a waiting consumer got messages");
            let hungry = may && count < *prefetch as usize;
            assert!(!hungry || *priority <= lowest, "{id} was passed over");
            let served = !hungry || !self.world.loads.is_empty() || self.ready().is_empty();
            assert!(served, "{id} could have got more");
        }
    }

    pub(super) fn compare(&self) {
        let status = self.world.fifo.status();
        assert_eq!(status.handed, self.handed);
        assert_eq!(status.ready, self.ready().len() as u64, "{:?}", self.known);
        let held = self
            .known
            .iter()
            .filter(|it| matches!(it.state, State::Held { .. }));
        assert_eq!(status.unacked, held.count() as u64);
        self.check_look();
    }

    /// A look sees every message once and whose it is; of a queue with priorities in the order in which they leave.
    fn check_look(&self) {
        let seen = self.world.seen(3);
        let count = |wanted| seen.iter().filter(|(_, _, it, _)| *it == wanted).count();
        let waits = |it: &&Known| matches!(it.state, State::Waiting { .. });
        let waiting = self.known.iter().filter(waits).count();
        assert_eq!(count(Standing::Ready), self.ready().len());
        assert_eq!(count(Standing::Waiting), waiting);
        let numbers: Vec<Seq> = seen.iter().map(|(_, number, ..)| *number).collect();
        let mut known: Vec<_> = self.known.iter().map(|it| it.rank).collect();
        known.sort_unstable();
        let known: Vec<Seq> = known.into_iter().map(|(_, number)| number).collect();
        match self.settings.sorting {
            Sorting::FairKey(_) => assert_eq!(numbers.len(), known.len()),
            _ => assert_eq!(numbers, known),
        }
    }

    /// The journal alone knows all duplicates.
    fn check_keys(&self) {
        if !self.settings.deduplicates {
            return;
        }
        let settings = QueueSettings {
            max_length: None,
            ..self.settings.clone()
        };
        let mut again = World::restarted(settings, self.world.disk.clone());
        again.now = self.world.now;
        let keys = self
            .known
            .iter()
            .filter(|it| it.persistent && it.expires > self.now());
        for key in keys.filter_map(|it| it.key) {
            let mut builder = BlockBuilder::new();
            builder.push(b"", b"q", &properties(0, Some(key)), &body(1, 20));
            let block = Arc::new(builder.finish(true, Timestamp(1)));
            let before = again.fifo.status().next_seq;
            again.handle(Request::Enqueue { block, receipt: None });
            assert_eq!(again.fifo.status().next_seq, before, "{key} was taken twice");
        }
    }

    /// The journal alone makes the same queue: what is ready now, and what becomes ready once all delays are over.
    pub(super) fn check_replay(&self) {
        self.check_keys();
        let settings = QueueSettings {
            max_length: None,
            message_ttl_ms: None,
            ..self.settings.clone()
        };
        let mut again = World::restarted(settings, self.world.disk.clone());
        let here = |waits: bool| {
            let there = self.known.iter().filter(|it| {
                it.persistent && it.expires == u64::MAX && matches!(it.state, State::Waiting { .. }) == waits
            });
            let mut ranks: Vec<_> = there.map(|it| it.rank).collect();
            ranks.sort_unstable();
            ranks.into_iter().map(|(_, number)| number).collect::<Vec<_>>()
        };
        if self.settings.message_ttl_ms.is_some() {
            return;
        }
        (again.now, again.sorted) = (self.world.now, true);
        again.handle(Request::Wake);
        again.settle_disk();
        let mut drain = |waits: bool| {
            let (mut drained, mut expected) = (again.drain_numbers(), here(waits));
            if matches!(self.settings.sorting, Sorting::FairKey(_)) {
                drained.sort_unstable();
                expected.sort_unstable();
            }
            assert_eq!(drained, expected);
            again.now.0 += 10_000;
            again.handle(Request::Wake);
        };
        drain(false);
        drain(true);
        assert_eq!(again.disk.segments.len(), 0, "places were not released");
    }
}
