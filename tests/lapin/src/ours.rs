//! Deadlines, delayed retries, duplicates, groups and delays: RabbitMQ 4.3 has them in quorum queues, in plugins or not at all.

use futures_lite::StreamExt;
use lapin::options::{BasicAckOptions, BasicNackOptions, ExchangeDeclareOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, ExchangeKind};

use crate::world::{Case, Outcome, World, bodies, consume, drain, own_queue, publish, take, with, words};
use crate::{case, equal};

const REASON: &str = "RabbitMQ has it in quorum queues or plugins only";

pub fn cases() -> Vec<Case> {
    vec![
        case!(a_consumer_that_takes_too_long_is_cancelled, leveret_only = REASON),
        case!(
            a_message_comes_back_later_each_time_and_is_a_dead_letter_then,
            leveret_only = REASON
        ),
        case!(a_queue_takes_a_message_once, leveret_only = REASON),
        case!(an_exchange_lets_a_message_pass_once, leveret_only = REASON),
        case!(groups_take_turns, leveret_only = REASON),
        case!(a_delayed_message_waits_in_its_exchange, leveret_only = REASON),
    ]
}

fn headers(entries: &[(&str, AMQPValue)]) -> BasicProperties {
    BasicProperties::default().with_headers(with(entries))
}

async fn a_consumer_that_takes_too_long_is_cancelled(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, with(&[("x-consumer-timeout", AMQPValue::LongInt(200))])).await?;
    let mut slow = consume(&channel, &queue, false).await?;
    publish(&channel, &"".into(), queue.as_str(), "m", headers(&[])).await?;
    let late = take(&mut slow, 1).await?.remove(0);
    // A cancelled consumer ends.
    equal!(slow.next().await.is_none(), true);
    late.ack(BasicAckOptions::default()).await?;
    equal!(drain(&channel, &queue).await?, ["m"]);
    Ok(())
}

async fn a_message_comes_back_later_each_time_and_is_a_dead_letter_then(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let graves = own_queue(&channel, FieldTable::default()).await?;
    let retry = with(&[
        ("initial", AMQPValue::LongInt(40)),
        ("factor", AMQPValue::LongInt(2)),
    ]);
    let arguments = with(&[
        ("x-delivery-limit", AMQPValue::LongInt(2)),
        ("x-retry-delay", AMQPValue::FieldTable(retry)),
        ("x-dead-letter-exchange", words("")),
        ("x-dead-letter-routing-key", words(graves.as_str())),
    ]);
    let queue = own_queue(&channel, arguments).await?;
    let mut dead = consume(&channel, &graves, true).await?;
    let mut tries = consume(&channel, &queue, false).await?;
    publish(&channel, &"".into(), queue.as_str(), "bad", headers(&[])).await?;
    for count in [
        None,
        Some(AMQPValue::LongLongInt(1)),
        Some(AMQPValue::LongLongInt(2)),
    ] {
        let delivery = take(&mut tries, 1).await?.remove(0);
        let known = delivery.properties.headers().as_ref();
        equal!(
            known.and_then(|it| it.inner().get("x-delivery-count").cloned()),
            count
        );
        delivery
            .nack(BasicNackOptions {
                requeue: true,
                ..BasicNackOptions::default()
            })
            .await?;
    }
    equal!(bodies(&take(&mut dead, 1).await?), ["bad"]);
    Ok(())
}

async fn a_queue_takes_a_message_once(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(
        &channel,
        with(&[("x-message-deduplication", AMQPValue::Boolean(true))]),
    )
    .await?;
    for (body, key) in [("1", "same"), ("2", "same"), ("3", "other")] {
        let properties = headers(&[("x-deduplication-header", words(key))]);
        publish(&channel, &"".into(), queue.as_str(), body, properties).await?;
    }
    equal!(drain(&channel, &queue).await?, ["1", "3"]);
    Ok(())
}

async fn an_exchange_lets_a_message_pass_once(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let exchange = world.name();
    let options = ExchangeDeclareOptions {
        auto_delete: true,
        ..ExchangeDeclareOptions::default()
    };
    let kind = ExchangeKind::Custom("x-message-deduplication".into());
    let arguments = with(&[("x-cache-size", AMQPValue::LongInt(10))]);
    channel
        .exchange_declare(exchange.clone(), kind, options, arguments)
        .await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let bind = QueueBindOptions::default();
    channel
        .queue_bind(
            queue.clone(),
            exchange.clone(),
            "any".into(),
            bind,
            FieldTable::default(),
        )
        .await?;
    for (body, key) in [("1", "same"), ("2", "same"), ("3", "other")] {
        let properties = headers(&[("x-deduplication-header", words(key))]);
        publish(&channel, &exchange, "k", body, properties).await?;
    }
    publish(&channel, &exchange, "k", "4", BasicProperties::default()).await?;
    // A confirmed message may be on its way yet: the exchange may remember on another node than the queue's.
    let mut consumer = consume(&channel, &queue, true).await?;
    equal!(bodies(&take(&mut consumer, 3).await?), ["1", "3", "4"]);
    Ok(())
}

async fn groups_take_turns(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, with(&[("x-fair-key", words("tenant"))])).await?;
    for (start, tenant) in [("a1", "a"), ("a2", "a"), ("a3", "a"), ("b1", "b")] {
        let body = format!("{start}{}", "x".repeat(8192));
        publish(
            &channel,
            &"".into(),
            queue.as_str(),
            &body,
            headers(&[("tenant", words(tenant))]),
        )
        .await?;
    }
    let came = drain(&channel, &queue).await?;
    equal!(came.last().map(|body| &body[..2]), Some("a3"));
    Ok(())
}

async fn a_delayed_message_waits_in_its_exchange(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let exchange = world.name();
    let options = ExchangeDeclareOptions {
        auto_delete: true,
        ..ExchangeDeclareOptions::default()
    };
    let kind = ExchangeKind::Custom("x-delayed-message".into());
    let arguments = with(&[("x-delayed-type", words("direct"))]);
    channel
        .exchange_declare(exchange.clone(), kind, options, arguments)
        .await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    channel
        .queue_bind(
            queue.clone(),
            exchange.clone(),
            "k".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await?;
    let mut consumer = consume(&channel, &queue, true).await?;
    let delay = headers(&[("x-delay", AMQPValue::LongInt(150))]);
    publish(&channel, &exchange, "k", "late", delay).await?;
    publish(&channel, &exchange, "k", "soon", headers(&[])).await?;
    equal!(bodies(&take(&mut consumer, 2).await?), ["soon", "late"]);
    Ok(())
}
