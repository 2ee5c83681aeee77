//! In the end everything that came in and has not left is there, once, in its order, and what was confirmed came in.

use crate::cluster::history::{Id, lane_of};
use crate::cluster::ledger::Ledger;
use cluster::GroupId;
use model::{QueueSettings, Seq};
use std::collections::BTreeMap;

/// Everything was taken out of the queue that was there.
pub fn drained(ledger: &mut Ledger, group: GroupId, there: &BTreeMap<Seq, Id>, taken: &[(Seq, Id)]) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let mut wrong = Vec::new();
    for (seq, id) in there {
        // Its time may have come meanwhile.
        let left = book.history.rows.get(seq).is_some_and(|row| row.gone.is_some());
        if !left && !taken.contains(&(*seq, *id)) {
            let confirmed = book.known.get(id).is_some_and(|known| known.confirmed);
            wrong.push((
                "nothing is lost",
                format!("{group:?}: {seq} ({id}), confirmed: {confirmed}"),
            ));
        }
    }
    let mut last: BTreeMap<u64, Seq> = BTreeMap::new();
    let retries = book.terms.may(QueueSettings::waits);
    for (seq, _) in taken {
        let before = last.insert(lane_of(*seq), *seq);
        if let Some(before) = before.filter(|before| before >= seq && !retries) {
            wrong.push((
                "messages leave in order",
                format!("{group:?}: {seq} after {before}"),
            ));
        }
    }
    for (id, _) in book.known.iter().filter(|(_, known)| known.confirmed) {
        let duplicate = book.terms.settings().deduplicates;
        if !duplicate && !book.history.by_id.contains_key(id) {
            wrong.push((
                "nothing is lost",
                format!("{group:?}: {id} is confirmed and never came"),
            ));
        }
    }
    for (invariant, what) in wrong {
        ledger.violated(invariant, what);
    }
}
