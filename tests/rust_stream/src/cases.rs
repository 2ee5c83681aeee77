//! Streams by the Rust client: order, offsets, refusals, publishers known again, filters, groups, super streams.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_lite::StreamExt;
use rabbitmq_stream_client::FilterConfiguration;
use rabbitmq_stream_client::error::{ClientError, ProducerCreateError, StreamCreateError, StreamDeleteError};
use rabbitmq_stream_client::types::{
    ByteCapacity, HashRoutingMurmurStrategy, Message, OffsetSpecification, ResponseCode, RoutingStrategy,
};
use tokio::sync::mpsc;

use crate::world::{
    Case, Failure, Outcome, World, fill, next, nothing_more, numbers, one_by_one, plain, reading, take, text,
};
use crate::{case, equal};

pub fn cases() -> Vec<Case> {
    vec![
        case!(many_in_order_with_their_offsets),
        case!(where_readers_begin),
        case!(declared_twice_and_deleted),
        case!(logins_that_are_refused),
        case!(numbers_of_a_named_publisher_are_known_again),
        case!(offsets_are_stored),
        case!(filters_leave_out_chunks),
        case!(one_of_a_group_is_active),
        case!(super_streams),
        case!(messages_survive_a_restart, control),
    ]
}

async fn many_in_order_with_their_offsets(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let producer = environment.producer().build(&stream).await?;
    fill(&producer, 0, 5_000).await?;
    let mut consumer = reading(&environment, &stream, OffsetSpecification::First).await?;
    for number in 0..5_000_u64 {
        let got = next(&mut consumer).await?;
        equal!((text(&got), got.offset()), (number.to_string(), number));
    }
    consumer.handle().close().await?;
    producer.close().await?;
    Ok(environment.delete_stream(&stream).await?)
}

async fn where_readers_begin(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let producer = environment.producer().build(&stream).await?;
    one_by_one(&producer, 0, 10).await?;
    let mut from_offset = reading(&environment, &stream, OffsetSpecification::Offset(4)).await?;
    equal!(take(&mut from_offset, 6).await?, numbers(4, 10));
    let mut from_last = reading(&environment, &stream, OffsetSpecification::Last).await?;
    equal!(take(&mut from_last, 1).await?, numbers(9, 10));
    let mut from_old = reading(&environment, &stream, OffsetSpecification::Timestamp(0)).await?;
    equal!(take(&mut from_old, 10).await?, numbers(0, 10));
    let mut from_next = reading(&environment, &stream, OffsetSpecification::Next).await?;
    nothing_more(&mut from_next).await?;
    one_by_one(&producer, 10, 11).await?;
    equal!(take(&mut from_next, 1).await?, numbers(10, 11));
    Ok(environment.delete_stream(&stream).await?)
}

fn create_code(outcome: Result<(), StreamCreateError>) -> Option<ResponseCode> {
    match outcome {
        Err(StreamCreateError::Create { status, .. }) => Some(status),
        _ => None,
    }
}

async fn declared_twice_and_deleted(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let again = environment.stream_creator().create(&stream).await;
    equal!(create_code(again), Some(ResponseCode::StreamAlreadyExists));
    let creator = environment.stream_creator().max_length(ByteCapacity::MB(5));
    equal!(
        create_code(creator.create(&stream).await),
        Some(ResponseCode::PreconditionFailed)
    );
    environment.delete_stream(&stream).await?;
    match environment.delete_stream(&stream).await {
        Err(StreamDeleteError::Delete { status, .. }) => {
            equal!(status, ResponseCode::StreamDoesNotExist);
        }
        other => return Err(format!("not refused: {other:?}").into()),
    }
    match environment.producer().build(&stream).await {
        Err(ProducerCreateError::StreamDoesNotExist { .. }) => Ok(()),
        Err(other) => Err(other.into()),
        Ok(_) => Err("a producer of nothing".into()),
    }
}

async fn logins_that_are_refused(world: World) -> Outcome {
    for (builder, wanted) in [
        (
            world.builder()?.password("wrong"),
            ResponseCode::AuthenticationFailure,
        ),
        (
            world.builder()?.virtual_host("nowhere"),
            ResponseCode::VirtualHostAccessFailure,
        ),
    ] {
        match builder.build().await {
            Err(ClientError::RequestError(code)) => equal!(code, wanted),
            Err(other) => return Err(other.into()),
            Ok(_) => return Err("let in".into()),
        }
    }
    Ok(())
}

async fn numbers_of_a_named_publisher_are_known_again(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let mut producer = environment.producer().name("writer").build(&stream).await?;
    for (prefix, from, to) in [("a", 1, 6), ("b", 4, 9)] {
        for number in from..to {
            let message = Message::builder()
                .publishing_id(number)
                .body(format!("{prefix}{number}"))
                .build();
            equal!(producer.send_with_confirm(message).await?.confirmed(), true);
        }
    }
    let mut consumer = reading(&environment, &stream, OffsetSpecification::First).await?;
    equal!(
        take(&mut consumer, 8).await?,
        ["a1", "a2", "a3", "a4", "a5", "b6", "b7", "b8"]
    );
    nothing_more(&mut consumer).await?;
    Ok(environment.delete_stream(&stream).await?)
}

