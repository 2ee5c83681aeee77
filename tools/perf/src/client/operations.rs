//! Single operations: one call each, with arguments that users of the tool think in.

use super::client::Client;
use crate::failure::Failure;
use model::table::Table;
use protocol::amqp::method::{
    BasicCancel, BasicConsume, BasicGet, BasicPublish, BasicQos, ConfirmSelect, ConnectionUpdateSecret,
    ExchangeDeclare, ExchangeDelete, QueueBind, QueueDeclare, QueueDelete, QueuePurge, QueueUnbind, TxSelect,
};
use protocol::amqp::{LongStr, Method, RawTable, encode};

/// A queue as the broker describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// The name, which the broker may have made up.
    pub name: String,
    /// Messages that are ready.
    pub messages: u32,
    /// Consumers of all channels.
    pub consumers: u32,
}

/// Picks the answer that carries nothing.
macro_rules! answered {
    ($variant:ident) => {
        |method: &Method<'_>| matches!(method, Method::$variant(_)).then_some(())
    };
}

/// Each call fails as [`Client::call`] does.
#[allow(clippy::missing_errors_doc, reason = "said once for all of them")]
impl Client {
    /// Declares a queue, or looks at one if `declare.passive`.
    pub fn declare_queue(&mut self, channel: u16, declare: &QueueDeclare<'_>) -> Result<Declared, Failure> {
        self.call(channel, declare, |method| match method {
            Method::QueueDeclareOk(ok) => Some(Declared {
                name: ok.queue.to_owned(),
                messages: ok.message_count,
                consumers: ok.consumer_count,
            }),
            _ => None,
        })
    }

    /// How many messages are ready in a queue.
    pub fn queue_depth(&mut self, channel: u16, queue: impl AsRef<str>) -> Result<u64, Failure> {
        let look = QueueDeclare {
            queue: queue.as_ref(),
            passive: true,
            ..Default::default()
        };
        self.declare_queue(channel, &look)
            .map(|declared| declared.messages.into())
    }

    /// Binds a queue to an exchange.
    pub fn bind_queue(
        &mut self,
        channel: u16,
        queue: &str,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), Failure> {
        let bind = QueueBind {
            queue,
            exchange,
            routing_key,
            ..Default::default()
        };
        self.call(channel, &bind, answered!(QueueBindOk))
    }

    /// Takes a binding away; it is no error if there is none.
    pub fn unbind_queue(
        &mut self,
        channel: u16,
        queue: &str,
        exchange: &str,
        routing_key: &str,
    ) -> Result<(), Failure> {
        let unbind = QueueUnbind {
            queue,
            exchange,
            routing_key,
            ..Default::default()
        };
        self.call(channel, &unbind, answered!(QueueUnbindOk))
    }

    /// Deletes a queue whatever is in it.
    pub fn delete_queue(&mut self, channel: u16, queue: &str) -> Result<(), Failure> {
        self.call(
            channel,
            &QueueDelete {
                queue,
                ..Default::default()
            },
            answered!(QueueDeleteOk),
        )
    }

    /// Removes what is ready in a queue.
    pub fn purge_queue(&mut self, channel: u16, queue: &str) -> Result<(), Failure> {
        self.call(
            channel,
            &QueuePurge {
                queue,
                no_wait: false,
            },
            answered!(QueuePurgeOk),
        )
    }

    /// Declares an exchange, or looks at one if `declare.passive`.
    pub fn declare_exchange(&mut self, channel: u16, declare: &ExchangeDeclare<'_>) -> Result<(), Failure> {
        self.call(channel, declare, answered!(ExchangeDeclareOk))
    }

    /// Deletes an exchange with its bindings.
    pub fn delete_exchange(&mut self, channel: u16, exchange: &str) -> Result<(), Failure> {
        self.call(
            channel,
            &ExchangeDelete {
                exchange,
                ..Default::default()
            },
            answered!(ExchangeDeleteOk),
        )
    }

