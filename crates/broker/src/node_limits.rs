//! Limits of the node as a whole, and what passwords must be like: what an operator says in the configuration, not in the catalog.

use catalog::{Pattern, Refusal};
use std::sync::atomic::{AtomicU64, Ordering};

/// How many of something this node takes; `None` is any number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeLimits {
    /// Connections of clients (RabbitMQ: `connection_max`).
    pub connections: Option<u64>,
    /// Channels of all connections together (RabbitMQ: `channel_max_per_node`).
    pub channels: Option<u64>,
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
