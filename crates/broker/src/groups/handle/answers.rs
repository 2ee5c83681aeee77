//! What the leader says to a node.

use super::session::{Arrival, End};
use super::{Frame, Handle, Link, MOST_MESSAGES, Notice, Orders, Question, ToLeader, ToNode, Waiting};
use cluster::NodeId;
use model::{ConsumerId, Ranges};
use queue::{Answer, Delivery, Effect, Ends};

/// A node that has said that it does not lead is asked again after so many ticks at the latest.
const LONGEST_PAUSE: u32 = 10;

impl<E: Ends> Handle<E> {
    /// Takes a frame of this node.
    pub fn receive(&mut self, from: NodeId, frame: Frame<ToNode>, orders: &mut Orders<E>) {
        if frame.messages == [ToNode::Speak] {
            return self.speak_to(from, frame.term, frame.session);
        }
        let concerned = |link: &&mut Link| link.with == from && link.end.session == frame.session;
        let Some(link) = self.link.as_mut().filter(concerned) else {
            return;
        };
        if frame.messages == [ToNode::Closed] {
            self.close();
            self.opens_in = self.pause;
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            return;
        }
        if link.opening.is_some() {
            // Who leads in an older term than one before has not proven anything.
            if frame.term < self.term {
                return;
            }
            link.end.term = frame.term;
        }
        if link.end.term != frame.term {
            return;
        }
        match (link.end.receive(&frame), link.opening) {
            (Arrival::Next, None) => self.take(frame.messages, orders),
            (Arrival::Next, Some(_)) => self.opened(frame, orders),
            (Arrival::Nothing, _) => {}
            (Arrival::Gap, _) => self.close(),
        }
    }

    /// A node that leads wants to hear what is held here. Sessions of its term are over up to `over`, which the node here may not
    /// know that had nothing to say.
    fn speak_to(&mut self, from: NodeId, term: u64, over: u64) {
        let goes_on = |end: &End| end.term > term || end.term == term && end.session > over;
        let speaks = |link: &Link| link.with == from && (link.opening.is_some() || goes_on(&link.end));
        if term >= self.term && !self.link.as_ref().is_some_and(speaks) {
            self.leader = Some(from);
            self.open(from);
        }
    }

    fn opened(&mut self, frame: Frame<ToNode>, orders: &mut Orders<E>) {
        let mut messages = frame.messages.into_iter();
        let (
            Some(ToNode::Opened {
                below,
                refused,
                resolved,
                credit,
            }),
            Some(link),
        ) = (messages.next(), &mut self.link)
        else {
            return self.close();
        };
        if below > MOST_MESSAGES {
            return self.close();
        }
        link.opening = None;
        let known = (frame.term == self.term).then_some(resolved);
        self.term = frame.term;
        (self.credit, self.wants) = (credit, false);
        (self.away, self.pause) = (0, 1);
        (self.given_up, self.let_go, self.unheard) = (false, false, false);
        self.deaf = below == 0;
        self.begin(known);
        match self.deaf {
            true => self.publishes.give_up(&mut orders.unreached),
            false => self.publishes.resume(below, &refused, &mut orders.effects),
        }
        self.send_publishes();
        self.take(messages.collect(), orders);
    }

    /// Names who consumes, says what is held, and asks what has no answer. The order matters: who holds something is known
    /// by then. A consumer that was named and has no answer is named with the same question: the leader may have one for it.
    fn begin(&mut self, known: Option<u64>) {
        let asked = self
            .questions
            .iter()
            .filter_map(|(question, waiting)| match waiting {
                Waiting::Consume { consumer, .. } => Some((*consumer, *question)),
                _ => None,
            });
        let asked: std::collections::BTreeMap<ConsumerId, u64> = asked.collect();
        let ends = |waiting: &Waiting<E>| match waiting {
            Waiting::Cancel { consumer, .. } => Some(*consumer),
            _ => None,
        };
        let ending: Vec<ConsumerId> = self.questions.values().filter_map(ends).collect();
        let named = self
            .consumers
            .iter()
            .filter(|(consumer, _)| !ending.contains(consumer));
        let named: Vec<_> = named.map(|(id, it)| (*id, it.settings, it.outstanding)).collect();
        for (consumer, settings, outstanding) in named {
            let question = match asked.get(&consumer) {
                Some(question) => *question,
                None => self.question(Waiting::Consume {
                    consumer,
                    reply: None,
                }),
            };
            self.said.push(ToLeader::Consume {
                question,
                consumer,
                settings,
                outstanding,
            });
        }
        self.holdings.speak(known, &mut self.said);
        for (question, waiting) in &self.questions {
            let question = *question;
            match waiting {
                // Not before what was published before it.
                Waiting::Client { behind, .. } => self.unasked.push_back((*behind, question)),
                Waiting::Cancel { consumer, .. } => {
                    let about = Question::Cancel { consumer: *consumer };
                    self.said.push(ToLeader::Ask { question, about });
                }
                Waiting::Consume { .. } => {}
            }
        }
    }

