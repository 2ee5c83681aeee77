//! Kinds of queues, their limits and ends, restart.

use lapin::BasicProperties;
use lapin::options::{
    BasicCancelOptions, ExchangeDeleteOptions, QueueBindOptions, QueueDeclareOptions, QueueDeleteOptions,
    QueuePurgeOptions,
};
use lapin::types::{AMQPValue, FieldTable};

use crate::world::{
    Case, Outcome, World, consume, drain, durable_queue, fill, numbers, own_queue, port, publish, ready,
    refused, with, words,
};
use crate::{case, equal};

pub fn cases() -> Vec<Case> {
    vec![
        case!(exclusive_goes_with_its_connection),
        case!(auto_delete_goes_with_its_last_consumer),
        case!(max_length_keeps_the_newest),
        case!(purge_and_idempotent_deletes),
        case!(the_last_declared_queue_is_meant_by_the_empty_name),
        case!(durable_queue_after_a_restart, control),
    ]
}

fn passive() -> QueueDeclareOptions {
    QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    }
}

async fn exclusive_goes_with_its_connection(world: World) -> Outcome {
    let (owner, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    equal!(queue.as_str().starts_with("amq.gen-"), true);
    let other = world.connect(&port()).await?;
    let locked = other
        .create_channel()
        .await?
        .queue_declare(queue.clone(), passive(), FieldTable::default())
        .await;
    refused(
        locked,
        405,
        false,
        "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue",
    )?;
    owner.close(200, "bye".into()).await?;
    let gone = other
        .create_channel()
        .await?
        .queue_declare(queue.clone(), passive(), FieldTable::default())
        .await;
    refused(
        gone,
        404,
        false,
        &format!("NOT_FOUND - no queue '{queue}' in vhost '/'"),
    )
}

async fn auto_delete_goes_with_its_last_consumer(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = world.name();
    let options = QueueDeclareOptions {
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.clone(), options, FieldTable::default())
        .await?;
    let consumer = consume(&channel, &queue, true).await?;
    equal!(ready(&channel, &queue).await?, 0);
    channel
        .basic_cancel(consumer.tag(), BasicCancelOptions::default())
        .await?;
    refused(
        channel
            .queue_declare(queue, passive(), FieldTable::default())
            .await,
        404,
        false,
        "no queue",
    )
}

async fn max_length_keeps_the_newest(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let mut arguments = FieldTable::default();
    arguments.insert("x-max-length".into(), AMQPValue::LongInt(3));
    let queue = own_queue(&channel, arguments).await?;
    fill(&channel, &queue, 8).await?;
    equal!(drain(&channel, &queue).await?, numbers(5..8));
    Ok(())
}

async fn purge_and_idempotent_deletes(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    fill(&channel, &queue, 4).await?;
    equal!(
        channel
            .queue_purge(queue.clone(), QueuePurgeOptions::default())
            .await?,
        4
    );
    fill(&channel, &queue, 2).await?;
    equal!(
        channel
            .queue_delete(queue.clone(), QueueDeleteOptions::default())
            .await?,
        2
    );
    equal!(
        channel.queue_delete(queue, QueueDeleteOptions::default()).await?,
        0
    );
    channel
        .exchange_delete(world.name(), ExchangeDeleteOptions::default())
        .await?;
    Ok(())
}

async fn the_last_declared_queue_is_meant_by_the_empty_name(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    let options = QueueBindOptions::default();
    channel
        .queue_bind(
            "".into(),
            "amq.direct".into(),
            "".into(),
            options,
            FieldTable::default(),
        )
        .await?;
    publish(
        &channel,
        &"amq.direct".into(),
        queue.as_str(),
        "x",
        BasicProperties::default(),
    )
    .await?;
    equal!(
        channel
            .queue_purge("".into(), QueuePurgeOptions::default())
            .await?,
        1
    );
    Ok(())
}

async fn durable_queue_after_a_restart(world: World) -> Outcome {
    let (connection, channel) = world.confirming().await?;
    let queue = durable_queue(&world, &channel).await?;
    // A quorum queue would keep what is transient.
    let brief = format!("{queue}.brief");
    let classic = with(&[("x-queue-type", words("classic"))]);
    channel
        .queue_declare(brief.clone().into(), QueueDeclareOptions::durable(), classic)
        .await?;
    let options = QueueBindOptions::default();
    channel
        .queue_bind(
            queue.clone(),
            "amq.topic".into(),
            format!("{queue}.*").into(),
            options,
            FieldTable::default(),
        )
        .await?;
    for n in numbers(0..30) {
        let persistent = BasicProperties::default().with_delivery_mode(2);
        publish(
            &channel,
            &"amq.topic".into(),
            &format!("{queue}.key"),
            &n,
            persistent,
        )
        .await?;
        publish(
            &channel,
            &"".into(),
            &brief,
            "transient",
            BasicProperties::default(),
        )
        .await?;
    }
    world.control("restart").await?;
    drop(connection);
    let (_connection, channel) = world.confirming().await?;
    equal!(drain(&channel, &queue).await?, numbers(0..30));
    publish(
        &channel,
        &"amq.topic".into(),
        &format!("{queue}.x"),
        "bound",
        BasicProperties::default(),
    )
    .await?;
    equal!(drain(&channel, &queue).await?, ["bound"]);
    let options = QueueDeleteOptions::default();
    equal!(channel.queue_delete(brief.into(), options).await?, 0);
    channel.queue_delete(queue, options).await?;
    Ok(())
}
