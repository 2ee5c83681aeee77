//! The events of connections, channels and consumers: RabbitMQ's names and details. What RabbitMQ tells of Erlang's processes,
//! which only serves to find what belongs together, is a number here.

use super::{Channel, Connection, Consumer};
use crate::events::Happening;

impl Connection {
    pub(crate) fn opened(&self) -> Happening {
        let opened = self
            .about("connection.created")
            .with("vhost", &*self.vhost)
            .with("user", &*self.user)
            .with("user_who_performed_action", &*self.user)
            .with("protocol", self.protocol.name)
            .with("auth_mechanism", self.mechanism)
            .with("host", self.host())
            .with("port", i64::from(self.local.port()))
            .with("peer_host", self.peer_host())
            .with("peer_port", i64::from(self.peer.port()));
        let agreed = self.agreed.iter();
        agreed
            .fold(opened, |opened, (name, value)| {
                opened.with(name, i64::from(*value))
            })
            .with(
                "connected_at",
                i64::try_from(self.connected_at_ms).unwrap_or(i64::MAX),
            )
            .with("type", "network")
    }

    pub(crate) fn closed(&self) -> Happening {
        self.about("connection.closed")
    }

    fn about(&self, key: &'static str) -> Happening {
        Happening::new(key)
            .with("pid", self.id.to_string())
            .with("name", self.name.as_str())
            .with("client_properties", self.client_properties())
    }

    fn channel_pid(&self, channel: u16) -> String {
        format!("{}.{channel}", self.id)
    }
}

impl Channel {
    pub(super) fn opened(&self, connection: &Connection) -> Happening {
        Happening::new("channel.created")
            .with("pid", connection.channel_pid(self.number))
            .with("name", format!("{} ({})", connection.name, self.number))
            .with("connection", connection.id.to_string())
            .with("number", i64::from(self.number))
            .with("user", &*connection.user)
            .with("vhost", &*connection.vhost)
            .with("user_who_performed_action", &*connection.user)
    }

    pub(super) fn closed(&self, connection: &Connection) -> Happening {
        Happening::new("channel.closed")
            .with("pid", connection.channel_pid(self.number))
            .with("consumer_count", self.consumer_count() as i64)
            .with("user_who_performed_action", &*connection.user)
    }
}

impl Consumer {
    pub(super) fn started(&self) -> Happening {
        self.about("consumer.created")
            .with("ack_required", !self.no_ack)
            .with("exclusive", self.exclusive)
            .with("prefetch_count", i64::from(self.prefetch))
            .with("arguments", self.arguments.clone())
    }

    pub(super) fn ended(&self) -> Happening {
        self.about("consumer.deleted")
    }

    fn about(&self, key: &'static str) -> Happening {
        Happening::new(key)
            .with("consumer_tag", self.tag.as_str())
            .with("channel", self.connection.channel_pid(self.channel))
            .with("queue", &*self.queue)
            .with("vhost", &*self.vhost)
            .with("user_who_performed_action", &*self.connection.user)
    }
}
