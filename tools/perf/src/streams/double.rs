//! A broker for tests: speaks the stream protocol over real sockets, keeps chunks in memory, and writes down what it was asked.

use super::site::Address;
use model::Limits;
use model::chunk::{Batch, Chunk, ChunkBuilder, HEADER_BYTES};
use model::machine::Timestamp;
use protocol::amqp::handshake::sasl::Mechanism;
use protocol::stream::connection::{Connection, Event, Offer};
use protocol::stream::request::Request;
use protocol::stream::{
    Answer, Command, Content, Key, ListBuf, OffsetSpec, PlacesBuf, Publish, Resolved, ResponseCode,
    TAKEN_FROM_CLIENTS, publish_confirm,
};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often a connection looks for chunks while nothing comes.
const LOOK: Duration = Duration::from_millis(2);

/// What the broker does wrong, once each.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Confirms the first message after so many and forgets it.
    pub loses: Option<u64>,
    /// Stores the first frame after so many messages twice.
    pub doubles: Option<u64>,
    /// Closes the connection of a publisher after so many messages, before it confirms.
    pub cuts: Option<u64>,
    /// Closes the connection of a reader when there is something to send.
    pub drops: bool,
}

/// What is kept and seen.
#[derive(Default)]
pub struct Store {
    pub streams: BTreeMap<String, Stream>,
    /// In words, one a request.
    pub asked: Vec<String>,
    /// By name and stream.
    pub offsets: BTreeMap<(String, String), u64>,
    /// Entries of each frame that came.
    pub frames: Vec<usize>,
    pub filter_values: Vec<String>,
    faults: Faults,
}

#[derive(Default)]
pub struct Stream {
    chunks: Vec<Vec<u8>>,
    pub next: u64,
}

/// See the module. It goes on until the test ends.
pub struct Double {
    pub address: Address,
    pub store: Arc<Mutex<Store>>,
}

impl Double {
    pub fn start(faults: Faults) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = ("127.0.0.1".to_owned(), listener.local_addr().unwrap().port());
        let store = Arc::new(Mutex::new(Store {
            faults,
            ..Store::default()
        }));
        let messages = Arc::new(AtomicU64::new(0));
        let (there, at) = (store.clone(), address.clone());
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let serving = Serving {
                    socket: socket.unwrap(),
                    store: there.clone(),
                    at: at.clone(),
                    messages: messages.clone(),
                    publishers: BTreeMap::new(),
                    subscriptions: BTreeMap::new(),
                };
                std::thread::spawn(move || serving.serve());
            }
        });
        Self { address, store }
    }

    pub fn uri(&self) -> String {
        format!("rabbitmq-stream://{}:{}", self.address.0, self.address.1)
    }
}

struct Subscription {
    stream: String,
    chunk: usize,
    credit: u16,
}

struct Serving {
    socket: TcpStream,
    store: Arc<Mutex<Store>>,
    at: Address,
    messages: Arc<AtomicU64>,
    /// The stream and the last number of each.
    publishers: BTreeMap<u8, (String, Option<u64>)>,
    subscriptions: BTreeMap<u8, Subscription>,
}

impl Serving {
    fn serve(mut self) {
        let offer = Offer {
            properties: vec![
                ("product".into(), "Double".into()),
                ("version".into(), "4.3.0".into()),
            ],
            mechanisms: vec![Mechanism::Plain],
            frame_max: 65_536,
            heartbeat_s: 60,
        };
        let mut connection = Connection::new(offer, Limits::default());
        self.socket.set_read_timeout(Some(LOOK)).unwrap();
        let (mut inbox, mut out, mut room) = (Vec::new(), Vec::new(), vec![0; 65_536]);
        loop {
            match self.socket.read(&mut room) {
                Ok(0) => return,
                Ok(read) => inbox.extend_from_slice(&room[..read]),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return,
            }
            let mut over = false;
            loop {
                let bytes = inbox.clone();
                let (taken, event) = connection.advance(&bytes, &mut out);
                inbox.drain(..taken);
                match event {
                    None if taken == 0 => break,
                    None => {}
                    Some(event) => over |= !self.happens(event, &mut connection, &mut out),
                }
            }
            over |= !self.deliver(&mut out);
            if self.socket.write_all(&out).is_err() || over {
                return;
            }
            out.clear();
        }
    }

