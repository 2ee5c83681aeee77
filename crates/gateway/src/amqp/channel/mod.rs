//! A channel: the state machine of RabbitMQ's `rabbit_channel`, without its process.
//!
//! Reading order: this file (what a channel is), [`methods`] (which method goes where), [`publish`], [`confirms`] and
//! [`tx`] (the way in), [`reply`] (direct replies), [`deliver`], [`fitting`], [`consumer`] and [`unacked`] (the way
//! out), [`settle`] (acknowledgements), [`consume`], [`deadlines`], [`topology`],
//! [`held`] (replies that wait for the log).
//!
//! Everything here is synchronous: a method is answered, or its answer is put where it waits, before the next frame is
//! looked at.

mod asked;
mod confirms;
mod consume;
mod consumer;
mod consumers;
mod deadlines;
mod deliver;
mod fitting;
mod held;
mod holders;
mod methods;
mod prefetch;
mod publish;
mod reply;
mod settle;
mod topology;
mod tx;
mod unacked;

pub use asked::Asked;
pub use deadlines::Late;
pub use methods::Next;

use crate::amqp::refusal;
use crate::connection::Millis;
use broker::stats::ChannelHandle;
use broker::{ChannelId, Pressure, Publisher, QueueQuestion, QueueRef, Session, Subscription, Ticket};
use confirms::Confirms;
use consumer::Pending;
use consumers::Consumers;
use deadlines::Deadlines;
use held::Held;
use holders::Holders;
use model::{ConsumerId, Limits, QueueId, Ranges};
use prefetch::Prefetch;
use protocol::amqp::handshake::Tuning;
use protocol::amqp::{Arguments, Assembler, Exception, encode};
use reply::ReplyConsumer;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use tx::Transaction;
use unacked::{Batch, Unacked};

/// How many consumers one turn of the connection holds or cancels when a channel ends: each costs a turn of its queue.
const CONSUMERS_PART: usize = 128;

/// How many messages go back in one turn of the connection: they take some milliseconds, and others are waiting.
const MESSAGES_PART: u64 = 4_096;

/// What all channels of a connection share.
pub struct Shared {
    /// The connection in the broker.
    pub session: Arc<Session>,
    /// Bounds for what is decoded.
    pub limits: Limits,
    /// What was agreed.
    pub tuning: Tuning,
    /// The connection's time.
    pub now: Millis,
}

impl Shared {
    /// For a channel that writes there.
    #[inline]
    pub fn context<'a>(&'a self, out: &'a mut Vec<u8>) -> Context<'a> {
        Context { shared: self, out }
    }
}

/// What a channel needs of its connection.
pub struct Context<'a> {
    /// What it shares with the other channels.
    pub shared: &'a Shared,
    /// Where frames are written.
    pub out: &'a mut Vec<u8>,
}

/// Whether frames are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// They are.
    Open,
    /// We closed it: everything but the client's `channel.close-ok` is dropped.
    Closing,
    /// The client closed it; the answer waits behind held output.
    Finishing,
}

/// One channel of a connection.
pub struct Channel {
    id: ChannelId,
    number: u16,
    /// What operators see of it.
    pub shown: ChannelHandle,
    /// Whether frames are taken.
    pub state: State,
    /// Puts contents together.
    pub assembler: Assembler,
    /// Made for the first message.
    publisher: Option<Box<Publisher>>,
    confirms: Option<Box<Confirms>>,
    /// Of a transactional channel.
    tx: Option<Box<Transaction>>,
    /// Its messages take a longer way in: there is a transaction, or the node writes into messages.
    special: bool,
    /// Its consumer of direct replies.
    replies: Option<Box<ReplyConsumer>>,
    /// The queue that an empty name stands for.
    last_queue: String,
    prefetch: Prefetch,
    consumers: Consumers,
    /// Of so many places in that list the consumers are held already: the channel ends.
    holding: usize,
    /// The same by their tags.
    tags: HashMap<String, ConsumerId>,
    /// Consumers and getters of what is unsettled.
    holders: Holders,
    unacked: Unacked,
    /// Of deliveries that may not stay unsettled for ever.
    deadlines: Option<Box<Deadlines>>,
    next_tag: u64,
    /// A `basic.recover` is under way: up to which tag messages go back.
    recovering: Option<u64>,
    /// Deliveries that were not written yet.
    pending: VecDeque<Pending>,
    /// Acknowledged since the last flush.
    accepted: Batch,
    /// Rejected since the last flush.
    rejected: Batch,
    /// Given back since the last flush.
    requeued: Batch,
    /// Returned since the last flush: rejected with the wish to see them again, or the channel ends.
    returned: Batch,
    held: Option<Box<Held>>,
    /// Subscriptions that ended; for the connection to take.
    pub departed: Vec<Departed>,
    /// True if the connection has this channel on its list of those to flush.
    pub dirty: bool,
    /// True if the connection has this channel on its list of those with deliveries to write.
    pub queued: bool,
}

