//! `tx.*`: publishes and acknowledgements that take effect together, at `tx.commit`.
//!
//! As in RabbitMQ a message is checked and routed when it comes, and a mandatory one that nobody takes goes back at the commit.
//! `tx.commit-ok` leaves once every queue has confirmed every message of the transaction: what is persistent is synced then.

use super::methods::{Answer, Next};
use super::settle::Verdict;
use super::unacked::Taken;
use super::{Channel, Context, State};
use broker::stats;
use broker::{Prepared, Ticket, Unconfirmed};
use model::properties::PropertiesBuf;
use model::{Message, QueueId, Ranges, RouteBuf};
use protocol::amqp::method::{
    BasicPublish, ConfirmSelect, TxCommit, TxCommitOk, TxRollback, TxRollbackOk, TxSelect, TxSelectOk,
};
use protocol::amqp::{Arguments, Exception, MethodId, Publish, ReplyCode, encode};
use std::collections::VecDeque;

/// A transaction may hold so many bytes of messages; RabbitMQ has no limit.
const TRANSACTION_BYTES: usize = 512 * 1024 * 1024;

/// What a message costs beside its bytes, for the limit.
const MESSAGE_OVERHEAD: usize = 256;

/// A transactional channel's state.
#[derive(Debug, Default)]
pub struct Transaction {
    messages: Vec<Kept>,
    bytes: usize,
    settled: Vec<(Verdict, Taken)>,
    /// Messages that were committed, and queues have to confirm.
    waiting: Unconfirmed,
    /// Commits that are not answered yet, in order.
    commits: VecDeque<Commit>,
}

/// A message that waits for its commit.
#[derive(Debug)]
struct Kept {
    route: RouteBuf,
    properties: PropertiesBuf,
    body: Box<[u8]>,
    mandatory: bool,
    prepared: Prepared,
}

/// A commit that waits until queues have confirmed all messages with numbers below `end`.
#[derive(Debug)]
struct Commit {
    end: u64,
    /// Holds the place of its answer in the channel's output.
    ticket: Ticket,
    /// A queue has refused a message.
    refused: bool,
}

impl Transaction {
    /// These are settled if the transaction is committed.
    pub fn settled_later(&mut self, verdict: Verdict, taken: Taken) {
        self.settled.push((verdict, taken));
    }

    /// A queue has taken these; it is known where several have to.
    pub fn confirmed(&mut self, queue: Option<QueueId>, numbers: &Ranges) {
        self.waiting.confirmed(queue, numbers, |_| ());
    }

    /// A queue has refused these.
    pub fn rejected(&mut self, numbers: &Ranges) {
        let commits = &mut self.commits;
        self.waiting.rejected(numbers, |number| {
            if let Some(commit) = commits.iter_mut().find(|commit| number < commit.end) {
                commit.refused = true;
            }
        });
    }

    /// Forgets what was not committed. True if commits still wait for queues.
    pub fn end(&mut self) -> bool {
        self.messages = Vec::new();
        !self.commits.is_empty()
    }

    /// True if a commit may be answered.
    pub fn has_news(&self) -> bool {
        let lowest = self.waiting.lowest();
        self.commits.front().is_some_and(|commit| commit.end <= lowest)
    }

    /// The next commit that may be answered.
    fn take_done(&mut self) -> Option<Commit> {
        self.has_news().then(|| self.commits.pop_front()).flatten()
    }

    /// What was acknowledged and not committed.
    pub fn take_settled(&mut self) -> impl Iterator<Item = Taken> + use<> {
        std::mem::take(&mut self.settled)
            .into_iter()
            .map(|(_, taken)| taken)
    }

    /// Shows operators how long it is.
    fn show(&self, shown: &stats::Channel) {
        shown.uncommitted.set(self.messages.len() as u64);
        let acks = self.settled.iter().map(|(_, taken)| taken.count).sum();
        shown.acks_uncommitted.set(acks);
    }

    fn keep(&mut self, message: Kept) -> Result<(), Exception> {
        self.bytes += message.body.len() + message.properties.as_properties().len() + MESSAGE_OVERHEAD;
        self.messages.push(message);
        if self.bytes <= TRANSACTION_BYTES {
            return Ok(());
        }
        let text = format!("a transaction may hold {TRANSACTION_BYTES} bytes of messages");
        Err(Exception::new(
            ReplyCode::PreconditionFailed,
            text,
            BasicPublish::ID,
        ))
    }
}

impl Channel {
    pub(super) fn tx_select(&mut self, cx: &mut Context<'_>) -> Answer {
        if self.confirms.is_some() {
            return Err(cannot_switch("confirm to tx", TxSelect::ID));
        }
        self.tx.get_or_insert_default();
        self.special = true;
        self.shown.transactional.set(1);
        self.answer(cx, false, None, &TxSelectOk {})
    }

    /// # Errors
    /// 406 if the channel is transactional.
    pub(super) fn may_confirm(&self) -> Result<(), Exception> {
        match self.tx {
            Some(_) => Err(cannot_switch("tx to confirm", ConfirmSelect::ID)),
            None => Ok(()),
        }
    }

