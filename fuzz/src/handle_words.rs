//! What nodes and the leader of a queue may say to each other, with numbers that an honest end would say, or not.

use crate::Source;
use broker::groups::handle::{Frame, Notice, Question, Resolved, ToLeader, ToNode, Way};
use broker::{Answer, ConsumerSettings, Delivery, Disposal};
use model::{Block, BlockBuilder, ConsumerId, Incarnation, Ranges, Timestamp};
use queue::Held;
use std::sync::Arc;

/// A number that is this one, unless the input says otherwise.
fn near(source: &mut Source<'_>, lies: bool, honest: u64) -> u64 {
    if !lies {
        return honest;
    }
    match source.byte() {
        0 => 0,
        1 => 1,
        2 => u64::MAX,
        3 => u64::MAX - 1,
        4 => 1 << 62,
        5 => (1 << 62) + 1,
        6 => 1 << 32,
        other => honest.wrapping_add_signed(i64::from(other as i8)),
    }
}

fn ranges(source: &mut Source<'_>, honest: Option<(u64, u64)>) -> Ranges {
    let what = source.byte();
    let mut ranges = match honest {
        Some((first, last)) if what & 1 == 0 && first <= last => Ranges::span(first, last),
        _ => Ranges::new(),
    };
    for part in 0..what >> 1 & 3 {
        let first = near(source, what >> 3 & 3 == 3, u64::from(source_of(what, part)));
        let length = near(source, what >> 5 & 3 == 3, u64::from(what >> 5));
        let last = first.saturating_add(length).min(u64::MAX - 1);
        if first > 0 && ranges.last().is_none_or(|end| end < first) && first <= last {
            ranges.push_span(first, last);
        }
    }
    ranges
}

fn source_of(what: u8, part: u8) -> u8 {
    1 + (what >> 3) * (part + 1)
}

/// Messages of a few sizes.
pub fn block(source: &mut Source<'_>, least: usize) -> Arc<Block> {
    let what = source.byte();
    let mut block = BlockBuilder::default();
    let size = [0, 1, 40, 1_100][usize::from(what >> 4 & 3)];
    // Some expire.
    let properties: &[u8] = if what & 128 == 0 { b"\0\0" } else { b"\x01\0\x019" };
    (0..least.max(usize::from(what & 7))).for_each(|_| block.push(b"", b"q", properties, &vec![7; size]));
    Arc::new(block.finish(what & 64 == 0, Timestamp(1)))
}

pub fn settings(byte: u8) -> ConsumerSettings {
    ConsumerSettings {
        no_ack: byte & 1 == 1,
        exclusive: byte & 6 == 6,
        prefetch: u32::from(byte >> 3 & 3),
        priority: i64::from(byte >> 5 & 1),
        window: if byte & 64 == 64 { 300 } else { 10_000 },
        paused: byte & 128 == 128,
    }
}

/// A consumer: few, so that they are met again.
pub fn consumer(byte: u8) -> ConsumerId {
    ConsumerId(u64::from(byte % 8) + 1)
}

fn holder(byte: u8) -> Option<ConsumerId> {
    (!byte.is_multiple_of(5)).then(|| consumer(byte))
}

/// The numbers of a session as one of its ends knows them.
#[derive(Clone, Default)]
pub struct Said {
    pub session: u64,
    pub term: u64,
    /// The last frame of this end, and the last that came from the other one.
    pub sent: u64,
    pub seen: u64,
}

impl Said {
    /// The next frame with these messages.
    pub fn frame<T>(&mut self, source: &mut Source<'_>, messages: Vec<T>) -> Frame<T> {
        let what = source.byte();
        let number = self.sent + u64::from(!messages.is_empty());
        let frame = Frame {
            session: near(source, what & 15 == 15, self.session),
            term: near(source, what & 30 == 30, self.term),
            number: near(source, what & 60 == 60, number),
            seen: near(source, what & 120 == 120, self.seen),
            asks: what & 128 == 128,
            messages,
        };
        self.sent = number;
        frame
    }
}

