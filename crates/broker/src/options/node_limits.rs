//! Limits of the node as a whole, and what passwords must be like: what an operator says in the configuration, not in
//! the catalog.

use catalog::{Pattern, Refusal, View};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many of something this node takes; `None` is any number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLimits {
    /// Connections of clients (RabbitMQ: `connection_max`).
    pub connections: Option<u64>,
    /// Channels of all connections together (RabbitMQ: `channel_max_per_node`).
    pub channels: Option<u64>,
    /// Consumers of one channel (RabbitMQ: `consumer_max_per_channel`).
    pub consumers: Option<u64>,
    /// Queues of the cluster (RabbitMQ: `cluster_queue_limit`).
    pub queues: Option<u64>,
    /// Exchanges of the cluster, those that every virtual host begins with among them (RabbitMQ: `cluster_exchange_limit`).
    pub exchanges: Option<u64>,
    /// Virtual hosts of the cluster (RabbitMQ: `vhost_max`).
    pub vhosts: Option<u64>,
}

impl NodeLimits {
    /// A queue of this name may be declared: it exists, or there may be one more. Several at once may pass the limit by
    /// a few, as in RabbitMQ.
    ///
    /// # Errors
    /// [`Refusal::ObjectLimit`].
    pub(crate) fn permit_queue(&self, view: &View, vhost: &str, name: &str) -> Result<(), Refusal> {
        let count = || view.vhosts().map(|vhost| vhost.queue_count()).sum();
        match reached(self.queues, count) {
            Some(limit) if view.queue(vhost, name).is_none() => Err(Refusal::ObjectLimit {
                text: format!("cannot declare queue '{name}': queue limit in cluster ({limit}) is reached"),
            }),
            _ => Ok(()),
        }
    }

    /// The same for an exchange.
    ///
    /// # Errors
    /// [`Refusal::ObjectLimit`].
    pub(crate) fn permit_exchange(&self, view: &View, vhost: &str, name: &str) -> Result<(), Refusal> {
        let count = || view.vhosts().map(|vhost| vhost.exchange_count()).sum();
        match reached(self.exchanges, count) {
            Some(limit) if view.exchange(vhost, name).is_none() => Err(Refusal::ObjectLimit {
                text: format!(
                    "cannot declare exchange '{name}' in vhost '{vhost}': exchange limit of {limit} is reached"
                ),
            }),
            _ => Ok(()),
        }
    }

    /// The same for a virtual host.
    ///
    /// # Errors
    /// [`Refusal::ObjectLimit`].
    pub(crate) fn permit_vhost(&self, view: &View, name: &str) -> Result<(), Refusal> {
        match reached(self.vhosts, || view.vhosts().count()) {
            Some(limit) if view.vhost(name).is_none() => Err(Refusal::ObjectLimit {
                text: format!("cannot create vhost '{name}': vhost limit of {limit} is reached"),
            }),
            _ => Ok(()),
        }
    }

    /// A channel with so many consumers may have one more.
    ///
    /// # Errors
    /// [`Refusal::ConsumerLimit`].
    pub(crate) fn permit_consumer(&self, consumers: usize) -> Result<(), Refusal> {
        match reached(self.consumers, || consumers) {
            Some(limit) => Err(Refusal::ConsumerLimit { limit }),
            None => Ok(()),
        }
    }
}

/// The limit, if there is one and there are as many.
fn reached(limit: Option<u64>, count: impl FnOnce() -> usize) -> Option<u64> {
    let limit = limit?;
    (count() as u64 >= limit).then_some(limit)
}

/// What is open on this node.
#[derive(Debug, Default)]
pub struct Occupancy {
    connections: AtomicU64,
    channels: AtomicU64,
}

impl Occupancy {
    /// One connection more, unless there are as many as there may be: then the limit.
    pub fn enter(&self, limits: &NodeLimits) -> Result<(), u64> {
        one_more(&self.connections, limits.connections)
    }

