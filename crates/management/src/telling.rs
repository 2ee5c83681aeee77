//! What an answer tells that goes on.

use crate::observed::{Following, Happenings};
use crate::observed_elsewhere::ObservedElsewhere;
use crate::subscription::Subscription;
use serde_json::{Map, Value};

/// What an answer that goes on tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Telling {
    /// What has changed.
    Changes(Subscription),
    /// What passes through a virtual host.
    Trace(TraceFilter),
    /// What happens on the node.
    Happenings(Happenings),
    /// What the node logs.
    Log(Following),
    /// What happens on another node, or what that one logs.
    Elsewhere(ObservedElsewhere),
}

/// What one listener wants to see pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceFilter {
    /// Where.
    pub vhost: String,
    /// A topic's pattern for `publish.EXCHANGE` and `deliver.QUEUE`.
    pub key: String,
    /// Only what this user sent or got; empty for everybody.
    pub user: String,
    /// Only what came or went by a connection in whose name this text is; empty for all.
    pub connection: String,
    /// How many bytes of a body are told.
    pub truncate: usize,
}

impl TraceFilter {
    /// True if a copy with these headers of the firehose is meant.
    pub fn takes(&self, headers: &Map<String, Value>) -> bool {
        let text = |name: &str| headers.get(name).and_then(Value::as_str).unwrap_or_default();
        (self.user.is_empty() || text("user") == self.user)
            && (self.connection.is_empty() || text("connection").contains(&self.connection))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn copies_are_picked_by_user_and_by_a_part_of_the_connections_name() {
        let wanted = |user: &str, connection: &str| TraceFilter {
            vhost: "/".into(),
            key: "#".into(),
            user: user.into(),
            connection: connection.into(),
            truncate: 0,
        };
        let Value::Object(headers) = json!({"user": "ada", "connection": "127.0.0.1:5000 -> 127.0.0.1:5672"})
        else {
            unreachable!("an object");
        };
        assert!(wanted("", "").takes(&headers));
        assert!(wanted("ada", ":5000").takes(&headers));
        assert!(!wanted("ad", "").takes(&headers), "a user is named whole");
        assert!(!wanted("ada", ":5001").takes(&headers));
        assert!(
            !wanted("ada", "").takes(&Map::new()),
            "the HTTP API has no connection"
        );
    }
}
