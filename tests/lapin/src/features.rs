//! Times to live, dead letters, refusals, priorities, single active consumers, alternate and hash exchanges, transactions,
//! direct reply-to.

use std::collections::HashSet;

use lapin::message::Delivery;
use lapin::options::{
    BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, BasicRejectOptions,
    ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Consumer, ExchangeKind};

use crate::world::{
    Case, Failure, Outcome, World, bodies, consume, drain, fill, numbers, own_queue, port, prefetch, publish,
    ready, refused, take, text, with, words,
};
use crate::{case, equal};

pub fn cases() -> Vec<Case> {
    vec![
        case!(
            messages_expire_at_any_position,
            leveret_only = "RabbitMQ's classic queues expire messages at their head only"
        ),
        case!(a_queue_has_a_time_to_live),
        case!(a_queue_that_nobody_uses_ends),
        case!(dead_letters_of_length_and_of_rejection),
        case!(a_full_queue_that_refuses_nacks),
        case!(the_consumer_of_the_highest_priority_comes_first),
        case!(one_consumer_is_active),
        case!(messages_of_a_higher_priority_come_first),
        case!(what_nobody_takes_goes_to_the_alternate_exchange),
        case!(
            hash_exchanges_keep_a_key_in_one_queue,
            leveret_only = "a plugin of RabbitMQ's"
        ),
        case!(a_transaction_publishes_at_its_commit),
        case!(requests_are_answered_over_direct_reply_to),
        case!(copies_go_by_cc),
    ]
}