    /// So many connections are open.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Acquire)
    }

    /// One connection less.
    pub fn leave(&self) {
        self.connections.fetch_sub(1, Ordering::AcqRel);
    }

    /// One channel more, unless there are as many as there may be: then the limit.
    pub fn open_channel(&self, limits: &NodeLimits) -> Result<(), u64> {
        one_more(&self.channels, limits.channels)
    }

    /// So many channels less.
    pub fn close_channels(&self, count: u64) {
        self.channels.fetch_sub(count, Ordering::AcqRel);
    }
}

fn one_more(open: &AtomicU64, limit: Option<u64>) -> Result<(), u64> {
    let before = open.fetch_add(1, Ordering::AcqRel);
    match limit.filter(|limit| before >= *limit) {
        None => Ok(()),
        Some(limit) => {
            open.fetch_sub(1, Ordering::AcqRel);
            Err(limit)
        }
    }
}

/// What a new password must be like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CredentialValidator {
    /// Anything.
    #[default]
    AcceptEverything,
    /// So many characters long at least.
    MinimumLength(usize),
    /// A match of this regular expression.
    Expression(String),
}

impl CredentialValidator {
    /// Looks at a password that somebody chose.
    ///
    /// # Errors
    /// [`Refusal::WeakPassword`], in RabbitMQ's words.
    pub fn check(&self, password: &[u8]) -> Result<(), Refusal> {
        let text = String::from_utf8_lossy(password);
        let reason = match self {
            Self::AcceptEverything => return Ok(()),
            Self::MinimumLength(least) if text.chars().count() >= *least => return Ok(()),
            Self::MinimumLength(least) => format!("minimum required password length is {least}"),
            Self::Expression(expression) if Pattern::new(expression)?.matches(&text) => return Ok(()),
            Self::Expression(_) => "provided password does not match the validator regular expression".into(),
        };
        Err(Refusal::WeakPassword { reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_come_in_than_there_is_room_for() {
        let limits = NodeLimits {
            connections: Some(2),
            channels: Some(1),
            ..NodeLimits::default()
        };
        let occupancy = Occupancy::default();
        assert_eq!(
            (occupancy.enter(&limits), occupancy.enter(&limits)),
            (Ok(()), Ok(()))
        );
        assert_eq!(occupancy.enter(&limits), Err(2));
        occupancy.leave();
        assert_eq!(occupancy.enter(&limits), Ok(()));
        assert_eq!(occupancy.open_channel(&limits), Ok(()));
        assert_eq!(occupancy.open_channel(&limits), Err(1));
        occupancy.close_channels(1);
        assert_eq!(occupancy.open_channel(&limits), Ok(()));
        assert_eq!(occupancy.enter(&NodeLimits::default()), Ok(()));
    }

    #[test]
    fn a_channel_has_no_more_consumers_than_it_may_have() {
        let limits = NodeLimits {
            consumers: Some(2),
            ..NodeLimits::default()
        };
        assert_eq!(limits.permit_consumer(1), Ok(()));
        let refused = limits.permit_consumer(2).map_err(|refusal| refusal.to_string());
        assert_eq!(
            refused,
            Err("reached maximum (2) of consumers per channel".into())
        );
        assert_eq!(NodeLimits::default().permit_consumer(1_000), Ok(()));
    }

    #[test]
    fn passwords_are_looked_at_before_they_are_taken() {
        let said = |validator: CredentialValidator, password: &str| {
            validator
                .check(password.as_bytes())
                .map_err(|refusal| refusal.to_string())
        };
        let length = || CredentialValidator::MinimumLength(4);
        assert_eq!(said(length(), "äöüß"), Ok(()));
        assert_eq!(
            said(length(), "abc"),
            Err("minimum required password length is 4".into())
        );
        let expression = || CredentialValidator::Expression("^[a-z]+[0-9]$".into());
        assert_eq!(said(expression(), "abc1"), Ok(()));
        assert!(said(expression(), "abc").unwrap_err().contains("does not match"));
        assert_eq!(said(CredentialValidator::AcceptEverything, ""), Ok(()));
    }
}
