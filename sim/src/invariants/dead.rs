//! Dead letters arrive. What is promised: a confirmed persistent message of a durable queue that dies is in its
//! dead-letter queue, or still in its own, whatever happens to the node; it arrives once if nothing does; and nothing
//! arrives that did not die.
//!
//! Purged messages, and those of deleted queues, do not die in this sense, and neither does what was never taken.

use crate::coverage::Act;
use crate::ledger::{Excuse, Id, Ledger, QueueKey};
use broker::Disposal;

/// A dead letter was delivered.
pub fn arrived(ledger: &mut Ledger, dead_queue: QueueKey, id: Id, redelivered: bool) {
    ledger.did(Act::DeadLettered);
    ledger.dead_letters += u64::from(!redelivered);
    let life = ledger.life;
    let Some(name) = ledger.queues.get(&dead_queue).map(|queue| queue.name.clone()) else {
        return;
    };
    let source = ledger.may_die.get(&(name.clone(), id)).copied();
    let queue = source.and_then(|source| ledger.queues.get(&source));
    let original = queue.and_then(|queue| queue.copies.get(&id));
    let mut wrong = match (source, original) {
        (None, _) => Some("never was in a queue with dead letters"),
        // What is not persistent is forgotten at the end of a life, and so are queues.
        (Some(_), None) => None,
        (Some(_), Some(copy)) => {
            let died = copy.was_rejected || copy.may_be_refused || ledger.is_excused(copy);
            (!died).then_some("did not die")
        }
    };
    let (persistent, published_in) =
        original.map_or((true, u32::MAX), |copy| (copy.persistent, copy.published_in));
    let Some(queue) = ledger.queues.get_mut(&dead_queue) else {
        return;
    };
    let copy = queue.copies.entry(id).or_default();
    copy.persistent = persistent;
    copy.arrivals += u32::from(!redelivered);
    if copy.arrivals > 1 && published_in == life {
        wrong = Some("arrives a second time");
    }
    if let Some(wrong) = wrong {
        ledger.violated(
            "what arrives as a dead letter has died",
            format!("{name}: message {id} {wrong}"),
        );
    }
}

/// A consumer was done with a message.
pub fn settled(ledger: &mut Ledger, key: QueueKey, id: Id, disposal: Disposal) {
    let Some(queue) = ledger.queues.get_mut(&key) else {
        return;
    };
    if queue.has_dead_letters {
        ledger.settled_dead.insert((queue.name.clone(), id));
    } else if let Some(copy) = queue.copies.get_mut(&id) {
        copy.rejected = disposal == Disposal::Rejected && queue.terms.dead_letters;
        copy.was_rejected |= copy.rejected;
    }
}

/// All queues were drained: what died must have been found somewhere.
pub fn check(ledger: &mut Ledger) {
    let is_lost = |dead_queue: &String, id: Id, source: QueueKey| {
        let queue = ledger.queues.get(&source)?;
        let copy = queue.copies.get(&id)?;
        let never_taken = matches!(
            copy.excuse,
            Some(Excuse::Duplicate | Excuse::Refused | Excuse::Leaving)
        );
        let is_done = copy.was_purged || (copy.gone_at.is_some() && !copy.rejected);
        let is_safe =
            ledger.found.contains(&(source, id)) || ledger.settled_dead.contains(&(dead_queue.clone(), id));
        let was_promised = copy.confirmed && copy.persistent && queue.terms.survives() && !queue.doomed;
        (was_promised && !is_done && !never_taken && !is_safe)
            .then(|| format!("message {id} of {}", queue.name))
    };
    let lost: Vec<String> = ledger
        .may_die
        .iter()
        .filter_map(|((dead_queue, id), source)| is_lost(dead_queue, *id, *source))
        .collect();
    if !lost.is_empty() {
        ledger.violated("dead letters arrive", format!("nowhere: {lost:?}"));
    }
}
