//! How long deliveries may stay unacknowledged (`x-consumer-timeout`): until when, and what is late.
//!
//! Delivery tags rise with time. So a few marks, "from this tag on, until then", stand for all deliveries of a consumer however
//! many there are, and there is no clock per message. What is late goes back to its queue up to a 64th of the timeout too late,
//! and never too early.

use super::unacked::{HolderId, Taken};
use super::{Channel, Context};
use crate::connection::Millis;
use broker::QueueRef;
use model::ConsumerId;
use std::collections::VecDeque;

/// A consumer gets a new mark once this part of its timeout has passed since the last one.
const GRAIN: Millis = 64;

/// Deadlines of a channel. Exists once something on it has one.
#[derive(Debug, Default)]
pub struct Deadlines {
    clocks: Vec<Clock>,
    /// The highest tag that was taken back. The client may still acknowledge what it knows nothing of.
    taken_back: u64,
}

/// The deadlines of one holder's deliveries.
#[derive(Debug)]
struct Clock {
    holder: HolderId,
    /// `None` for gets.
    consumer: Option<ConsumerId>,
    timeout_ms: Millis,
    marks: VecDeque<Mark>,
}

/// Deliveries from this tag on, up to the next mark's, may stay until then.
#[derive(Clone, Copy, Debug)]
struct Mark {
    tag: u64,
    since: Millis,
    until: Millis,
}

/// A consumer, or what was fetched from a queue, that left deliveries unacknowledged for too long.
#[derive(Debug)]
pub struct Late {
    /// The consumer; `None` if it is one no longer, or of gets.
    pub consumer: Option<ConsumerId>,
    /// What it was allowed, in milliseconds.
    pub timeout_ms: Millis,
    holder: HolderId,
    /// Tags below are late.
    below: u64,
}

impl Clock {
    fn delivered(&mut self, tag: u64, now: Millis) {
        let grain = (self.timeout_ms / GRAIN).max(1);
        if self.marks.back().is_none_or(|mark| now >= mark.since + grain) {
            let until = now.saturating_add(self.timeout_ms).saturating_add(grain);
            self.marks.push_back(Mark {
                tag,
                since: now,
                until,
            });
        }
    }

    /// Tags below this one, and not lower than `oldest`, are late at `now`. Marks that stand for nothing any more are forgotten.
    fn late_below(&mut self, oldest: Option<u64>, now: Millis) -> Option<u64> {
        let Some(oldest) = oldest else {
            self.marks.clear();
            return None;
        };
        while self.marks.get(1).is_some_and(|next| next.tag <= oldest) {
            self.marks.pop_front();
        }
        let mut late = None;
        while self.marks.front().is_some_and(|mark| mark.until <= now) {
            self.marks.pop_front();
            late = Some(self.marks.front().map_or(u64::MAX, |next| next.tag));
        }
        late
    }
}

impl Deadlines {
    /// A delivery of this holder was written with this tag; more may follow it.
    #[cold]
    pub(super) fn delivered(&mut self, holder: HolderId, tag: u64, now: Millis) {
        if let Some(clock) = self.clocks.iter_mut().find(|clock| clock.holder == holder) {
            clock.delivered(tag, now);
        }
    }

    /// True if `tag` may be one that was taken back.
    pub fn forgive(&self, tag: u64) -> bool {
        0 < tag && tag <= self.taken_back
    }

    fn next(&self) -> Millis {
        let marks = self.clocks.iter().filter_map(|clock| clock.marks.front());
        marks.map(|mark| mark.until).min().unwrap_or(Millis::MAX)
    }
}

impl Channel {
    /// From now on this holder's deliveries have so much time; 0 is no end. Numbers of holders are used again.
    pub(super) fn time(&mut self, holder: HolderId, consumer: Option<ConsumerId>, timeout_ms: Millis) {
        if timeout_ms == 0 && self.deadlines.is_none() {
            return;
        }
        let deadlines = self.deadlines.get_or_insert_default();
        let known = deadlines.clocks.iter().position(|clock| clock.holder == holder);
        if let Some(at) = known {
            if consumer.is_none() && deadlines.clocks[at].consumer.is_none() && timeout_ms > 0 {
                deadlines.clocks[at].timeout_ms = timeout_ms;
                return;
            }
            deadlines.clocks.swap_remove(at);
        }
        if timeout_ms > 0 {
            deadlines.clocks.push(Clock {
                holder,
                consumer,
                timeout_ms,
                marks: VecDeque::new(),
            });
        }
    }

