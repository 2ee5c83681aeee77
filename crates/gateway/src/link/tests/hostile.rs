//! Who is no peer, or one that is broken.

use super::log::{keep, lines};
use super::*;
use protocol::link::{
    Dialled, FrameReader, Greeting, Handshake, LinkNumber, Progress, Received, Refusal, Small, Versions,
    put_small,
};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// A peer by hand: the node that it speaks with thinks it is `name`.
struct Hand {
    stream: TcpStream,
    kept: Vec<u8>,
    reader: FrameReader,
}

fn greeting(name: &str, number: u64) -> Greeting {
    Greeting {
        versions: Versions::SPOKEN,
        cluster: Some(ClusterId([7; 16])),
        name: name.into(),
        incarnation: 1,
        clock_ms: std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64,
        challenge: [5; 32],
        dialled: Some(Dialled {
            lane: Some(Lane::Work),
            number,
            knows: LinkNumber::default(),
        }),
    }
}

fn connect(to: &Node) -> TcpStream {
    let stream = TcpStream::connect(to.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

/// Waits until the other end closes, and says what it said before.
fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut said = Vec::new();
    // Whoever closes with bytes unread resets the connection.
    let _ = stream.read_to_end(&mut said);
    said
}

impl Hand {
    /// Makes a link by hand.
    fn link(to: &Node, greeting: Greeting) -> Result<Self, Refusal> {
        let secret = Secret::new(b"a shared secret").unwrap();
        let mut said = Vec::new();
        let handshake = Handshake::dial(greeting, &to.name, secret, b"", &mut said);
        Self::meet(connect(to), handshake, said).map(|(hand, _)| hand)
    }

    /// Takes the next link for this lane of a node that dials, and whatever it dials meanwhile; says what it dialled.
    fn accept(listener: &TcpListener, name: &str, lane: Lane, others: &mut Vec<Self>) -> (Self, Dialled) {
        loop {
            let (stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let secret = Secret::new(b"a shared secret").unwrap();
            let greeting = Greeting {
                dialled: None,
                ..greeting(name, 0)
            };
            let handshake = Handshake::listen(greeting, secret, b"");
            let (hand, peer) = Self::meet(stream, handshake, Vec::new()).unwrap();
            let dialled = peer.dialled.unwrap();
            if dialled.lane == Some(lane) {
                return (hand, dialled);
            }
            others.push(hand);
        }
    }

    /// Makes a link, and says who is at the other end.
    fn meet(
        mut stream: TcpStream,
        mut handshake: Handshake,
        mut said: Vec<u8>,
    ) -> Result<(Self, Greeting), Refusal> {
        let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            stream.write_all(&std::mem::take(&mut said)).unwrap();
            let count = stream.read(&mut buffer).unwrap();
            assert!(count > 0, "it hung up without a word");
            kept.extend_from_slice(&buffer[..count]);
            let (taken, progress) = handshake.input(&kept, &mut said).map_err(|refused| refused.why)?;
            kept.drain(..taken);
            if progress == Progress::Waits {
                continue;
            }
            if progress == Progress::Proven {
                handshake.welcome(&mut said).unwrap();
                stream.write_all(&said).unwrap();
            }
            let peer = handshake.peer().unwrap().clone();
            let reader = FrameReader::new(1 << 20);
            return Ok((Self { stream, kept, reader }, peer));
        }
    }

    /// The next frame that is no heartbeat.
    fn next(&mut self) -> Option<Received> {
        let mut buffer = [0; 4096];
        loop {
            let (taken, received) = self.reader.read(&self.kept).unwrap();
            self.kept.drain(..taken);
            match received {
                Some(Received::Ping(_)) => {}
                Some(received) => return Some(received),
                None => {
                    let count = self.stream.read(&mut buffer).unwrap_or(0);
                    if count == 0 {
                        return None;
                    }
                    self.kept.extend_from_slice(&buffer[..count]);
                }
            }
        }
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }
}

/// A node with a peer that never dials.
fn alone(name: &str) -> Node {
    let node = Node::start(1, options(name));
    has_a_peer(&node);
    node
}

fn has_a_peer(node: &Node) {
    node.links.set_peers(vec![PeerAddress {
        id: NodeId(2),
        name: format!("{}-hand", node.name),
        host: "127.0.0.1".to_owned(),
        port: 1,
    }]);
}

#[test]
fn what_is_no_greeting_is_cut_off_with_a_line_of_log() {
    keep();
    let node = alone("rubbish@1");
    for rubbish in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"AMQP\0\0\x09\x01"] {
        let mut stream = connect(&node);
        stream.write_all(rubbish).unwrap();
        assert_eq!(rest(&mut stream), b"");
    }
    let mut stream = connect(&node);
    stream.write_all(b"LVRTLINK\x01\xff\xff").unwrap();
    stream.write_all(&[7; 5_000]).unwrap();
    let said = rest(&mut stream);
    assert_eq!(
        said,
        [&b"LVRTLINK\x04\x00\x01"[..], &[Refusal::TooLong.number()]].concat()
    );
    wait("it is logged", || {
        !lines(&["no link with a node at 127.0.0.1: what was said is not the protocol"]).is_empty()
            && !lines(&["no link with a node at 127.0.0.1: something was longer"]).is_empty()
    });
}