/// What the leader knows that the input plays.
#[derive(Default)]
pub struct Leader {
    pub said: Said,
    /// What the node asked, and has no answer to.
    pub questions: Vec<(u64, Option<Question>)>,
    /// Its messages are answered below this number, and were sent below that one.
    pub answered: u64,
    pub published: u64,
    pub resolved: u64,
    /// Parts of what it holds that have no answer.
    pub parts: usize,
    /// The next message that is delivered.
    pub seq: u64,
}

impl Leader {
    /// A frame of the node has come.
    pub fn hears(&mut self, frame: &Frame<ToLeader>) {
        for message in &frame.messages {
            match message {
                ToLeader::Open { sent, .. } => {
                    let term = self.said.term;
                    self.said = Said {
                        session: frame.session,
                        term,
                        ..Said::default()
                    };
                    (self.answered, self.published) = (*sent, *sent);
                    self.parts = 0;
                    self.questions.clear();
                }
                ToLeader::Publish { first, block } => {
                    self.published = self.published.max(first + block.len() as u64);
                }
                ToLeader::Consume { question, .. } => self.questions.push((*question, None)),
                ToLeader::Ask { question, about } => self.questions.push((*question, Some(about.clone()))),
                ToLeader::Holds { .. } => self.parts += 1,
                ToLeader::Resolve { number, .. } => self.resolved = *number,
                ToLeader::Tell(_) | ToLeader::Wants | ToLeader::Nothing { .. } => {}
            }
        }
        self.said.seen = self.said.seen.max(frame.number);
    }

    /// The session that was asked for begins.
    pub fn opens(&mut self) -> ToNode {
        ToNode::Opened {
            below: self.answered,
            refused: Ranges::new(),
            resolved: 0,
            credit: 64 << 10,
        }
    }

    /// Something that the input chooses.
    pub fn says(&mut self, source: &mut Source<'_>) -> ToNode {
        let [kind, what] = [source.byte(), source.byte()];
        let lies = what & 15 == 15;
        let unanswered = Some((self.answered, self.published.saturating_sub(1)));
        match kind % 16 {
            0 => ToNode::Opened {
                below: near(source, what & 3 == 3, self.answered),
                refused: ranges(source, None),
                resolved: near(source, what & 12 == 12, self.resolved),
                credit: near(source, what & 48 == 48, 64 << 10),
            },
            1 | 2 => {
                let numbers = ranges(source, unanswered);
                self.answered = self.published;
                match kind % 16 {
                    1 => ToNode::Confirmed(numbers),
                    _ => ToNode::Rejected(numbers),
                }
            }
            3..=5 => ToNode::Deliver {
                consumer: consumer(what),
                delivery: self.delivery(source),
            },
            6..=9 => self.answer(what, source),
            10 if self.parts > 0 => self.discards(source),
            10 | 11 => ToNode::Resolved {
                number: near(source, lies, self.resolved),
            },
            12 => ToNode::Credit {
                bytes: near(source, lies, 128 << 10),
            },
            13 => ToNode::Cancelled {
                consumer: consumer(what),
            },
            14 => ToNode::Closed,
            _ => ToNode::Speak,
        }
    }

    /// What of a part of what the node holds does not count.
    pub fn discards(&mut self, source: &mut Source<'_>) -> ToNode {
        self.parts = self.parts.saturating_sub(1);
        let answer = Answer::Discard(ranges(source, Some((1, 2))));
        ToNode::Answer { question: 0, answer }
    }

    /// What is delivered next, or again, or with gaps between its messages.
    fn delivery(&mut self, source: &mut Source<'_>) -> Delivery {
        let what = source.byte();
        let brought = block(source, 1);
        let count = brought.len() as u64;
        let first = near(source, what & 3 == 3, self.seq + 1).clamp(1, u64::MAX - 64);
        let mut seqs = Ranges::span(first, first + count - 1);
        let mut block = brought;
        if what & 12 == 12 {
            // Every second one: what is between them does not travel.
            seqs = (0..count).fold(Ranges::new(), |mut seqs, at| {
                seqs.push(first + 2 * at);
                seqs
            });
            let mut wide = BlockBuilder::default();
            (0..2 * count).for_each(|_| wide.push(b"", b"q", b"\0\0", b"x"));
            block = Arc::new(wide.finish(true, Timestamp(1)));
        }
        self.seq = seqs.last().unwrap_or(0);
        Delivery {
            seqs,
            block,
            base: first,
            redelivered: what & 16 == 16,
            returns: u32::from(what >> 5),
            failures: (what & 32 == 32).then_some(u32::from(what >> 6)),
        }
    }

