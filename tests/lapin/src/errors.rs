//! Errors: reply code, scope and text.

use lapin::options::{
    BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, BasicRecoverOptions, ExchangeDeclareOptions,
    ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Connection, ConnectionProperties, ExchangeKind};

use crate::case;
use crate::world::{Case, Outcome, World, address, own_queue, port, refused};

pub fn cases() -> Vec<Case> {
    vec![
        case!(not_found),
        case!(access_refused),
        case!(precondition_failed),
        case!(not_allowed_closes_the_connection),
        case!(not_implemented_closes_the_connection),
        case!(wrong_password_and_unknown_vhost),
    ]
}

async fn not_found(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let missing = world.name();
    let no_queue = format!("NOT_FOUND - no queue '{missing}' in vhost '/'");
    let no_exchange = format!("NOT_FOUND - no exchange '{missing}' in vhost '/'");
    let channel = connection.create_channel().await?;
    let got = channel
        .basic_get(missing.clone(), BasicGetOptions::default())
        .await;
    refused(got, 404, false, &no_queue)?;
    let channel = connection.create_channel().await?;
    let purged = channel
        .queue_purge(missing.clone(), QueuePurgeOptions::default())
        .await;
    refused(purged, 404, false, &no_queue)?;
    let channel = connection.create_channel().await?;
    let options = BasicConsumeOptions::default();
    let consuming = channel
        .basic_consume(missing.clone(), "".into(), options, FieldTable::default())
        .await;
    refused(consuming, 404, false, &no_queue)?;
    let channel = connection.create_channel().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let options = QueueBindOptions::default();
    let bound = channel
        .queue_bind(queue, missing.clone(), "k".into(), options, FieldTable::default())
        .await;
    refused(bound, 404, false, &no_exchange)?;
    // A publish fails later, at the channel; whatever is asked next learns of it.
    let channel = connection.create_channel().await?;
    channel
        .confirm_select(lapin::options::ConfirmSelectOptions::default())
        .await?;
    let options = BasicPublishOptions::default();
    let confirm = channel
        .basic_publish(missing, "k".into(), options, b"x", BasicProperties::default())
        .await?;
    refused(confirm.await, 404, false, &no_exchange)
}

async fn access_refused(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let channel = connection.create_channel().await?;
    let deleted = channel
        .exchange_delete("amq.headers".into(), ExchangeDeleteOptions::default())
        .await;
    refused(
        deleted,
        403,
        false,
        "ACCESS_REFUSED - deletion of system exchange 'amq.headers' in vhost '/' not allowed",
    )?;
    let channel = connection.create_channel().await?;
    let declared = channel
        .queue_declare(
            "amq.own".into(),
            QueueDeclareOptions::durable(),
            FieldTable::default(),
        )
        .await;
    refused(
        declared,
        403,
        false,
        "ACCESS_REFUSED - queue name 'amq.own' contains reserved prefix 'amq.*'",
    )
}

async fn precondition_failed(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let channel = connection.create_channel().await?;
    let options = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let declared = channel
        .exchange_declare(
            "amq.topic".into(),
            ExchangeKind::Fanout,
            options,
            FieldTable::default(),
        )
        .await;
    refused(
        declared,
        406,
        false,
        "inequivalent arg 'type' for exchange 'amq.topic' in vhost '/': received 'fanout' but current is 'topic'",
    )?;
    let channel = connection.create_channel().await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(-1));
    let declared = channel
        .queue_declare("".into(), QueueDeclareOptions::exclusive(), arguments)
        .await;
    refused(declared, 406, false, "invalid arg 'x-max-length'")?;
    let channel = connection.create_channel().await?;
    let kind = ExchangeKind::Custom("nonsense".into());
    let declared = channel
        .exchange_declare(
            world.name(),
            kind,
            ExchangeDeclareOptions::default(),
            FieldTable::default(),
        )
        .await;
    refused(
        declared,
        406,
        false,
        "PRECONDITION_FAILED - unknown exchange type 'nonsense'",
    )
}

async fn not_allowed_closes_the_connection(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let channel = connection.create_channel().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let options = BasicConsumeOptions::default();
    let _first = channel
        .basic_consume(queue.clone(), "twice".into(), options, FieldTable::default())
        .await?;
    let second = channel
        .basic_consume(queue, "twice".into(), options, FieldTable::default())
        .await;
    refused(
        second,
        530,
        true,
        "NOT_ALLOWED - attempt to reuse consumer tag 'twice'",
    )
}

async fn not_implemented_closes_the_connection(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let channel = connection.create_channel().await?;
    let recovered = channel
        .basic_recover(BasicRecoverOptions { requeue: false })
        .await;
    refused(recovered, 540, true, "NOT_IMPLEMENTED - requeue=false")
}

async fn wrong_password_and_unknown_vhost(_world: World) -> Outcome {
    let properties = ConnectionProperties::default;
    let wrong = Connection::connect(&address("guest:wrong", &port(), "%2f"), properties()).await;
    refused(
        wrong.map(|_| ()),
        403,
        false,
        "ACCESS_REFUSED - Login was refused using authentication mechanism PLAIN",
    )?;
    let nowhere = Connection::connect(&address("guest:guest", &port(), "nope"), properties()).await;
    refused(
        nowhere.map(|_| ()),
        530,
        true,
        "NOT_ALLOWED - vhost nope not found",
    )
}