    /// False if the connection is over.
    fn happens(&mut self, event: Event<'_>, connection: &mut Connection, out: &mut Vec<u8>) -> bool {
        match event {
            Event::Authenticate(_) => connection.accept(out),
            Event::Open { .. } => {
                let port = self.at.1.to_string();
                connection.open(
                    &[("advertised_host", &self.at.0), ("advertised_port", &port)],
                    out,
                );
            }
            Event::Request {
                correlation_id,
                request,
            } => {
                let mut answered = Vec::new();
                self.answer(&request, correlation_id, &mut answered);
                out.extend(answered);
            }
            Event::Command(Command::Publish(publish)) => return self.publish(&publish, out),
            Event::Command(Command::Credit {
                subscription_id,
                credit,
            }) => {
                self.subscriptions.get_mut(&subscription_id).unwrap().credit += credit;
            }
            Event::Command(Command::StoreOffset {
                reference,
                stream,
                offset,
            }) => {
                let key = (reference.to_string(), stream.to_string());
                self.store.lock().unwrap().offsets.insert(key, offset);
            }
            Event::Failed(failure) => panic!("the client erred: {failure}"),
            Event::Closed => return false,
            other => panic!("unexpected: {other:?}"),
        }
        true
    }

    fn answer(&mut self, request: &Request<'_>, correlation_id: u32, out: &mut Vec<u8>) {
        let mut store = self.store.lock().unwrap();
        let key = request.key();
        let mut say = |code, content| {
            let answer = Answer { key, code, content };
            Command::Answer {
                correlation_id,
                answer,
            }
            .encode(out);
        };
        let mut ok = |content| say(ResponseCode::Ok, content);
        match request {
            Request::ExchangeCommandVersions(_) => {
                let versions = ListBuf::of(TAKEN_FROM_CLIENTS);
                ok(Content::Versions(versions.as_list()));
            }
            Request::Create(create) => {
                let arguments: Vec<String> = create
                    .arguments
                    .iter()
                    .map(|it| format!("{}={}", it.key, it.value))
                    .collect();
                store
                    .asked
                    .push(format!("create {} {}", create.stream, arguments.join(" ")));
                store.streams.entry(create.stream.to_string()).or_default();
                ok(Content::Nothing);
            }
            Request::CreateSuperStream(create) => {
                for name in create.partitions.iter() {
                    store.streams.entry(name.to_string()).or_default();
                }
                let keys: Vec<String> = create.binding_keys.iter().map(|it| it.to_string()).collect();
                store.asked.push(format!(
                    "create super stream {} {}",
                    create.super_stream,
                    keys.join(" ")
                ));
                ok(Content::Nothing);
            }
            Request::Delete(delete) => {
                store.asked.push(format!("delete {}", delete.stream));
                ok(Content::Nothing);
            }
            Request::Metadata(metadata) => {
                let mut places = PlacesBuf::default();
                for stream in metadata.streams.iter() {
                    places.found(stream, Some((&self.at.0, self.at.1.into())), []);
                }
                ok(Content::Places(places.as_places()));
            }
            Request::DeclarePublisher(declare) => {
                store.asked.push(format!(
                    "publisher {} '{}' {}",
                    declare.publisher_id, declare.reference, declare.stream
                ));
                self.publishers
                    .insert(declare.publisher_id, (declare.stream.to_string(), None));
                ok(Content::Nothing);
            }
            Request::QueryPublisherSequence(_) => ok(Content::Number(41)),
            Request::QueryOffset(query) => {
                let stored = store
                    .offsets
                    .get(&(query.reference.to_string(), query.stream.to_string()));
                match stored {
                    Some(offset) => ok(Content::Number(*offset)),
                    None => say(ResponseCode::NoOffset, Content::Number(0)),
                }
            }
            Request::Subscribe(subscribe) => {
                let properties: Vec<String> = subscribe
                    .properties
                    .0
                    .iter()
                    .map(|it| format!("{}={}", it.key, it.value))
                    .collect();
                let (from, credit) = (subscribe.from, subscribe.credit);
                store.asked.push(format!(
                    "subscribe {} {from:?} {credit} {}",
                    subscribe.stream,
                    properties.join(" ")
                ));
                let stream = subscribe.stream.to_string();
                // Chunks are sent whole, from the one that has the offset on.
                let chunk = match from {
                    OffsetSpec::Next => store.streams[&stream].chunks.len(),
                    _ => 0,
                };
                self.subscriptions.insert(
                    subscribe.subscription_id,
                    Subscription {
                        stream,
                        chunk,
                        credit,
                    },
                );
                ok(Content::Nothing);
            }
            Request::ResolveOffsetSpec(resolve) => {
                let next = store.streams[&resolve.stream.to_string()].next;
                ok(Content::Resolved(Resolved(next)));
            }
            other => panic!("unexpected: {other:?}"),
        }
        assert_ne!(key, Key::Open);
    }