    fn answer(&mut self, what: u8, source: &mut Source<'_>) -> ToNode {
        let at = usize::from(what) % self.questions.len().max(1);
        let asked = match self.questions.is_empty() {
            true => (u64::from(what), None),
            false => self.questions.swap_remove(at),
        };
        let lies = source.byte();
        let fitting = match &asked.1 {
            None => 0,
            Some(Question::Get { .. }) => 5 + lies % 2,
            Some(Question::Cancel { .. }) => 2,
            Some(Question::Pause { .. }) => 3,
            Some(Question::TakeOut { .. }) => 7,
            Some(Question::Purge) => 8,
            Some(Question::MayRetire { .. }) => 9 + lies % 3,
            Some(Question::Use) => 4,
        };
        let answer = match if lies > 200 { lies % 14 } else { fitting } {
            0 => Answer::Consuming,
            1 => Answer::InExclusiveUse,
            2 => Answer::Cancelled,
            3 => Answer::Paused,
            4 => Answer::Stands {
                ready: 1,
                consumers: 1,
            },
            5 => Answer::Got {
                delivery: self.delivery(source),
                remaining: u64::from(what),
            },
            6 => Answer::Empty,
            7 => Answer::Taken(ranges(source, Some((1, 3)))),
            8 => Answer::Purged(1),
            9 => Answer::MayRetire(1),
            10 => Answer::InUse,
            11 => Answer::NotEmpty,
            12 => Answer::Discard(ranges(source, Some((1, 9)))),
            _ => Answer::Recalled {
                below: u64::from(what),
                refused: ranges(source, None),
            },
        };
        let question = near(source, lies > 250, asked.0);
        ToNode::Answer { question, answer }
    }
}

/// What a node knows that the input plays.
pub struct Speaker {
    pub node: Incarnation,
    pub said: Said,
    /// The numbers of what comes next.
    pub message: u64,
    pub question: u64,
    pub resolved: u64,
    /// What its consumers and gets were sent.
    pub held: Vec<(Option<ConsumerId>, Ranges, u32)>,
}

impl Speaker {
    pub fn new(node: Incarnation) -> Self {
        Self {
            node,
            said: Said::default(),
            message: 1,
            question: 1,
            resolved: 1,
            held: Vec::new(),
        }
    }

    /// A frame of the leader has come.
    pub fn hears(&mut self, frame: &Frame<ToNode>) {
        for message in &frame.messages {
            match message {
                ToNode::Opened { below, .. } => self.message = *below,
                ToNode::Deliver { consumer, delivery } => {
                    self.held
                        .push((Some(*consumer), delivery.seqs.clone(), delivery.returns));
                }
                ToNode::Answer {
                    answer: Answer::Got { delivery, .. },
                    ..
                } => self.held.push((None, delivery.seqs.clone(), delivery.returns)),
                _ => {}
            }
        }
        if frame.session == self.said.session {
            self.said.term = frame.term;
            self.said.seen = self.said.seen.max(frame.number);
        }
    }

    /// A new session is asked for.
    pub fn opens(&mut self) -> ToLeader {
        self.said = Said {
            session: self.said.session + 1,
            ..Said::default()
        };
        let (node, sent) = (self.node, self.message);
        ToLeader::Open { node, sent }
    }

    /// A consumer, new or named again.
    pub fn consumes(&mut self, which: u8, source: &mut Source<'_>) -> ToLeader {
        ToLeader::Consume {
            question: self.question(source, false),
            consumer: consumer(which),
            settings: settings(source.byte()),
            outstanding: u64::from(which >> 4) * 100,
        }
    }

    /// So many of what its consumers and gets were sent.
    pub fn holds(&mut self, count: usize, more: bool) -> ToLeader {
        let holds = |(consumer, seqs, returns): &(_, Ranges, u32)| Held {
            consumer: *consumer,
            seqs: seqs.clone(),
            returns: *returns,
        };
        let held = self.held.iter().take(count).map(holds).collect();
        ToLeader::Holds { held, more }
    }