    fn take(&mut self, messages: Vec<ToNode>, orders: &mut Orders<E>) {
        for message in messages {
            match message {
                ToNode::Confirmed(numbers) => self.publishes.answered(&numbers, true, &mut orders.effects),
                ToNode::Rejected(numbers) => self.publishes.answered(&numbers, false, &mut orders.effects),
                ToNode::Deliver { consumer, delivery } => self.deliver(consumer, delivery, orders),
                ToNode::Answer {
                    answer: Answer::Discard(seqs),
                    ..
                } => self.discard(&seqs),
                ToNode::Answer { question, answer } => self.answered(question, answer, orders),
                ToNode::Cancelled { consumer } => self.cancelled(consumer, orders),
                ToNode::Resolved { number } => self.holdings.resolved(number),
                ToNode::Credit { bytes } => (self.credit, self.wants) = (bytes, false),
                // They mean something before a session, or about another one.
                ToNode::Opened { .. } | ToNode::Closed | ToNode::Speak => {}
            }
        }
        self.send_publishes();
    }

    fn discard(&mut self, seqs: &Ranges) {
        self.discarded |= !seqs.is_empty();
        match self.holdings.discard(seqs) {
            true => self.say_resolved(),
            false => self.close(),
        }
    }

    fn deliver(&mut self, id: ConsumerId, delivery: Delivery, orders: &mut Orders<E>) {
        let Some(consumer) = self.consumers.get_mut(&id).filter(|it| !it.leaves) else {
            self.holdings.decline(Some(id), delivery.seqs, delivery.returns);
            return self.say_resolved();
        };
        consumer.outstanding += delivery.bytes();
        if !consumer.settings.no_ack {
            self.holdings.add(Some(id), &delivery.seqs, delivery.returns);
        }
        orders.effects.push(Effect::Deliver {
            outlet: consumer.outlet.clone(),
            consumer: id,
            delivery,
        });
    }

    fn answered(&mut self, question: u64, answer: Answer, orders: &mut Orders<E>) {
        match self.questions.remove(&question) {
            Some(Waiting::Client { reply, about, .. }) => {
                if let (Answer::Got { delivery, .. }, Question::Get { no_ack: false }) = (&answer, about) {
                    self.holdings.add(None, &delivery.seqs, delivery.returns);
                }
                orders.effects.push(Effect::Reply(reply, answer));
            }
            Some(Waiting::Consume { consumer, reply }) => {
                let refused = answer != Answer::Consuming;
                let known = match refused {
                    true => self.consumers.remove(&consumer),
                    false => None,
                };
                match (reply, known) {
                    (Some(reply), _) => orders.effects.push(Effect::Reply(reply, answer)),
                    (None, Some(it)) if !it.leaves => orders.effects.push(Effect::CancelConsumer {
                        outlet: it.outlet,
                        consumer,
                    }),
                    _ => {}
                }
            }
            Some(Waiting::Cancel { consumer, reply }) => {
                self.consumers.remove(&consumer);
                self.never_consumes(consumer, orders);
                orders
                    .effects
                    .extend(reply.map(|reply| Effect::Reply(reply, Answer::Cancelled)));
            }
            None => self.unasked(answer),
        }
    }

    /// Nobody waits for this any more: what it brings goes back.
    fn unasked(&mut self, answer: Answer) {
        match answer {
            Answer::Got { delivery, .. } => {
                self.holdings.decline(None, delivery.seqs, delivery.returns);
                self.say_resolved();
            }
            Answer::Taken(seqs) => self.said.push(ToLeader::Tell(Notice::PutBack { seqs })),
            _ => {}
        }
    }

    /// The leader has ended a consumer: the queue is gone.
    fn cancelled(&mut self, consumer: ConsumerId, orders: &mut Orders<E>) {
        if let Some(it) = self.consumers.remove(&consumer).filter(|it| !it.leaves) {
            orders.effects.push(Effect::CancelConsumer {
                outlet: it.outlet,
                consumer,
            });
        }
        self.never_consumes(consumer, orders);
    }
}
