//! What clients of this node ask of a queue that is led elsewhere.

use super::{Consumer, Handle, Notice, Orders, Question, ToLeader, Waiting, Way};
use model::{Block, ConsumerId};
use queue::{Answer, ConsumerSettings, Effect, Ends, Request};
use std::sync::Arc;

impl<E: Ends> Handle<E> {
    /// Takes a client's request. What is not for clients to ask comes back: it is for the one who leads.
    ///
    /// # Errors
    /// No client asks this.
    #[allow(clippy::result_large_err, reason = "the caller has made it")]
    pub fn request(&mut self, request: Request<E>, orders: &mut Orders<E>) -> Result<(), Request<E>> {
        match request {
            Request::Enqueue { block, receipt } => self.publish(block, receipt, orders),
            Request::Consume {
                consumer,
                outlet,
                settings,
                reply,
            } => self.consume(consumer, outlet, settings, reply, orders),
            Request::Cancel { consumer, reply } => self.cancel(consumer, reply, orders),
            Request::Get { no_ack, reply } => self.ask(Question::Get { no_ack }, reply, orders),
            Request::Settle {
                consumer,
                seqs,
                disposal,
            } => {
                self.holdings.resolve(consumer, &seqs, Way::Settled(disposal));
                self.say_resolved();
            }
            Request::Return {
                consumer,
                seqs,
                failed,
            } => {
                self.holdings.resolve(consumer, &seqs, Way::Returned { failed });
                self.say_resolved();
            }
            Request::Requeue { consumer, seqs } => {
                self.holdings.resolve(consumer, &seqs, Way::Requeued);
                self.say_resolved();
            }
            Request::TakeOut { seqs, reply } => self.ask(Question::TakeOut { seqs }, reply, orders),
            Request::PutBack { seqs } => self.tell(Notice::PutBack { seqs }),
            Request::Remove { seqs } => self.tell(Notice::Remove { seqs }),
            Request::Flow { consumer, bytes } => {
                if let Some(it) = self.consumers.get_mut(&consumer) {
                    it.outstanding = it.outstanding.saturating_sub(u64::from(bytes));
                    self.tell(Notice::Flow { consumer, bytes });
                }
            }
            Request::Limit { consumer, prefetch } => {
                if let Some(it) = self.consumers.get_mut(&consumer) {
                    it.settings.prefetch = prefetch;
                    self.tell(Notice::Limit { consumer, prefetch });
                }
            }
            Request::Pause { consumer, reply } => self.pause(consumer, reply, orders),
            Request::Resume { consumer } => {
                if let Some(it) = self.consumers.get_mut(&consumer) {
                    it.settings.paused = false;
                    self.tell(Notice::Resume { consumer });
                }
            }
            Request::Purge { reply } => self.ask(Question::Purge, reply, orders),
            Request::MayRetire {
                if_unused,
                if_empty,
                reply,
            } => self.ask(Question::MayRetire { if_unused, if_empty }, reply, orders),
            Request::Use { reply: Some(reply) } => self.ask(Question::Use, reply, orders),
            Request::Use { reply: None } => self.tell(Notice::Use),
            other => return Err(other),
        }
        Ok(())
    }

    fn publish(&mut self, block: Arc<Block>, receipt: Option<E::Receipt>, orders: &mut Orders<E>) {
        if block.is_empty() {
            orders.effects.extend(receipt.map(Effect::Confirm));
        } else if self.given_up || self.deaf {
            orders.unreached.extend(receipt);
        } else {
            self.publishes.push(block, receipt);
            self.send_publishes();
        }
    }