/// A consumer that ended, while a delivery to it may still be on its way.
#[derive(Debug)]
pub struct Departed {
    /// Which one.
    pub consumer: ConsumerId,
    /// Where deliveries to it go back to.
    pub queue: QueueRef,
    /// What the queue was asked: after the answer no delivery comes.
    pub question: QueueQuestion,
}

impl Departed {
    /// Ends the consumer in its queue.
    pub fn of(subscription: &Subscription) -> Self {
        Self {
            consumer: subscription.consumer(),
            queue: subscription.queue().clone(),
            question: subscription.cancel(),
        }
    }
}

impl Channel {
    /// The user's rights are others by now: they are asked for again.
    pub fn forget_rights(&mut self) {
        if let Some(publisher) = &mut self.publisher {
            publisher.forget_routes();
        }
    }

    /// An open channel; `intercepted` if the node writes into its messages.
    pub fn new(number: u16, id: ChannelId, intercepted: bool, shown: ChannelHandle) -> Self {
        Self {
            id,
            number,
            shown,
            state: State::Open,
            assembler: Assembler::new(),
            publisher: None,
            confirms: None,
            tx: None,
            special: intercepted,
            replies: None,
            last_queue: String::new(),
            prefetch: Prefetch::default(),
            consumers: Consumers::default(),
            holding: 0,
            tags: HashMap::new(),
            holders: Holders::default(),
            unacked: Unacked::default(),
            deadlines: None,
            next_tag: 1,
            recovering: None,
            pending: VecDeque::new(),
            accepted: Batch::new(),
            rejected: Batch::new(),
            requeued: Batch::new(),
            returned: Batch::new(),
            held: None,
            departed: Vec::new(),
            dirty: false,
            queued: false,
        }
    }

    /// What it is called in the broker.
    pub fn id(&self) -> ChannelId {
        self.id
    }

    /// Its number on the connection.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Hands what was published and settled since the last flush to the queues. With back-pressure, nothing more is to
    /// be read until it is released.
    pub fn flush(&mut self) -> Option<Pressure> {
        if self.is_orderly() {
            // Acknowledgements go first: an acknowledgement that came after a publish flushed that publish when it
            // came, so what is published and waits here came after all acknowledgements.
            self.flush_settled();
        }
        let pressure = self.publisher.as_mut().and_then(|publisher| publisher.flush());
        self.flush_settled();
        pressure
    }

    /// True if there are publishes to a queue that must get them in order with acknowledgements.
    fn is_orderly(&self) -> bool {
        self.publisher
            .as_ref()
            .is_some_and(|publisher| publisher.is_orderly())
    }

    /// True if it has consumers.
    pub fn consumes(&self) -> bool {
        !self.consumers.is_empty()
    }

    /// True if [`Channel::tell`] has something to write.
    pub fn has_news(&self) -> bool {
        self.confirms.as_ref().is_some_and(|confirms| confirms.has_news())
            || self.tx.as_ref().is_some_and(|tx| tx.has_news())
    }

    /// Writes the confirms that are due.
    ///
    /// # Errors
    /// A queue refused what a transaction committed.
    pub fn tell(&mut self, out: &mut Vec<u8>) -> Result<(), Exception> {
        if self.tx.is_some() {
            return self.answer_commits(out);
        }
        let number = self.number;
        let out = match &mut self.held {
            Some(held) => held.bytes(),
            None => out,
        };
        if let Some(confirms) = &mut self.confirms
            && confirms.has_news()
        {
            let told = confirms.tell(number, out);
            self.shown.counts.confirm.add(told.confirmed);
            self.shown.told.add(told.confirmed + told.refused);
        }
        Ok(())
    }

    /// One queue has confirmed these publishes; it is known where several have to.
    pub fn confirmed(&mut self, queue: Option<QueueId>, numbers: &Ranges) {
        if let Some(confirms) = &mut self.confirms {
            confirms.confirmed(queue, numbers);
        } else if let Some(tx) = &mut self.tx {
            tx.confirmed(queue, numbers);
        }
    }

