//! connection.blocked and connection.unblocked.

use std::pin::pin;
use std::time::{Duration, Instant};

use futures_lite::{Stream, StreamExt};
use lapin::options::{BasicPublishOptions, QueueDeleteOptions};
use lapin::{BasicProperties, Event};

use crate::world::{Case, DEADLINE, Failure, Outcome, World, alarm_port, drain, durable_queue};
use crate::{case, equal};

pub fn cases() -> Vec<Case> {
    vec![case!(a_publisher_is_blocked_and_a_consumer_is_not, control)]
}

/// The next event of interest, within a time.
async fn heard(events: &mut (impl Stream<Item = Event> + Unpin), within: Duration) -> Option<Event> {
    let interesting =
        events.find(|event| matches!(event, Event::ConnectionBlocked(_) | Event::ConnectionUnblocked));
    tokio::time::timeout(within, interesting).await.ok().flatten()
}

async fn a_publisher_is_blocked_and_a_consumer_is_not(world: World) -> Outcome {
    world.control("alarm-on").await?;
    let outcome = blocked_and_unblocked(&world).await;
    world.control("alarm-off").await?;
    outcome
}

async fn blocked_and_unblocked(world: &World) -> Outcome {
    let connection = world.connect(&alarm_port()).await?;
    let mut events = pin!(connection.events_listener());
    let publisher = connection.create_channel().await?;
    let consuming = world.connect(&alarm_port()).await?;
    let consumer = consuming.create_channel().await?;
    let queue = durable_queue(world, &consumer).await?;
    let publish = async |body: &'static [u8]| -> Result<(), Failure> {
        let options = BasicPublishOptions::default();
        publisher
            .basic_publish(
                "".into(),
                queue.clone(),
                options,
                body,
                BasicProperties::default(),
            )
            .await?;
        Ok(())
    };
    let started = Instant::now();
    let reason = loop {
        publish(b"x").await?;
        match heard(&mut events, Duration::from_millis(100)).await {
            Some(Event::ConnectionBlocked(reason)) => break reason,
            _ if started.elapsed() > DEADLINE => return Err("no connection.blocked".into()),
            _ => {}
        }
    };
    equal!(reason, "low on disk");
    drain(&consumer, &queue).await?;
    world.control("alarm-off").await?;
    equal!(
        matches!(
            heard(&mut events, DEADLINE).await,
            Some(Event::ConnectionUnblocked)
        ),
        true
    );
    publish(b"after").await?;
    let started = Instant::now();
    while drain(&consumer, &queue).await?.last().map(String::as_str) != Some("after") {
        if started.elapsed() > DEADLINE {
            return Err("the message after the alarm never came".into());
        }
        tokio::task::yield_now().await;
    }
    consumer
        .queue_delete(queue, QueueDeleteOptions::default())
        .await?;
    Ok(())
}
