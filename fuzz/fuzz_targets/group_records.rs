//! A group's records in a log that an enemy wrote: a member opens or is refused, and one that opens can be turned until it leads.
#![no_main]

use bytes::Bytes;
use cluster::{GroupId, Groups, Mark, MemberId, Membership, NodeId, Recovered, Settings};
use libfuzzer_sys::fuzz_target;

const GROUP: GroupId = GroupId(1);

/// A record: raw bytes, or an entry whose index and term are near those of the last one, so that more of them pass.
fn record(member: &mut Recovered, last: &mut (u64, u64), rest: &mut &[u8]) -> Option<()> {
    let ([kind, length], left) = rest.split_first_chunk::<2>()?;
    let (bytes, left) = left.split_at(left.len().min((*length).into()));
    *rest = left;
    match kind % 4 {
        0 => drop(member.entry(&Bytes::copy_from_slice(bytes))),
        1 => drop(member.promise(bytes)),
        2 => {
            let mut promise = Vec::new();
            for number in [last.0, u64::from(kind >> 4), u64::from(*length)] {
                promise.extend(number.to_le_bytes());
            }
            let _ = member.promise(&promise);
        }
        _ => {
            let (term, index) = (
                last.0 + u64::from(kind >> 6),
                last.1 + 1 - u64::from(kind >> 4 & 1),
            );
            let mut payload = [term.to_le_bytes(), index.to_le_bytes()].concat();
            payload.push(kind >> 2 & 1);
            payload.extend_from_slice(bytes);
            if member.entry(&payload.into()).is_ok() {
                *last = (term, index);
            }
        }
    }
    Some(())
}

fuzz_target!(|input: &[u8]| {
    let Some((&begin, mut rest)) = input.split_first() else {
        return;
    };
    let me = MemberId::first(NodeId(1));
    let base = Mark {
        index: u64::from(begin >> 4),
        term: u64::from(begin >> 5),
    };
    let applied = base.index + u64::from(begin & 7);
    let mut member = Recovered::at(me, base, applied, Membership::of(&[me]));
    let mut last = (base.term, base.index);
    while record(&mut member, &mut last, &mut rest).is_some() {}
    let mut groups = Groups::new(NodeId(1), 1, Settings::default());
    if groups.open(GROUP, member).is_err() {
        return;
    }
    for _ in 0..40 {
        groups.tick();
        let turn = groups.turn();
        groups.synced(turn.number);
        let _ = groups.propose(GROUP, Bytes::from_static(b"record"));
    }
});
