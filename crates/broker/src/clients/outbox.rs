//! What the broker has for a session: deliveries, confirms, late answers, alarms. Filled by hosts and by the log's
//! thread, emptied by the front end that serves the session, which is woken once however much comes.

use crate::clients::access::{LoginRefusal, User};
use crate::clients::alarms::AlarmReason;
use crate::clients::close_reason::CloseReason;
use model::{ConsumerId, QueueId, Ranges};
use queue::{Answer, Delivery};
use smallvec::SmallVec;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};
use std::task::Waker;

/// A channel of a session: whatever the session's front end lets its client have several of. What the number means only
/// the front end knows; it never gives it to another channel of the session, so what was meant for an earlier channel
/// never reaches a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChannelId(pub u64);

/// Names one reply that must wait until what it promises is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u64);

/// Names a question to a queue. Its answer comes as [`Event::Answer`], whoever turns the queue. That of a queue of this
/// node is there when the call that asked has returned, and nobody is woken for it; or the disk has to be read first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Question(pub u64);

/// Something for a session's front end to do.
#[derive(Debug)]
pub enum Event {
    /// Encode these messages to the consumer.
    Deliver {
        channel: ChannelId,
        consumer: ConsumerId,
        delivery: Delivery,
    },
    /// One queue has taken responsibility for these publishes of the channel. `queue` says which one, unless each of
    /// them went to one queue only: then a second confirm of the same number can only be the first one again.
    Confirm {
        channel: ChannelId,
        queue: Option<QueueId>,
        numbers: Ranges,
    },
    /// One queue has refused these publishes of the channel because it is full.
    Reject {
        channel: ChannelId,
        queue: Option<QueueId>,
        numbers: Ranges,
        /// It has not: nobody who has its messages could be reached, and it is not known whether they were taken.
        unreached: bool,
    },
    /// What the ticket's reply promises is durable.
    Durable { channel: ChannelId, ticket: Ticket },
    /// The answer to a question; `None` if nobody who has the queue's messages can be reached, or if it was the
    /// catalog's to answer (whoever asked holds what it has decided).
    Answer {
        channel: ChannelId,
        question: Question,
        answer: Option<Answer>,
    },
    /// The queue is gone, and with it the consumer.
    ConsumerCancelled {
        channel: ChannelId,
        consumer: ConsumerId,
    },
    /// There is something for somebody who reads a stream.
    Readable {
        channel: ChannelId,
        consumer: ConsumerId,
    },
    /// One of several who may read a stream is the one that does, or is no longer.
    Active {
        channel: ChannelId,
        consumer: ConsumerId,
        active: bool,
    },
    /// An alarm was raised (with its reason) or the last one was cleared.
    Alarm(Option<AlarmReason>),
    /// The broker closes the connection.
    Close(CloseReason),
    /// An authority has decided about a login or about new credentials.
    Login(Result<User, LoginRefusal>),
    /// Rights that had to be asked for are known, or another node has decided: what waited for that is tried again.
    Permitted,
}

/// A session's inbox as its front end sees it, its outbox as the broker does. Bounded by what its consumers' windows
/// and its own outstanding requests allow.
#[derive(Debug, Default)]
pub struct Outbox {
    inner: Mutex<Inner>,
    woken: AtomicBool,
    /// It is another node's, whose clients have their own there.
    of_node: bool,
}

#[derive(Debug, Default)]
struct Inner {
    events: Vec<Event>,
    waker: Option<Waker>,
}

impl Outbox {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// One for what another node asks for its clients.
    pub fn of_node() -> Self {
        Self {
            of_node: true,
            ..Self::default()
        }
    }

    /// True if it is another node's: that asks again whatever has no answer.
    pub fn is_of_node(&self) -> bool {
        self.of_node
    }

    /// Adds an event. Confirms of one channel become one if their numbers rise and they are of the same queue, or of numbers that
    /// went to one queue each.
    /// Nobody is woken: call [`Outbox::wake`] once after the last push of a turn.
    pub fn push(&self, event: Event) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Event::Confirm {
            channel,
            queue,
            numbers,
        } = &event
            && let Some(Event::Confirm {
                channel: last,
                queue: of,
                numbers: earlier,
            }) = inner.events.last_mut()
            && last == channel
            && of == queue
            && numbers.first() > earlier.last()
        {
            for (first, last) in numbers.spans() {
                earlier.push_span(first, last);
            }
            return;
        }
        inner.events.push(event);
    }

    /// Wakes the front end unless it is already awake for an earlier event.
    pub fn wake(&self) {
        if self.woken.swap(true, Ordering::AcqRel) {
            return;
        }
        let waker = self
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .waker
            .clone();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// [`Outbox::push`] and [`Outbox::wake`].
    pub fn send(&self, event: Event) {
        self.push(event);
        self.wake();
    }

    /// For the front end: takes all events into `events` (which should be empty; its memory is used again) and has
    /// `waker` woken when more come.
    pub fn take(&self, events: &mut Vec<Event>, waker: &Waker) {
        self.woken.store(false, Ordering::Release);
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut inner.events, events);
        if !inner.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            inner.waker = Some(waker.clone());
        }
    }

    /// For the front end, between two frames: takes what is there without touching the waker.
    pub fn take_now(&self, events: &mut Vec<Event>) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut inner.events, events);
    }
}

/// The connections to wake at the end of a turn or of a sync.
#[derive(Debug, Default)]
pub(crate) struct Woken(SmallVec<[Arc<Outbox>; 4]>);

impl Woken {
    /// Pushes an event at once, so that events keep their order, and remembers whom to wake. Neighbouring events mostly belong to
    /// the same connections; a wake too many is harmless.
    pub(crate) fn push(&mut self, outbox: Arc<Outbox>, event: Event) {
        outbox.push(event);
        if !self
            .0
            .iter()
            .rev()
            .take(8)
            .any(|known| Arc::ptr_eq(known, &outbox))
        {
            self.0.push(outbox);
        }
    }

    /// Wakes them all.
    pub(crate) fn wake(self) {
        for outbox in self.0 {
            outbox.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn many_events_wake_the_front_end_once_and_confirms_flow_together() {
        let outbox = Outbox::new();
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(count.clone());
        let mut events = Vec::new();
        outbox.take(&mut events, &waker);
        let channel = ChannelId(1);
        for number in 1..=3 {
            outbox.send(Event::Confirm {
                channel,
                queue: None,
                numbers: Ranges::one(number),
            });
        }
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        outbox.take(&mut events, &waker);
        assert_eq!(events.len(), 1);
        assert!(matches!(&events[0], Event::Confirm { numbers, .. } if *numbers == Ranges::span(1, 3)));
        events.clear();
        outbox.push(Event::Confirm {
            channel,
            queue: None,
            numbers: Ranges::one(4),
        });
        outbox.push(Event::Confirm {
            channel,
            queue: None,
            numbers: Ranges::one(4),
        });
        outbox.take(&mut events, &waker);
        assert_eq!(events.len(), 2);
        outbox.send(Event::Close(CloseReason::Shutdown));
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
    }
}
