//! What the queue's machine has for a node: it comes to the node's outbox as what it has for clients of the leader comes
//! to theirs.

use super::message::ToNode;
use super::peer::{Asked, CHANNEL, Keeps, Knowledge, Numbers, Peer, Phase, Requests};
use crate::clients::outbox::{Event, Outbox, Question};
use crate::node::ends::Ends;
use model::{ConsumerId, Ranges};
use queue::{Answer, Delivery, Effect, Held, Request};
use std::sync::Arc;

/// Puts into an outbox what the machine has ordered for somebody. Comes back if it is an order to the node that leads.
#[allow(clippy::result_large_err, reason = "what comes back is what was handed in")]
pub fn deliver(effect: Effect<Ends>) -> Result<Arc<Outbox>, Effect<Ends>> {
    let (outbox, event) = match effect {
        Effect::Deliver {
            outlet,
            consumer,
            delivery,
        } => {
            let channel = outlet.channel;
            let event = Event::Deliver {
                channel,
                consumer,
                delivery,
            };
            (outlet.outbox, event)
        }
        Effect::Confirm(receipt) => receipt.into_confirm(),
        Effect::Reject(receipt)
        | Effect::Expects {
            receipt: Some(receipt),
            ..
        } => receipt.into_reject(),
        Effect::Reply(reply, answer) => {
            let event = reply.answered(Some(answer));
            (reply.outbox, event)
        }
        Effect::CancelConsumer { outlet, consumer } => {
            let channel = outlet.channel;
            (outlet.outbox, Event::ConsumerCancelled { channel, consumer })
        }
        other => return Err(other),
    };
    outbox.push(event);
    Ok(outbox)
}

impl Peer {
    /// Takes what is in the outbox, and says to the node what it may be told.
    pub fn drain(&mut self, requests: &mut Requests, numbers: &mut Numbers) {
        for event in self.outbox_events() {
            match event {
                Event::Answer {
                    question,
                    answer: Some(answer),
                    ..
                } => self.answered(question.0, answer, requests, numbers),
                event => self.events.push(event),
            }
        }
        if self.phase == Phase::Open {
            for event in std::mem::take(&mut self.events) {
                self.tell(event, requests);
            }
        }
    }