    /// Says of what was published as much as may be said, and what was asked behind that.
    pub(super) fn send_publishes(&mut self) {
        if !self.is_open() {
            return;
        }
        let mut waits = false;
        while let Some((behind, question)) = self.unasked.front().copied()
            && !waits
        {
            waits = self.publishes.send(self.credit, behind, &mut self.said);
            if !waits {
                self.unasked.pop_front();
                // It may have been answered for want of a leader.
                if let Some(Waiting::Client { about, .. }) = self.questions.get(&question) {
                    let about = about.clone();
                    self.said.push(ToLeader::Ask { question, about });
                }
            }
        }
        waits = waits || self.publishes.send(self.credit, u64::MAX, &mut self.said);
        if waits && !self.wants {
            self.wants = true;
            self.said.push(ToLeader::Wants);
        }
    }

    /// Says what consumers were done with, if it may be said already.
    pub(super) fn say_resolved(&mut self) {
        if self.is_open() {
            self.holdings.say(&mut self.said);
        }
    }

    /// What is told when there is no session need not be told: the next one begins with what matters of it.
    fn tell(&mut self, notice: Notice) {
        if self.is_open() {
            self.said.push(ToLeader::Tell(notice));
        }
    }

    fn ask(&mut self, about: Question, reply: E::Reply, orders: &mut Orders<E>) {
        if self.given_up {
            return orders.declined.push(reply);
        }
        let behind = self.publishes.came();
        let question = self.question(Waiting::Client { reply, about, behind });
        if self.is_open() {
            self.unasked.push_back((behind, question));
            self.send_publishes();
        }
    }

    fn consume(
        &mut self,
        consumer: ConsumerId,
        outlet: E::Outlet,
        settings: ConsumerSettings,
        reply: E::Reply,
        orders: &mut Orders<E>,
    ) {
        if self.given_up {
            return orders.declined.push(reply);
        }
        let outstanding = 0;
        self.consumers.insert(
            consumer,
            Consumer {
                outlet,
                settings,
                outstanding,
                leaves: false,
            },
        );
        let reply = Some(reply);
        let question = self.question(Waiting::Consume { consumer, reply });
        if self.is_open() {
            self.said.push(ToLeader::Consume {
                question,
                consumer,
                settings,
                outstanding,
            });
        }
    }

    fn cancel(&mut self, consumer: ConsumerId, reply: Option<E::Reply>, orders: &mut Orders<E>) {
        let open = self.is_open();
        match self.consumers.get_mut(&consumer).filter(|_| open) {
            Some(it) => {
                it.leaves |= reply.is_none();
                let question = self.question(Waiting::Cancel { consumer, reply });
                let about = Question::Cancel { consumer };
                self.said.push(ToLeader::Ask { question, about });
            }
            // The next session does not name it.
            None => {
                self.consumers.remove(&consumer);
                self.never_consumes(consumer, orders);
                let cancelled = |reply| Effect::Reply(reply, Answer::Cancelled);
                orders.effects.extend(reply.map(cancelled));
            }
        }
    }

    /// Answers those who wait for a consumer to begin or to end which is gone.
    pub(super) fn never_consumes(&mut self, consumer: ConsumerId, orders: &mut Orders<E>) {
        let of_it = |_: &u64, waiting: &mut Waiting<E>| match waiting {
            Waiting::Consume { consumer: it, .. } | Waiting::Cancel { consumer: it, .. } => *it == consumer,
            Waiting::Client { .. } => false,
        };
        for (_, waiting) in self.questions.extract_if(.., of_it) {
            if let Waiting::Consume { reply, .. } | Waiting::Cancel { reply, .. } = waiting {
                let cancelled = |reply| Effect::Reply(reply, Answer::Cancelled);
                orders.effects.extend(reply.map(cancelled));
            }
        }
    }

    fn pause(&mut self, consumer: ConsumerId, reply: Option<E::Reply>, orders: &mut Orders<E>) {
        if let Some(it) = self.consumers.get_mut(&consumer) {
            it.settings.paused = true;
        }
        match reply {
            None => self.tell(Notice::Pause { consumer }),
            Some(reply) if self.is_open() => self.ask(Question::Pause { consumer }, reply, orders),
            // Nothing is delivered without a session, and the next one begins with what it is told here.
            Some(reply) => orders.effects.push(Effect::Reply(reply, Answer::Paused)),
        }
    }
}
