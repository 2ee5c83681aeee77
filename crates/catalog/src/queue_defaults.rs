//! What a declaration leaves to its virtual host and to the node: which type of queue it means, and when it means a queue that is
//! there.

use crate::arguments::placing::Locator;
use crate::arguments::{DEAD_LETTER_EXCHANGE, QUEUE_TYPE, kind_of};
use crate::{DeclareQueue, Queue, QueueKind, Vhost};
use model::table::Table;

/// What a node says of queues that are declared on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueDefaults {
    /// `default_queue_type`: what queues are that are declared without a type, where the virtual host says nothing.
    pub kind: QueueKind,
    /// `quorum_queue.property_equivalence.relaxed_checks_on_redeclaration`: a quorum queue may be declared again as a classic
    /// one.
    pub relaxed: bool,
    /// `queue_leader_locator`: where queues are led first, if neither their arguments nor policies say so.
    pub locator: Locator,
}

/// The arguments that a quorum queue and a classic one must have alike where checks are relaxed.
const RELAXED: &[&str] = &[
    DEAD_LETTER_EXCHANGE,
    "x-dead-letter-routing-key",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-single-active-consumer",
    "x-message-ttl",
];

impl DeclareQueue {
    /// Says what the client left to its virtual host and to the node: which kind of queue it means, if it can be of that kind.
    pub fn complete(&mut self, vhost: Option<&Vhost>, defaults: QueueDefaults) {
        if self.passive {
            return;
        }
        let of_vhost = vhost.and_then(|vhost| vhost.metadata().default_queue_type);
        let kind = of_vhost.unwrap_or(defaults.kind);
        let fits = kind.is_compatible(self.durable, self.exclusive, self.auto_delete)
            && (kind.may_be_unnamed() || !self.name.is_empty());
        if kind != QueueKind::default() && fits && is_untyped(&self.arguments) {
            self.arguments.insert(QUEUE_TYPE, kind.name());
        }
        let known = vhost.and_then(|vhost| vhost.queue(&self.name));
        if let Some(known) = known.filter(|known| defaults.relaxed && known.kind == QueueKind::Quorum) {
            self.relax(known);
        }
    }

    /// Who declares a quorum queue again as a classic one means the queue that is there.
    fn relax(&mut self, known: &Queue) {
        if kind_of(&self.arguments) != QueueKind::Classic {
            return;
        }
        let mut arguments = (*known.arguments).clone();
        for name in RELAXED {
            match self.arguments.get(name) {
                Some(value) => arguments.insert(*name, value.clone()),
                None => drop(arguments.remove(name)),
            }
        }
        self.arguments = arguments;
        (self.durable, self.exclusive, self.auto_delete) = (true, false, false);
    }
}

fn is_untyped(arguments: &Table) -> bool {
    let named = arguments.get(QUEUE_TYPE);
    named.is_none_or(|value| value.as_bytes().is_some_and(<[u8]>::is_empty))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Epoch;
    use crate::arguments::check_same_queue;
    use crate::node::{Lifetime, NodeId};
    use std::sync::Arc;

    #[test]
    fn a_declaration_without_a_type_means_the_default_if_it_can() {
        let defaults = QueueDefaults {
            kind: QueueKind::Quorum,
            ..QueueDefaults::default()
        };
        let meant = |name: &str, durable, exclusive, arguments| {
            let mut declare = DeclareQueue {
                name: name.into(),
                durable,
                exclusive,
                arguments,
                ..DeclareQueue::default()
            };
            declare.complete(None, defaults);
            kind_of(&declare.arguments)
        };
        assert_eq!(meant("q", true, false, Table::new()), QueueKind::Quorum);
        assert_eq!(
            meant("q", true, false, Table::new().with("x-queue-type", "")),
            QueueKind::Quorum
        );
        assert_eq!(
            meant("q", true, false, Table::new().with("x-queue-type", "classic")),
            QueueKind::Classic
        );
        assert_eq!(meant("q", true, true, Table::new()), QueueKind::Classic);
        assert_eq!(meant("q", false, false, Table::new()), QueueKind::Classic);
        assert_eq!(meant("", true, false, Table::new()), QueueKind::Classic);
    }

    #[test]
    fn a_quorum_queue_may_be_declared_again_as_a_classic_one_where_checks_are_relaxed() {
        let known = Queue {
            id: model::QueueId(1),
            kind: QueueKind::Quorum,
            vhost: "/".into(),
            name: "q".into(),
            lifetime: Lifetime::Durable,
            home: NodeId::FIRST,
            founders: Arc::default(),
            changed: Arc::default(),
            epoch: Epoch::default(),
            other_arguments: None,
            auto_delete: false,
            arguments: Arc::new(
                Table::new()
                    .with("x-queue-type", "quorum")
                    .with("x-max-length", 5),
            ),
        };
        let again = |arguments: Table| {
            let mut declare = DeclareQueue {
                name: "q".into(),
                arguments,
                ..DeclareQueue::default()
            };
            declare.relax(&known);
            check_same_queue(&known, declare.durable, declare.auto_delete, &declare.arguments).is_ok()
        };
        assert!(again(
            Table::new().with("x-max-length", 5).with("x-queue-mode", "lazy")
        ));
        assert!(!again(Table::new().with("x-max-length", 6)));
        assert!(!again(Table::new()));
    }
}
