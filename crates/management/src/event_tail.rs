//! The last events of this node: a ring in memory for those who ask with each turn for what came after the last one, as other
//! nodes do. It is there only while somebody asks: where nobody listens, an event costs nothing.

use broker::{Occurrence, Watcher};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many events are kept: as many as wait for a listener of this node.
const KEPT: usize = 2_000;
/// How long they are kept once nobody asks any more: a link that is gone for a while costs nobody an event.
pub const REST: Duration = Duration::from_secs(60);

/// The last events.
#[derive(Debug, Default)]
pub struct EventTail {
    ring: Mutex<Ring>,
}

#[derive(Debug, Default)]
struct Ring {
    /// Who watches, and when somebody asked last.
    watched: Option<(Arc<Watcher>, Instant)>,
    /// What was seen, with its number since the start.
    kept: VecDeque<(u64, Occurrence)>,
    seen: u64,
}

impl EventTail {
    /// The events after this number, or none yet, in the order in which they happened, and how many are kept no more. The number
    /// becomes that of the last event.
    pub fn since(
        &self,
        after: &mut Option<u64>,
        now: Instant,
        watch: impl FnOnce() -> Arc<Watcher>,
    ) -> (Vec<Occurrence>, u64) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let (watcher, asked) = ring.watched.get_or_insert_with(|| (watch(), now));
        *asked = now;
        let (occurrences, lost) = watcher.take();
        ring.keep(occurrences, lost);
        ring.since(after)
    }

    /// Watches no more if nobody has asked for a while.
    pub fn rest(&self, now: Instant) {
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over = |asked: Instant| now.saturating_duration_since(asked) >= REST;
        if ring.watched.as_ref().is_some_and(|(_, asked)| is_over(*asked)) {
            ring.watched = None;
            ring.kept = VecDeque::new();
            // What happens meanwhile is not counted. Whoever comes back is told that there may have been something.
            ring.seen += 1;
        }
    }
}

impl Ring {
    /// Takes over what the watcher has seen, after so many that it has lost.
    fn keep(&mut self, occurrences: Vec<Occurrence>, lost: u64) {
        self.seen += lost;
        for occurrence in occurrences {
            self.seen += 1;
            if self.kept.len() == KEPT {
                self.kept.pop_front();
            }
            self.kept.push_back((self.seen, occurrence));
        }
    }

    fn since(&self, after: &mut Option<u64>) -> (Vec<Occurrence>, u64) {
        let known = match after.replace(self.seen) {
            None => self.seen,
            // Whoever knows of later ones has them of an earlier start.
            Some(later) if later > self.seen => 0,
            Some(known) => known,
        };
        let events = self.kept.iter().filter(|(number, _)| *number > known);
        let events: Vec<_> = events.map(|(_, occurrence)| occurrence.clone()).collect();
        let lost = (self.seen - known).saturating_sub(events.len() as u64);
        (events, lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::{Broker, Options};

    /// Events that happened from one moment to another.
    fn events(moments: std::ops::Range<u64>) -> Vec<Occurrence> {
        let event = |at_ms| Occurrence {
            key: "queue.created",
            at_ms,
            headers: Arc::default(),
        };
        moments.map(event).collect()
    }

    fn since(ring: &Ring, after: &mut Option<u64>) -> (Vec<u64>, u64) {
        let (events, lost) = ring.since(after);
        (events.iter().map(|event| event.at_ms).collect(), lost)
    }

    #[test]
    fn everybody_is_told_each_event_once_and_again_if_the_answer_was_lost() {
        let mut ring = Ring::default();
        ring.keep(events(0..2), 0);
        let mut after = None;
        assert_eq!(since(&ring, &mut after), (vec![], 0), "from now on");
        ring.keep(events(2..4), 0);
        let before = after;
        assert_eq!(since(&ring, &mut after), (vec![2, 3], 0));
        assert_eq!(since(&ring, &mut after), (vec![], 0));
        assert_eq!(since(&ring, &mut before.clone()), (vec![2, 3], 0));
        let mut of_an_earlier_start = Some(1_000);
        assert_eq!(since(&ring, &mut of_an_earlier_start), (vec![0, 1, 2, 3], 0));
        assert_eq!(of_an_earlier_start, after);
    }

    #[test]
    fn what_is_too_much_for_the_ring_or_for_the_watcher_is_counted() {
        let mut ring = Ring::default();
        let (mut slow, mut quick) = (Some(0), Some(0));
        let kept = KEPT as u64;
        ring.keep(events(0..kept), 0);
        assert_eq!(since(&ring, &mut quick).1, 0);
        ring.keep(events(kept..kept + 5), 7);
        let (told, lost) = since(&ring, &mut slow);
        assert_eq!((told.len(), told[0], lost), (KEPT, 5, 12));
        let (told, lost) = since(&ring, &mut quick);
        assert_eq!((told.len(), told[0], lost), (5, kept, 7));
    }

    #[test]
    fn it_watches_while_somebody_asks_and_whoever_comes_back_later_may_have_missed_something() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let (tail, began) = (EventTail::default(), Instant::now());
        let happen = |name| {
            broker
                .administrator("ada")
                .set_global(name, Some(true.into()))
                .unwrap()
        };
        let since = |after: &mut Option<u64>, now| {
            let (events, lost) = tail.since(after, now, || broker.watch());
            (events.len(), lost)
        };
        happen("before");
        let mut after = None;
        assert_eq!(since(&mut after, began), (0, 0));
        happen("first");
        assert_eq!(since(&mut after, began + REST / 2), (1, 0));
        tail.rest(began + REST);
        happen("second");
        assert_eq!(since(&mut after, began + REST), (1, 0));
        tail.rest(began + REST * 2);
        happen("third");
        assert_eq!(since(&mut after, began + REST * 2), (0, 1));
        broker.close();
    }
}