    /// Something that the input chooses.
    pub fn says(&mut self, source: &mut Source<'_>) -> ToLeader {
        let [kind, what] = [source.byte(), source.byte()];
        let lies = what & 15 == 15;
        match kind % 16 {
            0 => {
                let node = Incarnation(near(source, lies, self.node.0));
                let sent = near(source, what & 240 == 240, self.message);
                ToLeader::Open { node, sent }
            }
            1..=3 => {
                let first = near(source, lies, self.message);
                let block = block(source, 1);
                self.message += block.len() as u64;
                ToLeader::Publish { first, block }
            }
            4 | 5 => {
                let consume = self.consumes(what, source);
                match consume {
                    ToLeader::Consume {
                        consumer, settings, ..
                    } if lies => ToLeader::Consume {
                        question: near(source, true, self.question),
                        consumer,
                        settings,
                        outstanding: near(source, true, 0),
                    },
                    honest => honest,
                }
            }
            6 => {
                let mut holds = self.holds(usize::from(what & 7), what & 96 == 96);
                if let ToLeader::Holds { held, .. } = &mut holds
                    && lies
                {
                    let (consumer, returns) = (holder(source.byte()), u32::from(what));
                    let seqs = ranges(source, Some((1, 2)));
                    held.push(Held {
                        consumer,
                        seqs,
                        returns,
                    });
                }
                holds
            }
            7..=9 => ToLeader::Resolve {
                number: self.next_resolved(source, lies),
                resolved: self.resolves(what, source),
            },
            10 | 11 => ToLeader::Ask {
                question: self.question(source, lies),
                about: self.asks(source),
            },
            12 => ToLeader::Tell(notice(source)),
            13 => ToLeader::Wants,
            _ => ToLeader::Nothing {
                node: Incarnation(near(source, lies, self.node.0)),
            },
        }
    }

    fn question(&mut self, source: &mut Source<'_>, lies: bool) -> u64 {
        self.question += 1;
        near(source, lies, self.question)
    }

    fn next_resolved(&mut self, source: &mut Source<'_>, lies: bool) -> u64 {
        self.resolved += 1;
        near(source, lies, self.resolved)
    }

    fn resolves(&mut self, what: u8, source: &mut Source<'_>) -> Resolved {
        let way = match what >> 4 & 3 {
            0 => Way::Settled(Disposal::Accepted),
            1 => Way::Settled(Disposal::Rejected),
            failed => Way::Returned { failed: failed == 2 },
        };
        let (consumer, seqs) = match self.held.is_empty() || what >= 200 {
            true => (holder(source.byte()), ranges(source, Some((1, 4)))),
            false => {
                let (consumer, seqs, _) = self.held.swap_remove(usize::from(what) % self.held.len());
                (consumer, seqs)
            }
        };
        Resolved { consumer, seqs, way }
    }

    fn asks(&mut self, source: &mut Source<'_>) -> Question {
        let what = source.byte();
        match what % 8 {
            0 | 1 => Question::Get {
                no_ack: what & 8 == 8,
            },
            2 => Question::Cancel {
                consumer: consumer(what >> 3),
            },
            3 => Question::Pause {
                consumer: consumer(what >> 3),
            },
            4 => Question::TakeOut {
                seqs: ranges(source, Some((1, 3))),
            },
            5 => Question::Purge,
            6 => Question::MayRetire {
                if_unused: what & 8 == 8,
                if_empty: what & 16 == 16,
            },
            _ => Question::Use,
        }
    }
}

fn notice(source: &mut Source<'_>) -> Notice {
    let what = source.byte();
    let consumer = consumer(what >> 3);
    let number = u32::from(source.byte());
    match what % 7 {
        0 => Notice::Flow {
            consumer,
            bytes: if what > 240 { u32::MAX } else { number * 64 },
        },
        1 => Notice::Limit {
            consumer,
            prefetch: number % 5,
        },
        2 => Notice::Pause { consumer },
        3 => Notice::Resume { consumer },
        4 => Notice::PutBack {
            seqs: ranges(source, Some((1, 3))),
        },
        5 => Notice::Remove {
            seqs: ranges(source, Some((1, 3))),
        },
        _ => Notice::Use,
    }
}
