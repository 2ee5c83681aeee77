use super::*;
use crate::stream::answer::{Content, Stat};
use crate::stream::field::{ListBuf, Opaque, Properties, Property, Trailing};
use crate::stream::frame::next_frame;
use crate::stream::key::{CommandVersions, TAKEN_FROM_CLIENTS};
use crate::stream::metadata::PlacesBuf;
use crate::stream::offset::{OffsetSpec, Resolved};
use crate::stream::publish::{Body, EntriesBuf};
use crate::stream::request::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn encoded(command: &Command<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    command.encode(&mut out);
    out
}

fn decoded(bytes: &[u8]) -> Result<Command<'_>, Malformed> {
    let (frame, length) = next_frame(bytes, 0).unwrap().expect("a whole frame");
    assert_eq!(length, bytes.len());
    Command::decode(&frame)
}

fn request<'a>(request: impl Into<Request<'a>>) -> Command<'a> {
    Command::Request {
        correlation_id: 258,
        request: request.into(),
    }
}

/// What is said with this material, one of each kind; `pick` chooses it.
#[derive(Debug)]
struct Said {
    pick: usize,
    numbers: (u8, u16, u32, u64),
    text: Vec<u8>,
    texts: Vec<Vec<u8>>,
    flag: bool,
}

impl Said {
    /// Asks `check` about the command, which borrows from what is made here.
    fn with(&self, check: impl FnOnce(&Command<'_>)) {
        let (_, short, id, number) = self.numbers;
        let (text, texts) = (Text(&self.text), self.texts.iter().map(|it| Text(it)));
        let names = ListBuf::of(texts.clone());
        let names: List<'_, Text<'_>> = names.as_list();
        let pairs = ListBuf::of(texts.clone().map(|key| Property { key, value: text }));
        let pairs: Properties<'_> = pairs.as_list();
        let from = match short % 5 {
            0 => OffsetSpec::First,
            1 => OffsetSpec::Last,
            2 => OffsetSpec::Next,
            3 => OffsetSpec::Offset(number),
            _ => OffsetSpec::Timestamp(number as i64),
        };
        if let Some(request) = self.request(text, names, pairs, from) {
            return check(&Command::Request {
                correlation_id: id,
                request,
            });
        }
        let code = ResponseCode::ALL[usize::from(short) % ResponseCode::ALL.len()];
        let stats = ListBuf::of(texts.clone().map(|name| Stat {
            name,
            value: number as i64,
        }));
        let versions = ListBuf::of(TAKEN_FROM_CLIENTS);
        let mut places = PlacesBuf::default();
        for (at, stream) in texts.clone().enumerate() {
            match at % 3 {
                0 => places.found(stream, Some(("one", id)), [("two", id)]),
                1 => places.found(stream, None, [("two", id), ("three", 7)]),
                _ => places.missing(stream, code),
            }
        }
        let answered = |key, content| {
            let answer = Answer { key, code, content };
            Command::Answer {
                correlation_id: id,
                answer,
            }
        };
        let command = match self.pick - REQUESTS {
            0 => answered(Key::Create, Content::Nothing),
            1 => answered(Key::QueryPublisherSequence, Content::Number(number)),
            2 => answered(Key::PeerProperties, Content::Properties(pairs)),
            3 => answered(Key::Partitions, Content::Names(names)),
            4 => answered(Key::SaslAuthenticate, Content::Challenge(Opaque(&self.text))),
            5 => answered(Key::ConsumerUpdate, Content::From(self.flag.then_some(from))),
            6 => answered(
                Key::ExchangeCommandVersions,
                Content::Versions(versions.as_list()),
            ),
            7 => answered(Key::StreamStats, Content::Stats(stats.as_list())),
            8 => answered(Key::ResolveOffsetSpec, Content::Resolved(Resolved(number))),
            9 => Command::Answer {
                correlation_id: id,
                answer: Answer::ok(Key::Metadata, Content::Places(places.as_places())),
            },
            _ => return self.without_number(text, code, check),
        };
        check(&command);
    }

    fn request<'a>(
        &self,
        text: Text<'a>,
        names: List<'a, Text<'a>>,
        pairs: Properties<'a>,
        from: OffsetSpec,
    ) -> Option<Request<'a>> {
        let (id, short, _, _) = self.numbers;
        let (publisher_id, subscription_id) = (id, id);
        let (stream, super_stream, reference) = (text, text, Text(&text.0[text.0.len() / 2..]));
        let key = Key::ALL
            .iter()
            .copied()
            .filter(|key| Request::is_of(*key))
            .nth(self.pick)?;
        Some(match key {
            Key::DeclarePublisher => DeclarePublisher {
                publisher_id,
                reference,
                stream,
            }
            .into(),
            Key::QueryPublisherSequence => QueryPublisherSequence { reference, stream }.into(),
            Key::DeletePublisher => DeletePublisher { publisher_id }.into(),
            Key::Subscribe => Subscribe {
                subscription_id,
                stream,
                from,
                credit: short,
                properties: Trailing(pairs),
            }
            .into(),
            Key::QueryOffset => QueryOffset { reference, stream }.into(),
            Key::Unsubscribe => Unsubscribe { subscription_id }.into(),
            Key::Create => Create {
                stream,
                arguments: pairs,
            }
            .into(),
            Key::Delete => Delete { stream }.into(),
            Key::Metadata => Metadata { streams: names }.into(),
            Key::PeerProperties => PeerProperties { properties: pairs }.into(),
            Key::SaslHandshake => SaslHandshake {}.into(),
            Key::SaslAuthenticate => SaslAuthenticate {
                mechanism: reference,
                response: Opaque(text.0),
            }
            .into(),
            Key::Open => Open { virtual_host: text }.into(),
            Key::Close => Close {
                code: short,
                reason: text,
            }
            .into(),
            Key::Route => Route {
                routing_key: reference,
                super_stream,
            }
            .into(),
            Key::Partitions => Partitions { super_stream }.into(),
            Key::ConsumerUpdate => ConsumerUpdate {
                subscription_id,
                active: self.flag,
            }
            .into(),
            Key::ExchangeCommandVersions => ExchangeCommandVersions {
                versions: List::default(),
            }
            .into(),
            Key::StreamStats => StreamStats { stream }.into(),
            Key::CreateSuperStream => CreateSuperStream {
                super_stream,
                partitions: names,
                binding_keys: names,
                arguments: pairs,
            }
            .into(),
            Key::DeleteSuperStream => DeleteSuperStream { super_stream }.into(),
            Key::ResolveOffsetSpec => ResolveOffsetSpec {
                stream,
                from,
                properties: Trailing(pairs),
            }
            .into(),
            other => panic!("{other} is no request"),
        })
    }

    fn without_number(&self, text: Text<'_>, code: ResponseCode, check: impl FnOnce(&Command<'_>)) {
        let (small, short, id, number) = self.numbers;
        let mut entries = EntriesBuf::new(self.flag);
        for (at, body) in self.texts.iter().enumerate() {
            let batch = Body::Batch {
                compression: small & 7,
                records: short.max(1),
                uncompressed_bytes: id,
                batch: body,
            };
            let body = if at % 3 == 2 { batch } else { Body::Message(body) };
            let value = (at % 2 == 0).then_some(text);
            entries.push(number.wrapping_add(at as u64), value, &body);
        }
        let ids = ListBuf::of(self.texts.iter().map(|it| number ^ it.len() as u64));
        let errors = ListBuf::of(self.texts.iter().map(|it| PublishingError {
            publishing_id: number ^ it.len() as u64,
            code,
        }));
        check(&match self.pick - REQUESTS - ANSWERS {
            0 => Command::Publish(Publish {
                publisher_id: small,
                entries: entries.as_entries(),
            }),
            1 => Command::PublishConfirm {
                publisher_id: small,
                publishing_ids: ids.as_list(),
            },
            2 => Command::PublishError {
                publisher_id: small,
                errors: errors.as_list(),
            },
            3 => Command::Deliver {
                subscription_id: small,
                committed_chunk_id: self.flag.then_some(number),
                chunk: &self.text,
            },
            4 => Command::Credit {
                subscription_id: small,
                credit: short,
            },
            5 => Command::CreditError {
                code,
                subscription_id: small,
            },
            6 => Command::StoreOffset {
                reference: text,
                stream: text,
                offset: number,
            },
            7 => Command::MetadataUpdate { code, stream: text },
            8 => Command::Tune {
                frame_max: id,
                heartbeat_s: short.into(),
            },
            _ => Command::Heartbeat,
        });
    }
}

