//! The pages: everything added up, everything by object, or the families that are asked for.

use super::collect::Collector;
use crate::query::Query;
use broker::Broker;

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageQuery {
    /// `aggregated`, `per-object`, `detailed` or `memory-breakdown`.
    pub endpoint: Endpoint,
    /// The families; all if there are none.
    pub families: Vec<String>,
    /// The virtual hosts; all if there are none.
    pub vhosts: Vec<String>,
    /// The queues; all if there are none.
    pub queues: Vec<String>,
}

/// How much is told of single objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Endpoint {
    /// Sums.
    #[default]
    Aggregated,
    /// Each queue, channel and connection.
    PerObject,
    /// The same, of some families, under names of their own.
    Detailed,
    /// What the memory is used for, and nothing else.
    Memory,
}

impl Endpoint {
    /// RabbitMQ's name, as `rabbitmq_identity_info` has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aggregated => "aggregated",
            Self::PerObject => "per-object",
            Self::Detailed => "detailed",
            Self::Memory => "memory-breakdown",
        }
    }
}

impl PageQuery {
    /// By what follows the page's own path, and query; `None` if there is no such page.
    pub fn of(path: &str, query: &Query, per_object: bool) -> Option<Self> {
        let endpoint = match path {
            "" | "/" if per_object => Endpoint::PerObject,
            "" | "/" => Endpoint::Aggregated,
            "/per-object" => Endpoint::PerObject,
            "/detailed" => Endpoint::Detailed,
            "/memory-breakdown" => Endpoint::Memory,
            _ => return None,
        };
        let all = |name: &str| query.all(name).map(str::to_owned).collect();
        Some(match endpoint {
            Endpoint::Detailed => Self {
                endpoint,
                families: all("family"),
                vhosts: all("vhost"),
                queues: all("queue"),
            },
            _ => Self {
                endpoint,
                ..Self::default()
            },
        })
    }

    /// True if a family is asked for. RabbitMQ's detailed page has none that nobody named.
    pub fn has(&self, family: &str) -> bool {
        self.endpoint != Endpoint::Detailed || self.families.iter().any(|known| known == family)
    }

    /// True if objects of a virtual host are asked for.
    pub fn has_vhost(&self, vhost: &str) -> bool {
        self.vhosts.is_empty() || self.vhosts.iter().any(|known| known == vhost)
    }

    /// True if a queue is asked for.
    pub fn has_queue(&self, vhost: &str, queue: &str) -> bool {
        self.has_vhost(vhost) && (self.queues.is_empty() || self.queues.iter().any(|known| known == queue))
    }
}

/// Writes a page.
pub fn write(broker: &Broker, node: &super::Identity, wanted: &PageQuery, limit: usize) -> Vec<u8> {
    let members = node.members.as_ref().map(|members| (members.list)());
    let mut collector = Collector::new(broker, wanted, limit, members.unwrap_or_default());
    collector.identity(node);
    if wanted.endpoint == Endpoint::Memory {
        collector.memory();
        return collector.page.into_bytes();
    }
    collector.node();
    if wanted.endpoint == Endpoint::Aggregated {
        collector.sums();
        collector.most_of_members();
    } else {
        collector.queues();
        collector.members_of_queues();
        collector.connections();
        collector.channels();
        collector.exchanges();
        collector.left_out();
    }
    if wanted.endpoint == Endpoint::Detailed {
        collector.cluster();
        collector.bindings();
    }
    collector.page.into_bytes()
}
