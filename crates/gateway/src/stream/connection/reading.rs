//! Subscriptions: credit, deliveries, and who of several single active consumers is the active one.

use super::open::Open;
use super::requests::Update;
use crate::output::Output;
use crate::stream::streams::{Filter, Reader, ReaderNumber, Refused, Streams};
use broker::stats::{Entered, StreamConsumer, StreamGroup};
use broker::{NextChunk, ReadChunk};
use model::chunk::Header;
use protocol::stream::request::{ConsumerUpdate, Subscribe};
use protocol::stream::{Answer, Command, Content, OffsetSpec, Properties, ResponseCode, Text, deliver_head};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The subscriptions of a connection.
#[derive(Default)]
pub struct Subscriptions {
    by_id: BTreeMap<u8, Subscription>,
    ids: BTreeMap<ReaderNumber, u8>,
    /// Those with credit that may have something to read, in turn.
    ready: VecDeque<u8>,
}

/// A subscription with its client's number.
pub struct Subscription {
    number: ReaderNumber,
    /// What operators see of it: the stream, and how far it has come.
    shown: Entered<StreamConsumer>,
    from: OffsetSpec,
    filter: Option<Filter>,
    credit: u32,
    /// One of several single active consumers.
    single: bool,
    /// It is the active one.
    active: bool,
    /// Nothing, while it is not the active one.
    reader: Option<Box<dyn Reader>>,
    /// It stands among those that are ready.
    ready: bool,
}

impl Subscriptions {
    /// True if the client has used this number.
    pub fn has(&self, id: u8) -> bool {
        self.by_id.contains_key(&id)
    }

    /// The streams that are read.
    pub fn streams(&self) -> Vec<Arc<str>> {
        self.by_id.values().map(|it| it.shown.stream.clone()).collect()
    }

    fn add(&mut self, subscription: Subscription) {
        let id = subscription.shown.id;
        self.ids.insert(subscription.number, id);
        self.by_id.insert(id, subscription);
        self.wake(id);
    }

    /// One less. False if there is none of this number.
    pub fn remove(&mut self, id: u8, streams: &mut dyn Streams) -> bool {
        let Some(gone) = self.by_id.remove(&id) else {
            return false;
        };
        self.ready.retain(|it| *it != id);
        self.ids.remove(&gone.number);
        if gone.single {
            streams.leave(gone.number);
        }
        true
    }

    /// Nobody reads this stream any more. True if somebody did.
    pub fn forget_stream(&mut self, stream: &str, streams: &mut dyn Streams) -> bool {
        let of_stream = self.by_id.iter().filter(|(_, it)| *it.shown.stream == *stream);
        let ids: Vec<u8> = of_stream.map(|(id, _)| *id).collect();
        for id in &ids {
            self.remove(*id, streams);
        }
        !ids.is_empty()
    }

    /// It is worth asking this one again.
    pub fn readable(&mut self, number: ReaderNumber) {
        if let Some(id) = self.ids.get(&number).copied() {
            self.wake(id);
        }
    }

    fn wake(&mut self, id: u8) {
        if let Some(it) = self.by_id.get_mut(&id)
            && it.reader.is_some()
            && it.credit > 0
            && !std::mem::replace(&mut it.ready, true)
        {
            self.ready.push_back(id);
        }
    }

    /// More credit. What it is refused with, if it means nothing: an inactive one keeps it all the same, as in RabbitMQ.
    pub fn credit(&mut self, id: u8, credit: u16) -> Result<(), ResponseCode> {
        let it = self
            .by_id
            .get_mut(&id)
            .ok_or(ResponseCode::SubscriptionIdDoesNotExist)?;
        it.credit = it.credit.saturating_add(credit.into());
        it.shown.credits.set(it.credit.into());
        if it.reader.is_none() {
            return Err(ResponseCode::PreconditionFailed);
        }
        self.wake(id);
        Ok(())
    }

    /// Writes chunks, one of each subscription in turn, while there is room.
    /// True if it is to be called again without anything else happening.
    pub fn fill(&mut self, says_committed: bool, out: &mut Output) -> bool {
        let limit = out.limit();
        while out.bytes().len() < limit
            && let Some(id) = self.ready.pop_front()
        {
            let Some(it) = self.by_id.get_mut(&id) else {
                continue;
            };
            it.ready = false;
            let Some(reader) = &mut it.reader else {
                continue;
            };
            let next = reader.next();
            it.shown.set_next(Some(reader.position()));
            let chunk = match next {
                NextChunk::Here(chunk) => chunk,
                NextChunk::Later => continue,
                NextChunk::AskAgain => {
                    // With the connection's next turn.
                    self.wake(id);
                    return true;
                }
            };
            it.credit -= 1;
            it.shown.credits.set(it.credit.into());
            it.shown.consumed.add(messages(&chunk));
            let committed = says_committed.then(|| reader.committed_chunk());
            let bytes = out.bytes();
            let length = chunk.header.len() + chunk.entries.len();
            deliver_head(bytes, id, committed, u32::try_from(length).unwrap_or(u32::MAX));
            bytes.extend_from_slice(&chunk.header);
            bytes.extend_from_slice(&chunk.entries);
            self.wake(id);
        }
        false
    }
}

impl Open {
    /// Writes deliveries.
    pub fn fill(&mut self, out: &mut Output) {
        if self.subscriptions.fill(self.says_committed, out) {
            self.inbox.wake();
        }
    }

