//! What leaves a queue with a dead-letter exchange other than by a purge has arrived there; where letters may be lost at most
//! once, unless it was refused there.

use crate::cluster::history::{Gone, Id};
use crate::cluster::ledger::Ledger;
use crate::cluster::terms::DEAD;
use cluster::GroupId;
use queue::DropReason;

pub fn left(ledger: &mut Ledger, group: GroupId, id: Id, how: Gone) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let reason = !matches!(how, Gone::Settled | Gone::Dropped(DropReason::Purged));
    let dies = reason && book.terms.must(|settings| settings.dead_letter.is_some());
    let keeps = book.terms.must(|settings| {
        let to = settings.dead_letter.as_ref();
        to.is_some_and(|to| to.at_least_once)
    });
    let refused = book.known.get(&id).is_some_and(|known| known.letter_refused);
    let arrived = ledger
        .books
        .get(&DEAD)
        .is_some_and(|dead| dead.history.by_id.contains_key(&id));
    if dies && !arrived && (keeps || !refused) {
        let what = format!("{group:?}: {id} left by {how:?}, at least once: {keeps}, refused: {refused}");
        ledger.violated("what dies arrives as a dead letter", what);
    }
}