    /// Keeps a message for the commit.
    ///
    /// # Errors
    /// As [`Channel::publish`].
    pub(super) fn publish_in_transaction(
        &mut self,
        publish: &Publish<'_>,
        cx: &mut Context<'_>,
    ) -> Result<(), Exception> {
        let message = &publish.message;
        let mut prepared = self
            .publisher(cx)
            .prepare(message)
            .map_err(|refusal| Self::refused::<BasicPublish<'_>>(&refusal))?;
        let properties = prepared.properties.take();
        let kept = Kept {
            route: message.route.into(),
            properties: properties.unwrap_or_else(|| message.properties.into()),
            body: message.body.into(),
            mandatory: publish.mandatory,
            prepared,
        };
        let Some(tx) = &mut self.tx else { return Ok(()) };
        tx.keep(kept)?;
        tx.show(&self.shown);
        Ok(())
    }

    /// Keeps an acknowledgement for the commit. The tags are settled from now on, unless it is rolled back.
    /// False if the tag is not unsettled.
    pub(super) fn settle_in_transaction(&mut self, tag: u64, multiple: bool, verdict: Verdict) -> bool {
        let Some(tx) = &mut self.tx else { return false };
        let mut keep = |taken| tx.settled.push((verdict, taken));
        let known = match (multiple, tag) {
            (true, 0) => {
                self.unacked.take_all().for_each(keep);
                true
            }
            (true, tag) => self.unacked.take_up_to(tag, keep),
            (false, tag) => self.unacked.take_one(tag).map(&mut keep).is_some(),
        };
        tx.show(&self.shown);
        known
    }

    pub(super) fn tx_commit(&mut self, cx: &mut Context<'_>) -> Answer {
        let Some(tx) = &mut self.tx else {
            return Err(not_transactional(TxCommit::ID));
        };
        let (messages, settled) = (std::mem::take(&mut tx.messages), std::mem::take(&mut tx.settled));
        tx.bytes = 0;
        tx.show(&self.shown);
        let first = tx.waiting.next();
        let end = first + messages.len() as u64;
        for (kept, number) in messages.iter().zip(first..) {
            if kept.prepared.is_lost() {
                self.lost(&kept.publish(self.number), cx);
            }
            let publish = kept.publish(self.number);
            let publisher = self.publisher(cx);
            let taken = publisher.publish_prepared(&kept.prepared, &publish.message, number);
            if let Some(tx) = &mut self.tx {
                tx.waiting.published(taken.queues);
            }
        }
        for (verdict, taken) in settled {
            self.batch(verdict).add(taken);
        }
        match &mut self.tx {
            Some(tx) if tx.waiting.lowest() < end => {
                // What the channel writes from now on comes after the answer.
                let ticket = cx.shared.session.ticket();
                self.held.get_or_insert_default().wait_for(ticket);
                tx.commits.push_back(Commit {
                    end,
                    ticket,
                    refused: false,
                });
                Ok(Next::Go)
            }
            _ => self.answer(cx, false, None, &TxCommitOk {}),
        }
    }

    /// Answers the commits that are safe.
    ///
    /// # Errors
    /// 406 if a queue refused a message: the others have theirs, as in RabbitMQ.
    pub(super) fn answer_commits(&mut self, out: &mut Vec<u8>) -> Result<(), Exception> {
        while let Some(commit) = self.tx.as_mut().and_then(|tx| tx.take_done()) {
            let Some(held) = &mut self.held else { continue };
            if commit.refused && self.state == State::Open {
                if held.cut(commit.ticket) {
                    self.held = None;
                }
                let text = "partial tx completion";
                return Err(Exception::new(ReplyCode::PreconditionFailed, text, TxCommit::ID));
            }
            if !commit.refused {
                let mut answer = Vec::new();
                encode::method(&mut answer, self.number, &TxCommitOk {});
                held.fill(commit.ticket, &answer);
            }
            self.durable(commit.ticket, out);
        }
        Ok(())
    }

    pub(super) fn tx_rollback(&mut self, cx: &mut Context<'_>) -> Answer {
        let Some(tx) = &mut self.tx else {
            return Err(not_transactional(TxRollback::ID));
        };
        tx.messages = Vec::new();
        tx.bytes = 0;
        self.unacked.put_back(tx.take_settled());
        tx.show(&self.shown);
        self.restart_deadlines(cx.shared.now);
        self.answer(cx, false, None, &TxRollbackOk {})
    }
}

impl Kept {
    fn publish(&self, channel: u16) -> Publish<'_> {
        Publish {
            channel,
            mandatory: self.mandatory,
            immediate: false,
            message: Message::new(self.route.as_route(), self.properties.as_properties(), &self.body),
        }
    }
}

fn cannot_switch(how: &str, method: MethodId) -> Exception {
    Exception::new(
        ReplyCode::PreconditionFailed,
        format!("cannot switch from {how} mode"),
        method,
    )
}

fn not_transactional(method: MethodId) -> Exception {
    Exception::new(
        ReplyCode::PreconditionFailed,
        "channel is not transactional",
        method,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commits_are_done_in_order_once_all_their_queues_have_answered() {
        let mut tx = Transaction::default();
        let commit = |first, end| Commit {
            end,
            ticket: Ticket(first),
            refused: false,
        };
        tx.commits.extend([commit(1, 3), commit(3, 4)]);
        [1, 2, 1]
            .into_iter()
            .for_each(|queues| tx.waiting.published(queues));
        tx.confirmed(Some(QueueId(7)), &Ranges::one(2));
        tx.confirmed(Some(QueueId(7)), &Ranges::one(2));
        tx.rejected(&Ranges::one(3));
        assert!(!tx.has_news());
        tx.confirmed(None, &Ranges::one(1));
        assert!(tx.take_done().is_none());
        tx.confirmed(Some(QueueId(8)), &Ranges::one(2));
        let done: Vec<_> = std::iter::from_fn(|| tx.take_done())
            .map(|commit| (commit.ticket, commit.refused))
            .collect();
        assert_eq!(done, [(Ticket(1), false), (Ticket(3), true)]);
    }
}
