//! Acknowledgements: from delivery tags to messages of queues, collected and handed on once per read.

use super::Channel;
use broker::Disposal;
use protocol::amqp::{Exception, MethodId, ReplyCode};

/// What the client says of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Done.
    Accept,
    /// Not wanted.
    Reject,
    /// Back to where it stood.
    Requeue,
    /// The same, since nobody could do anything with it.
    Return,
}

impl Channel {
    /// `basic.ack`, `basic.nack` and `basic.reject`. Tag 0 with `multiple` is everything.
    ///
    /// # Errors
    /// 406 for a tag that is not unsettled.
    pub(super) fn settle(
        &mut self,
        tag: u64,
        multiple: bool,
        verdict: Verdict,
        method: MethodId,
    ) -> Result<(), Exception> {
        if self.is_orderly()
            && let Some(publisher) = &mut self.publisher
        {
            // The reason to slow down, if there is one, is found again by the next publish.
            drop(publisher.flush());
        }
        let known = match (multiple, tag) {
            _ if self.tx.is_some() => self.settle_in_transaction(tag, multiple, verdict),
            (true, 0) => {
                for taken in self.unacked.take_all() {
                    self.batch(verdict).add(taken);
                }
                true
            }
            (true, tag) => {
                let batch = match verdict {
                    Verdict::Accept => &mut self.accepted,
                    Verdict::Reject => &mut self.rejected,
                    Verdict::Requeue => &mut self.requeued,
                    Verdict::Return => &mut self.returned,
                };
                self.unacked.take_up_to(tag, |taken| batch.add(taken))
            }
            (false, tag) => self
                .unacked
                .take_one(tag)
                .map(|taken| self.batch(verdict).add(taken))
                .is_some(),
        };
        if known || self.deadlines.as_ref().is_some_and(|it| it.forgive(tag)) {
            if !known && multiple {
                self.settle_the_rest(tag, verdict);
            }
            return Ok(());
        }
        let text = format!("unknown delivery tag {tag}");
        Err(Exception::new(ReplyCode::PreconditionFailed, text, method))
    }

    /// The client speaks of everything up to a tag that was taken back meanwhile.
    #[cold]
    fn settle_the_rest(&mut self, tag: u64, verdict: Verdict) {
        let mut rest = Vec::new();
        self.unacked.take_all_up_to(tag, |taken| rest.push(taken));
        match &mut self.tx {
            Some(tx) => rest
                .into_iter()
                .for_each(|taken| tx.settled_later(verdict, taken)),
            None => rest.into_iter().for_each(|taken| self.batch(verdict).add(taken)),
        }
    }

    pub(super) fn batch(&mut self, verdict: Verdict) -> &mut super::Batch {
        match verdict {
            Verdict::Accept => &mut self.accepted,
            Verdict::Reject => &mut self.rejected,
            Verdict::Requeue => &mut self.requeued,
            Verdict::Return => &mut self.returned,
        }
    }

    /// `basic.recover`: everything unsettled goes back, in pieces. True if that was the last one; until then it must be
    /// called again. What is delivered meanwhile, some of it for another time, is none of it.
    pub(super) fn recover(&mut self) -> bool {
        let last = *self.recovering.get_or_insert(self.next_tag - 1);
        let mut room = super::MESSAGES_PART;
        while let Some(taken) = self.unacked.take_first(last, room) {
            room -= taken.count;
            self.requeued.add(taken);
        }
        self.flush_settled();
        if room > 0 {
            self.recovering = None;
        }
        room > 0
    }

    /// Hands on what was settled since the last flush.
    pub(super) fn flush_settled(&mut self) {
        let is_some = |batch: &super::Batch| !batch.is_empty();
        if !is_some(&self.accepted)
            && ![&self.rejected, &self.requeued, &self.returned]
                .into_iter()
                .any(is_some)
        {
            return;
        }
        let (holders, prefetch, shown) = (&mut self.holders, &mut self.prefetch, &self.shown);
        for (batch, verdict) in [
            (&mut self.accepted, Verdict::Accept),
            (&mut self.rejected, Verdict::Reject),
            (&mut self.requeued, Verdict::Requeue),
            (&mut self.returned, Verdict::Return),
        ] {
            for (holder, seqs) in batch.drain() {
                let count = seqs.count();
                shown.settled.add(count);
                if verdict == Verdict::Accept {
                    shown.counts.messages.ack.add(count);
                }
                holders.settle(holder, count, |holder| {
                    if holder.consumer.is_some() {
                        prefetch.released(count);
                    }
                    match verdict {
                        Verdict::Accept => holder.queue.settle(holder.consumer, seqs, Disposal::Accepted),
                        Verdict::Reject => holder.queue.settle(holder.consumer, seqs, Disposal::Rejected),
                        Verdict::Requeue => holder.queue.requeue(holder.consumer, seqs),
                        // The client has seen them.
                        Verdict::Return => holder.queue.give_back(holder.consumer, seqs, true),
                    }
                });
            }
        }
        prefetch.resume(&self.consumers);
    }
}
