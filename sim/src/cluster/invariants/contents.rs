//! All members have the same contents after the same record, apart from where their bytes are and from deadlines that have
//! passed, which each forgets when it likes.

use crate::cluster::ledger::Ledger;
use crate::cluster::node::Copy;
use crate::world::BEGINNING_MS;
use broker::groups::Ends;
use cluster::GroupId;
use model::Seq;
use queue::QueueMachine;
use queue::fifo::{Classic, Expiry, LocalRecord, SenderMark, Snapshot};

/// What a member has, as its records say it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    floor: Seq,
    senders: Vec<SenderMark>,
    lanes: Vec<Snapshot>,
}

/// One record in so many is looked at.
const ONE_IN: u64 = 13;

/// Compares what a member has after one of the records that are looked at with what others had.
pub fn sampled(ledger: &mut Ledger, group: GroupId, node: u32, copy: &Copy) {
    let (queue, sampled) = (copy.queue(), copy.sampled.get());
    let is_sample = |index: &u64| *index != sampled && (index + group.0).is_multiple_of(ONE_IN);
    // A leader has decided more than is committed.
    let index = queue.applied().filter(is_sample).filter(|_| !queue.leads());
    if let Some(index) = index {
        copy.sampled.set(index);
        compare(ledger, group, node, copy, index);
    }
}

/// The same, after this record.
pub fn compare(ledger: &mut Ledger, group: GroupId, node: u32, copy: &Copy, index: u64) {
    let seen = copy.queue().inspect(contents_of).flatten();
    // Whoever looks at a copy turns it.
    let seen = seen.filter(|_| copy.queue().applied() == Some(index));
    let latest = BEGINNING_MS + ledger.latest.as_millis() as u64;
    let Some((seen, book)) = seen.zip(ledger.books.get_mut(&group)) else {
        return;
    };
    let known = book.contents.entry(index).or_insert_with(|| seen.clone());
    let sorts = book.terms.sorts();
    let bare = |contents| without_what_may_differ(contents, latest, sorts);
    let (seen, known) = (bare(seen), bare(known.clone()));
    if seen != known {
        let what = format!("{group:?} after {index}: {node} has {seen:?}, others had {known:?}");
        ledger.violated("all members have the same contents", what);
    }
}

fn contents_of(machine: &Classic<Ends>) -> Option<Contents> {
    match QueueMachine::<Ends>::checkpoint(machine, 0) {
        (LocalRecord::Checkpoint(checkpoint), _) => Some(Contents {
            floor: checkpoint.floor,
            senders: checkpoint.senders,
            lanes: checkpoint.lanes.into_iter().map(|(lane, _)| lane).collect(),
        }),
        (LocalRecord::Store(_), _) => None,
    }
}

/// A queue that sorts drops lanes in which nothing is when it likes; their numbers and marks are in those that stay. Whoever
/// leads a queue in which a message has expired no longer lets it wait for its next try, and that is not on record: everybody
/// else has it expire all the same, whether it waits or not.
fn without_what_may_differ(mut contents: Contents, latest_ms: u64, sorts: bool) -> Contents {
    let is_to_come = |expiry: &Expiry| expiry.at_ms > latest_ms;
    if sorts {
        contents.floor = 0;
        contents.lanes.retain(|lane| !lane.live.is_empty());
    }
    for lane in &mut contents.lanes {
        let (to_come, passed) = std::mem::take(&mut lane.expiries)
            .into_iter()
            .partition(is_to_come);
        lane.expiries = to_come;
        lane.retries = of_what_stays(&lane.retries, &passed);
        lane.retries.retain(is_to_come);
        if sorts {
            (lane.handed_below, lane.settled_high) = (0, 0);
        }
    }
    contents
}

/// When messages are tried again, each by itself, but for those that have expired.
fn of_what_stays(retries: &[Expiry], expired: &[Expiry]) -> Vec<Expiry> {
    let has_expired = |seq: Seq| expired.iter().any(|it| it.first <= seq && seq <= it.last);
    let each = |retry: &Expiry| {
        let at_ms = retry.at_ms;
        (retry.first..=retry.last).map(move |seq| Expiry {
            first: seq,
            last: seq,
            at_ms,
        })
    };
    retries
        .iter()
        .flat_map(each)
        .filter(|retry| !has_expired(retry.first))
        .collect()
}
