//! Who the members are is agreed on as the records are, and whoever is none any more hears of it.

use crate::cluster::ledger::Ledger;
use crate::cluster::node::Node;
use cluster::{GroupId, Membership};

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

/// A copy of somebody who is no member, if there is one.
pub fn stranger(ledger: &Ledger, nodes: &[Node], group: GroupId) -> Option<u32> {
    let (_, members) = ledger.books.get(&group)?.members.last_key_value()?;
    let is_member = |node: &Node| members.members().any(|member| member == node.me());
    let copies = nodes.iter().filter(|node| node.copy(group).is_some());
    copies.filter(|node| !is_member(node)).map(|node| node.id).next()
}
