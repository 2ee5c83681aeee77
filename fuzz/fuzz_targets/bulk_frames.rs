//! Frames of the bulk lane from a peer that lies: what decodes encodes to the same, and neither the side that asks nor the
//! side that answers panics or takes what it did not ask for.
#![no_main]

use broker::groups::transfer::{
    Answers, Asked, Brought, Fetch, PIECE_BYTES, Said, Standing, Task, read_header,
};
use bytes::Bytes;
use cluster::{GroupId, Mark, NodeId};
use libfuzzer_sys::fuzz_target;
use model::Ranges;
use std::sync::LazyLock;

/// What a peer may ask for: two pieces, made once.
static CONTENTS: LazyLock<Bytes> = LazyLock::new(|| vec![0; 2 * PIECE_BYTES].into());

const PEERS: [NodeId; 2] = [NodeId(2), NodeId(3)];

/// Makes an answer one to this question, so that more of it is looked at than its number.
fn addressed(mut said: Said, question: &Said) -> Said {
    if let Said::WantsContents { number, .. } | Said::WantsBodies { number, .. } = question
        && let Said::Contents { asked, .. }
        | Said::Bodies { asked, .. }
        | Said::Slice { asked, .. }
        | Said::NotNow { asked, .. } = &mut said
    {
        *asked = Asked {
            incarnation: 1,
            number: *number,
        };
    }
    said
}

/// A peer that asks.
fn answer(answers: &mut Answers, said: Said, applied: u64) {
    let here = Standing {
        applied: Some(applied),
        checkpoint: applied / 2,
    };
    match answers.asked(PEERS[1], 1, said, here) {
        Task::ReadContents(from) => {
            let at = Mark { index: 9, term: 1 };
            answers.contents(from, Some((at, CONTENTS.clone())));
        }
        Task::ReadBodies(from, seqs) => drop(answers.bodies(from, Vec::new(), seqs, Ranges::new())),
        Task::Say(..) | Task::Nothing => {}
    }
}

fuzz_target!(|input: &[u8]| {
    let Some((&kind, mut rest)) = input.split_first() else {
        return;
    };
    let _ = read_header(PEERS[0], &Bytes::copy_from_slice(rest));
    let mut fetch = Fetch::new(1);
    let wanted = Ranges::span(1, u64::from(kind >> 1));
    match kind & 1 {
        0 => fetch.want_contents(PEERS.to_vec(), 3),
        _ => fetch.want_bodies(PEERS.to_vec(), 3, &wanted),
    }
    let mut answers = Answers::default();
    while let Some((&length, left)) = rest.split_first() {
        let (bytes, left) = left.split_at(left.len().min(length.into()));
        rest = left;
        let Some(said) = Said::decode(&Bytes::copy_from_slice(bytes)) else {
            fetch.tick();
            continue;
        };
        let (_, bulk) = read_header(PEERS[0], &said.frame(1, GroupId(7))).expect("it was just written");
        assert_eq!(Said::decode(&bulk.said).as_ref(), Some(&said));
        answer(&mut answers, said.clone(), length.into());
        let Some((from, question)) = fetch.ask() else {
            (0..60).for_each(|_| drop(fetch.tick()));
            continue;
        };
        if let Ok(Brought::Bodies(entries)) = fetch.hear(from, addressed(said, &question)) {
            for entry in entries {
                assert!(wanted.contains(entry.head.first) && wanted.contains(entry.head.last()));
                assert!(entry.block().is_some());
            }
        }
    }
});
