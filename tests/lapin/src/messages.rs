//! Confirms, returns, acknowledgements, prefetch, get, cancel notification.

use futures_lite::StreamExt;
use lapin::BasicProperties;
use lapin::options::{
    BasicAckOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions, BasicRecoverOptions,
    BasicRejectOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};

use crate::world::{
    Case, DEADLINE, Outcome, World, bodies, consume, drain, durable_queue, fill, numbers, own_queue, port,
    prefetch, publish, ready, take, text,
};
use crate::{case, equal};

pub fn cases() -> Vec<Case> {
    vec![
        case!(confirms_one_by_one),
        case!(confirms_of_many),
        case!(mandatory_returns_before_its_confirm),
        case!(properties_come_back),
        case!(acks_one_and_many),
        case!(requeue_goes_to_the_original_position),
        case!(nack_and_reject_without_requeue_drop),
        case!(prefetch_per_consumer),
        case!(
            prefetch_per_channel,
            leveret_only = "RabbitMQ 4.3 treats a global prefetch as one per consumer"
        ),
        case!(get_counts_down_to_empty),
        case!(a_consumer_is_told_that_its_queue_was_deleted),
    ]
}

async fn confirms_one_by_one(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = durable_queue(&world, &channel).await?;
    for n in 1..=10 {
        let persistent = BasicProperties::default().with_delivery_mode(2);
        publish(&channel, &"".into(), queue.as_str(), "x", persistent).await?;
        equal!(ready(&channel, &queue).await?, n);
    }
    equal!(
        channel.queue_delete(queue, QueueDeleteOptions::default()).await?,
        10
    );
    Ok(())
}

async fn confirms_of_many(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let mut confirms = Vec::new();
    for n in 0..1000_u16 {
        let properties = BasicProperties::default().with_delivery_mode(if n % 2 == 0 { 1 } else { 2 });
        let options = BasicPublishOptions::default();
        let body = n.to_string();
        confirms.push(
            channel
                .basic_publish("".into(), queue.clone(), options, body.as_bytes(), properties)
                .await?,
        );
    }
    for confirm in confirms {
        equal!(confirm.await?.is_ack(), true);
    }
    equal!(drain(&channel, &queue).await?, numbers(0..1000));
    Ok(())
}

async fn mandatory_returns_before_its_confirm(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let options = BasicPublishOptions {
        mandatory: true,
        ..BasicPublishOptions::default()
    };
    let confirm = channel
        .basic_publish(
            "amq.direct".into(),
            "no such key".into(),
            options,
            b"back",
            BasicProperties::default().with_message_id("m".into()),
        )
        .await?
        .await?;
    equal!(confirm.is_ack(), true);
    let message = confirm
        .take_message()
        .ok_or("the confirm came without its return")?;
    equal!(
        (
            message.reply_code,
            message.reply_text.as_str(),
            message.delivery.data.as_slice()
        ),
        (312, "NO_ROUTE", b"back".as_slice())
    );
    equal!(
        message
            .delivery
            .properties
            .message_id()
            .as_ref()
            .map(|id| id.as_str()),
        Some("m")
    );
    Ok(())
}

async fn properties_come_back(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let mut inner = FieldTable::default();
    inner.insert("deep".into(), AMQPValue::LongInt(3));
    let mut headers = FieldTable::default();
    headers.insert("bool".into(), AMQPValue::Boolean(true));
    headers.insert("int".into(), AMQPValue::LongInt(-5));
    headers.insert("long".into(), AMQPValue::LongLongInt(1 << 40));
    headers.insert("double".into(), AMQPValue::Double(2.5));
    headers.insert("text".into(), AMQPValue::LongString("ü".into()));
    headers.insert("time".into(), AMQPValue::Timestamp(1_700_000_000));
    headers.insert("table".into(), AMQPValue::FieldTable(inner));
    headers.insert("void".into(), AMQPValue::Void);
    let sent = BasicProperties::default()
        .with_content_type("text/plain".into())
        .with_content_encoding("utf-8".into())
        .with_headers(headers)
        .with_delivery_mode(2)
        .with_priority(4)
        .with_correlation_id("c".into())
        .with_reply_to("r".into())
        .with_message_id("m".into())
        .with_timestamp(1_700_000_000)
        .with_type("t".into())
        .with_user_id("guest".into())
        .with_app_id("a".into());
    publish(&channel, &"".into(), queue.as_str(), "", sent.clone()).await?;
    let got = channel
        .basic_get(queue, BasicGetOptions { no_ack: true })
        .await?
        .ok_or("empty")?;
    equal!(got.delivery.properties, sent);
    Ok(())
}