    /// Has publishes on the channel confirmed from now on.
    pub fn confirm_select(&mut self, channel: u16) -> Result<(), Failure> {
        self.call(
            channel,
            &ConfirmSelect { no_wait: false },
            answered!(ConfirmSelectOk),
        )
    }

    /// Has publishes and acknowledgements on the channel wait for a commit from now on.
    pub fn tx_select(&mut self, channel: u16) -> Result<(), Failure> {
        self.call(channel, &TxSelect {}, answered!(TxSelectOk))
    }

    /// Limits what later consumers of the channel (`global`: all of them together) hold unacknowledged; 0 for no limit.
    pub fn qos(&mut self, channel: u16, prefetch_count: u16, global: bool) -> Result<(), Failure> {
        let qos = BasicQos {
            prefetch_size: 0,
            prefetch_count,
            global,
        };
        self.call(channel, &qos, answered!(BasicQosOk))
    }

    /// Consumes; the broker makes up a tag if `consumer_tag` is empty. Messages that come before the answer are dropped.
    pub fn consume(
        &mut self,
        channel: u16,
        queue: &str,
        consumer_tag: &str,
        no_ack: bool,
        arguments: &Table,
    ) -> Result<String, Failure> {
        let mut table = Vec::new();
        arguments.encode(&mut table);
        let consume = BasicConsume {
            queue,
            consumer_tag,
            no_ack,
            arguments: RawTable(&table),
            ..Default::default()
        };
        self.call(channel, &consume, |method| match method {
            Method::BasicConsumeOk(ok) => Some(ok.consumer_tag.to_owned()),
            _ => None,
        })
    }

    pub fn cancel(&mut self, channel: u16, consumer_tag: &str) -> Result<(), Failure> {
        self.call(
            channel,
            &BasicCancel {
                consumer_tag,
                no_wait: false,
            },
            answered!(BasicCancelOk),
        )
    }

    /// Fetches a message, takes it from the queue and drops it; `false`: the queue is empty.
    pub fn get(&mut self, channel: u16, queue: &str) -> Result<bool, Failure> {
        self.call(
            channel,
            &BasicGet { queue, no_ack: true },
            |method| match method {
                Method::BasicGetOk(_) => Some(true),
                Method::BasicGetEmpty(_) => Some(false),
                _ => None,
            },
        )
    }

    /// Publishes and does not wait. `properties`: flags and list, `b"\0\0"` for none.
    pub fn publish(
        &mut self,
        channel: u16,
        exchange: &str,
        routing_key: &str,
        properties: &[u8],
        body: &[u8],
    ) -> Result<(), Failure> {
        let publish = BasicPublish {
            exchange: exchange.as_bytes(),
            routing_key: routing_key.as_bytes(),
            ..Default::default()
        };
        let mut frames = Vec::new();
        encode::content(
            &mut frames,
            channel,
            &publish,
            properties,
            body,
            self.agreed().frame_max,
        );
        self.write(&frames)
    }

    /// Publishes and waits until the broker has confirmed it; `false`: it refused the message. The channel must be in confirm
    /// mode and have nothing else unconfirmed.
    pub fn publish_and_wait(
        &mut self,
        channel: u16,
        exchange: &str,
        routing_key: &str,
        properties: &[u8],
        body: &[u8],
    ) -> Result<bool, Failure> {
        self.publish(channel, exchange, routing_key, properties, body)?;
        let confirmed = self.wait(channel, Self::answer_deadline(), |method| match method {
            Method::BasicAck(_) => Some(true),
            Method::BasicNack(_) => Some(false),
            _ => None,
        })?;
        confirmed.ok_or_else(|| self.silent("basic.publish with a confirm"))
    }

    /// Gives the broker a newer token for this connection.
    pub fn update_secret(&mut self, token: &str) -> Result<(), Failure> {
        let update = ConnectionUpdateSecret {
            new_secret: LongStr(token.as_bytes()),
            reason: "Refresh scheduled by client",
        };
        self.call(0, &update, answered!(ConnectionUpdateSecretOk))
    }
}
