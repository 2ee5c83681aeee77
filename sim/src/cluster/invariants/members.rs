//! Who the members are is agreed on as the records are, and whoever is none any more hears of it.

use crate::cluster::ledger::Ledger;
use crate::cluster::node::Node;
use cluster::{GroupId, MemberId, Membership};

/// A member tells who the members are from a record on.
pub fn changed(ledger: &mut Ledger, group: GroupId, index: u64, members: Membership) {
    let Some(book) = ledger.books.get_mut(&group) else {
        return;
    };
    let first = book.members.entry(index).or_insert_with(|| members.clone());
    if *first != members {
        let what = format!("{group:?} from {index} on: {first:?}, or {members:?}");
        ledger.violated("all members have the same records", what);
    }
}

/// In the end it is known who the members were after each record: one change ended before the next one began, and each moved one
/// voter or passed through both majorities.
pub fn ended(ledger: &mut Ledger) {
    let mut wrong = Vec::new();
    for (group, book) in &ledger.books {
        let all: Vec<_> = book.members.iter().collect();
        for pair in all.windows(2) {
            let ((_, before), (index, after)) = (pair[0], pair[1]);
            let is_right = match (before.is_joint(), after.is_joint()) {
                (false, true) => after.outgoing == before.voters,
                (true, false) => after.voters == before.voters,
                (true, true) => before == after,
                (false, false) => moved(before, after) <= 1,
            };
            if !is_right {
                wrong.push(format!("{group:?}, at {index}: {before:?}, then {after:?}"));
            }
        }
    }
    for what in wrong {
        ledger.violated("one change of members follows another", what);
    }
}

/// How many voters came or went.
fn moved(before: &Membership, after: &Membership) -> usize {
    let lacking = |of: &Membership, other: &Membership| {
        let lacks = |member: &&MemberId| !other.voters.contains(member);
        of.voters.iter().filter(lacks).count()
    };
    lacking(before, after) + lacking(after, before)
}

/// A copy of somebody who is no member, if there is one.
pub fn stranger(ledger: &Ledger, nodes: &[Node], group: GroupId) -> Option<u32> {
    let (_, members) = ledger.books.get(&group)?.members.last_key_value()?;
    let is_member = |node: &Node| members.members().any(|member| member == node.me(group));
    let copies = nodes.iter().filter(|node| node.copy(group).is_some());
    copies.filter(|node| !is_member(node)).map(|node| node.id).next()
}