#[test]
fn a_peer_of_another_version_is_told_which_ones_are_spoken() {
    keep();
    let node = alone("version@1");
    let newer = Greeting {
        versions: Versions {
            lowest: 2,
            highest: 9,
        },
        ..greeting("version@1-hand", 1)
    };
    assert_eq!(Hand::link(&node, newer).err(), Some(Refusal::TooOld));
    wait("it is logged", || {
        !lines(&["share no version", "1 here, 2 to 9 there"]).is_empty()
    });
}

#[test]
fn a_peer_whose_clock_is_an_hour_away_is_refused() {
    let node = alone("clock@1");
    let mut late = greeting("clock@1-hand", 1);
    late.clock_ms -= 3_700_000;
    assert_eq!(Hand::link(&node, late).err(), Some(Refusal::Clock));
}

#[test]
fn a_later_link_of_a_peer_replaces_its_earlier_one_and_what_comes_over_the_earlier_one_counts_no_more() {
    let node = alone("later@1");
    let name = "later@1-hand";
    let mut first = Hand::link(&node, greeting(name, 1)).unwrap();
    let hello = |bytes: &[u8]| {
        let mut frame = Vec::new();
        protocol::link::put_head(&[Bytes::copy_from_slice(bytes)], &mut frame).unwrap();
        [&frame[..], bytes].concat()
    };
    first.say(&hello(b"one"));
    node.book.until("the first frame", |told| {
        told.contains(&Told::Frame(2, Lane::Work, b"one".as_slice().into()))
    });
    let mut second = Hand::link(&node, greeting(name, 2)).unwrap();
    assert_eq!(first.next(), Some(Received::Goodbye(Some(Refusal::Replaced))));
    // Nobody reads this any more.
    let _ = first.stream.write_all(&hello(b"too late"));
    second.say(&hello(b"two"));
    node.book.until("the second frame", |told| {
        told.contains(&Told::Frame(2, Lane::Work, b"two".as_slice().into()))
    });
    let frame = |bytes: &'static [u8]| Told::Frame(2, Lane::Work, bytes.into());
    let up = Told::Up(2, Lane::Work, 1);
    let expected = [
        up.clone(),
        frame(b"one"),
        Told::Down(2, Lane::Work, true),
        up,
        frame(b"two"),
    ];
    assert_eq!(*node.book.told.lock().unwrap(), expected);
    assert_eq!(Hand::link(&node, greeting(name, 1)).err(), Some(Refusal::Stale));
    let earlier = Greeting {
        incarnation: 0,
        ..greeting(name, 9)
    };
    assert_eq!(Hand::link(&node, earlier).err(), Some(Refusal::Stale));
}