const REQUESTS: usize = 22;
const ANSWERS: usize = 10;
const OTHERS: usize = 10;

fn said() -> impl Strategy<Value = Said> {
    let numbers = (any::<u8>(), any::<u16>(), any::<u32>(), any::<u64>());
    let text = || vec(any::<u8>(), 0..20);
    let parts = (
        0..REQUESTS + ANSWERS + OTHERS,
        numbers,
        text(),
        vec(text(), 0..6),
        any::<bool>(),
    );
    parts.prop_map(|(pick, numbers, text, texts, flag)| Said {
        pick,
        numbers,
        text,
        texts,
        flag,
    })
}

#[test]
fn there_are_so_many_requests() {
    assert_eq!(
        Key::ALL.iter().filter(|key| Request::is_of(**key)).count(),
        REQUESTS
    );
}

proptest! {
    #[test]
    fn what_is_written_is_read(said in said()) {
        said.with(|command| {
            let bytes = encoded(command);
            assert_eq!(decoded(&bytes).as_ref(), Ok(command), "{bytes:?}");
        });
    }

    #[test]
    fn what_is_cut_off_or_too_long_is_no_command(said in said(), cut in 1..4_usize, more in any::<u8>()) {
        said.with(|command| {
            let mut bytes = encoded(command);
            let length = bytes.len();
            let open_ended = matches!(command, Command::Deliver { .. });
            bytes.push(more);
            bytes[..4].copy_from_slice(&((length + 1 - 4) as u32).to_be_bytes());
            let longer = decoded(&bytes);
            // An answer of a code alone may have something behind it, which one byte is never.
            assert!(open_ended || longer.is_err(), "{longer:?}");
            let shorter = length.saturating_sub(cut).max(8);
            bytes.truncate(shorter);
            bytes[..4].copy_from_slice(&((shorter - 4) as u32).to_be_bytes());
            // Cut where it may end, it is another command; nothing is read beyond the end either way.
            if let Ok(shorter) = decoded(&bytes) {
                assert!(open_ended || shorter != *command || shorter == Command::Heartbeat, "{shorter:?}");
            }
        });
    }

    #[test]
    fn any_bytes_are_a_command_that_is_read_again_or_none(
        key in 0..0x22_u16, answer: bool, version in 0..4_u16, payload in vec(prop_oneof![Just(0), Just(1), any::<u8>()], 0..60)
    ) {
        let key = key | if answer { ANSWER } else { 0 };
        let frame = Frame { key, version, payload: &payload };
        if let Ok(command) = Command::decode(&frame) {
            let again = encoded(&command);
            prop_assert_eq!(decoded(&again), Ok(command));
            prop_assert!(again.len() <= payload.len() + 8 + 4, "it grows by a list that was left out at most");
        }
    }
}

