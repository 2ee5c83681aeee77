//! What arguments and policies say of where a queue is to be.

use super::table::{LEADER_LOCATOR, TARGET_SIZE};
use crate::kinds::QueueKind;
use model::table::{Table, Value};

/// Where a new queue is led first, or lives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Locator {
    /// On the node that declares it.
    #[default]
    ClientLocal,
    /// On the node that has the fewest of its kind.
    Balanced,
}

impl Locator {
    /// By RabbitMQ's words, of which the older ones all mean the same.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "client-local" => Some(Self::ClientLocal),
            "balanced" | "random" | "least-leaders" | "min-masters" => Some(Self::Balanced),
            _ => None,
        }
    }

    /// RabbitMQ's word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClientLocal => "client-local",
            Self::Balanced => "balanced",
        }
    }
}

/// Where a new queue is to be, if anybody says so. As in RabbitMQ the policy's word counts if both say something.
pub fn locator(arguments: &Table, policy: Option<&Table>) -> Option<Locator> {
    let (name, key) = LEADER_LOCATOR;
    let said = policy
        .and_then(|policy| policy.get(key))
        .or_else(|| arguments.get(name));
    Locator::from_name(said?.as_str()?)
}

/// How many members a quorum queue is to have in the long run, if anybody says so: the higher number counts, as in RabbitMQ.
pub fn target_size(kind: QueueKind, arguments: &Table, policy: Option<&Table>) -> Option<usize> {
    let (name, key) = TARGET_SIZE;
    let both = [arguments.get(name), policy.and_then(|policy| policy.get(key))];
    let numbers = both.into_iter().flatten().filter_map(Value::as_integer);
    let highest = numbers.max().filter(|_| kind == QueueKind::Quorum)?;
    usize::try_from(highest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_says_where_a_queue_is_to_be_and_all_old_words_mean_that_it_is_spread() {
        let said = Table::new().with("x-queue-leader-locator", "client-local");
        let policy = Table::new().with("queue-leader-locator", "least-leaders");
        assert_eq!(locator(&said, None), Some(Locator::ClientLocal));
        assert_eq!(locator(&said, Some(&policy)), Some(Locator::Balanced));
        assert_eq!(locator(&Table::new(), None), None);
        let strange = Table::new().with("x-queue-leader-locator", "elsewhere");
        assert_eq!(locator(&strange, None), None);
    }

    #[test]
    fn of_two_sizes_the_higher_one_counts_and_only_for_quorum_queues() {
        let said = Table::new().with("x-quorum-target-group-size", 3);
        let policy = Table::new().with("target-group-size", 5);
        let of = |kind, policy| target_size(kind, &said, policy);
        assert_eq!(of(QueueKind::Quorum, None), Some(3));
        assert_eq!(of(QueueKind::Quorum, Some(&policy)), Some(5));
        assert_eq!(of(QueueKind::Classic, Some(&policy)), None);
        assert_eq!(target_size(QueueKind::Quorum, &Table::new(), None), None);
    }
}
