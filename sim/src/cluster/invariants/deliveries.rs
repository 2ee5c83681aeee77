//! Nobody is given what is not agreed on: a message that a majority does not have, one that is settled, one above the
//! mark of what may have been handed out, another body; and what was delivered before is marked.

use super::{active, counts, hands, waits};
use crate::cluster::clients::body_of;
use crate::cluster::exercised;
use crate::cluster::history::{Id, id_of, lane_of};
use crate::cluster::ledger::{Leadership, Ledger};
use cluster::GroupId;
use model::Seq;
use queue::Delivery;
use std::time::Duration;

/// A leader, which knows as committed what is up to `told`, lets messages go to a client.
pub fn leaves(ledger: &mut Ledger, by: Leadership, told: u64, delivery: &Delivery) {
    for (seq, id, length) in messages(ledger, delivery) {
        check_record(ledger, by, told, seq, id);
        counts::leaves(ledger, by, seq, delivery);
        waits::leaves(ledger, by, seq, delivery);
        check_marks(ledger, by, seq, id, length, delivery.redelivered);
    }
}

/// A client of a node is given messages: which ones.
pub fn arrives(
    ledger: &mut Ledger,
    group: GroupId,
    node: u32,
    to: Receiver,
    delivery: &Delivery,
) -> Vec<(Seq, Id)> {
    let mut given = Vec::new();
    active::served(ledger, group, to);
    for (seq, id, _) in messages(ledger, delivery) {
        ledger.counts.deliveries += 1;
        ledger.note(id ^ seq);
        ledger.tell(|| format!("{group:?} gives {to:?} on {node} {seq}, which is {id}"));
        counts::arrives(ledger, group, to, seq, id, delivery);
        if !to.no_ack {
            hands::given(ledger, group, node, to, (seq, id), delivery);
        }
        let row = ledger
            .books
            .get(&group)
            .and_then(|book| book.history.rows.get(&seq));
        if let Some(row) = row.filter(|row| row.returns > 0).cloned() {
            exercised::came_again(ledger, group, &row);
        }
        given.push((seq, id));
    }
    given
}

/// Who is given something.
#[derive(Debug, Clone, Copy)]
pub struct Receiver {
    /// `None` after a get.
    pub consumer: Option<u64>,
    /// What it is given counts as settled.
    pub no_ack: bool,
    /// Since then it may have been under way.
    pub since: Duration,
}

/// The messages of a delivery: their numbers, which they are, and the lengths of their bodies.
fn messages(ledger: &mut Ledger, delivery: &Delivery) -> Vec<(Seq, Id, usize)> {
    let mut messages = Vec::new();
    for seq in delivery.seqs.iter() {
        let at = (seq - delivery.base) as usize;
        match id_of(&delivery.block, at) {
            Some(id) => {
                let body = delivery.block.message(at).body;
                if body != body_of(id, body.len()) {
                    ledger.violated("bodies stay as they are", format!("{seq}, which is {id}"));
                }
                messages.push((seq, id, body.len()));
            }
            None => ledger.violated("nothing is invented", format!("{seq} without a name")),
        }
    }
    messages
}

fn check_record(ledger: &mut Ledger, by: Leadership, told: u64, seq: Seq, id: Id) {
    let Some(book) = ledger.books.get(&by.group) else {
        return;
    };
    let handed_below = book.history.handed_below.get(&lane_of(seq));
    let is_marked = handed_below.is_some_and(|below| seq < *below);
    let no_ack = book.terms.has_no_ack;
    match book.history.rows.get(&seq) {
        Some(row) if row.id == id => {
            // What counts as settled when it is delivered is settled before it leaves.
            let gone = row.gone.filter(|(index, _)| *index <= told && !no_ack);
            if let Some(gone) = gone {
                let what = format!("{by:?}: {seq} ({id}), gone by {gone:?}");
                ledger.violated("what is settled is delivered no more", what);
            }
        }
        row => {
            let what = format!("{by:?}: {seq} ({id}), on record is {row:?}");
            return ledger.violated("what is delivered is on record", what);
        }
    }
    if !is_marked {
        let what = format!("{by:?}: {seq} ({id})");
        ledger.violated("what may have been handed out is on record", what);
    }
}

fn check_marks(ledger: &mut Ledger, by: Leadership, seq: Seq, id: Id, length: usize, redelivered: bool) {
    let Some(book) = ledger.books.get_mut(&by.group) else {
        return;
    };
    // What a deposed leader gave before it was one may arrive late.
    let before = book
        .delivered_by
        .insert(seq, by)
        .filter(|before| before.term < by.term);
    let Some(known) = book.known.get_mut(&id) else {
        return ledger.violated("nothing is invented", format!("{by:?} delivers {id}"));
    };
    known.delivered += 1;
    if known.length != length {
        ledger.violated("bodies stay as they are", format!("{by:?} delivers {id}"));
    }
    if let Some(before) = before.filter(|_| !redelivered) {
        let what = format!("{by:?} delivers {seq} ({id}), as {before:?} did");
        ledger.violated("what was delivered is marked", what);
    }
}
