//! Requests of clients, and what is answered.

use super::open::Open;
use super::reading::filter;
use crate::connection::Millis;
use crate::output::Output;
use crate::stream::refusal::code;
use crate::stream::streams::{
    Answer as Answered, NewSuperStream, PublisherNumber, Question, ReaderNumber, Refused,
};
use broker::stats::StreamPublisher;
use protocol::stream::request::{
    Create, CreateSuperStream, DeclarePublisher, ExchangeCommandVersions, Metadata,
};
use protocol::stream::{
    Answer, Command, Content, Key, List, ListBuf, PlacesBuf, Properties, Request, Resolved, ResponseCode,
    Stat, TAKEN_FROM_CLIENTS, Text,
};
use std::collections::BTreeSet;

/// The longest name of a publisher or a consumer, in bytes.
pub const LONGEST_REFERENCE: usize = 255;

/// A request that waits for its answer.
pub struct Waiting {
    question: Question,
    correlation_id: u32,
    key: Key,
}

/// What a client was asked.
pub struct Update {
    /// About which reader.
    pub reader: ReaderNumber,
    /// Whether it is the active one.
    pub active: bool,
    /// Until when it has to answer.
    pub until: Millis,
}

/// What came of a request at once: a code, or a question that was asked on.
type Outcome = Result<Option<Question>, ResponseCode>;

impl Open {
    /// What is no request.
    pub(super) fn command(&mut self, command: &Command<'_>, out: &mut Output) {
        match command {
            Command::Publish(publish) => {
                self.published = true;
                self.publishers.publish(publish, out.bytes());
            }
            Command::Credit {
                subscription_id,
                credit,
            } => {
                if let Err(code) = self.subscriptions.credit(*subscription_id, *credit) {
                    let subscription_id = *subscription_id;
                    let error = Command::CreditError {
                        code,
                        subscription_id,
                    };
                    error.encode(out.bytes());
                }
            }
            Command::StoreOffset {
                reference,
                stream,
                offset,
            } => match stream.as_str() {
                Some(stream) if reference.0.len() <= LONGEST_REFERENCE => {
                    self.streams.store_offset(stream, reference.0, *offset);
                }
                _ => tracing::warn!(
                    area = "connection",
                    "an offset of stream '{stream}' is not stored: its reference has {} bytes, of 255 at most",
                    reference.0.len()
                ),
            },
            _ => {}
        }
    }

    /// Answers a request, or has it answered later.
    pub(super) fn request(&mut self, correlation_id: u32, request: &Request<'_>, out: &mut Output) {
        // What was published before is before it.
        self.flush();
        let key = request.key();
        let outcome = match request {
            Request::DeclarePublisher(declare) => self.declare_publisher(declare).map(|()| None),
            Request::DeletePublisher(delete) => match self.publishers.remove(delete.publisher_id) {
                true => Ok(None),
                false => Err(ResponseCode::PublisherDoesNotExist),
            },
            Request::Subscribe(subscribe) => self.subscribe(subscribe).map(|()| None),
            Request::Unsubscribe(it) => {
                match self.subscriptions.remove(it.subscription_id, &mut *self.streams) {
                    true => Ok(None),
                    false => Err(ResponseCode::SubscriptionIdDoesNotExist),
                }
            }
            Request::Metadata(metadata) => return self.metadata(correlation_id, metadata, out),
            Request::Route(it) => {
                let found = match (it.super_stream.as_str(), it.routing_key.as_str()) {
                    (Some(stream), Some(key)) => self.streams.route(stream, key),
                    _ => Err(Refused::NoStream),
                };
                return names(key, correlation_id, found, out);
            }
            Request::Partitions(it) => {
                let of = it.super_stream.as_str().ok_or(Refused::NoStream);
                let found = of.and_then(|stream| self.streams.partitions(stream));
                return names(key, correlation_id, found, out);
            }
            Request::ExchangeCommandVersions(it) => return self.versions(correlation_id, it, out),
            other => self.ask(other),
        };
        match outcome {
            Ok(Some(question)) => {
                self.waiting = Some(Waiting {
                    question,
                    correlation_id,
                    key,
                });
            }
            Ok(None) => answer(correlation_id, Answer::code(key, ResponseCode::Ok), out),
            Err(code) => answer(correlation_id, refused(key, code), out),
        }
    }

