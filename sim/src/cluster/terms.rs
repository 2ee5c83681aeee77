//! What the replicated queues of a seed may do with messages on their own.

use super::theme::Theme;
use crate::terms::{Said, TENANT};
use cluster::{GroupId, MemberId, Membership, NodeId};
use model::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, RetryDelay, Sorting};
use std::sync::Arc;
use storage::faulty::Random;

/// The queue in which dead letters arrive.
pub const DEAD: GroupId = GroupId(1);

/// A queue that a seed decided about.
#[derive(Debug, Clone)]
pub struct Terms {
    pub settings: QueueSettings,
    /// The nodes that have a copy at the beginning.
    pub nodes: Vec<u32>,
    /// Some consumers get messages that count as settled when they are delivered.
    pub has_no_ack: bool,
}

impl Terms {
    /// The queue for dead letters, which keeps everything.
    pub fn of_the_dead(nodes: Vec<u32>) -> Self {
        let settings = QueueSettings {
            durable: true,
            ..QueueSettings::default()
        };
        Self {
            settings,
            nodes,
            has_no_ack: false,
        }
    }

    /// Decides. A third of all queues are plain: what those promise allows no loss.
    pub fn choose(nodes: Vec<u32>, theme: Theme, random: &mut Random) -> Self {
        let mut terms = Self::of_the_dead(nodes);
        let (is_small, is_aimed) = (theme == Theme::Limits, theme == Theme::Aimed);
        if random.below(3) == 0 && !is_small && !is_aimed {
            return terms;
        }
        terms.has_no_ack = random.below(4) == 0;
        let settings = &mut terms.settings;
        let mut seldom = |one_in: u64| random.below(one_in) == 0;
        let (sorts, limit, limit_bytes, ttl) = (seldom(3), seldom(4), seldom(6), seldom(4));
        let (dies, returns, retries, once) = (seldom(2), seldom(3), seldom(4), seldom(4));
        settings.single_active = seldom(5) || is_aimed && seldom(2);
        if sorts {
            settings.sorting = match random.chance() {
                true => Sorting::Priority(1 + random.below(4) as u8),
                false => Sorting::FairKey(TENANT.into()),
            };
        }
        settings.max_length = (limit || is_small).then(|| 1 + random.below(30));
        settings.max_length_bytes = limit_bytes.then(|| 2_000 + random.below(20_000));
        settings.overflow = match random.below(4) {
            0 | 1 => Overflow::DropHead,
            2 => Overflow::Reject,
            _ => Overflow::RejectAndDeadLetter,
        };
        settings.message_ttl_ms = ttl.then(|| 200 + random.below(4_000));
        settings.delivery_limit = returns.then(|| DeliveryLimit::Returns(random.below(4) as u32));
        settings.retry_delay = (retries || is_aimed).then(|| RetryDelay {
            initial_ms: 1 + random.below(300),
            factor: 1_000 + random.below(2_000) as u32,
            cap_ms: 600,
            jitter: random.below(30) as u8,
        });
        settings.deduplicates = once;
        settings.expires_ms = (random.below(4) == 0).then(|| 300 + random.below(3_000));
        settings.dead_letter = dies.then(|| {
            Arc::new(DeadLetterTo {
                exchange: String::new(),
                routing_key: Some(b"dead".to_vec()),
                at_least_once: false,
            })
        });
        terms
    }

    /// Who the members are at the beginning.
    pub fn members(&self) -> Membership {
        let members: Vec<_> = self.nodes.iter().map(|id| MemberId::first(NodeId(*id))).collect();
        Membership::of(&members)
    }

    /// Whether messages leave in another order than they came.
    pub fn sorts(&self) -> bool {
        self.settings.sorting != Sorting::Arrival
    }

    /// How long a message may be there, in milliseconds.
    pub fn lives_ms(&self, said: &Said) -> Option<u64> {
        self.settings
            .message_ttl_ms
            .into_iter()
            .chain(said.expiration_ms)
            .min()
    }

    /// Whether the queue may be full.
    pub fn has_limit(&self) -> bool {
        self.settings.max_length.is_some() || self.settings.max_length_bytes.is_some()
    }
}