#[test]
fn commands_have_their_golden_bytes() {
    let subscribe = Subscribe {
        subscription_id: 5,
        stream: "s".into(),
        from: OffsetSpec::Offset(3),
        credit: 10,
        properties: Trailing::default(),
    };
    let bytes = b"\0\0\0\x18\0\x07\0\x01\0\0\x01\x02\x05\0\x01s\0\x04\0\0\0\0\0\0\0\x03\0\x0a";
    assert_eq!(encoded(&request(subscribe)), bytes);
    let ok = Answer::code(Key::Create, ResponseCode::Ok);
    let ok = Command::Answer {
        correlation_id: 258,
        answer: ok,
    };
    assert_eq!(encoded(&ok), b"\0\0\0\x0a\x80\x0d\0\x01\0\0\x01\x02\0\x01");
    let credit = Command::CreditError {
        code: ResponseCode::SubscriptionIdDoesNotExist,
        subscription_id: 7,
    };
    assert_eq!(encoded(&credit), b"\0\0\0\x07\x80\x09\0\x01\0\x04\x07");
    let update = Command::MetadataUpdate {
        code: ResponseCode::StreamNotAvailable,
        stream: "s".into(),
    };
    assert_eq!(encoded(&update), b"\0\0\0\x09\0\x10\0\x01\0\x06\0\x01s");
    let ids = ListBuf::of([1_u64, 2]);
    let confirm = Command::PublishConfirm {
        publisher_id: 9,
        publishing_ids: ids.as_list(),
    };
    let bytes = b"\0\0\0\x19\0\x03\0\x01\x09\0\0\0\x02\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02";
    assert_eq!(encoded(&confirm), bytes);
    let mut short_way = Vec::new();
    publish_confirm(&mut short_way, 9, &[1, 2]);
    assert_eq!(short_way, bytes);
}

#[test]
fn a_chunk_may_be_written_from_where_it_is() {
    for committed_chunk_id in [None, Some(77)] {
        let mut split = Vec::new();
        deliver_head(&mut split, 3, committed_chunk_id, 5);
        split.extend_from_slice(b"chunk");
        let whole = encoded(&Command::Deliver {
            subscription_id: 3,
            committed_chunk_id,
            chunk: b"chunk",
        });
        assert_eq!(split, whole);
    }
}

#[test]
fn versions_and_keys_that_nobody_speaks_are_no_commands() {
    let decode = |key, version| {
        Command::decode(&Frame {
            key,
            version,
            payload: b"",
        })
    };
    assert_eq!(decode(23, 1), Ok(Command::Heartbeat));
    for (key, version) in [
        (23, 0),
        (23, 2),
        (0, 1),
        (32, 1),
        (0x8017, 1),
        (0x8002, 1),
        (0x7fff, 1),
    ] {
        assert!(decode(key, version).is_err(), "{key:#x} {version}");
    }
}

#[test]
fn older_clients_leave_properties_out_and_refusals_are_codes_alone() {
    let bytes = b"\0\0\0\x10\0\x07\0\x01\0\0\x01\x02\x05\0\x01s\0\x01\0\x0a";
    assert!(matches!(
        decoded(bytes),
        Ok(Command::Request { request: Request::Subscribe(it), .. }) if it.properties.0.is_empty()
    ));
    let bytes = b"\0\0\0\x0a\x80\x15\0\x01\0\0\0\x01\0\x0c";
    let refused = Answer::code(Key::Open, ResponseCode::VirtualHostAccessFailure);
    assert_eq!(
        decoded(bytes),
        Ok(Command::Answer {
            correlation_id: 1,
            answer: refused
        })
    );
}

#[test]
fn the_server_names_what_it_takes_from_clients() {
    let list = ListBuf::of(TAKEN_FROM_CLIENTS);
    let versions: List<'_, CommandVersions> = list.as_list();
    assert!(versions.iter().any(|it| it.speaks(Key::Publish, 2)));
    assert!(versions.iter().all(|it| it.key != Key::Deliver.number()));
}