async fn acks_one_and_many(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 10).await?;
    let mut consumer = consume(&channel, &queue, false).await?;
    let got = take(&mut consumer, 10).await?;
    equal!(bodies(&got), numbers(0..10));
    got[2].ack(BasicAckOptions { multiple: false }).await?;
    got[4].ack(BasicAckOptions { multiple: true }).await?;
    channel
        .basic_recover(BasicRecoverOptions { requeue: true })
        .await?;
    let again = take(&mut consumer, 5).await?;
    equal!(bodies(&again), numbers(5..10));
    equal!(again.iter().all(|delivery| delivery.redelivered), true);
    again[4].ack(BasicAckOptions { multiple: true }).await?;
    channel
        .basic_recover(BasicRecoverOptions { requeue: true })
        .await?;
    equal!(ready(&channel, &queue).await?, 0);
    Ok(())
}

async fn requeue_goes_to_the_original_position(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 6).await?;
    let mut got = Vec::new();
    for _ in 0..4 {
        got.push(
            channel
                .basic_get(queue.clone(), BasicGetOptions { no_ack: false })
                .await?
                .ok_or("empty")?
                .delivery,
        );
    }
    got[2]
        .nack(BasicNackOptions {
            multiple: false,
            requeue: true,
        })
        .await?;
    got[0].reject(BasicRejectOptions { requeue: true }).await?;
    got[3]
        .nack(BasicNackOptions {
            multiple: true,
            requeue: true,
        })
        .await?;
    for n in 0..6 {
        let message = channel
            .basic_get(queue.clone(), BasicGetOptions { no_ack: true })
            .await?
            .ok_or("empty")?;
        equal!(
            (text(&message.delivery), message.delivery.redelivered),
            (n.to_string(), n < 4)
        );
    }
    Ok(())
}

async fn nack_and_reject_without_requeue_drop(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 5).await?;
    for _ in 0..4 {
        channel
            .basic_get(queue.clone(), BasicGetOptions { no_ack: false })
            .await?;
    }
    channel
        .basic_reject(1, BasicRejectOptions { requeue: false })
        .await?;
    channel
        .basic_nack(
            3,
            BasicNackOptions {
                multiple: true,
                requeue: false,
            },
        )
        .await?;
    channel
        .basic_nack(
            0,
            BasicNackOptions {
                multiple: true,
                requeue: true,
            },
        )
        .await?;
    equal!(drain(&channel, &queue).await?, ["3", "4"]);
    Ok(())
}

async fn prefetch_per_consumer(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 10).await?;
    prefetch(&channel, 2, false).await?;
    let mut first = consume(&channel, &queue, false).await?;
    let mut second = consume(&channel, &queue, false).await?;
    let got = take(&mut first, 2).await?;
    take(&mut second, 2).await?;
    equal!(ready(&channel, &queue).await?, 6);
    got[1].ack(BasicAckOptions { multiple: true }).await?;
    take(&mut first, 2).await?;
    equal!(ready(&channel, &queue).await?, 4);
    Ok(())
}

async fn prefetch_per_channel(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 10).await?;
    prefetch(&channel, 3, true).await?;
    let mut first = consume(&channel, &queue, false).await?;
    let _second = consume(&channel, &queue, false).await?;
    take(&mut first, 3).await?;
    equal!(ready(&channel, &queue).await?, 7);
    Ok(())
}

async fn get_counts_down_to_empty(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 2).await?;
    for left in [1, 0] {
        let got = channel
            .basic_get(queue.clone(), BasicGetOptions { no_ack: true })
            .await?
            .ok_or("empty")?;
        equal!((got.message_count, got.delivery.redelivered), (left, false));
    }
    equal!(
        channel
            .basic_get(queue, BasicGetOptions { no_ack: true })
            .await?
            .is_none(),
        true
    );
    Ok(())
}

async fn a_consumer_is_told_that_its_queue_was_deleted(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = durable_queue(&world, &channel).await?;
    let mut consumer = consume(&channel, &queue, false).await?;
    let other = world.connect(&port()).await?;
    let deleting = other.create_channel().await?;
    deleting
        .queue_delete(queue, QueueDeleteOptions::default())
        .await?;
    // basic.cancel ends the stream of deliveries and leaves the channel alone.
    let end = tokio::time::timeout(DEADLINE, consumer.next()).await?;
    equal!(end.is_none(), true);
    own_queue(&channel, FieldTable::default()).await?;
    Ok(())
}