async fn offsets_are_stored(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let producer = environment.producer().build(&stream).await?;
    one_by_one(&producer, 0, 10).await?;
    let mut consumer = environment
        .consumer()
        .name("reader")
        .offset(OffsetSpecification::First)
        .build(&stream)
        .await?;
    equal!(consumer.query_offset().await.is_err(), true);
    equal!(take(&mut consumer, 10).await?, numbers(0, 10));
    consumer.store_offset(6).await?;
    let mut stored = None;
    for _ in 0..100 {
        stored = consumer.query_offset().await.ok();
        if stored.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    equal!(stored, Some(6));
    Ok(environment.delete_stream(&stream).await?)
}

async fn filters_leave_out_chunks(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let producer = environment
        .producer()
        .filter_value_extractor(|message: &Message| {
            String::from_utf8_lossy(message.data().unwrap_or_default()).into_owned()
        })
        .build(&stream)
        .await?;
    let unfiltered = environment.producer().build(&stream).await?;
    for _ in 0..5 {
        for fruit in ["apple", "pear"] {
            equal!(producer.send_with_confirm(plain(fruit)).await?.confirmed(), true);
        }
        equal!(
            unfiltered.send_with_confirm(plain("none")).await?.confirmed(),
            true
        );
    }
    for (too, count, wanted) in [(false, 5, vec!["pear"]), (true, 10, vec!["none", "pear"])] {
        let mut consumer = environment
            .consumer()
            .offset(OffsetSpecification::First)
            .filter_input(Some(FilterConfiguration::new(vec!["pear".to_owned()], too)))
            .build(&stream)
            .await?;
        let kinds: BTreeSet<String> = take(&mut consumer, count).await?.into_iter().collect();
        equal!(kinds.into_iter().collect::<Vec<_>>(), wanted);
        nothing_more(&mut consumer).await?;
        consumer.handle().close().await?;
    }
    Ok(environment.delete_stream(&stream).await?)
}

async fn one_of_a_group_is_active(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let (told, mut hears) = mpsc::unbounded_channel();
    let mut members = Vec::new();
    for member in 0..2 {
        let told = told.clone();
        members.push(
            environment
                .consumer()
                .name("group")
                .enable_single_active_consumer(true)
                .consumer_update(move |active, _| {
                    let _ = told.send((member, active));
                    async { OffsetSpecification::First }
                })
                .build(&stream)
                .await?,
        );
    }
    let producer = environment.producer().build(&stream).await?;
    one_by_one(&producer, 0, 5).await?;
    equal!(hears.recv().await, Some((0, 1)));
    equal!(take(&mut members[0], 5).await?, numbers(0, 5));
    nothing_more(&mut members[1]).await?;
    members[0].handle().close().await?;
    equal!(hears.recv().await, Some((1, 1)));
    equal!(take(&mut members[1], 5).await?, numbers(0, 5));
    Ok(environment.delete_stream(&stream).await?)
}

fn body_of(message: &Message) -> String {
    String::from_utf8_lossy(message.data().unwrap_or_default()).into_owned()
}

async fn super_streams(world: World) -> Outcome {
    let environment = world.environment().await?;
    let name = world.name();
    environment
        .stream_creator()
        .create_super_stream(&name, 3, None)
        .await?;
    let again = environment
        .stream_creator()
        .create_super_stream(&name, 3, None)
        .await;
    equal!(create_code(again), Some(ResponseCode::StreamAlreadyExists));
    let mut producer = environment
        .super_stream_producer(RoutingStrategy::HashRoutingStrategy(HashRoutingMurmurStrategy {
            routing_extractor: &body_of,
        }))
        .build(&name)
        .await?;
    let (confirmed, mut confirms) = mpsc::unbounded_channel();
    for number in 0..100 {
        let confirmed = confirmed.clone();
        let sent = producer.send(plain(number), move |status| {
            let _ = confirmed.send(status.is_ok_and(|status| status.confirmed()));
            async {}
        });
        sent.await.map_err(|error| Failure::from(error.to_string()))?;
    }
    for _ in 0..100 {
        equal!(confirms.recv().await, Some(true));
    }
    let mut consumer = environment
        .super_stream_consumer()
        .offset(OffsetSpecification::First)
        .build(&name)
        .await?;
    let (mut bodies, mut partitions) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..100 {
        let got = consumer.next().await.ok_or("the consumer has ended")??;
        bodies.insert(text(&got));
        partitions.insert(got.stream().clone());
    }
    equal!(bodies, numbers(0, 100).into_iter().collect());
    equal!(
        partitions,
        (0..3).map(|partition| format!("{name}-{partition}")).collect()
    );
    consumer.handle().close().await?;
    Ok(environment.delete_super_stream(&name).await?)
}

async fn messages_survive_a_restart(world: World) -> Outcome {
    let (environment, stream) = world.stream().await?;
    let producer = environment.producer().build(&stream).await?;
    fill(&producer, 0, 500).await?;
    producer.close().await?;
    world.control("restart").await?;
    let environment = world.environment().await?;
    let mut consumer = reading(&environment, &stream, OffsetSpecification::First).await?;
    equal!(take(&mut consumer, 500).await?, numbers(0, 500));
    Ok(environment.delete_stream(&stream).await?)
}
