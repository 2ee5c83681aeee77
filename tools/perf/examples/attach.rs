//! How long it takes until the first chunk comes when a reader begins at a time in a stream, in microseconds:
//! `cargo run --release -p leveret-perf --example attach -- HOST:PORT STREAM [TIMES]`, as guest.
//!
//! A reader that asks for one chunk is made again and again over one connection, at the beginning, at random times and at random
//! offsets. What counts is from the request until the whole chunk is there; that it is the right one is looked at, too.

#![allow(clippy::unwrap_used, reason = "a measurement that can't go on has failed")]

use model::chunk::{HEADER_BYTES, Header};
use protocol::stream::request::{
    Open, PeerProperties, SaslAuthenticate, SaslHandshake, Subscribe, Unsubscribe,
};
use protocol::stream::{Command, ListBuf, OffsetSpec, Opaque, Request, ResponseCode, Trailing, next_frame};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

/// Of a frame, in bytes.
const LARGEST: u32 = u32::MAX;
const SUBSCRIPTION: u8 = 1;

struct Client {
    socket: TcpStream,
    unread: Vec<u8>,
    correlation: u32,
}

impl Client {
    fn open(place: &str) -> Self {
        let socket = TcpStream::connect(place).unwrap();
        socket.set_nodelay(true).unwrap();
        let mut client = Self {
            socket,
            unread: Vec::new(),
            correlation: 0,
        };
        let nothing = ListBuf::of::<protocol::stream::Property<'_>>([]);
        client.ask(PeerProperties {
            properties: nothing.as_list(),
        });
        client.ask(SaslHandshake {});
        client.ask(SaslAuthenticate {
            mechanism: "PLAIN".into(),
            response: Opaque(b"\0guest\0guest"),
        });
        let limits = |command: &Command<'_>| match *command {
            Command::Tune { frame_max, .. } => Some(frame_max),
            _ => None,
        };
        let frame_max = client.next(limits);
        client.say(&Command::Tune {
            frame_max,
            heartbeat_s: 0,
        });
        client.ask(Open {
            virtual_host: "/".into(),
        });
        client
    }

    fn say(&mut self, command: &Command<'_>) {
        let mut bytes = Vec::new();
        command.encode(&mut bytes);
        self.socket.write_all(&bytes).unwrap();
    }

    /// What the next frame that is wanted says; others are passed over.
    fn next<T>(&mut self, wanted: impl Fn(&Command<'_>) -> Option<T>) -> T {
        let mut room = vec![0; 1 << 20];
        loop {
            while let Some((frame, length)) = next_frame(&self.unread, LARGEST).unwrap() {
                let found = wanted(&Command::decode(&frame).unwrap());
                self.unread.drain(..length);
                if let Some(found) = found {
                    return found;
                }
            }
            let read = self.socket.read(&mut room).unwrap();
            assert!(read > 0, "the broker has closed the connection");
            self.unread.extend_from_slice(&room[..read]);
        }
    }

    fn ask<'r>(&mut self, request: impl Into<Request<'r>>) {
        self.correlation += 1;
        let correlation_id = self.correlation;
        self.say(&Command::Request {
            correlation_id,
            request: request.into(),
        });
        let code = self.next(|command| match command {
            Command::Answer {
                correlation_id: to,
                answer,
            } if *to == correlation_id => Some(answer.code),
            _ => None,
        });
        assert_eq!(code, ResponseCode::Ok);
    }

    /// The head of the chunk that a reader gets first, and after how many microseconds it was there.
    fn first(&mut self, stream: &str, from: OffsetSpec) -> (Header, f64) {
        let nothing = ListBuf::of::<protocol::stream::Property<'_>>([]);
        self.correlation += 1;
        let begun = Instant::now();
        self.say(&Command::Request {
            correlation_id: self.correlation,
            request: Subscribe {
                subscription_id: SUBSCRIPTION,
                stream: stream.into(),
                from,
                credit: 1,
                properties: Trailing(nothing.as_list()),
            }
            .into(),
        });
        let header = self.next(|command| match command {
            Command::Deliver { chunk, .. } => {
                Some(Header::read(chunk.first_chunk::<HEADER_BYTES>().unwrap()).unwrap())
            }
            Command::Answer { answer, .. } => {
                assert_eq!(answer.code, ResponseCode::Ok);
                None
            }
            _ => None,
        });
        let took = begun.elapsed();
        self.ask(Unsubscribe {
            subscription_id: SUBSCRIPTION,
        });
        (header, took.as_secs_f64() * 1e6)
    }
}

fn tell(name: &str, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{name}: p50 {:.0} µs, p99 {:.0} µs, max {:.0} µs ({} times)",
        at(0.5),
        at(0.99),
        at(1.0),
        times.len()
    );
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (Some(place), Some(stream)) = (words.first(), words.get(1)) else {
        eprintln!("attach HOST:PORT STREAM [TIMES]");
        std::process::exit(2);
    };
    let times: usize = words.get(2).map_or(200, |it| it.parse().unwrap());
    let mut client = Client::open(place);
    let (begin, first) = client.first(stream, OffsetSpec::First);
    let (end, last) = client.first(stream, OffsetSpec::Last);
    println!(
        "{} messages in {:.1} s; first chunk {first:.0} µs, last chunk {last:.0} µs",
        end.next_offset() - begin.first_offset,
        (end.timestamp.0 - begin.timestamp.0) as f64 / 1e3
    );
    let at_times = (0..times).map(|_| {
        let wanted = fastrand::u64(begin.timestamp.0..=end.timestamp.0);
        let (chunk, took) = client.first(stream, OffsetSpec::Timestamp(wanted.cast_signed()));
        assert!(chunk.timestamp.0 >= wanted);
        took
    });
    tell("at a time", at_times.collect());
    let at_offsets = (0..times).map(|_| {
        let wanted = fastrand::u64(begin.first_offset..end.next_offset());
        let (chunk, took) = client.first(stream, OffsetSpec::Offset(wanted));
        assert!((chunk.first_offset..chunk.next_offset()).contains(&wanted));
        took
    });
    tell("at an offset", at_offsets.collect());
}
