//! What comes into a queue was published to it, once, and in the order in which its publisher sent it.

use crate::cluster::history::{Id, lane_of};
use crate::cluster::ledger::Ledger;
use crate::cluster::terms::DEAD;
use cluster::GroupId;
use model::Seq;

pub fn came(ledger: &mut Ledger, group: GroupId, seq: Seq, id: Id) {
    let Some(book) = ledger.books.get_mut(&group) else {
        return;
    };
    let Some(known) = book.known.get(&id) else {
        return ledger.violated("nothing is invented", format!("{id} in {group:?}"));
    };
    if known.refused {
        return ledger.violated("what is refused stays away", format!("{id} in {group:?}"));
    }
    // A dead letter comes again if the queue that it left does not know that it has arrived.
    if group == DEAD {
        return;
    }
    let came = book.history.by_id.get(&id).map_or(0, Vec::len);
    let before = book.last.insert((known.publisher, lane_of(seq)), id);
    let publisher = known.publisher;
    // What is on its way to the dead-letter exchange does not count as there.
    let settings = book.terms.settings();
    let alone = settings.deduplicates && settings.dead_letter.is_none();
    let key = known.said.key.filter(|_| alone);
    let twin = book.history.live().find(|(other, other_id)| {
        let of_other = book.known.get(other_id).and_then(|known| known.said.key);
        *other < seq && key.is_some() && of_other == key
    });
    if came > 1 {
        let what = format!("{id} is {came} times in {group:?}");
        return ledger.violated("nothing is doubled", what);
    }
    if let Some(before) = before.filter(|before| *before > id) {
        let what = format!("{group:?}: {id} of {publisher} comes after {before}");
        return ledger.violated("the order of a publisher is kept", what);
    }
    if let Some((_, twin)) = twin {
        let what = format!("{group:?}: {id} comes while {twin} is there");
        ledger.violated("duplicates are not taken", what);
    }
}
