//! The messages of both directions as bytes.

use super::super::message::{Notice, Question, Resolved, Way};
use super::{Parts, Reading, Said, ToLeader, ToNode, block, consumer, delivery, flag, pieces, set};
use model::Incarnation;
use queue::encoding::Input;
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Held};

impl Said for ToLeader {
    const DIRECTION: u8 = 1;

    fn bytes(&self) -> usize {
        match self {
            Self::Publish { block, .. } => block.bytes().len(),
            _ => 0,
        }
    }

    fn put(&self, parts: &mut Parts) {
        match self {
            Self::Open { node, sent } => {
                parts.kind(1);
                parts.number(node.0);
                parts.number(*sent);
            }
            Self::Publish { first, block } => {
                parts.kind(2);
                parts.number(*first);
                parts.block(block);
            }
            Self::Consume {
                question,
                consumer,
                settings,
                outstanding,
            } => {
                parts.kind(3);
                parts.number(*question);
                parts.consumer(*consumer);
                put_settings(settings, parts);
                parts.number(*outstanding);
            }
            Self::Holds { held, more } => {
                parts.kind(4);
                parts.number(held.len() as u64);
                for part in held {
                    parts.number(part.consumer.map_or(0, |consumer| consumer.0.saturating_add(1)));
                    parts.set(&part.seqs);
                    parts.number(u64::from(part.returns));
                }
                parts.flag(*more);
            }
            Self::Resolve { number, resolved } => {
                parts.kind(5);
                parts.number(*number);
                parts.number(
                    resolved
                        .consumer
                        .map_or(0, |consumer| consumer.0.saturating_add(1)),
                );
                parts.set(&resolved.seqs);
                parts.kind(match resolved.way {
                    Way::Settled(Disposal::Accepted) => 1,
                    Way::Settled(Disposal::Rejected) => 2,
                    Way::Returned { failed: false } => 3,
                    Way::Returned { failed: true } => 4,
                    Way::Requeued => 5,
                });
            }
            Self::Ask { question, about } => {
                parts.kind(6);
                parts.number(*question);
                put_question(about, parts);
            }
            Self::Tell(notice) => {
                parts.kind(7);
                put_notice(notice, parts);
            }
            Self::Wants => parts.kind(8),
            Self::Nothing { node } => {
                parts.kind(9);
                parts.number(node.0);
            }
        }
    }

    fn get(input: &mut Reading<'_>) -> Option<Self> {
        Some(match input.octet()? {
            1 => Self::Open {
                node: Incarnation(input.number()?),
                sent: input.number()?,
            },
            2 => Self::Publish {
                first: input.number()?,
                block: block(input)?,
            },
            3 => Self::Consume {
                question: input.number()?,
                consumer: consumer(input)?,
                settings: settings(input)?,
                outstanding: input.number()?,
            },
            4 => Self::Holds {
                held: input.list(3, held)?,
                more: flag(input)?,
            },
            5 => Self::Resolve {
                number: input.number()?,
                resolved: Resolved {
                    consumer: holder(input)?,
                    seqs: set(input)?,
                    way: way(input)?,
                },
            },
            6 => Self::Ask {
                question: input.number()?,
                about: question(input)?,
            },
            7 => Self::Tell(notice(input)?),
            8 => Self::Wants,
            9 => Self::Nothing {
                node: Incarnation(input.number()?),
            },
            _ => return None,
        })
    }
}

fn put_settings(settings: &ConsumerSettings, parts: &mut Parts) {
    parts.flag(settings.no_ack);
    parts.flag(settings.exclusive);
    parts.number(u64::from(settings.prefetch));
    parts.number(settings.priority.cast_unsigned());
    parts.number(u64::from(settings.window));
    parts.flag(settings.paused);
}

fn settings(input: &mut Input<'_>) -> Option<ConsumerSettings> {
    Some(ConsumerSettings {
        no_ack: flag(input)?,
        exclusive: flag(input)?,
        prefetch: input.short()?,
        priority: input.number()?.cast_signed(),
        window: input.short()?,
        paused: flag(input)?,
    })
}

fn holder(input: &mut Input<'_>) -> Option<Option<model::ConsumerId>> {
    Some(input.number()?.checked_sub(1).map(model::ConsumerId))
}

