//! The table of all methods of AMQP 0-9-1 and of RabbitMQ's extensions to it.
//!
//! A string is `&str` where RabbitMQ insists on UTF-8 and `&[u8]` where it does not: names that a publisher
//! gives, and so also those that a delivery carries.

use super::{Arguments, Field, FieldWriter, MethodError, MethodId, methods, read_all};
use crate::amqp::field::{LongStr, RawTable};

methods! {
    10 10 ConnectionStart<'a> "connection.start" {
        version_major: u8,
        version_minor: u8,
        server_properties: RawTable<'a>,
        mechanisms: LongStr<'a>,
        locales: LongStr<'a>,
    }
    10 11 ConnectionStartOk<'a> "connection.start-ok" {
        client_properties: RawTable<'a>,
        mechanism: &'a str,
        response: LongStr<'a>,
        locale: &'a str,
    }
    10 20 ConnectionSecure<'a> "connection.secure" { challenge: LongStr<'a>, }
    10 21 ConnectionSecureOk<'a> "connection.secure-ok" { response: LongStr<'a>, }
    10 30 ConnectionTune "connection.tune" { channel_max: u16, frame_max: u32, heartbeat: u16, }
    10 31 ConnectionTuneOk "connection.tune-ok" { channel_max: u16, frame_max: u32, heartbeat: u16, }
    10 40 ConnectionOpen<'a> "connection.open" { virtual_host: &'a str, (&[u8]) (bool) }
    10 41 ConnectionOpenOk "connection.open-ok" { (&[u8]) }
    10 50 ConnectionClose<'a> "connection.close" {
        reply_code: u16,
        reply_text: &'a str,
        class_id: u16,
        method_id: u16,
    }
    10 51 ConnectionCloseOk "connection.close-ok" {}
    10 60 ConnectionBlocked<'a> "connection.blocked" { reason: &'a str, }
    10 61 ConnectionUnblocked "connection.unblocked" {}
    10 70 ConnectionUpdateSecret<'a> "connection.update-secret" { new_secret: LongStr<'a>, reason: &'a str, }
    10 71 ConnectionUpdateSecretOk "connection.update-secret-ok" {}

    20 10 ChannelOpen "channel.open" { (&[u8]) }
    20 11 ChannelOpenOk "channel.open-ok" { (LongStr) }
    20 20 ChannelFlow "channel.flow" { active: bool, }
    20 21 ChannelFlowOk "channel.flow-ok" { active: bool, }
    20 40 ChannelClose<'a> "channel.close" {
        reply_code: u16,
        reply_text: &'a str,
        class_id: u16,
        method_id: u16,
    }
    20 41 ChannelCloseOk "channel.close-ok" {}

    30 10 AccessRequest<'a> "access.request" {
        realm: &'a str,
        exclusive: bool,
        passive: bool,
        active: bool,
        write: bool,
        read: bool,
    }
    30 11 AccessRequestOk "access.request-ok" { ticket: u16, }

    40 10 ExchangeDeclare<'a> "exchange.declare" {
        [u16]
        exchange: &'a str,
        kind: &'a str,
        passive: bool,
        durable: bool,
        auto_delete: bool,
        internal: bool,
        no_wait: bool,
        arguments: RawTable<'a>,
    }
    40 11 ExchangeDeclareOk "exchange.declare-ok" {}
    40 20 ExchangeDelete<'a> "exchange.delete" { [u16] exchange: &'a str, if_unused: bool, no_wait: bool, }
    40 21 ExchangeDeleteOk "exchange.delete-ok" {}
    40 30 ExchangeBind<'a> "exchange.bind" {
        [u16]
        destination: &'a str,
        source: &'a str,
        routing_key: &'a str,
        no_wait: bool,
        arguments: RawTable<'a>,
    }
    40 31 ExchangeBindOk "exchange.bind-ok" {}
    40 40 ExchangeUnbind<'a> "exchange.unbind" {
        [u16]
        destination: &'a str,
        source: &'a str,
        routing_key: &'a str,
        no_wait: bool,
        arguments: RawTable<'a>,
    }
    40 51 ExchangeUnbindOk "exchange.unbind-ok" {}

    50 10 QueueDeclare<'a> "queue.declare" {
        [u16]
        queue: &'a str,
        passive: bool,
        durable: bool,
        exclusive: bool,
        auto_delete: bool,
        no_wait: bool,
        arguments: RawTable<'a>,
    }
    50 11 QueueDeclareOk<'a> "queue.declare-ok" { queue: &'a str, message_count: u32, consumer_count: u32, }
    50 20 QueueBind<'a> "queue.bind" {
        [u16]
        queue: &'a str,
        exchange: &'a str,
        routing_key: &'a str,
        no_wait: bool,
        arguments: RawTable<'a>,
    }
    50 21 QueueBindOk "queue.bind-ok" {}
    50 30 QueuePurge<'a> "queue.purge" { [u16] queue: &'a str, no_wait: bool, }
    50 31 QueuePurgeOk "queue.purge-ok" { message_count: u32, }
    50 40 QueueDelete<'a> "queue.delete" {
        [u16]
        queue: &'a str,
        if_unused: bool,
        if_empty: bool,
        no_wait: bool,
    }
    50 41 QueueDeleteOk "queue.delete-ok" { message_count: u32, }
    50 50 QueueUnbind<'a> "queue.unbind" {
        [u16]
        queue: &'a str,
        exchange: &'a str,
        routing_key: &'a str,
        arguments: RawTable<'a>,
    }
    50 51 QueueUnbindOk "queue.unbind-ok" {}

    60 10 BasicQos "basic.qos" { prefetch_size: u32, prefetch_count: u16, global: bool, }
    60 11 BasicQosOk "basic.qos-ok" {}
    60 20 BasicConsume<'a> "basic.consume" {
        [u16]
        queue: &'a str,
        consumer_tag: &'a str,
        no_local: bool,
        no_ack: bool,
        exclusive: bool,
        no_wait: bool,
        arguments: RawTable<'a>,
    }
    60 21 BasicConsumeOk<'a> "basic.consume-ok" { consumer_tag: &'a str, }
    60 30 BasicCancel<'a> "basic.cancel" { consumer_tag: &'a str, no_wait: bool, }
    60 31 BasicCancelOk<'a> "basic.cancel-ok" { consumer_tag: &'a str, }
    60 40 BasicPublish<'a> "basic.publish" {
        [u16]
        exchange: &'a [u8],
        routing_key: &'a [u8],
        mandatory: bool,
        immediate: bool,
    }
    60 50 BasicReturn<'a> "basic.return" {
        reply_code: u16,
        reply_text: &'a str,
        exchange: &'a [u8],
        routing_key: &'a [u8],
    }
    60 60 BasicDeliver<'a> "basic.deliver" {
        consumer_tag: &'a str,
        delivery_tag: u64,
        redelivered: bool,
        exchange: &'a [u8],
        routing_key: &'a [u8],
    }
    60 70 BasicGet<'a> "basic.get" { [u16] queue: &'a str, no_ack: bool, }
    60 71 BasicGetOk<'a> "basic.get-ok" {
        delivery_tag: u64,
        redelivered: bool,
        exchange: &'a [u8],
        routing_key: &'a [u8],
        message_count: u32,
    }
    60 72 BasicGetEmpty "basic.get-empty" { (&[u8]) }
    60 80 BasicAck "basic.ack" { delivery_tag: u64, multiple: bool, }
    60 90 BasicReject "basic.reject" { delivery_tag: u64, requeue: bool, }
    60 100 BasicRecoverAsync "basic.recover-async" { requeue: bool, }
    60 110 BasicRecover "basic.recover" { requeue: bool, }
    60 111 BasicRecoverOk "basic.recover-ok" {}
    60 120 BasicNack "basic.nack" { delivery_tag: u64, multiple: bool, requeue: bool, }

    85 10 ConfirmSelect "confirm.select" { no_wait: bool, }
    85 11 ConfirmSelectOk "confirm.select-ok" {}

    90 10 TxSelect "tx.select" {}
    90 11 TxSelectOk "tx.select-ok" {}
    90 20 TxCommit "tx.commit" {}
    90 21 TxCommitOk "tx.commit-ok" {}
    90 30 TxRollback "tx.rollback" {}
    90 31 TxRollbackOk "tx.rollback-ok" {}
}
