//! `tx.*`: publishes and acknowledgements that take effect together, at `tx.commit`.
//!
//! As in RabbitMQ a message is checked and routed when it comes, and a mandatory one that nobody takes goes back at the commit.
//! `tx.commit-ok` leaves once every queue has confirmed every message of the transaction: what is persistent is synced then.

use super::methods::{Answer, Next};
use super::settle::Verdict;
use super::unacked::Taken;
use super::{Channel, Context};
use broker::{Prepared, Publish as Message};
use model::Ranges;
use protocol::amqp::method::{
    BasicPublish, ConfirmSelect, TxCommit, TxCommitOk, TxRollback, TxRollbackOk, TxSelect, TxSelectOk,
};
use protocol::amqp::{Arguments, Exception, MethodId, Publish, ReplyCode};
use std::collections::VecDeque;

/// A transaction may hold so many bytes of messages; RabbitMQ has no limit.
const TRANSACTION_BYTES: usize = 512 * 1024 * 1024;

/// What a message costs beside its bytes, for the limit.
const MESSAGE_OVERHEAD: usize = 256;

/// A transactional channel's state.
#[derive(Debug)]
pub struct Transaction {
    messages: Vec<Kept>,
    bytes: usize,
    settled: Vec<(Verdict, Taken)>,
    /// The number of the next message that is committed, from 1.
    next: u64,
    /// Commits that are not answered yet, in order.
    commits: VecDeque<Commit>,
}

/// A message that waits for its commit.
#[derive(Debug)]
struct Kept {
    exchange: Box<[u8]>,
    routing_key: Box<[u8]>,
    properties: Box<[u8]>,
    body: Box<[u8]>,
    mandatory: bool,
    prepared: Prepared,
}

/// A commit that waits for queues: so many confirms of the messages numbered `first..end`.
#[derive(Debug)]
struct Commit {
    first: u64,
    end: u64,
    waiting: u64,
}

impl Default for Transaction {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            bytes: 0,
            settled: Vec::new(),
            next: 1,
            commits: VecDeque::new(),
        }
    }
}

impl Transaction {
    /// Queues have confirmed these; a number comes once for each queue.
    pub fn confirmed(&mut self, numbers: &Ranges) {
        for (first, last) in numbers.spans() {
            for commit in &mut self.commits {
                let (from, to) = (first.max(commit.first), (last + 1).min(commit.end));
                commit.waiting = commit.waiting.saturating_sub(to.saturating_sub(from));
            }
        }
    }

    /// True if a commit may be answered.
    pub fn has_news(&self) -> bool {
        self.commits.front().is_some_and(|commit| commit.waiting == 0)
    }

    /// True once for each commit that may be answered.
    pub fn take_done(&mut self) -> bool {
        let done = self.has_news();
        if done {
            self.commits.pop_front();
        }
        done
    }

    /// What was acknowledged and not committed.
    pub fn take_settled(&mut self) -> impl Iterator<Item = Taken> + use<> {
        std::mem::take(&mut self.settled)
            .into_iter()
            .map(|(_, taken)| taken)
    }

    fn keep(&mut self, message: Kept) -> Result<(), Exception> {
        self.bytes += message.body.len() + message.properties.len() + MESSAGE_OVERHEAD;
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
        let message = message(publish);
        let mut prepared = self
            .publisher(cx)
            .prepare(&message)
            .map_err(|refusal| Self::refused::<BasicPublish<'_>>(&refusal))?;
        let properties = prepared.properties.take();
        let kept = Kept {
            exchange: publish.exchange.into(),
            routing_key: publish.routing_key.into(),
            properties: properties.map_or_else(|| publish.properties.into(), Vec::into_boxed_slice),
            body: publish.body.into(),
            mandatory: publish.mandatory,
            prepared,
        };
        match &mut self.tx {
            Some(tx) => tx.keep(kept),
            None => Ok(()),
        }
    }

    /// Keeps an acknowledgement for the commit. The tags are settled from now on, unless it is rolled back.
    /// False if the tag is not unsettled.
    pub(super) fn settle_in_transaction(&mut self, tag: u64, multiple: bool, verdict: Verdict) -> bool {
        let Some(tx) = &mut self.tx else { return false };
        let mut keep = |taken| tx.settled.push((verdict, taken));
        match (multiple, tag) {
            (true, 0) => {
                self.unacked.take_all().for_each(keep);
                true
            }
            (true, tag) => self.unacked.take_up_to(tag, keep),
            (false, tag) => self.unacked.take_one(tag).map(&mut keep).is_some(),
        }
    }

    pub(super) fn tx_commit(&mut self, cx: &mut Context<'_>) -> Answer {
        let Some(tx) = &mut self.tx else {
            return Err(not_transactional(TxCommit::ID));
        };
        let (messages, settled) = (std::mem::take(&mut tx.messages), std::mem::take(&mut tx.settled));
        tx.bytes = 0;
        let first = tx.next;
        let end = first + messages.len() as u64;
        tx.next = end;
        let mut waiting = 0;
        for (kept, number) in messages.iter().zip(first..) {
            if kept.mandatory && kept.prepared.is_lost() {
                self.return_message(&kept.publish(self.id.number), cx);
            }
            let publish = kept.publish(self.id.number);
            let publisher = self.publisher(cx);
            let taken = publisher.publish_prepared(&kept.prepared, &message(&publish), number);
            waiting += u64::from(taken.queues);
        }
        for (verdict, taken) in settled {
            self.batch(verdict).add(taken);
        }
        if let Some(tx) = &mut self.tx {
            tx.commits.push_back(Commit { first, end, waiting });
        }
        self.answer_commits(cx.out);
        Ok(Next::Go)
    }

    /// Answers the commits that are safe.
    pub(super) fn answer_commits(&mut self, out: &mut Vec<u8>) {
        while self.tx.as_mut().is_some_and(|tx| tx.take_done()) {
            self.write(out, &TxCommitOk {});
        }
    }

    pub(super) fn tx_rollback(&mut self, cx: &mut Context<'_>) -> Answer {
        let Some(tx) = &mut self.tx else {
            return Err(not_transactional(TxRollback::ID));
        };
        tx.messages = Vec::new();
        tx.bytes = 0;
        self.unacked.put_back(tx.take_settled());
        self.answer(cx, false, None, &TxRollbackOk {})
    }
}

impl Kept {
    fn publish(&self, channel: u16) -> Publish<'_> {
        Publish {
            channel,
            exchange: &self.exchange,
            routing_key: &self.routing_key,
            mandatory: self.mandatory,
            immediate: false,
            properties: &self.properties,
            body: &self.body,
        }
    }
}

fn message<'a>(publish: &Publish<'a>) -> Message<'a> {
    Message {
        exchange: publish.exchange,
        routing_key: publish.routing_key,
        properties: publish.properties,
        body: publish.body,
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
    fn commits_are_answered_in_order_once_all_their_confirms_are_there() {
        let mut tx = Transaction::default();
        tx.commits.extend([
            Commit {
                first: 1,
                end: 3,
                waiting: 3,
            },
            Commit {
                first: 3,
                end: 4,
                waiting: 1,
            },
            Commit {
                first: 4,
                end: 4,
                waiting: 0,
            },
        ]);
        tx.confirmed(&Ranges::span(2, 3));
        assert!(!tx.has_news());
        tx.confirmed(&Ranges::one(1));
        assert!(!tx.take_done());
        tx.confirmed(&Ranges::one(2));
        assert_eq!(
            [tx.take_done(), tx.take_done(), tx.take_done(), tx.take_done()],
            [true, true, true, false]
        );
    }
}