fn held(input: &mut Input<'_>) -> Option<Held> {
    Some(Held {
        consumer: holder(input)?,
        seqs: set(input)?,
        returns: input.short()?,
    })
}

fn way(input: &mut Input<'_>) -> Option<Way> {
    Some(match input.octet()? {
        1 => Way::Settled(Disposal::Accepted),
        2 => Way::Settled(Disposal::Rejected),
        3 => Way::Returned { failed: false },
        4 => Way::Returned { failed: true },
        5 => Way::Requeued,
        _ => return None,
    })
}

fn put_question(question: &Question, parts: &mut Parts) {
    match question {
        Question::Get { no_ack } => {
            parts.kind(1);
            parts.flag(*no_ack);
        }
        Question::Cancel { consumer } => {
            parts.kind(2);
            parts.consumer(*consumer);
        }
        Question::Pause { consumer } => {
            parts.kind(3);
            parts.consumer(*consumer);
        }
        Question::TakeOut { seqs } => {
            parts.kind(4);
            parts.set(seqs);
        }
        Question::Purge => parts.kind(5),
        Question::MayRetire { if_unused, if_empty } => {
            parts.kind(6);
            parts.flag(*if_unused);
            parts.flag(*if_empty);
        }
        Question::Use => parts.kind(7),
    }
}

fn question(input: &mut Input<'_>) -> Option<Question> {
    Some(match input.octet()? {
        1 => Question::Get { no_ack: flag(input)? },
        2 => Question::Cancel {
            consumer: consumer(input)?,
        },
        3 => Question::Pause {
            consumer: consumer(input)?,
        },
        4 => Question::TakeOut { seqs: set(input)? },
        5 => Question::Purge,
        6 => Question::MayRetire {
            if_unused: flag(input)?,
            if_empty: flag(input)?,
        },
        7 => Question::Use,
        _ => return None,
    })
}

fn put_notice(notice: &Notice, parts: &mut Parts) {
    match notice {
        Notice::Flow { consumer, bytes } => {
            parts.kind(1);
            parts.consumer(*consumer);
            parts.number(u64::from(*bytes));
        }
        Notice::Limit { consumer, prefetch } => {
            parts.kind(2);
            parts.consumer(*consumer);
            parts.number(u64::from(*prefetch));
        }
        Notice::Pause { consumer } => {
            parts.kind(3);
            parts.consumer(*consumer);
        }
        Notice::Resume { consumer } => {
            parts.kind(4);
            parts.consumer(*consumer);
        }
        Notice::PutBack { seqs } => {
            parts.kind(5);
            parts.set(seqs);
        }
        Notice::Remove { seqs } => {
            parts.kind(6);
            parts.set(seqs);
        }
        Notice::Use => parts.kind(7),
    }
}

fn notice(input: &mut Input<'_>) -> Option<Notice> {
    Some(match input.octet()? {
        1 => Notice::Flow {
            consumer: consumer(input)?,
            bytes: input.short()?,
        },
        2 => Notice::Limit {
            consumer: consumer(input)?,
            prefetch: input.short()?,
        },
        3 => Notice::Pause {
            consumer: consumer(input)?,
        },
        4 => Notice::Resume {
            consumer: consumer(input)?,
        },
        5 => Notice::PutBack { seqs: set(input)? },
        6 => Notice::Remove { seqs: set(input)? },
        7 => Notice::Use,
        _ => return None,
    })
}

impl Said for ToNode {
    const DIRECTION: u8 = 2;

    /// A delivery whose messages lie far from each other becomes several.
    fn count(&self) -> usize {
        match self {
            Self::Deliver { delivery, .. } => pieces(&delivery.seqs).len(),
            _ => 1,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Deliver { delivery, .. }
            | Self::Answer {
                answer: Answer::Got { delivery, .. },
                ..
            } => delivery.bytes() as usize,
            _ => 0,
        }
    }

