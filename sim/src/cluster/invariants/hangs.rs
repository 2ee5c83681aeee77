//! Who waits for its disk does not lead for long: others take over whose disks answer.

use crate::cluster::ledger::Ledger;
use crate::cluster::node::Node;
use std::time::Duration;

/// So long a disk may hang until nothing is led there.
const BOUND: Duration = Duration::from_secs(5);

/// Looks at all nodes, if all of them were heard of all the time; `is_calm` says whether the network loses nothing.
pub fn lead_nothing(ledger: &mut Ledger, nodes: &[Node], is_calm: bool) {
    let since = ledger.now.saturating_sub(BOUND);
    let is_well = |node: &Node| {
        let answers = node.hangs_for().is_zero() && !node.log_failed();
        node.goes_on() && answers && ledger.is_well_since(node.id, since)
    };
    let hanging = nodes.iter().find(|node| node.hangs_for() > BOUND);
    let Some(hanging) = hanging.filter(|node| ledger.is_well_since(node.id, since)) else {
        return;
    };
    if !is_calm || !nodes.iter().all(|node| node.id == hanging.id || is_well(node)) {
        return;
    }
    let mut wrong = Vec::new();
    for (group, book) in &ledger.books {
        let members = book.members.last_key_value().map(|(_, members)| members);
        let others = members.is_some_and(|it| !it.is_joint() && it.voters.len() > 2);
        if others && hanging.leads(*group).is_some() {
            wrong.push(format!(
                "{group:?} on {} for {:?}",
                hanging.id,
                hanging.hangs_for()
            ));
        }
    }
    for what in wrong {
        ledger.violated("a disk that hangs leads nothing", what);
    }
}
