//! Once everything is well again there is service within its bound, and all members have the same.

use super::{contents, members};
use crate::cluster::ledger::Ledger;
use crate::cluster::node::Node;
use cluster::{GroupId, MemberId};
use model::Machine;

/// So many ticks after the last trouble each group is led, and all members have everything.
pub const TICKS: u32 = 120;

/// Whether every group is led by one, and all of its members have everything.
pub fn is_well(ledger: &Ledger, nodes: &[Node]) -> bool {
    ledger
        .books
        .keys()
        .all(|group| lag(ledger, nodes, *group).is_none())
}

/// It took too long.
pub fn too_long(ledger: &mut Ledger, nodes: &[Node]) {
    let groups: Vec<GroupId> = ledger.books.keys().copied().collect();
    for group in groups {
        if let Some(what) = lag(ledger, nodes, group) {
            let running = nodes
                .iter()
                .filter_map(|node| Some((node.id, &node.running.as_ref()?.alone)));
            let statuses = running.map(|(id, alone)| {
                let log = &alone.node.log;
                (id, alone.groups.status(group), log.busy_for(), log.failed())
            });
            let statuses: Vec<_> = statuses.collect();
            let what = format!("{group:?} after {TICKS} ticks: {what}; {statuses:?}");
            ledger.violated("what heals serves", what);
        }
    }
}

/// What is missing, if something is.
fn lag(ledger: &Ledger, nodes: &[Node], group: GroupId) -> Option<String> {
    if let Some(node) = members::stranger(ledger, nodes, group) {
        return Some(format!("{node} does not know that it is no member"));
    }
    let (_, members) = ledger.books.get(&group)?.members.last_key_value()?;
    let is_there = |member: MemberId| {
        nodes
            .iter()
            .any(|it| it.me(group) == member && it.copy(group).is_some())
    };
    if members.is_joint() || !members.members().all(is_there) {
        return Some(format!("the members are {members:?}"));
    }
    let last = ledger.books.get(&group)?.history.last();
    let mut leaders = 0;
    for copy in nodes.iter().filter_map(|node| node.copy(group)) {
        leaders += u32::from(copy.queue().leads());
        let applied = copy.queue().applied();
        if applied != Some(last) {
            return Some(format!("somebody has {applied:?} of {last} records"));
        }
    }
    (leaders != 1).then(|| format!("{leaders} leaders"))
}

/// All copies have as many messages as the records say.
pub fn same_contents(ledger: &mut Ledger, nodes: &[Node]) {
    for node in nodes {
        let Some(running) = &node.running else { continue };
        for (group, copy) in &running.copies {
            let Some(book) = ledger.books.get(group) else {
                continue;
            };
            let applied = copy.queue().applied();
            let expected = applied.and_then(|index| book.history.live_at(index));
            let leads = copy.queue().leads();
            let there = copy.queue().inspect(|machine| machine.status().persistent);
            // A leader has decided more than is committed.
            if !leads && there.is_some() && there != expected {
                let what = format!(
                    "{group:?} at {applied:?} on {}: {there:?}, not {expected:?}",
                    node.id
                );
                ledger.violated("all members have the same contents", what);
            }
            if let Some(index) = applied.filter(|_| !leads) {
                contents::compare(ledger, *group, node.id, copy, index);
            }
        }
    }
}