async fn a_queue_that_nobody_uses_ends(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let channel = connection.create_channel().await?;
    let (queue, exchange) = (world.name(), world.name());
    let options = ExchangeDeclareOptions {
        auto_delete: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(
            exchange.clone(),
            ExchangeKind::Fanout,
            options,
            FieldTable::default(),
        )
        .await?;
    let lasting = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    let arguments = with(&[("x-expires", AMQPValue::LongInt(50))]);
    channel.queue_declare(queue.clone(), lasting, arguments).await?;
    channel
        .queue_bind(
            queue.clone(),
            exchange.clone(),
            "".into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await?;
    // A passive declaration would use the queue; its end is seen at the exchange, which goes with its last binding.
    let passive = ExchangeDeclareOptions {
        passive: true,
        ..ExchangeDeclareOptions::default()
    };
    loop {
        let looking = connection.create_channel().await?;
        let there = looking.exchange_declare(
            exchange.clone(),
            ExchangeKind::Fanout,
            passive,
            FieldTable::default(),
        );
        if there.await.is_err() {
            break;
        }
    }
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let gone = connection.create_channel().await?;
    refused(
        gone.queue_declare(queue, passive, FieldTable::default()).await,
        404,
        false,
        "no queue",
    )
}

/// A queue whose dead letters a consumer receives.
async fn mortal(
    channel: &Channel,
    arguments: &[(&str, AMQPValue)],
) -> Result<(ShortString, Consumer), Failure> {
    let graves = own_queue(channel, FieldTable::default()).await?;
    let mut all = with(arguments);
    all.insert("x-dead-letter-exchange".into(), words(""));
    all.insert("x-dead-letter-routing-key".into(), words(graves.as_str()));
    let consumer = consume(channel, &graves, true).await?;
    Ok((own_queue(channel, all).await?, consumer))
}

/// Queue, reason and count of the latest death.
fn death(delivery: &Delivery) -> Option<(String, String, i64)> {
    let headers = delivery.properties.headers().as_ref()?;
    let AMQPValue::FieldArray(history) = headers.inner().get("x-death")? else {
        return None;
    };
    let AMQPValue::FieldTable(latest) = history.as_slice().first()? else {
        return None;
    };
    let told = |key: &str| match latest.inner().get(key) {
        Some(AMQPValue::LongString(text)) => text.to_string(),
        other => format!("{other:?}"),
    };
    let Some(AMQPValue::LongLongInt(count)) = latest.inner().get("count") else {
        return None;
    };
    Some((told("queue"), told("reason"), *count))
}

fn died(queue: &ShortString, reason: &str) -> Option<(String, String, i64)> {
    Some((queue.to_string(), reason.to_owned(), 1))
}

async fn messages_expire_at_any_position(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let (queue, mut graves) = mortal(&channel, &[]).await?;
    fill(&channel, &queue, 1).await?;
    let expiring = BasicProperties::default().with_expiration("30".into());
    publish(&channel, &"".into(), queue.as_str(), "goes", expiring).await?;
    let dead = take(&mut graves, 1).await?;
    equal!(bodies(&dead), ["goes"]);
    equal!(death(&dead[0]), died(&queue, "expired"));
    equal!(dead[0].properties.expiration().is_none(), true);
    equal!(drain(&channel, &queue).await?, numbers(0..1));
    Ok(())
}

async fn a_queue_has_a_time_to_live(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let (queue, mut graves) = mortal(&channel, &[("x-message-ttl", AMQPValue::LongInt(30))]).await?;
    fill(&channel, &queue, 5).await?;
    equal!(bodies(&take(&mut graves, 5).await?), numbers(0..5));
    Ok(())
}

async fn dead_letters_of_length_and_of_rejection(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let (queue, mut graves) = mortal(&channel, &[("x-max-length", AMQPValue::LongInt(1))]).await?;
    fill(&channel, &queue, 2).await?;
    equal!(death(&take(&mut graves, 1).await?[0]), died(&queue, "maxlen"));
    let got = channel
        .basic_get(queue.clone(), BasicGetOptions::default())
        .await?
        .ok_or("empty")?;
    got.delivery
        .acker
        .reject(BasicRejectOptions { requeue: false })
        .await?;
    equal!(death(&take(&mut graves, 1).await?[0]), died(&queue, "rejected"));
    Ok(())
}

async fn a_full_queue_that_refuses_nacks(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let arguments = [
        ("x-max-length", AMQPValue::LongInt(1)),
        ("x-overflow", words("reject-publish")),
    ];
    let queue = own_queue(&channel, with(&arguments)).await?;
    for taken in [true, false] {
        let options = BasicPublishOptions::default();
        let properties = BasicProperties::default();
        let answer = channel
            .basic_publish("".into(), queue.clone(), options, b"x", properties)
            .await?
            .await?;
        equal!((answer.is_ack(), answer.is_nack()), (taken, !taken));
    }
    Ok(())
}

async fn the_consumer_of_the_highest_priority_comes_first(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let mut low = consume(&channel, &queue, false).await?;
    prefetch(&channel, 2, false).await?;
    let options = BasicConsumeOptions::default();
    let priority = with(&[("x-priority", AMQPValue::LongInt(5))]);
    let mut high = channel
        .basic_consume(queue.clone(), "high".into(), options, priority)
        .await?;
    fill(&channel, &queue, 3).await?;
    equal!(bodies(&take(&mut high, 2).await?), numbers(0..2));
    equal!(bodies(&take(&mut low, 1).await?), numbers(2..3));
    Ok(())
}

async fn one_consumer_is_active(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let single = with(&[("x-single-active-consumer", AMQPValue::Boolean(true))]);
    let queue = own_queue(&channel, single).await?;
    let mut first = consume(&channel, &queue, true).await?;
    let mut second = consume(&channel, &queue, true).await?;
    fill(&channel, &queue, 3).await?;
    equal!(bodies(&take(&mut first, 3).await?), numbers(0..3));
    channel
        .basic_cancel(first.tag(), BasicCancelOptions::default())
        .await?;
    fill(&channel, &queue, 1).await?;
    equal!(bodies(&take(&mut second, 1).await?), numbers(0..1));
    Ok(())
}

async fn messages_of_a_higher_priority_come_first(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, with(&[("x-max-priority", AMQPValue::LongInt(10))])).await?;
    for (body, priority) in [("1", 0), ("2", 5), ("3", 200), ("4", 5)] {
        let properties = BasicProperties::default().with_priority(priority);
        publish(&channel, &"".into(), queue.as_str(), body, properties).await?;
    }
    equal!(drain(&channel, &queue).await?, ["3", "2", "4", "1"]);
    Ok(())
}

async fn exchange(
    world: &World,
    channel: &Channel,
    kind: ExchangeKind,
    arguments: FieldTable,
) -> Result<ShortString, Failure> {
    let name = world.name();
    let options = ExchangeDeclareOptions {
        auto_delete: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(name.clone(), kind, options, arguments)
        .await?;
    Ok(name)
}

async fn bound(channel: &Channel, exchange: &ShortString, key: &str) -> Result<ShortString, Failure> {
    let queue = own_queue(channel, FieldTable::default()).await?;
    let options = QueueBindOptions::default();
    channel
        .queue_bind(
            queue.clone(),
            exchange.clone(),
            key.into(),
            options,
            FieldTable::default(),
        )
        .await?;
    Ok(queue)
}

async fn what_nobody_takes_goes_to_the_alternate_exchange(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let others = exchange(&world, &channel, ExchangeKind::Fanout, FieldTable::default()).await?;
    let rest = bound(&channel, &others, "").await?;
    let alternate = with(&[("alternate-exchange", words(others.as_str()))]);
    let main = exchange(&world, &channel, ExchangeKind::Direct, alternate).await?;
    let queue = bound(&channel, &main, "known").await?;
    for key in ["known", "unknown"] {
        publish(&channel, &main, key, key, BasicProperties::default()).await?;
    }
    equal!(drain(&channel, &queue).await?, ["known"]);
    equal!(drain(&channel, &rest).await?, ["unknown"]);
    Ok(())
}

async fn hash_exchanges_keep_a_key_in_one_queue(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    for kind in ["x-consistent-hash", "x-modulus-hash"] {
        let kind = ExchangeKind::Custom(kind.into());
        let exchange = exchange(&world, &channel, kind, FieldTable::default()).await?;
        let queues = [
            bound(&channel, &exchange, "1").await?,
            bound(&channel, &exchange, "1").await?,
        ];
        for key in numbers(0..40).into_iter().chain(numbers(0..40)) {
            publish(&channel, &exchange, &key, &key, BasicProperties::default()).await?;
        }
        let mut total = 0;
        for queue in &queues {
            let keys = drain(&channel, queue).await?;
            total += keys.len();
            equal!(keys.iter().collect::<HashSet<_>>().len() * 2, keys.len());
        }
        equal!(total, 80);
    }
    Ok(())
}

async fn a_transaction_publishes_at_its_commit(world: World) -> Outcome {
    let connection = world.connect(&port()).await?;
    let channel = connection.create_channel().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    channel.tx_select().await?;
    let send = async |body: &[u8]| {
        let options = BasicPublishOptions::default();
        let properties = BasicProperties::default();
        channel
            .basic_publish("".into(), queue.clone(), options, body, properties)
            .await
    };
    send(b"back").await?;
    channel.tx_rollback().await?;
    send(b"kept").await?;
    equal!(ready(&channel, &queue).await?, 0);
    channel.tx_commit().await?;
    equal!(drain(&channel, &queue).await?, ["kept"]);
    Ok(())
}

async fn requests_are_answered_over_direct_reply_to(world: World) -> Outcome {
    let (_connection, client) = world.confirming().await?;
    let (_other, server) = world.confirming().await?;
    let requests = own_queue(&server, FieldTable::default()).await?;
    let mut calls = consume(&server, &requests, true).await?;
    let reply_to: ShortString = "amq.rabbitmq.reply-to".into();
    let mut replies = consume(&client, &reply_to, true).await?;
    let properties = BasicProperties::default()
        .with_reply_to(reply_to)
        .with_correlation_id("7".into());
    client
        .basic_publish(
            "".into(),
            requests.clone(),
            BasicPublishOptions::default(),
            b"ask",
            properties,
        )
        .await?
        .await?;
    let call = take(&mut calls, 1).await?.remove(0);
    let to = call.properties.reply_to().clone().ok_or("no reply-to")?;
    let answer = BasicProperties::default().with_correlation_id("7".into());
    server
        .basic_publish("".into(), to, BasicPublishOptions::default(), b"done", answer)
        .await?
        .await?;
    let reply = take(&mut replies, 1).await?.remove(0);
    equal!(text(&reply), "done");
    equal!(
        reply
            .properties
            .correlation_id()
            .as_ref()
            .map(ShortString::as_str),
        Some("7")
    );
    Ok(())
}

async fn copies_go_by_cc(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let first = own_queue(&channel, FieldTable::default()).await?;
    let second = own_queue(&channel, FieldTable::default()).await?;
    let copies = AMQPValue::FieldArray(vec![words(second.as_str())].into());
    let properties = BasicProperties::default().with_headers(with(&[("CC", copies)]));
    publish(&channel, &"".into(), first.as_str(), "x", properties).await?;
    for queue in [&first, &second] {
        equal!(drain(&channel, queue).await?, ["x"]);
    }
    Ok(())
}