    /// Asks what is answered later.
    fn ask(&mut self, request: &Request<'_>) -> Outcome {
        let question = Question(self.number());
        let none = ResponseCode::StreamDoesNotExist;
        let name = |text: Text<'_>| text.as_str().map(str::to_owned).ok_or(none);
        match request {
            Request::Create(it) => self.create(question, it)?,
            Request::CreateSuperStream(it) => self.create_super_stream(question, it)?,
            Request::Delete(it) => self.streams.delete(question, &name(it.stream)?),
            Request::DeleteSuperStream(it) => {
                self.streams
                    .delete_super_stream(question, &name(it.super_stream)?);
            }
            Request::QueryPublisherSequence(it) => {
                self.streams.sequence(question, &name(it.stream)?, it.reference.0);
            }
            Request::QueryOffset(it) => self.streams.offset(question, &name(it.stream)?, it.reference.0),
            Request::StreamStats(it) => self.streams.stats(question, &name(it.stream)?),
            Request::ResolveOffsetSpec(it) => {
                let filter = filter(&it.properties.0);
                self.streams.resolve(question, &name(it.stream)?, it.from, filter);
            }
            // The connection's own business, and what was answered at once, does not come here.
            _ => return Err(ResponseCode::InternalError),
        }
        Ok(Some(question))
    }

    fn declare_publisher(&mut self, declare: &DeclarePublisher<'_>) -> Result<(), ResponseCode> {
        if self.alarm {
            return Err(ResponseCode::PreconditionFailed);
        }
        let stream = declare.stream.as_str().ok_or(ResponseCode::StreamDoesNotExist)?;
        let (id, reference) = (declare.publisher_id, declare.reference.0);
        let writable = self.streams.writable(stream);
        if writable == Err(Refused::Access) {
            return Err(ResponseCode::AccessRefused);
        }
        if reference.len() > LONGEST_REFERENCE || self.publishers.has(id, stream, reference) {
            return Err(ResponseCode::PreconditionFailed);
        }
        writable.map_err(code)?;
        let number = PublisherNumber(self.number());
        let named = (!reference.is_empty()).then_some(reference);
        let publisher = self.streams.publisher(number, stream, named).map_err(code)?;
        let shown = StreamPublisher::new(id, stream.into(), reference);
        let shown = self.shown.enter_stream_publisher(shown);
        self.publishers.add(number, shown, publisher);
        Ok(())
    }

    fn create(&mut self, question: Question, create: &Create<'_>) -> Result<(), ResponseCode> {
        let stream = create.stream.as_str().ok_or(ResponseCode::PreconditionFailed)?;
        let arguments = pairs(&create.arguments)?;
        self.streams.create(question, stream, &arguments);
        Ok(())
    }

    fn create_super_stream(
        &mut self,
        question: Question,
        create: &CreateSuperStream<'_>,
    ) -> Result<(), ResponseCode> {
        let name = create
            .super_stream
            .as_str()
            .ok_or(ResponseCode::PreconditionFailed)?;
        let (partitions, keys) = (texts(&create.partitions)?, texts(&create.binding_keys)?);
        let arguments = pairs(&create.arguments)?;
        let new = NewSuperStream {
            name,
            partitions: &partitions,
            keys: &keys,
            arguments: &arguments,
        };
        self.streams.create_super_stream(question, &new);
        Ok(())
    }

