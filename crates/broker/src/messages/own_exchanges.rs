//! The exchanges that only the node publishes to: the one of events, and `amq.rabbitmq.log`, to which lines of the log
//! go with their level as the key (RabbitMQ's `log.exchange`). One thread publishes there.

use crate::broker::Broker;
use crate::clients::access::THE_NODE;
use crate::events::EVENT_EXCHANGE;
use crate::events::notices::Notice;
use crate::options::OpenError;
use catalog::{DeclareExchange, Envelope};
use model::properties::{PropertiesBuf, PropertiesBuilder};
use model::table::Table;
use model::{BlockBuilder, Message, RouteBuf, Timestamp};
use queue::Request;
use smallvec::SmallVec;
use std::sync::Arc;

/// The exchange that lines go to, in the default virtual host.
const LOG_EXCHANGE: &str = "amq.rabbitmq.log";

impl Broker {
    /// Makes the exchange that events go to, if the node is to have one and has its virtual host.
    ///
    /// # Errors
    /// There is another exchange of that name.
    pub fn declare_event_exchange(&self) -> Result<(), OpenError> {
        let Some(vhost) = self.options().event_vhost.as_deref() else {
            return Ok(());
        };
        self.declare_own_exchange(vhost, EVENT_EXCHANGE)
    }

    /// Makes an exchange that only the node publishes to, if the virtual host is there.
    ///
    /// # Errors
    /// There is another exchange of that name.
    pub(crate) fn declare_own_exchange(&self, vhost: &str, name: &str) -> Result<(), OpenError> {
        if self.view().vhost(vhost).is_none() {
            tracing::warn!(
                area = "notices",
                "there is no virtual host '{vhost}' for the exchange '{name}'; create it and restart the node"
            );
            return Ok(());
        }
        let declare = DeclareExchange {
            name: name.into(),
            kind: "topic".into(),
            durable: true,
            internal: true,
            ..DeclareExchange::default()
        };
        self.administrator(THE_NODE)
            .install_exchange(vhost, declare)
            .map_err(OpenError::Defaults)
    }

    /// True if the node has an exchange for events.
    pub fn has_event_exchange(&self) -> bool {
        self.options().event_vhost.is_some()
    }

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
        self.events().notices.send(Notice {
            vhost: vhost.into(),
            exchange: LOG_EXCHANGE,
            routing_key: level.into(),
            properties: PropertiesBuf::amqp091(properties.encode()),
            body: line.into(),
        });
    }
}

/// Gives a notice to the queues that it finds; there may be none.
pub(crate) fn publish_notice(broker: &Broker, notice: &Notice) {
    let view = broker.view();
    let Some(exchange) = view.exchange(&notice.vhost, notice.exchange) else {
        return;
    };
    let mut queues = SmallVec::new();
    let properties = notice.properties.as_properties();
    let passing = broker.caches().passing(None);
    let mut envelope = Envelope::new(&notice.routing_key, properties)
        .at(broker.topology().own_node())
        .with_filter(&passing);
    view.route(exchange, &mut envelope, &mut queues);
    if queues.is_empty() {
        return;
    }
    let mut builder = BlockBuilder::new();
    let route = RouteBuf::new(notice.exchange.as_bytes(), &notice.routing_key);
    builder.push_message(&Message::new(route.as_route(), properties, &notice.body));
    let block = Arc::new(builder.finish(properties.persistent(), broker.node().now()));
    for queue in queues.iter().filter_map(|id| broker.queues().get(*id)) {
        queue.submit(Request::Enqueue {
            block: block.clone(),
            receipt: None,
        });
    }
}
