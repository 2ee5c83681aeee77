//! The log as messages: lines go to `amq.rabbitmq.log` with their level as the key (RabbitMQ's `log.exchange`).

use crate::broker::Broker;
use crate::notices::Notice;
use crate::options::OpenError;
use model::Timestamp;
use model::properties::{PropertiesBuf, PropertiesBuilder};
use model::table::Table;

/// The exchange that lines go to, in the default virtual host.
const LOG_EXCHANGE: &str = "amq.rabbitmq.log";

impl Broker {
    /// Makes the exchange for [`Broker::publish_log_line`].
    ///
    /// # Errors
    /// There is another exchange of that name.
    pub fn declare_log_exchange(&self) -> Result<(), OpenError> {
        self.declare_own_exchange(&self.options().default_vhost, LOG_EXCHANGE)
    }

    /// Publishes a line of the log, for whoever listens. Never waits; may be called from anywhere.
    pub fn publish_log_line(&self, level: &str, content_type: &str, line: &[u8]) {
        let (options, view) = (self.options(), self.view());
        let vhost = options.default_vhost.as_str();
        let exchange = view.exchange(vhost, LOG_EXCHANGE);
        if exchange.is_none_or(|exchange| exchange.binding_count() == 0) {
            return;
        }
        let Timestamp(now) = self.node().wall();
        let properties = PropertiesBuilder::new()
            .content_type(content_type)
            .timestamp(now / 1000)
            .headers(&Table::new().with("node", options.node_name.as_str()));
        self.node().notices.send(Notice {
            vhost: vhost.into(),
            exchange: LOG_EXCHANGE,
            routing_key: level.into(),
            properties: PropertiesBuf::amqp091(properties.encode()),
            body: line.into(),
        });
    }
}
