//! The one generic host: it turns a machine on a journal.
//!
//! A host has no thread. Whoever brings it a request turns it; what others bring meanwhile waits in a mailbox and is
//! handled in the same or the next turn (see `queues::local`).

use crate::node::journal::Journal;
use model::{Index, Machine, Outcome, Timestamp};
use std::collections::VecDeque;

/// A machine, its journal, and the outcome of the turn under way.
pub struct Host<M: Machine, J> {
    /// Decides.
    pub machine: M,
    /// Remembers.
    pub journal: J,
    outcome: Outcome<M::Record, M::Effect>,
    /// Effects of turns that wait for their journal: with what it has to reach, in the order of the turns.
    held: VecDeque<(u64, M::Effect)>,
}

impl<M: Machine, J: Journal<M>> Host<M, J> {
    /// A host for a machine that was made new or replayed from `journal`.
    pub fn new(machine: M, journal: J) -> Self {
        Self {
            machine,
            journal,
            outcome: Outcome::default(),
            held: VecDeque::new(),
        }
    }

    /// Lets the machine decide one request. Nothing leaves before [`Host::commit`].
    pub fn handle(&mut self, now: Timestamp, request: M::Request) {
        self.machine.handle(now, request, &mut self.outcome);
    }

    /// Takes over a record that somebody else has decided. What follows from it leaves with [`Host::commit`].
    pub fn apply(&mut self, index: Index, record: M::Record) {
        self.machine.apply(index, record, &mut self.outcome);
    }

    /// Ends the turn: appends its records as one batch, then calls `act` for every effect that need not wait. Promises go
    /// with the batch and are carried out when it is durable; if the turn put nothing on record they are due at once.
    /// Nothing leaves, not even an answer, before the journal says that it may.
    pub fn commit(&mut self, mut act: impl FnMut(M::Effect, &mut J)) {
        let Outcome {
            records,
            effects,
            promises,
        } = &mut self.outcome;
        if !records.is_empty() || !promises.is_empty() {
            self.journal.append(&mut self.machine, records, promises);
            records.clear();
        }
        let leaves = !promises.is_empty() || effects.iter().any(|effect| self.journal.holds(effect));
        match self.journal.end_turn(leaves) {
            None => {
                let due = effects.drain(..).chain(promises.drain(..));
                due.for_each(|effect| act(effect, &mut self.journal));
            }
            Some(turn) => self.hold(turn, &mut act),
        }
    }

    /// What the turn ordered waits for its journal, but for what that does not hold. Apart from the turns of queues that one node
    /// has, which never come here.
    #[inline(never)]
    fn hold(&mut self, turn: u64, act: &mut dyn FnMut(M::Effect, &mut J)) {
        for effect in self.outcome.effects.drain(..) {
            match self.journal.holds(&effect) {
                true => self.held.push_back((turn, effect)),
                false => act(effect, &mut self.journal),
            }
        }
        let promises = self.outcome.promises.drain(..);
        self.held.extend(promises.map(|effect| (turn, effect)));
        self.let_go(act);
    }

    /// The journal has come further: calls `act` for the effects of the turns that waited for it.
    pub fn let_go(&mut self, mut act: impl FnMut(M::Effect, &mut J)) {
        let reached = self.journal.reached();
        while self.held.front().is_some_and(|(turn, _)| *turn <= reached) {
            if let Some((_, effect)) = self.held.pop_front() {
                act(effect, &mut self.journal);
            }
        }
    }

    /// Whether nothing waits for the journal.
    pub fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    /// What was held never leaves, though nobody else decides from now on.
    pub fn drop_held(&mut self) -> impl Iterator<Item = M::Effect> {
        self.held.drain(..).map(|(_, effect)| effect)
    }

    /// Somebody else decides from now on: what was not committed never leaves. The machine has decided things that may not
    /// become so, and is given up; whoever follows replays the journal. Returns what was held, too.
    pub fn step_down(self) -> (M, J, impl Iterator<Item = M::Effect>) {
        let held = self.held.into_iter().map(|(_, effect)| effect);
        (self.machine, self.journal, held)
    }
}

