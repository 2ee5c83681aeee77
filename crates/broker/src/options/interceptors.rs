//! What the node writes into messages as they come in (RabbitMQ's message interceptors), if its configuration says so.

use model::properties::{BasicProperties, Properties, PropertiesBuf, PropertiesBuilder};
use model::table::{Table, Value};
use model::{Limits, Timestamp};

/// Which of them are on. For each: whether what the publisher has set itself is overwritten.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interceptors {
    /// The header `timestamp_in_ms` and the property `timestamp` (in seconds) say when the node received the message.
    pub timestamp: Option<bool>,
    /// The header `x-routed-by` names the node.
    pub routing_node: Option<bool>,
}

impl Interceptors {
    /// True if messages stay as they are.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The properties as they are on.
    pub(crate) fn applied(
        &self,
        properties: Properties<'_>,
        node_name: &str,
        now: Timestamp,
        limits: &Limits,
    ) -> PropertiesBuf {
        let properties = properties.to_amqp091();
        let properties = BasicProperties::new(&properties);
        let mut headers = properties.headers_table(limits).unwrap_or_default();
        let mut builder = PropertiesBuilder::from_properties(properties);
        if let Some(overwrite) = self.timestamp {
            let ms = i64::try_from(now.0).unwrap_or(i64::MAX);
            set(&mut headers, "timestamp_in_ms", ms.into(), overwrite);
            if overwrite || properties.timestamp().is_none() {
                builder = builder.timestamp(now.0 / 1000);
            }
        }
        if let Some(overwrite) = self.routing_node {
            set(&mut headers, "x-routed-by", node_name.into(), overwrite);
        }
        PropertiesBuf::amqp091(builder.headers(&headers).encode())
    }
}

fn set(headers: &mut Table, name: &str, value: Value, overwrite: bool) {
    if overwrite || !headers.contains(name) {
        headers.insert(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_123);

    fn applied(interceptors: &Interceptors, properties: &[u8]) -> (Table, Option<u64>) {
        let limits = Limits::default();
        let changed = interceptors.applied(Properties::amqp091(properties), "rabbit@here", NOW, &limits);
        let properties = BasicProperties::check(changed.as_properties().bytes(), &limits).unwrap();
        (properties.headers_table(&limits).unwrap(), properties.timestamp())
    }

    #[test]
    fn a_message_says_when_and_where_it_came_in() {
        let both = Interceptors {
            timestamp: Some(false),
            routing_node: Some(false),
        };
        let headers = Table::new()
            .with("timestamp_in_ms", 1_700_000_000_123_i64)
            .with("x-routed-by", "rabbit@here");
        assert_eq!(applied(&both, &[0, 0]), (headers, Some(1_700_000_000)));
    }

    #[test]
    fn what_the_publisher_set_stays_unless_it_is_to_be_overwritten() {
        let own = Table::new().with("x-routed-by", "me").with("timestamp_in_ms", 5);
        let sent = PropertiesBuilder::new().headers(&own).timestamp(7).encode();
        let keep = Interceptors {
            timestamp: Some(false),
            routing_node: Some(false),
        };
        assert_eq!(applied(&keep, &sent), (own, Some(7)));
        let overwrite = Interceptors {
            timestamp: Some(true),
            routing_node: Some(true),
        };
        let (headers, timestamp) = applied(&overwrite, &sent);
        assert_eq!(timestamp, Some(1_700_000_000));
        assert_eq!(headers.get("x-routed-by"), Some(&Value::from("rabbit@here")));
        assert_eq!(
            headers.get("timestamp_in_ms"),
            Some(&Value::Long(1_700_000_000_123))
        );
    }
}
