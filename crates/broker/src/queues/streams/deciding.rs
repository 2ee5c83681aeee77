//! What decides in a stream, whoever keeps its records: the machine, and what is known of other nodes that send to it. What a
//! queue is asked becomes what the machine knows.

use super::messages;
use super::senders::Senders;
use crate::node::ends::{Ends, Receipt};
use model::{Block, Incarnation, Machine, Outcome, QueueSettings, Ranges, Timestamp};
use queue::stream::senders::{reference_of, sender_of};
use queue::stream::{Answer as Said, Effect as Order, Record, Request as Ask, Stream, StreamSettings};
use queue::{Answer, Effect, Origin, Request};
use std::collections::BTreeSet;

/// See the module. Whoever asks takes what comes of it out of `outcome`.
pub(super) struct Deciding {
    pub machine: Stream<Ends>,
    pub outcome: Outcome<Record, Order<Ends>>,
    /// Other nodes that send what their clients publish.
    senders: Senders,
}

impl Deciding {
    /// Nobody has asked anything yet.
    pub fn new(machine: Stream<Ends>) -> Self {
        Self {
            machine,
            outcome: Outcome::default(),
            senders: Senders::default(),
        }
    }

    /// Has the machine decide this.
    pub fn ask(&mut self, now: Timestamp, request: Ask<Ends>) {
        self.machine.handle(now, request, &mut self.outcome);
    }

    /// Takes messages of this node's clients.
    pub fn enqueue(&mut self, now: Timestamp, block: &Block, receipt: Option<Receipt>) {
        let batch = messages::batch(block, 0);
        if batch.len() < block.len() {
            return self.refuse_too_large(receipt);
        }
        let publish = Ask::Publish {
            reference: None,
            batch,
            receipt,
        };
        self.ask(now, publish);
    }

    /// Takes what another node sends, whose numbers say what is missing and what is there already. What it is told at once, if
    /// something is missing.
    pub fn enqueue_from(
        &mut self,
        now: Timestamp,
        origin: Origin,
        block: &Block,
        receipt: Option<Receipt>,
    ) -> Option<Effect<Ends>> {
        let Origin { sender, first } = origin;
        let (reference, count) = (reference_of(sender), block.len() as u64);
        let last = self.machine.sequence(&reference);
        if let Err(number) = self.senders.hear(origin, count, last) {
            return Some(Effect::Expects {
                receipt,
                sender,
                number,
            });
        }
        let batch = messages::batch(block, first);
        if batch.len() < block.len() {
            self.senders.refuse(origin, count);
            self.refuse_too_large(receipt);
            return None;
        }
        let publish = Ask::Publish {
            reference: Some(reference),
            batch,
            receipt,
        };
        self.ask(now, publish);
        None
    }

    /// Some of a block are too large for a stream.
    fn refuse_too_large(&mut self, receipt: Option<Receipt>) {
        self.outcome.promises.extend(receipt.map(Order::Reject));
    }

    /// A node asks what became of what it sent: the answer is so once all that is on record now is safe.
    pub fn recall(&mut self, now: Timestamp, sender: Incarnation, from: u64) -> Answer {
        self.ask(now, Ask::EndTurn);
        let last = self.machine.sequence(&reference_of(sender));
        let (below, refused) = self.senders.recall(sender, from, last);
        Answer::Recalled { below, refused }
    }

    /// A node sends nothing more as the one it was. What stands on record of it stays until there are too many: that is known by
    /// itself once a later start has sent something.
    pub fn ended(&mut self, incarnation: Incarnation) {
        self.senders.end(incarnation);
    }

    /// Other nodes of which something is known.
    pub fn senders(&self) -> Vec<Incarnation> {
        let references = self.machine.tracking().sequences();
        let on_record = references.filter_map(|(reference, _)| sender_of(reference));
        let all: BTreeSet<Incarnation> = on_record.chain(self.senders.all()).collect();
        all.into_iter().collect()
    }
}

/// What the machine orders as a queue's host is ordered it.
///
/// # Errors
/// Segments that end at or below this offset may go.
pub(super) fn effect_of(order: Order<Ends>) -> Result<Effect<Ends>, u64> {
    Ok(match order {
        Order::Confirm(receipt) => Effect::Confirm(receipt),
        Order::Reject(receipt) => Effect::Reject(receipt),
        Order::Reply(reply, Said::Number(number)) => Effect::Reply(reply, Answer::Number(Some(number))),
        Order::Reply(reply, Said::Unknown) => Effect::Reply(reply, Answer::Number(None)),
        Order::DropBelow { offset } => return Err(offset),
    })
}

/// Answers what is the same whatever a stream has, and whoever is asked.
///
/// # Errors
/// It is something else: here it is back.
#[allow(
    clippy::result_large_err,
    reason = "the caller has made it, and goes on with it"
)]
pub(super) fn answered(request: Request<Ends>) -> Result<Effect<Ends>, Request<Ends>> {
    Ok(match request {
        // What it delivered is nobody's but the consumer's: nothing comes back.
        Request::Holds { held, reply, .. } => {
            let mut all = Ranges::new();
            held.iter().for_each(|held| all.extend(&held.seqs));
            Effect::Reply(reply, Answer::Discard(all))
        }
        Request::Get { reply, .. } => Effect::Reply(reply, Answer::Empty),
        Request::TakeOut { reply, .. } => Effect::Reply(reply, Answer::Taken(Ranges::new())),
        Request::Purge { reply } => Effect::Reply(reply, Answer::Purged(0)),
        // Whatever is in it and whoever reads it, and nobody is told how much it was: as in RabbitMQ.
        Request::MayRetire { reply, .. } => Effect::Reply(reply, Answer::MayRetire(0)),
        request => return Err(request),
    })
}

/// What a stream's machine is told of a queue's settings.
pub(super) fn stream_settings(settings: &QueueSettings) -> StreamSettings {
    let usual = StreamSettings::default();
    StreamSettings {
        max_bytes: settings.max_length_bytes,
        max_age_ms: settings.max_age_ms,
        segment_bytes: settings
            .segment_bytes
            .filter(|it| *it > 0)
            .unwrap_or(usual.segment_bytes),
        filter_bytes: settings.filter_bytes.unwrap_or(usual.filter_bytes),
    }
}