    fn publish(&mut self, publish: &Publish<'_>, out: &mut Vec<u8>) -> bool {
        let mut store = self.store.lock().unwrap();
        let (name, last) = self
            .publishers
            .get_mut(&publish.publisher_id)
            .expect("a publisher");
        store.frames.push(publish.entries.len());
        let records: u64 = publish.entries.iter().map(|it| u64::from(it.records())).sum();
        let before = self.messages.fetch_add(records, Relaxed);
        if store.faults.cuts.is_some_and(|at| before >= at) {
            store.faults.cuts = None;
            return false;
        }
        let mut numbers = Vec::new();
        let mut batch = Batch::default();
        for entry in publish.entries.iter() {
            assert!(last.is_none_or(|last| entry.publishing_id > last), "numbers rise");
            *last = Some(entry.publishing_id);
            numbers.push(entry.publishing_id);
            store
                .filter_values
                .extend(entry.filter_value.map(|it| it.to_string()));
            if store.faults.loses.is_some_and(|at| before >= at) {
                store.faults.loses = None;
                continue;
            }
            batch
                .push(
                    entry.publishing_id,
                    entry.filter_value.map(|it| it.0),
                    entry.bytes,
                )
                .unwrap();
        }
        let doubles = store.faults.doubles.is_some_and(|at| before >= at);
        let stream = store.streams.get_mut(name).expect("a stream");
        for _ in 0..1 + u32::from(doubles) {
            let mut builder = ChunkBuilder::new(16);
            assert_eq!(builder.batch(&batch, 0, usize::MAX), batch.len());
            if !builder.is_empty() {
                let bytes = builder.finish(Timestamp(1), 1, stream.next);
                let chunk = Chunk::read(&bytes).unwrap();
                stream.next = chunk.header().next_offset();
                let mut sent = bytes[..HEADER_BYTES].to_vec();
                sent.extend_from_slice(chunk.entries_section());
                stream.chunks.push(sent);
            }
        }
        if doubles {
            store.faults.doubles = None;
        }
        publish_confirm(out, publish.publisher_id, &numbers);
        true
    }

    /// False if the connection is over.
    fn deliver(&mut self, out: &mut Vec<u8>) -> bool {
        let mut store = self.store.lock().unwrap();
        for (id, it) in &mut self.subscriptions {
            let chunks = &store.streams[&it.stream].chunks;
            if store.faults.drops && !chunks.is_empty() {
                store.faults.drops = false;
                return false;
            }
            while it.credit > 0 && it.chunk < chunks.len() {
                let chunk = &chunks[it.chunk];
                Command::Deliver {
                    subscription_id: *id,
                    committed_chunk_id: Some(0),
                    chunk,
                }
                .encode(out);
                it.chunk += 1;
                it.credit -= 1;
            }
        }
        true
    }
}
