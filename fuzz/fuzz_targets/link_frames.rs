//! What comes over a link before and after anything is proven: neither end of a handshake panics, welcomes who has not proven
//! the secret or answers without bound, and frames come as they were sent or not at all.
#![no_main]

use bytes::Bytes;
use leveret_fuzz::Source;
use libfuzzer_sys::fuzz_target;
use protocol::link::{
    ClusterId, Dialled, FrameReader, Greeting, Handshake, Lane, LinkNumber, Progress, Secret, Versions,
    put_head,
};

const LIMIT: usize = 300;

fn greeting(name: &str, dials: bool) -> Greeting {
    Greeting {
        versions: Versions::SPOKEN,
        cluster: Some(ClusterId([1; 16])),
        name: name.into(),
        incarnation: 1,
        clock_ms: 1_000_000_000,
        challenge: [u8::from(dials); 32],
        dialled: dials.then_some(Dialled {
            lane: Some(Lane::Consensus),
            number: 1,
            knows: LinkNumber::default(),
        }),
    }
}

/// The end that is fed gets this many bytes at a time; whether it had reached a link or a proof.
fn feed(end: &mut Handshake, input: &[u8], piece: usize) -> bool {
    let (mut kept, mut out) = (Vec::new(), Vec::new());
    for piece in input.chunks(piece) {
        kept.extend_from_slice(piece);
        match end.input(&kept, &mut out) {
            Ok((taken, Progress::Waits)) => drop(kept.drain(..taken)),
            Ok(_) => return true,
            Err(refused) => {
                let _ = refused.to_string();
                break;
            }
        }
    }
    assert!(out.len() < 1_000, "an answer of {} bytes", out.len());
    false
}

/// A handshake of two ends, with some bytes of what they say changed. Whether both were linked.
fn meet(source: &mut Source<'_>) -> bool {
    let secrets = [b"one", b"two"].map(|secret| Secret::new(secret).expect("not empty"));
    let changed = source.byte();
    let secret = |bit: u8| secrets[usize::from(changed >> bit & 1)].clone();
    let mut said = Vec::new();
    let mut dialler = Handshake::dial(greeting("a", true), "b", secret(0), b"", &mut said);
    let mut listener = Handshake::listen(greeting("b", false), secret(1), b"");
    let (mut linked, mut intact) = ([false; 2], secret_is_same(changed));
    for turn in 0..4 {
        let to = (turn + 1) % 2;
        if changed & 4 << turn != 0 {
            let (at, flip) = (usize::from(source.byte()), source.byte());
            if let Some(byte) = said.get_mut(at) {
                *byte ^= flip;
                intact &= flip == 0;
            }
        }
        let end = if to == 0 { &mut dialler } else { &mut listener };
        let mut answer = Vec::new();
        match end.input(&said, &mut answer) {
            Ok((_, Progress::Proven)) => linked[to] = end.welcome(&mut answer).is_ok(),
            Ok((_, Progress::Linked)) => linked[to] = true,
            Ok((_, Progress::Waits)) => {}
            Err(_) => break,
        }
        said = answer;
    }
    assert_eq!(
        linked[0], intact,
        "the end that dials is linked if nothing was changed, and only then"
    );
    linked == [true; 2]
}

fn secret_is_same(changed: u8) -> bool {
    changed & 1 == changed >> 1 & 1
}

fn frames(input: &[u8], piece: usize) {
    let mut reader = FrameReader::new(LIMIT);
    let mut kept = Vec::new();
    for piece in input.chunks(piece) {
        kept.extend_from_slice(piece);
        loop {
            let Ok((taken, received)) = reader.read(&kept) else {
                return;
            };
            kept.drain(..taken);
            assert!(reader.held() <= LIMIT);
            if received.is_none() {
                break;
            }
        }
        assert!(kept.len() < 9, "only the beginning of a head is left");
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, rest)) = input.split_first() else {
        return;
    };
    let piece = 1 + usize::from(kind >> 2);
    let secret = Secret::new(b"secret").expect("not empty");
    match kind & 3 {
        0 => {
            let mut said = Vec::new();
            let mut end = Handshake::dial(greeting("a", true), "b", secret, b"", &mut said);
            assert!(!feed(&mut end, rest, piece), "linked with who knows no secret");
        }
        1 => {
            let mut end = Handshake::listen(greeting("b", false), secret, b"");
            // The prefix and the head of a greeting, so that what is random is read as one.
            let length = (rest.len().min(1_024) as u16).to_be_bytes();
            let input = [&b"LVRTLINK\x01"[..], &length, rest].concat();
            assert!(!feed(&mut end, &input, piece), "proven by who knows no secret");
        }
        2 => drop(meet(&mut Source::new(rest))),
        _ => {
            frames(rest, piece);
            // One that is well-formed, and what is random behind it.
            let mut sent = Vec::new();
            let body = Bytes::copy_from_slice(&rest[..rest.len().min(LIMIT)]);
            put_head(std::slice::from_ref(&body), &mut sent).expect("short");
            sent.extend_from_slice(&body);
            let (_, received) = FrameReader::new(LIMIT).read(&sent).expect("it was just written");
            assert!(received.is_some());
            sent.extend_from_slice(rest);
            frames(&sent, piece);
        }
    }
});
