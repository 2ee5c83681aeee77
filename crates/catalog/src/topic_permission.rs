//! What a user may publish and bind on one topic exchange, by routing key.

use crate::{Name, Pattern, Refusal, Verb};

/// A user's permission on the routing keys of a topic exchange. Without one every key is permitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPermission {
    /// The user.
    pub user: Name,
    /// The virtual host.
    pub vhost: Name,
    /// The exchange, which need not exist any more.
    pub exchange: Name,
    /// Keys that may be published with, as it was set: with variables.
    pub write: String,
    /// Keys that may be bound.
    pub read: String,
    keys: [Pattern; 2],
}

impl TopicPermission {
    /// Compiles the expressions. `{username}` and `{vhost}` in them are the names of these (RabbitMQ 3.7; its `{client_id}` is
    /// MQTT's).
    ///
    /// # Errors
    /// One of both is no regular expression.
    pub fn new(
        user: Name,
        vhost: Name,
        exchange: Name,
        write: String,
        read: String,
    ) -> Result<Self, Refusal> {
        let expanded =
            |source: &str| Pattern::new(&source.replace("{username}", &user).replace("{vhost}", &vhost));
        let keys = [expanded(&write)?, expanded(&read)?];
        Ok(Self {
            user,
            vhost,
            exchange,
            write,
            read,
            keys,
        })
    }

    /// True if this key may be published with (`Write`) or bound (`Read`).
    pub fn permits(&self, verb: Verb, key: &str) -> bool {
        match verb {
            Verb::Write => self.keys[0].matches(key),
            Verb::Read => self.keys[1].matches(key),
            Verb::Configure => true,
        }
    }
}