#[test]
fn a_node_says_which_link_of_its_peer_it_had_last_and_believes_what_its_peer_says_of_that() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let name = "crossed@1-hand";
    let node = Node::start(1, options("crossed@1"));
    node.links.set_peers(vec![PeerAddress {
        id: NodeId(2),
        name: name.to_owned(),
        host: "127.0.0.1".to_owned(),
        port: listener.local_addr().unwrap().port(),
    }]);
    let mut others = Vec::new();
    let (mut first, dialled) = Hand::accept(&listener, name, Lane::Work, &mut others);
    assert_eq!(dialled.knows, LinkNumber::default());
    let up = Told::Up(2, Lane::Work, 1);
    node.book.until("it is used", |told| told.contains(&up));
    // Both have dialled at once: what the node has dialled is used.
    assert_eq!(Hand::link(&node, greeting(name, 6)).err(), Some(Refusal::Crossed));
    // The peer had that link, and has it no more.
    let mut knows = greeting(name, 7);
    let known = LinkNumber {
        incarnation: 1,
        number: dialled.number,
    };
    knows.dialled = knows.dialled.map(|dialled| Dialled {
        knows: known,
        ..dialled
    });
    let second = Hand::link(&node, knows).unwrap();
    assert_eq!(first.next(), Some(Received::Goodbye(Some(Refusal::Replaced))));
    drop(second);
    let (_third, dialled) = Hand::accept(&listener, name, Lane::Work, &mut others);
    let known = LinkNumber {
        incarnation: 1,
        number: 7,
    };
    assert_eq!(dialled.knows, known);
}

#[test]
fn a_peer_that_floods_sends_rubbish_or_damages_frames_is_cut_off_with_a_line_of_log() {
    keep();
    let too_long = [1, 0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0];
    let unknown = [99; 9];
    let damaged = [1, 0, 0, 0, 1, 1, 2, 3, 4, 5];
    for (number, bytes, why, line) in [
        (
            1,
            &too_long[..],
            Refusal::TooLong,
            "something was longer than it may be (TooLong(2147483647))",
        ),
        (
            2,
            &unknown[..],
            Refusal::Rubbish,
            "not the protocol of links between nodes (Kind(99))",
        ),
        (
            3,
            &damaged[..],
            Refusal::Damaged,
            "a frame was damaged on its way",
        ),
    ] {
        let name = format!("flood{number}@1");
        let node = alone(&name);
        let peer = format!("{name}-hand");
        let mut hand = Hand::link(&node, greeting(&peer, 1)).unwrap();
        hand.say(bytes);
        assert_eq!(hand.next(), Some(Received::Goodbye(Some(why))));
        assert_eq!(hand.next(), None, "and hung up");
        node.book.until("it is down", |told| {
            told.contains(&Told::Down(2, Lane::Work, false))
        });
        wait("it is logged", || lines(&[&peer, line]).len() == 1);
        assert!(node.book.frames(2, Lane::Work).is_empty());
    }
}

#[test]
fn a_peer_that_asks_for_answers_and_reads_none_costs_no_memory() {
    let node = Node::start(
        1,
        LinkOptions {
            silence: SILENCE,
            ..options("pings@1")
        },
    );
    has_a_peer(&node);
    let mut hand = Hand::link(&node, greeting("pings@1-hand", 1)).unwrap();
    let mut pings = Vec::new();
    (0..10_000).for_each(|stamp| put_small(Small::Ping(stamp), &mut pings));
    // It stops reading what comes; in the end it takes the silence for what it is.
    hand.stream
        .set_write_timeout(Some(Duration::from_millis(100)))
        .unwrap();
    let mut at = 0;
    wait("it is cut off", || {
        at += hand.stream.write(&pings[at % pings.len()..]).unwrap_or(0);
        node.book.count(|told| *told == Told::Down(2, Lane::Work, false)) == 1
    });
    assert!(at < 100_000_000, "{at} bytes were read");
}

#[test]
fn who_proves_nothing_takes_no_more_than_a_few_places_and_not_for_ever() {
    let node = alone("crowd@1");
    let mut guests: Vec<_> = (0..70).map(|_| connect(&node)).collect();
    // Those beyond the bound are closed at once, all others when they have said nothing for too long.
    wait("some are closed", || {
        guests.retain_mut(|guest| {
            guest.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
            !matches!(guest.read(&mut [0; 100]), Ok(0))
        });
        guests.len() <= 64
    });
    guests
        .iter_mut()
        .for_each(|guest| guest.set_read_timeout(Some(LIMIT)).unwrap());
    let said = rest(&mut guests[0]);
    assert_eq!(
        said,
        [&b"LVRTLINK\x04\x00\x01"[..], &[Refusal::Slow.number()]].concat()
    );
    wait("a peer gets through", || {
        Hand::link(&node, greeting("crowd@1-hand", 1)).is_ok()
    });
}