    /// Begins a subscription. The order of the refusals is RabbitMQ's.
    pub(super) fn subscribe(&mut self, subscribe: &Subscribe<'_>) -> Result<(), ResponseCode> {
        use crate::stream::refusal::code;
        let properties = subscribe.properties.0;
        let stream = subscribe
            .stream
            .as_str()
            .ok_or(ResponseCode::StreamDoesNotExist)?;
        let name = properties.get("name");
        let readable = self.streams.readable(stream);
        if name.is_some_and(|name| name.0.len() > super::requests::LONGEST_REFERENCE) {
            let refused = readable == Err(Refused::Access);
            return Err(match refused {
                true => ResponseCode::AccessRefused,
                false => ResponseCode::PreconditionFailed,
            });
        }
        readable.map_err(code)?;
        let id = subscribe.subscription_id;
        if self.subscriptions.has(id) {
            return Err(ResponseCode::SubscriptionIdAlreadyExists);
        }
        let said = said(&properties);
        let single = properties.get("single-active-consumer") == Some("true".into());
        let (number, filter) = (ReaderNumber(self.number()), filter(&properties));
        let (reader, group) = match (single, name) {
            (false, _) => {
                let reader = self
                    .streams
                    .reader(number, stream, subscribe.from, filter.clone());
                (Some(reader.map_err(code)?), None)
            }
            (true, Some(name)) => {
                let group = name.as_str().ok_or(ResponseCode::PreconditionFailed)?;
                let super_stream = properties.get("super-stream").and_then(|it| it.as_str());
                let joined = self.streams.join(number, stream, group, super_stream);
                let group = StreamGroup {
                    name: group.into(),
                    partition: joined.map_err(code)?,
                };
                (None, Some(group))
            }
            (true, None) => return Err(ResponseCode::PreconditionFailed),
        };
        let shown = StreamConsumer::new(id, stream.into(), said, group);
        let shown = self.shown.enter_stream_consumer(shown);
        shown.credits.set(subscribe.credit.into());
        shown.set_next(reader.as_ref().map(|reader| reader.position()));
        let subscription = Subscription {
            number,
            shown,
            from: subscribe.from,
            filter,
            credit: subscribe.credit.into(),
            single,
            active: !single,
            reader,
            ready: false,
        };
        self.subscriptions.add(subscription);
        Ok(())
    }

    /// A single active consumer becomes the active one, or ends to be it: the client is asked where to begin, or told to
    /// stop.
    pub(super) fn activate(&mut self, number: ReaderNumber, active: bool, out: &mut Output) {
        let Some(id) = self.subscriptions.ids.get(&number).copied() else {
            return;
        };
        let Some(it) = self.subscriptions.by_id.get_mut(&id) else {
            return;
        };
        it.active = active;
        it.shown.set_active(active);
        if !active {
            it.reader = None;
            it.shown.set_next(None);
        }
        let correlation_id = self.next_update;
        self.next_update = self.next_update.wrapping_add(1);
        let update = Update {
            reader: number,
            active,
            until: self.now + self.request_timeout_ms,
        };
        self.updates.insert(correlation_id, update);
        let request = ConsumerUpdate {
            subscription_id: id,
            active,
        };
        Command::Request {
            correlation_id,
            request: request.into(),
        }
        .encode(out.bytes());
    }

    /// The client's answer to that.
    pub(super) fn updated(&mut self, correlation_id: u32, answer: &Answer<'_>) {
        let Some(update) = self.updates.remove(&correlation_id) else {
            return tracing::debug!(
                area = "connection",
                "a client answers request {correlation_id}, which it was not asked"
            );
        };
        if !update.active {
            return self.streams.stepped_down(update.reader);
        }
        let Some(id) = self.subscriptions.ids.get(&update.reader).copied() else {
            return;
        };
        let Some(it) = self.subscriptions.by_id.get_mut(&id).filter(|it| it.active) else {
            return;
        };
        let from = match answer.content {
            Content::From(Some(from)) => from,
            _ => it.from,
        };
        match self
            .streams
            .reader(it.number, &it.shown.stream, from, it.filter.clone())
        {
            Ok(reader) => {
                it.shown.set_next(Some(reader.position()));
                it.reader = Some(reader);
            }
            Err(refused) => {
                tracing::warn!(
                    area = "connection",
                    "the single active consumer of stream '{}' cannot read it: {refused:?}",
                    it.shown.stream
                );
            }
        }
        self.subscriptions.wake(id);
    }

    /// True if the client has left a request unanswered for too long.
    pub fn is_unanswered(&self) -> bool {
        let is_asked = |update: &Update| self.subscriptions.ids.contains_key(&update.reader);
        let mut updates = self.updates.values();
        updates.any(|update| self.now >= update.until && is_asked(update))
    }
}

/// What a subscription wants to see.
pub fn filter(properties: &Properties<'_>) -> Option<Filter> {
    let values = properties.iter().filter(|it| it.key.0.starts_with(b"filter."));
    let values: Vec<Vec<u8>> = values.map(|it| it.value.0.to_vec()).collect();
    (!values.is_empty()).then(|| Filter {
        values,
        unfiltered: properties.get("match-unfiltered") == Some("true".into()),
    })
}

/// Of what a client says of a subscription so many bytes are shown.
const SHOWN_BYTES: usize = 4_096;

/// What a client says of a subscription, as text: the first properties, as far as they are not too long to be kept.
fn said(properties: &Properties<'_>) -> Vec<(String, String)> {
    let text = |text: Text<'_>| String::from_utf8_lossy(text.0).into_owned();
    let mut left = SHOWN_BYTES;
    let short = properties.iter().take_while(|it| {
        let fits = left.checked_sub(it.key.0.len() + it.value.0.len());
        left = fits.unwrap_or_default();
        fits.is_some()
    });
    short.map(|it| (text(it.key), text(it.value))).collect()
}

/// How many messages are in a chunk.
fn messages(chunk: &ReadChunk) -> u64 {
    Header::read(&chunk.header).map_or(0, |header| header.records.into())
}