    fn put(&self, parts: &mut Parts) {
        match self {
            Self::Opened {
                below,
                refused,
                resolved,
                credit,
            } => {
                parts.kind(1);
                parts.number(*below);
                parts.set(refused);
                parts.number(*resolved);
                parts.number(*credit);
            }
            Self::Closed => parts.kind(2),
            Self::Speak => parts.kind(3),
            Self::Confirmed(numbers) => {
                parts.kind(4);
                parts.set(numbers);
            }
            Self::Rejected(numbers) => {
                parts.kind(5);
                parts.set(numbers);
            }
            Self::Deliver { consumer, delivery } => {
                for piece in pieces(&delivery.seqs) {
                    parts.kind(6);
                    parts.consumer(*consumer);
                    parts.delivery(delivery, &piece);
                }
            }
            Self::Answer { question, answer } => {
                parts.kind(7);
                parts.number(*question);
                put_answer(answer, parts);
            }
            Self::Cancelled { consumer } => {
                parts.kind(8);
                parts.consumer(*consumer);
            }
            Self::Resolved { number } => {
                parts.kind(9);
                parts.number(*number);
            }
            Self::Credit { bytes } => {
                parts.kind(10);
                parts.number(*bytes);
            }
        }
    }

    fn get(input: &mut Reading<'_>) -> Option<Self> {
        Some(match input.octet()? {
            1 => Self::Opened {
                below: input.number()?,
                refused: set(input)?,
                resolved: input.number()?,
                credit: input.number()?,
            },
            2 => Self::Closed,
            3 => Self::Speak,
            4 => Self::Confirmed(set(input)?),
            5 => Self::Rejected(set(input)?),
            6 => Self::Deliver {
                consumer: consumer(input)?,
                delivery: delivery(input)?,
            },
            7 => Self::Answer {
                question: input.number()?,
                answer: answer(input)?,
            },
            8 => Self::Cancelled {
                consumer: consumer(input)?,
            },
            9 => Self::Resolved {
                number: input.number()?,
            },
            10 => Self::Credit {
                bytes: input.number()?,
            },
            _ => return None,
        })
    }
}

fn put_answer(answer: &Answer, parts: &mut Parts) {
    match answer {
        Answer::Consuming => parts.kind(1),
        Answer::InExclusiveUse => parts.kind(2),
        Answer::Cancelled => parts.kind(3),
        Answer::Paused => parts.kind(4),
        Answer::Stands { ready, consumers } => {
            parts.kind(5);
            parts.number(*ready);
            parts.number(*consumers);
        }
        Answer::Got { delivery, remaining } => {
            parts.kind(6);
            parts.delivery(delivery, &delivery.seqs);
            parts.number(*remaining);
        }
        Answer::Empty => parts.kind(7),
        Answer::Taken(seqs) => {
            parts.kind(8);
            parts.set(seqs);
        }
        Answer::Discard(seqs) => {
            parts.kind(9);
            parts.set(seqs);
        }
        Answer::Recalled { below, refused } => {
            parts.kind(10);
            parts.number(*below);
            parts.set(refused);
        }
        Answer::Purged(count) => {
            parts.kind(11);
            parts.number(*count);
        }
        Answer::MayRetire(count) => {
            parts.kind(12);
            parts.number(*count);
        }
        Answer::InUse => parts.kind(13),
        Answer::NotEmpty => parts.kind(14),
        Answer::Number(None) => parts.kind(15),
        Answer::Number(Some(number)) => {
            parts.kind(16);
            parts.number(*number);
        }
    }
}

fn answer(input: &mut Reading<'_>) -> Option<Answer> {
    Some(match input.octet()? {
        1 => Answer::Consuming,
        2 => Answer::InExclusiveUse,
        3 => Answer::Cancelled,
        4 => Answer::Paused,
        5 => Answer::Stands {
            ready: input.number()?,
            consumers: input.number()?,
        },
        6 => {
            let one = |delivery: &Delivery| delivery.seqs.count() == 1;
            Answer::Got {
                delivery: delivery(input).filter(one)?,
                remaining: input.number()?,
            }
        }
        7 => Answer::Empty,
        8 => Answer::Taken(set(input)?),
        9 => Answer::Discard(set(input)?),
        10 => Answer::Recalled {
            below: input.number()?,
            refused: set(input)?,
        },
        11 => Answer::Purged(input.number()?),
        12 => Answer::MayRetire(input.number()?),
        13 => Answer::InUse,
        14 => Answer::NotEmpty,
        15 => Answer::Number(None),
        16 => Answer::Number(Some(input.number()?)),
        _ => return None,
    })
}