    /// One queue has refused these publishes.
    pub fn rejected(&mut self, numbers: &Ranges) {
        if let Some(confirms) = &mut self.confirms {
            confirms.rejected(numbers);
        } else if let Some(tx) = &mut self.tx {
            tx.rejected(numbers);
        }
    }

    /// Refuses the next message. False if nobody waits for its confirm.
    pub fn refuse_publish(&mut self) -> bool {
        let Some(confirms) = &mut self.confirms else {
            return false;
        };
        let number = confirms.next();
        confirms.published(1);
        confirms.rejected(&Ranges::one(number));
        self.count_published(1);
        true
    }

    /// The ticket's promise is durable.
    pub fn durable(&mut self, ticket: Ticket, out: &mut Vec<u8>) {
        if self.held.as_mut().is_some_and(|held| held.durable(ticket, out)) {
            self.held = None;
        }
    }

    /// True if `basic.qos` with `global` set a limit.
    pub fn has_limit(&self) -> bool {
        self.prefetch.all > 0
    }

    /// How many replies wait for the log.
    pub fn waiting_replies(&self) -> usize {
        self.held.as_ref().map_or(0, |held| held.len())
    }

    /// True if nothing waits for the log.
    pub fn is_released(&self) -> bool {
        self.held.is_none()
    }

    /// Writes a method behind whatever waits.
    pub fn write<'m>(&mut self, out: &mut Vec<u8>, method: &impl Arguments<'m>) {
        let number = self.number;
        encode::method(self.target(out), number, method);
    }

    /// Writes a reply that must not leave before `durable`, if there is such a ticket.
    fn reply<'m>(&mut self, out: &mut Vec<u8>, durable: Option<Ticket>, method: &impl Arguments<'m>) {
        if let Some(ticket) = durable {
            self.held.get_or_insert_default().wait_for(ticket);
        }
        self.write(out, method);
    }

    /// Where this channel's frames go: to the connection, or behind what waits for the log.
    pub fn target<'a>(&'a mut self, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        match &mut self.held {
            Some(held) => held.bytes(),
            None => out,
        }
    }

    /// It is about to be released: what its consumers were sent until now is in the outbox once their queues have
    /// answered what is added to `questions`, and nothing follows. Goes a part of the way; true if that was the last
    /// one.
    pub fn hold_part(&mut self, questions: &mut VecDeque<QueueQuestion>) -> bool {
        // What is given back from now on makes room for nobody here.
        self.prefetch = Prefetch::default();
        for consumer in self.consumers.part(self.holding, CONSUMERS_PART) {
            questions.push_back(consumer.subscription.hold());
        }
        self.holding += CONSUMERS_PART;
        self.holding >= self.consumers.slots()
    }

    /// Ends it: hands on what was published and settled, gives back everything unsettled and cancels the consumers. What
    /// was never written goes back as if it had not been delivered. Goes a part of the way; true if that was the last one.
    ///
    /// The consumers go last: who takes the place of a queue's single active consumer begins with what that one held, as in
    /// RabbitMQ.
    pub fn release_part(&mut self) -> bool {
        self.flush();
        if let Some(tx) = &mut self.tx {
            tx.take_settled().for_each(|taken| self.returned.add(taken));
        }
        let mut left = MESSAGES_PART;
        while left > 0
            && let Some(pending) = self.pending.pop_front()
        {
            self.return_pending(&pending);
            left -= 1;
        }
        while let Some(taken) = self.unacked.take_first(u64::MAX - 1, left) {
            left -= taken.count;
            self.returned.add(taken);
        }
        self.flush_settled();
        if left == 0 {
            return false;
        }
        for _ in 0..CONSUMERS_PART {
            let Some(consumer) = self.consumers.pop() else {
                self.forget();
                return true;
            };
            self.departed.push(Departed::of(&consumer.subscription));
        }
        false
    }

    /// Nothing of it is left but replies that wait for the log.
    fn forget(&mut self) {
        self.tags = HashMap::new();
        self.consumers = Consumers::default();
        self.publisher = None;
        self.confirms = None;
        if self.tx.as_mut().is_some_and(|tx| !tx.end()) {
            self.tx = None;
        }
        self.replies = None;
        self.recovering = None;
        self.holders = Holders::default();
        self.deadlines = None;
        self.assembler = Assembler::new();
        self.last_queue = String::new();
    }

    /// A refusal of `method`, as the exception that tells the client.
    fn refused<'m, A: Arguments<'m>>(refusal: &broker::Refusal) -> Exception {
        refusal::exception(refusal, A::ID)
    }
}