#[cfg(test)]
mod succession;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::outbox::{ChannelId, Outbox, Question};
    use crate::node::ends::{Ends, Outlet, Receipt, Reply};
    use model::properties::Properties;
    use model::{BlockBuilder, ConsumerId, Message, Ranges, RouteBuf};
    use queue::fifo::{Classic, QueueSettings, Record};
    use queue::{ConsumerSettings, Effect, Request};
    use std::sync::Arc;

    const CHANNEL: ChannelId = ChannelId(1);

    /// A journal whose records are committed when the test says so, as one is that others must have, too.
    #[derive(Default)]
    struct Late {
        last: Index,
        committed: Index,
    }

    impl Journal<Classic<Ends>> for Late {
        fn append(
            &mut self,
            _machine: &mut Classic<Ends>,
            records: &mut Vec<Record>,
            _promises: &mut Vec<Effect<Ends>>,
        ) {
            self.last += records.drain(..).count() as u64;
        }

        fn end_turn(&mut self, _leaves: bool) -> Option<u64> {
            Some(self.last)
        }

        fn reached(&self) -> u64 {
            self.committed
        }
    }

    fn host() -> Host<Classic<Ends>, Late> {
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        Host::new(Classic::new(settings), Late::default())
    }

    fn enqueue(number: u64) -> Request<Ends> {
        let mut block = BlockBuilder::default();
        let (route, properties) = (RouteBuf::new(b"", b"q"), Properties::amqp091(b""));
        block.push_message(&Message::new(route.as_route(), properties, b"body"));
        Request::Enqueue {
            block: Arc::new(block.finish(true, Timestamp(1))),
            receipt: Some(Receipt {
                outbox: Arc::new(Outbox::new()),
                channel: CHANNEL,
                numbers: Ranges::one(number),
                queue: None,
                timed: None,
            }),
        }
    }

    fn reply() -> Reply {
        Reply {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            question: Question(1),
            no_ack: false,
        }
    }

    fn consume() -> Request<Ends> {
        let outlet = Outlet {
            outbox: Arc::new(Outbox::new()),
            channel: CHANNEL,
            no_ack: false,
        };
        Request::Consume {
            consumer: ConsumerId(1),
            outlet,
            settings: ConsumerSettings {
                no_ack: false,
                exclusive: false,
                prefetch: 0,
                priority: 0,
                window: 1 << 20,
                paused: false,
            },
            reply: reply(),
        }
    }

    /// What leaves, in words.
    fn word(effect: &Effect<Ends>) -> String {
        match effect {
            Effect::Deliver { delivery, .. } => format!("deliver {}", delivery.seqs.first().unwrap_or(0)),
            Effect::Confirm(receipt) => format!("confirm {}", receipt.numbers.first().unwrap_or(0)),
            Effect::Reply(..) => "answer".to_owned(),
            _ => "something else".to_owned(),
        }
    }

    fn turn(host: &mut Host<Classic<Ends>, Late>, request: Request<Ends>) -> Vec<String> {
        let mut left = Vec::new();
        host.handle(Timestamp(1), request);
        host.commit(|effect, _| left.push(word(&effect)));
        left
    }

    #[test]
    fn deliveries_answers_and_confirms_leave_once_all_that_their_turn_saw_is_committed() {
        let mut host = host();
        assert_eq!(
            turn(&mut host, consume()),
            ["answer"],
            "there is nothing to wait for"
        );
        assert_eq!(turn(&mut host, enqueue(1)), [""; 0]);
        assert_eq!(turn(&mut host, enqueue(2)), [""; 0]);
        let purge = Request::Purge { reply: reply() };
        assert_eq!(
            turn(&mut host, purge),
            [""; 0],
            "the answer saw what is not committed"
        );
        let mut left = Vec::new();
        host.journal.committed = 1;
        host.let_go(|effect, _| left.push(word(&effect)));
        assert_eq!(left, ["deliver 1", "confirm 1"]);
        left.clear();
        host.journal.committed = host.journal.last;
        host.let_go(|effect, _| left.push(word(&effect)));
        assert_eq!(left, ["deliver 2", "confirm 2", "answer"]);
    }
}
