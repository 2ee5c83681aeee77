//! A term has one leader.

use crate::cluster::ledger::Ledger;
use cluster::{GroupId, MemberId};

pub fn leads(ledger: &mut Ledger, group: GroupId, term: u64, member: MemberId) {
    let now = ledger.now;
    ledger.elected.entry((group, term)).or_insert(now);
    let first = *ledger.leaders.entry((group, term)).or_insert(member);
    if first != member {
        let what = format!("{group:?}, term {term}: {first} and {member}");
        ledger.violated("a term has one leader", what);
    }
}
