//! Frames as bytes. Everything is checked, and nothing is allocated for what is not there.
//!
//! ```text
//! frame       version, direction, session, term, number, seen, asks, count, so many messages
//! message     kind, then its parts in the order in which they are declared
//! block       persistent, received, length; that many bytes stand among the blocks
//! delivery    redelivered, returns, numbers, block of these (what stands between them is left out)
//! ```
//!
//! Numbers have a variable length. Where the bytes of blocks stand, and when they are not copied: [`parts`].

use super::message::{Frame, ToLeader, ToNode};
use model::properties::Properties;
use model::{Block, BlockBuilder, ConsumerId, Message, Ranges, RouteBuf, Seq, Timestamp};
use queue::Delivery;
use queue::encoding::{Input, put, put_set};
use std::sync::Arc;

mod messages;
mod parts;
#[cfg(test)]
mod written;

pub use parts::{Parts, Reading};

const VERSION: u8 = 1;

/// A frame has fewer messages than this, see [`super::session::End::send`].
const MOST_MESSAGES: u64 = 1 << 17;

/// Deliveries may leave out so many messages for each that they bring: those are there as empty ones for the receiver.
const MOST_BETWEEN: u64 = 8;

/// What can be said in a frame.
pub trait Said: Sized {
    /// Tells the two directions apart.
    const DIRECTION: u8;
    /// How many messages stand for it in bytes.
    fn count(&self) -> usize {
        1
    }

    /// How many bytes of messages it brings.
    fn bytes(&self) -> usize {
        0
    }

    /// Appends it.
    fn put(&self, parts: &mut Parts);

    /// Reads it back.
    fn get(input: &mut Reading<'_>) -> Option<Self>;
}

impl<T: Said> Frame<T> {
    /// Its bytes, in parts that follow each other.
    #[cfg(test)]
    fn encode(&self) -> Vec<bytes::Bytes> {
        let mut parts = Parts::default();
        self.put(&mut parts);
        parts.finish()
    }

    /// Reads a frame back.
    #[cfg(test)]
    fn decode(bytes: &[u8]) -> Option<Self> {
        Reading::of(bytes.to_vec(), Self::get)
    }

    /// Appends it.
    pub fn put(&self, parts: &mut Parts) {
        let out = &mut parts.said;
        out.extend([VERSION, T::DIRECTION]);
        [self.session, self.term, self.number, self.seen]
            .into_iter()
            .for_each(|number| put(out, number));
        out.push(u8::from(self.asks));
        put(out, self.messages.iter().map(Said::count).sum::<usize>() as u64);
        self.messages.iter().for_each(|message| message.put(parts));
    }

    /// Reads a frame; `None` if it is none of this version and direction.
    pub fn get(input: &mut Reading<'_>) -> Option<Self> {
        if input.take::<2>()? != &[VERSION, T::DIRECTION] {
            return None;
        }
        Some(Self {
            session: input.number()?,
            term: input.number()?,
            number: input.number()?,
            seen: input.number()?,
            asks: flag(input)?,
            messages: messages(input)?,
        })
    }
}

fn messages<T: Said>(input: &mut Reading<'_>) -> Option<Vec<T>> {
    let count = input.number().filter(|count| *count <= MOST_MESSAGES)?;
    (0..count).map(|_| T::get(input)).collect()
}

impl Parts {
    fn kind(&mut self, kind: u8) {
        self.said.push(kind);
    }

    fn number(&mut self, number: u64) {
        put(&mut self.said, number);
    }

    fn flag(&mut self, flag: bool) {
        self.said.push(u8::from(flag));
    }

    fn set(&mut self, set: &Ranges) {
        put_set(&mut self.said, set);
    }

    fn consumer(&mut self, consumer: ConsumerId) {
        self.number(consumer.0);
    }