    fn outbox_events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        self.outbox.take(&mut events, &self.waker);
        events
    }

    fn answered(&mut self, question: u64, answer: Answer, requests: &mut Requests, numbers: &mut Numbers) {
        match (self.questions.get(&question), answer) {
            // They keep their order among the deliveries.
            (Some(Asked::Node { .. }), answer) => self.events.push(Event::Answer {
                channel: CHANNEL,
                question: Question(question),
                answer: Some(answer),
            }),
            (Some(Asked::Standing { sent }), Answer::Recalled { below, refused }) => {
                let sent = *sent;
                self.questions.remove(&question);
                // What was asked before an earlier session counts, too, or none would begin while answers take longer than nodes
                // wait for one: nothing was said since. Unless the node would have sent more again then: what it has given up
                // since was not settled.
                if self.phase == (Phase::Opening { sent }) {
                    self.questions
                        .retain(|_, asked| !matches!(asked, Asked::Standing { .. }));
                    self.opened(below, refused, sent);
                    self.ask_resolved(requests, numbers);
                }
            }
            (Some(Asked::Holds { .. }), Answer::Discard(seqs)) => {
                if let Some(Asked::Holds { session, held }) = self.questions.remove(&question) {
                    self.counted(session, held, seqs, requests, numbers);
                }
            }
            (Some(Asked::Known), _) => {
                self.questions.remove(&question);
                self.knowledge = Knowledge::Everything;
                if self.phase == Phase::Told {
                    self.phase = Phase::Open;
                }
            }
            (Some(Asked::Resolved { number }), _) => {
                let number = *number;
                self.questions.remove(&question);
                self.asks_resolved = false;
                if self.phase >= Phase::Speaking {
                    self.recorded = number;
                    self.said.push(ToNode::Resolved { number });
                    self.ask_resolved(requests, numbers);
                }
            }
            _ => {}
        }
    }

    /// The machine has said what of a part does not count.
    fn counted(
        &mut self,
        session: u64,
        held: Vec<Held>,
        discard: Ranges,
        requests: &mut Requests,
        numbers: &mut Numbers,
    ) {
        let said = self.phase >= Phase::Speaking && session == self.session;
        for part in held {
            let given = self.given.entry(part.consumer).or_default();
            let set = if said { &mut given.now } else { &mut given.before };
            let counts = part.seqs.without(&discard);
            counts.spans().for_each(|(first, last)| set.add(first, last));
        }
        self.parts -= 1;
        if said {
            let answer = Answer::Discard(discard);
            self.said.push(ToNode::Answer { question: 0, answer });
        }
        self.counted_all();
        self.go_on(requests, numbers);
    }

    /// Says this to the node.
    fn tell(&mut self, event: Event, requests: &mut Requests) {
        match event {
            Event::Deliver {
                consumer, delivery, ..
            } => self.pass_on(consumer, delivery, requests),
            Event::Confirm { numbers, .. } => match self.said.last_mut() {
                Some(ToNode::Confirmed(said)) => said.extend(&numbers),
                _ => self.said.push(ToNode::Confirmed(numbers)),
            },
            Event::Reject { numbers, .. } => match self.said.last_mut() {
                Some(ToNode::Rejected(said)) => said.extend(&numbers),
                _ => self.said.push(ToNode::Rejected(numbers)),
            },
            Event::Answer {
                question,
                answer: Some(answer),
                ..
            } => {
                if let Some(Asked::Node { question, keeps }) = self.questions.remove(&question.0) {
                    self.keep(keeps, &answer);
                    self.asked.remove(&question);
                    self.said.push(ToNode::Answer { question, answer });
                }
            }
            Event::ConsumerCancelled { consumer, .. } => {
                if let Some(consumer) = self.names.remove(&consumer) {
                    self.consumers.remove(&consumer);
                    self.said.push(ToNode::Cancelled { consumer });
                }
            }
            _ => {}
        }
    }

    fn pass_on(&mut self, name: ConsumerId, delivery: Delivery, requests: &mut Requests) {
        let known = self.names.get(&name).copied();
        let Some((consumer, it)) = known.and_then(|id| Some((id, self.consumers.get_mut(&id)?))) else {
            let seqs = delivery.seqs;
            let (consumer, failed) = (Some(name), false);
            return requests.push(Request::Return {
                consumer,
                seqs,
                failed,
            });
        };
        it.sent(delivery.bytes());
        if !it.no_ack() {
            self.give(Some(consumer), &delivery.seqs);
        }
        self.said.push(ToNode::Deliver { consumer, delivery });
    }

    fn give(&mut self, consumer: Option<ConsumerId>, seqs: &Ranges) {
        let given = self.given.entry(consumer).or_default();
        seqs.spans().for_each(|(first, last)| given.now.add(first, last));
    }

    fn keep(&mut self, keeps: Keeps, answer: &Answer) {
        match (keeps, answer) {
            (Keeps::Message, Answer::Got { delivery, .. }) => self.give(None, &delivery.seqs),
            (Keeps::Taken, Answer::Taken(seqs)) => {
                seqs.spans().for_each(|(first, last)| self.taken.add(first, last));
            }
            (Keeps::Begins(consumer), Answer::InExclusiveUse | Answer::Cancelled)
            | (Keeps::Ends(consumer), _) => {
                if let Some(it) = self.consumers.remove(&consumer) {
                    self.names.remove(&it.id);
                }
            }
            _ => {}
        }
    }

    /// Has what comes for a node that is gone go back. True if nothing more comes: a get may wait for a load much longer
    /// than what was asked after it.
    pub fn drain_the_ended(&mut self, last: u64, requests: &mut Requests) -> bool {
        let new = self.outbox_events();
        for event in std::mem::take(&mut self.events).into_iter().chain(new) {
            let (consumer, seqs, failed) = match event {
                Event::Deliver {
                    consumer, delivery, ..
                } => (Some(consumer), delivery.seqs, false),
                Event::Answer {
                    question,
                    answer: Some(answer),
                    ..
                } => {
                    match (answer, self.questions.remove(&question.0)) {
                        (Answer::Got { delivery, .. }, _) => (None, delivery.seqs, false),
                        (Answer::Taken(seqs), _) => {
                            requests.push(Request::PutBack { seqs });
                            continue;
                        }
                        // What was said in part only has come back by itself.
                        (Answer::Discard(discard), Some(Asked::Holds { held, .. })) if self.spoken => {
                            let mut counts = Ranges::new();
                            held.iter()
                                .for_each(|part| counts.extend(&part.seqs.without(&discard)));
                            (None, counts, true)
                        }
                        _ => continue,
                    }
                }
                _ => continue,
            };
            requests.push(Request::Return {
                consumer,
                seqs,
                failed,
            });
        }
        let waits = |asked: &Asked| {
            matches!(
                asked,
                Asked::Node {
                    keeps: Keeps::Message,
                    ..
                }
            )
        };
        !self.questions.contains_key(&last) && !self.questions.values().any(waits)
    }
}
