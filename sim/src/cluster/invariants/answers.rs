//! What a publisher is told is so, on record, before it is told; and it is told once.

use crate::cluster::history::Id;
use crate::cluster::ledger::Ledger;
use cluster::GroupId;
use model::Ranges;

/// A queue has confirmed these.
pub fn confirmed(ledger: &mut Ledger, group: GroupId, ids: &Ranges) {
    for id in ids.iter() {
        ledger.note(id);
        ledger.counts.confirms += 1;
        if !is_on_record(ledger, group, id) {
            let what = format!("{id} in {group:?}");
            ledger.violated("what is confirmed is on record", what);
        }
        answered(ledger, group, id, true);
    }
}

/// A queue has refused these.
pub fn refused(ledger: &mut Ledger, group: GroupId, ids: &Ranges) {
    for id in ids.iter() {
        ledger.note(!id);
        ledger.counts.refusals += 1;
        let Some(book) = ledger.books.get(&group) else {
            return;
        };
        let came = book.history.by_id.contains_key(&id);
        if came || !book.terms.has_limit() {
            let what = format!("{id} in {group:?}, which has it: {came}");
            ledger.violated("what is refused stays away", what);
        }
        answered(ledger, group, id, false);
    }
}

/// The message came in, or one like it was there.
fn is_on_record(ledger: &Ledger, group: GroupId, id: Id) -> bool {
    let Some(book) = ledger.books.get(&group) else {
        return false;
    };
    let came = |id| book.history.by_id.contains_key(id);
    let key = book.known.get(&id).and_then(|known| known.said.key);
    let key = key.filter(|_| book.terms.settings().deduplicates);
    let twins = book
        .known
        .iter()
        .filter(|(_, known)| key.is_some() && known.said.key == key);
    came(&id) || twins.into_iter().any(|(twin, _)| came(twin))
}

/// Nobody could be reached, so the publisher is told that these are refused.
pub fn given_up(ledger: &mut Ledger, group: GroupId, ids: &Ranges) {
    let known = ledger.books.get_mut(&group).map(|book| &mut book.known);
    for (_, known) in known.into_iter().flatten().filter(|(id, _)| ids.contains(**id)) {
        known.given_up = true;
    }
}

fn answered(ledger: &mut Ledger, group: GroupId, id: Id, taken: bool) {
    let Some(known) = ledger
        .books
        .get_mut(&group)
        .and_then(|book| book.known.get_mut(&id))
    else {
        return ledger.violated("nothing is invented", format!("an answer about {id}"));
    };
    let before = (known.confirmed, known.refused);
    match taken {
        true => known.confirmed = true,
        false => known.refused = true,
    }
    let sent = known.sent;
    if before != (false, false) && sent == 1 {
        let what = format!("{id} in {group:?}: {before:?}, and now {taken}");
        ledger.violated("a publish is answered once", what);
    }
}
