//! Those who watch a stream that another node leads and have joined no group yet. Who watches for long without doing so came to
//! publish, because it looked who leads before that was another one.

use model::ConsumerId;
use std::collections::{BTreeMap, BTreeSet};

/// So long, in milliseconds.
const JOINS_WITHIN_MS: u64 = 1_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unjoined {
    /// When each of them has come.
    since: BTreeMap<ConsumerId, u64>,
}

impl Unjoined {
    /// One has come, and says next whether it joins a group.
    pub fn comes(&mut self, reader: ConsumerId, now_ms: u64) {
        self.since.insert(reader, now_ms);
    }

    /// It joins one, or is gone. False if it is none of them.
    pub fn take(&mut self, reader: ConsumerId) -> bool {
        self.since.remove(&reader).is_some()
    }

    /// Those that have not joined one in time.
    pub fn take_late(&mut self, now_ms: u64) -> BTreeSet<ConsumerId> {
        let is_late = |_: &ConsumerId, since: &mut u64| *since + JOINS_WITHIN_MS <= now_ms;
        let late = self.since.extract_if(.., is_late);
        late.map(|(reader, _)| reader).collect()
    }

    /// When [`take_late`](Self::take_late) is to be asked, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub fn wakes_at_ms(&self) -> u64 {
        let first = self.since.values().min();
        first.map_or(u64::MAX, |since| since + JOINS_WITHIN_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_and_joins_no_group_is_late_after_a_second() {
        let mut unjoined = Unjoined::default();
        let [joins, waits, goes] = [1, 2, 3].map(ConsumerId);
        for reader in [joins, waits, goes] {
            unjoined.comes(reader, 5_000);
        }
        assert!(unjoined.take(joins) && unjoined.take(goes));
        assert_eq!(unjoined.wakes_at_ms(), 6_000);
        assert_eq!(unjoined.take_late(5_999), BTreeSet::new());
        assert_eq!(unjoined.take_late(6_000), BTreeSet::from([waits]));
        assert_eq!(
            (unjoined.take_late(9_000), unjoined.wakes_at_ms()),
            (BTreeSet::new(), u64::MAX)
        );
        assert!(!unjoined.take(waits));
    }
}