    /// Each stream is answered for once, however often it is asked for.
    fn metadata(&mut self, correlation_id: u32, metadata: &Metadata<'_>, out: &mut Output) {
        let asked: BTreeSet<&[u8]> = metadata.streams.iter().map(|stream| stream.0).collect();
        let located = asked.into_iter().map(|name| {
            let stream = Text(name);
            let located = stream.as_str().ok_or(Refused::NoStream);
            (stream, located.and_then(|stream| self.streams.locate(stream)))
        });
        let located: Vec<_> = located.collect();
        let mut places = PlacesBuf::default();
        for (stream, located) in &located {
            match located {
                Ok(located) => {
                    let leader = located.leader.as_ref().map(|it| (&it.host[..], it.port));
                    let replicas = located.replicas.iter().map(|it| (&it.host[..], it.port));
                    places.found(*stream, leader, replicas);
                }
                Err(refused) => places.missing(*stream, code(*refused)),
            }
        }
        let content = Content::Places(places.as_places());
        answer(correlation_id, Answer::ok(Key::Metadata, content), out);
    }

    fn versions(&mut self, correlation_id: u32, asked: &ExchangeCommandVersions<'_>, out: &mut Output) {
        self.says_committed |= asked.versions.iter().any(|it| it.speaks(Key::Deliver, 2));
        let versions = ListBuf::of(TAKEN_FROM_CLIENTS);
        let content = Content::Versions(versions.as_list());
        answer(
            correlation_id,
            Answer::ok(Key::ExchangeCommandVersions, content),
            out,
        );
    }

    /// The answer to what was asked is there.
    pub(super) fn answered(
        &mut self,
        question: Question,
        found: Result<Answered, Refused>,
        out: &mut Output,
    ) {
        let Some(waiting) = self.waiting.take_if(|waiting| waiting.question == question) else {
            return;
        };
        let Waiting {
            correlation_id, key, ..
        } = waiting;
        match found {
            Ok(Answered::Number(number)) if key == Key::ResolveOffsetSpec => {
                answer(
                    correlation_id,
                    Answer::ok(key, Content::Resolved(Resolved(number))),
                    out,
                );
            }
            Ok(Answered::Number(number)) => {
                answer(correlation_id, Answer::ok(key, Content::Number(number)), out);
            }
            Ok(Answered::Stats(stats)) => {
                let stats = ListBuf::of(stats.iter().map(|(name, value)| Stat {
                    name: (*name).into(),
                    value: *value,
                }));
                answer(
                    correlation_id,
                    Answer::ok(key, Content::Stats(stats.as_list())),
                    out,
                );
            }
            Ok(Answered::Done) => answer(correlation_id, Answer::code(key, ResponseCode::Ok), out),
            Err(why) => answer(correlation_id, refused(key, code(why)), out),
        }
    }
}

/// A refusal. Where an answer has more than a code, RabbitMQ fills that with nothing.
fn refused(key: Key, code: ResponseCode) -> Answer<'static> {
    let content = match key {
        Key::QueryPublisherSequence | Key::QueryOffset => Content::Number(0),
        Key::Route | Key::Partitions => Content::Names(List::default()),
        Key::StreamStats => Content::Stats(List::default()),
        Key::ResolveOffsetSpec => Content::Resolved(Resolved(0)),
        _ => Content::Nothing,
    };
    Answer { key, code, content }
}

fn names(key: Key, correlation_id: u32, found: Result<Vec<String>, Refused>, out: &mut Output) {
    match found {
        Ok(found) => {
            let names = ListBuf::of(found.iter().map(|name| Text::from(name.as_str())));
            let content = Content::Names(names.as_list());
            answer(correlation_id, Answer::ok(key, content), out);
        }
        Err(why) => answer(correlation_id, refused(key, code(why)), out),
    }
}

fn answer(correlation_id: u32, answer: Answer<'_>, out: &mut Output) {
    Command::Answer {
        correlation_id,
        answer,
    }
    .encode(out.bytes());
}

fn texts<'a>(list: &List<'a, Text<'a>>) -> Result<Vec<&'a str>, ResponseCode> {
    let texts = list.iter().map(Text::as_str);
    texts
        .collect::<Option<_>>()
        .ok_or(ResponseCode::PreconditionFailed)
}

fn pairs<'a>(list: &Properties<'a>) -> Result<Vec<(&'a str, &'a str)>, ResponseCode> {
    let pairs = list.iter().map(|it| Some((it.key.as_str()?, it.value.as_str()?)));
    pairs
        .collect::<Option<_>>()
        .ok_or(ResponseCode::PreconditionFailed)
}