    /// What was fetched with this tag has the time that its queue gives.
    pub(super) fn time_get(&mut self, holder: HolderId, queue: &QueueRef, tag: u64, cx: &Context<'_>) {
        self.time(holder, None, queue.ack_timeout_ms());
        if let Some(deadlines) = &mut self.deadlines {
            deadlines.delivered(holder, tag, cx.shared.now);
        }
    }

    /// When something may be late first; never too late, `Millis::MAX` for never.
    pub fn next_deadline(&self) -> Millis {
        self.deadlines.as_ref().map_or(Millis::MAX, |it| it.next())
    }

    /// `basic.qos`, whatever it says, is a sign of life: what the channel holds may stay as long again. RabbitMQ has no
    /// such sign.
    pub(super) fn renew_deadlines(&mut self, now: Millis) {
        let Some(deadlines) = &mut self.deadlines else {
            return;
        };
        for clock in &mut deadlines.clocks {
            if let Some(first) = clock.marks.pop_front() {
                clock.marks.clear();
                clock.delivered(first.tag, now);
            }
        }
    }

    /// What was settled is not, after all: it has all its time again.
    pub(super) fn restart_deadlines(&mut self, now: Millis) {
        let Some(deadlines) = &mut self.deadlines else {
            return;
        };
        for clock in &mut deadlines.clocks {
            clock.marks.clear();
            clock.delivered(0, now);
        }
    }

    /// Who left deliveries unacknowledged for too long. They are still where they were: see [`Channel::take_back`].
    pub fn late(&mut self, now: Millis) -> Vec<Late> {
        let Some(deadlines) = &mut self.deadlines else {
            return Vec::new();
        };
        let mut late = Vec::new();
        for clock in &mut deadlines.clocks {
            if clock.marks.front().is_none_or(|mark| mark.until > now) {
                continue;
            }
            let oldest = self.unacked.first_of(clock.holder);
            if let Some(below) = clock.late_below(oldest, now) {
                late.push(Late {
                    consumer: clock.consumer,
                    timeout_ms: clock.timeout_ms,
                    holder: clock.holder,
                    below,
                });
            }
        }
        for it in &mut late {
            it.consumer = it.consumer.filter(|id| self.consumers.get(*id).is_some());
        }
        late
    }

    /// What is late goes back to its queue, as if the client had sent it back. Returns how many messages that were.
    pub fn take_back(&mut self, late: &Late) -> u64 {
        let mut taken: Vec<Taken> = Vec::new();
        self.unacked.take_of(late.holder, late.below, |it| taken.push(it));
        let Some(deadlines) = &mut self.deadlines else {
            return 0;
        };
        let mut count = 0;
        for it in taken {
            count += it.count;
            deadlines.taken_back = deadlines.taken_back.max(it.tag + it.count - 1);
            self.requeued.add(it);
        }
        self.flush_settled();
        count
    }

    /// The consumer's tag.
    pub fn tag_of(&self, consumer: ConsumerId) -> Option<String> {
        Some(self.consumers.get(consumer)?.tag.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(timeout_ms: Millis) -> Clock {
        Clock {
            holder: 0,
            consumer: None,
            timeout_ms,
            marks: VecDeque::new(),
        }
    }

    #[test]
    fn nothing_is_late_too_early_and_everything_soon_after() {
        let mut clock = clock(6_400);
        for tag in 1..=1_000 {
            clock.delivered(tag, tag * 10);
        }
        assert!(clock.marks.len() <= 101);
        assert_eq!(clock.late_below(Some(1), 6_410), None);
        let below = clock.late_below(Some(1), 6_510).unwrap();
        assert!((2..=11).contains(&below), "{below}");
        assert_eq!(clock.late_below(Some(below), 100_000), Some(u64::MAX));
    }

    #[test]
    fn what_is_settled_takes_its_deadline_along() {
        let mut clock = clock(1_000);
        clock.delivered(1, 0);
        clock.delivered(2, 500);
        assert_eq!(clock.late_below(Some(2), 1_300), None);
        assert_eq!(clock.marks.front().map(|mark| mark.tag), Some(2));
        assert_eq!(clock.late_below(None, 9_000), None);
        assert!(clock.marks.is_empty());
    }
}
