//! What leaves a queue with a dead-letter exchange other than by a purge has arrived there.

use crate::cluster::history::{Gone, Id};
use crate::cluster::ledger::Ledger;
use crate::cluster::terms::DEAD;
use cluster::GroupId;
use queue::DropReason;

pub fn left(ledger: &mut Ledger, group: GroupId, id: Id, how: Gone) {
    let dies = ledger.books.get(&group).is_some_and(|book| {
        let reason = !matches!(how, Gone::Settled | Gone::Dropped(DropReason::Purged));
        reason && book.terms.settings.dead_letter.is_some()
    });
    let arrived = |ledger: &Ledger| {
        let dead = ledger.books.get(&DEAD);
        dead.is_some_and(|dead| dead.history.by_id.contains_key(&id))
    };
    if dies && !arrived(ledger) {
        let what = format!("{group:?}: {id} left by {how:?}");
        ledger.violated("what dies arrives as a dead letter", what);
    }
}