    /// What is said of a block, so many bytes of which stand among the blocks.
    fn block_head(&mut self, block: &Block, length: usize) {
        self.flag(block.persistent());
        self.number(block.received().0);
        self.number(length as u64);
    }

    /// A block.
    pub fn block(&mut self, block: &Arc<Block>) {
        self.block_head(block, block.bytes().len());
        self.block_bytes(block, block.bytes());
    }

    fn delivery(&mut self, delivery: &Delivery, seqs: &Ranges) {
        let slice = |first: Seq, last: Seq| {
            let at = (first - delivery.base) as usize;
            delivery.block.slice(at, (last + 1 - first) as usize)
        };
        self.flag(delivery.redelivered);
        self.number(u64::from(delivery.returns));
        self.number(delivery.failures.map_or(0, |failures| u64::from(failures) + 1));
        self.set(seqs);
        let length = seqs.spans().map(|(first, last)| slice(first, last).len()).sum();
        self.block_head(&delivery.block, length);
        for (first, last) in seqs.spans() {
            self.block_bytes(&delivery.block, slice(first, last));
        }
    }
}

fn flag(input: &mut Input<'_>) -> Option<bool> {
    input.octet().filter(|flag| *flag <= 1).map(|flag| flag == 1)
}

/// A set of numbers each of which has a next one.
fn set(input: &mut Input<'_>) -> Option<Ranges> {
    input.numbers_from(0)
}

fn consumer(input: &mut Input<'_>) -> Option<ConsumerId> {
    Some(ConsumerId(input.number()?))
}

/// A block, which is not empty.
pub fn block(input: &mut Reading<'_>) -> Option<Arc<Block>> {
    let persistent = flag(input)?;
    let received = Timestamp(input.number()?);
    let length = usize::try_from(input.number()?).ok()?;
    input.block(length, persistent, received).map(Arc::new)
}

fn delivery(input: &mut Reading<'_>) -> Option<Delivery> {
    let redelivered = flag(input)?;
    let returns = input.short()?;
    let failures = match input.number()? {
        0 => None,
        more => Some(u32::try_from(more - 1).ok()?),
    };
    let seqs = set(input)?;
    let (first, last) = (seqs.first()?, seqs.last()?);
    let brought = block(input)?;
    if brought.len() as u64 != seqs.count() {
        return None;
    }
    let block = match last - first < seqs.count() {
        true => brought,
        false => spread(&brought, &seqs)?,
    };
    Some(Delivery {
        seqs,
        block,
        base: first,
        redelivered,
        returns,
        failures,
    })
}

/// A block in which each message stands where its number says, with empty ones between them.
fn spread(brought: &Block, seqs: &Ranges) -> Option<Arc<Block>> {
    let (first, last) = (seqs.first()?, seqs.last()?);
    // Whoever leaves out more than that says it in several deliveries.
    if pieces(seqs).len() > 1 {
        return None;
    }
    let route = RouteBuf::new(b"", b"");
    let nothing = Message::new(route.as_route(), Properties::amqp091(b""), b"");
    let mut builder = BlockBuilder::with_capacity(brought.bytes().len(), (last + 1 - first) as usize);
    let mut next = 0;
    for seq in first..=last {
        if seqs.contains(seq) {
            builder.push_message(&brought.message(next));
            next += 1;
        } else {
            builder.push_message(&nothing);
        }
    }
    Some(Arc::new(builder.finish(brought.persistent(), brought.received())))
}

/// True if too much stands between so many messages.
fn between(first: Seq, last: Seq, count: u64) -> bool {
    last - first >= count.saturating_mul(MOST_BETWEEN + 1)
}

/// A delivery's numbers in pieces that leave out as much as may be left out.
fn pieces(seqs: &Ranges) -> Vec<Ranges> {
    let mut pieces: Vec<Ranges> = Vec::new();
    for (first, last) in seqs.spans() {
        if let Some(piece) = pieces.last_mut()
            && let Some(from) = piece.first()
            && !between(from, last, piece.count() + last + 1 - first)
        {
            piece.push_span(first, last);
            continue;
        }
        pieces.push(Ranges::span(first, last));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::super::message::{Notice, Question, Resolved, Way};
    use super::*;
    use model::Incarnation;
    use proptest::prelude::*;
    use queue::{Answer, ConsumerSettings, Disposal, Held};

    fn block_of(sizes: &[usize]) -> Arc<Block> {
        let mut builder = BlockBuilder::default();
        let route = RouteBuf::new(b"x", b"q");
        for size in sizes {
            let body = vec![b'm'; *size];
            builder.push_message(&Message::new(
                route.as_route(),
                Properties::amqp091(b"\0\0"),
                &body,
            ));
        }
        Arc::new(builder.finish(true, Timestamp(9)))
    }

    fn joined(parts: &[bytes::Bytes]) -> Vec<u8> {
        parts.concat()
    }

    fn frame<T>(messages: Vec<T>) -> Frame<T> {
        Frame {
            session: 3,
            term: 700,
            number: 5,
            seen: 4,
            asks: true,
            messages,
        }
    }

    fn numbers() -> impl Strategy<Value = Ranges> {
        prop::collection::vec((1..500_u64, 0..4_u64), 1..5).prop_map(|spans| {
            let mut ranges = Ranges::new();
            spans
                .iter()
                .for_each(|(first, more)| ranges.push_span(*first, first + more));
            ranges
        })
    }

    fn to_leader() -> impl Strategy<Value = ToLeader> {
        let consumer = || any::<u32>().prop_map(|id| ConsumerId(id.into()));
        let settings = (any::<bool>(), any::<u32>(), any::<i64>()).prop_map(|(flag, prefetch, priority)| {
            ConsumerSettings {
                no_ack: flag,
                exclusive: !flag,
                prefetch,
                priority,
                window: prefetch / 2,
                paused: flag,
            }
        });
        let way = prop_oneof![
            Just(Way::Settled(Disposal::Accepted)),
            Just(Way::Settled(Disposal::Rejected)),
            any::<bool>().prop_map(|failed| Way::Returned { failed }),
            Just(Way::Requeued),
        ];
        let question = prop_oneof![
            any::<bool>().prop_map(|no_ack| Question::Get { no_ack }),
            consumer().prop_map(|consumer| Question::Cancel { consumer }),
            consumer().prop_map(|consumer| Question::Pause { consumer }),
            numbers().prop_map(|seqs| Question::TakeOut { seqs }),
            Just(Question::Purge),
            any::<(bool, bool)>()
                .prop_map(|(if_unused, if_empty)| Question::MayRetire { if_unused, if_empty }),
            Just(Question::Use),
        ];
        let notice = prop_oneof![
            (consumer(), any::<u32>()).prop_map(|(consumer, bytes)| Notice::Flow { consumer, bytes }),
            (consumer(), any::<u32>()).prop_map(|(consumer, prefetch)| Notice::Limit { consumer, prefetch }),
            consumer().prop_map(|consumer| Notice::Pause { consumer }),
            consumer().prop_map(|consumer| Notice::Resume { consumer }),
            numbers().prop_map(|seqs| Notice::PutBack { seqs }),
            numbers().prop_map(|seqs| Notice::Remove { seqs }),
            Just(Notice::Use),
        ];
        prop_oneof![
            any::<(u64, u64)>().prop_map(|(node, sent)| ToLeader::Open {
                node: Incarnation(node),
                sent
            }),
            (any::<u64>(), prop::collection::vec(0..3_000_usize, 1..5)).prop_map(|(first, sizes)| {
                ToLeader::Publish {
                    first,
                    block: block_of(&sizes),
                }
            }),
            (any::<u64>(), consumer(), settings, any::<u64>()).prop_map(
                |(question, consumer, settings, outstanding)| {
                    ToLeader::Consume {
                        question,
                        consumer,
                        settings,
                        outstanding,
                    }
                }
            ),
            (
                prop::collection::vec((prop::option::of(consumer()), numbers(), any::<u32>()), 0..4),
                any::<bool>()
            )
                .prop_map(|(held, more)| ToLeader::Holds {
                    held: held
                        .into_iter()
                        .map(|(consumer, seqs, returns)| Held {
                            consumer,
                            seqs,
                            returns
                        })
                        .collect(),
                    more,
                }),
            (any::<u64>(), prop::option::of(consumer()), numbers(), way).prop_map(
                |(number, consumer, seqs, way)| {
                    ToLeader::Resolve {
                        number,
                        resolved: Resolved { consumer, seqs, way },
                    }
                }
            ),
            (any::<u64>(), question).prop_map(|(question, about)| ToLeader::Ask { question, about }),
            notice.prop_map(ToLeader::Tell),
            Just(ToLeader::Wants),
            any::<u64>().prop_map(|node| ToLeader::Nothing {
                node: Incarnation(node)
            }),
        ]
    }

    fn to_node() -> impl Strategy<Value = ToNode> {
        let answer = prop_oneof![
            Just(Answer::Consuming),
            Just(Answer::InExclusiveUse),
            Just(Answer::Cancelled),
            Just(Answer::Paused),
            any::<(u64, u64)>().prop_map(|(ready, consumers)| Answer::Stands { ready, consumers }),
            any::<u64>().prop_map(|seq| Answer::Got {
                delivery: delivered(Ranges::one(seq / 2), &[7]),
                remaining: seq
            }),
            Just(Answer::Empty),
            numbers().prop_map(Answer::Taken),
            numbers().prop_map(Answer::Discard),
            (any::<u64>(), numbers()).prop_map(|(below, refused)| Answer::Recalled { below, refused }),
            any::<u64>().prop_map(Answer::Purged),
            any::<u64>().prop_map(Answer::MayRetire),
            Just(Answer::InUse),
            Just(Answer::NotEmpty),
        ];
        prop_oneof![
            (any::<u64>(), numbers(), any::<(u64, u64)>()).prop_map(
                |(below, refused, (resolved, credit))| {
                    ToNode::Opened {
                        below,
                        refused,
                        resolved,
                        credit,
                    }
                }
            ),
            Just(ToNode::Closed),
            Just(ToNode::Speak),
            numbers().prop_map(ToNode::Confirmed),
            numbers().prop_map(ToNode::Rejected),
            (any::<u64>(), prop::collection::vec(0..3_000_usize, 1..5)).prop_map(|(first, sizes)| {
                let first = first / 2;
                let seqs = Ranges::span(first, first + sizes.len() as u64 - 1);
                ToNode::Deliver {
                    consumer: ConsumerId(first),
                    delivery: delivered(seqs, &sizes),
                }
            }),
            (any::<u64>(), answer).prop_map(|(question, answer)| ToNode::Answer { question, answer }),
            any::<u64>().prop_map(|id| ToNode::Cancelled {
                consumer: ConsumerId(id)
            }),
            any::<u64>().prop_map(|number| ToNode::Resolved { number }),
            any::<u64>().prop_map(|bytes| ToNode::Credit { bytes }),
        ]
    }

    /// The delivery of these numbers, of a block that has them and begins with the first.
    fn delivered(seqs: Ranges, sizes: &[usize]) -> Delivery {
        Delivery {
            base: seqs.first().unwrap(),
            seqs,
            block: block_of(sizes),
            redelivered: true,
            returns: 3,
            failures: Some(2),
        }
    }

    proptest! {
        #[test]
        fn what_is_said_to_a_leader_is_read_back(messages in prop::collection::vec(to_leader(), 0..6)) {
            let said = frame(messages);
            prop_assert_eq!(Frame::decode(&joined(&said.encode())), Some(said));
        }

        #[test]
        fn what_is_said_to_a_node_is_read_back_and_no_part_of_it_is_taken_for_more(
            messages in prop::collection::vec(to_node(), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let said = frame(messages);
            let bytes = joined(&said.encode());
            prop_assert_eq!(Frame::<ToNode>::decode(&bytes[..cut.index(bytes.len())]), None);
            prop_assert_eq!(Frame::decode(&bytes), Some(said));
        }

        #[test]
        fn a_delivery_with_gaps_brings_what_it_names_and_little_else(seqs in numbers()) {
            let last = seqs.last().unwrap();
            let sizes: Vec<usize> = (0..=last).map(|seq| seq as usize % 40).collect();
            let whole = Delivery { base: 0, ..delivered(seqs.clone(), &sizes) };
            let consumer = ConsumerId(1);
            let said = frame(vec![ToNode::Deliver { consumer, delivery: whole.clone() }]);
            let bytes = joined(&said.encode());
            let read = Frame::<ToNode>::decode(&bytes).unwrap();
            let (mut found, mut cost) = (Ranges::new(), 0);
            for message in read.messages {
                let ToNode::Deliver { delivery, .. } = message else { panic!("a delivery") };
                for seq in delivery.seqs.iter() {
                    let at = (seq - delivery.base) as usize;
                    prop_assert_eq!(delivery.block.message(at), whole.block.message(seq as usize));
                    prop_assert_eq!(delivery.bytes_of(seq, seq), whole.bytes_of(seq, seq));
                }
                delivery.seqs.spans().for_each(|(first, last)| found.push_span(first, last));
                cost += delivery.block.len() as u64;
            }
            prop_assert_eq!(&found, &seqs);
            prop_assert!(cost <= seqs.count() * (MOST_BETWEEN + 1));
        }
    }

    #[test]
    fn a_delivery_that_leaves_out_more_than_anybody_does_is_not_read() {
        let mut seqs = Ranges::one(1);
        [20, 22, 24].into_iter().for_each(|seq| seqs.push(seq));
        let whole = Delivery {
            base: 0,
            ..delivered(seqs.clone(), &[1; 25])
        };
        let read = |seqs: &Ranges| {
            let mut parts = Parts::default();
            parts.delivery(&whole, seqs);
            Reading::of(joined(&parts.finish()), delivery)
        };
        let cut = pieces(&seqs);
        assert_eq!(cut.len(), 2);
        assert!(cut.iter().all(|piece| read(piece).is_some()));
        assert_eq!(read(&seqs), None);
    }

    #[test]
    fn a_large_block_is_not_copied_into_its_frame() {
        let block = block_of(&[100_000]);
        let parts = frame(vec![ToLeader::Publish {
            first: 1,
            block: block.clone(),
        }])
        .encode();
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].as_ptr(), block.bytes().as_ptr());
    }

    #[test]
    fn a_block_alone_in_its_frame_stays_where_it_came_and_has_little_room_behind_it() {
        let said = frame(vec![
            ToLeader::Wants,
            ToLeader::Publish {
                first: 1,
                block: block_of(&[100_000]),
            },
        ]);
        let bytes = joined(&said.encode());
        let (came, memory) = (bytes.as_ptr(), bytes.capacity());
        let read = Reading::of(bytes, Frame::<ToLeader>::get).unwrap();
        let Some(ToLeader::Publish { block, .. }) = read.messages.last() else {
            panic!("a block")
        };
        assert_eq!(block.bytes().as_ptr(), came);
        assert!(block.memory() <= memory + 200);
        let long = vec![ToLeader::Tell(Notice::Use); 100_000];
        let said = frame([long, said.messages].concat());
        let read = Reading::of(joined(&said.encode()), Frame::<ToLeader>::get).unwrap();
        let Some(ToLeader::Publish { block, .. }) = read.messages.last() else {
            panic!("a block")
        };
        assert!(block.memory() < memory + 5_000, "what was said is no part of it");
    }
}
