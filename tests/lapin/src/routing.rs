//! Exchange types and exchange-to-exchange bindings.

use lapin::options::{ExchangeBindOptions, ExchangeDeclareOptions, ExchangeUnbindOptions, QueueBindOptions};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, ExchangeKind};

use crate::world::{Case, Failure, Outcome, World, drain, own_queue, publish};
use crate::{case, equal};

pub fn cases() -> Vec<Case> {
    vec![
        case!(default_exchange),
        case!(direct),
        case!(fanout),
        case!(topic),
        case!(headers),
        case!(exchange_to_exchange),
    ]
}

async fn exchange(world: &World, channel: &Channel, kind: ExchangeKind) -> Result<ShortString, Failure> {
    let name = world.name();
    let options = ExchangeDeclareOptions {
        auto_delete: true,
        ..ExchangeDeclareOptions::default()
    };
    channel
        .exchange_declare(name.clone(), kind, options, FieldTable::default())
        .await?;
    Ok(name)
}

async fn bound(
    channel: &Channel,
    exchange: &ShortString,
    key: &str,
    arguments: FieldTable,
) -> Result<ShortString, Failure> {
    let queue = own_queue(channel, FieldTable::default()).await?;
    channel
        .queue_bind(
            queue.clone(),
            exchange.clone(),
            key.into(),
            QueueBindOptions::default(),
            arguments,
        )
        .await?;
    Ok(queue)
}

fn table(entries: &[(&str, &str)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (key, value) in entries {
        table.insert((*key).into(), AMQPValue::LongString((*value).into()));
    }
    table
}

async fn send(channel: &Channel, exchange: &ShortString, key: &str) -> Outcome {
    publish(channel, exchange, key, key, BasicProperties::default()).await
}

async fn default_exchange(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let queue = own_queue(&channel, FieldTable::default()).await?;
    send(&channel, &"".into(), queue.as_str()).await?;
    equal!(drain(&channel, &queue).await?, [queue.to_string()]);
    Ok(())
}

async fn direct(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let exchange = exchange(&world, &channel, ExchangeKind::Direct).await?;
    let first = bound(&channel, &exchange, "a", FieldTable::default()).await?;
    let second = bound(&channel, &exchange, "b", FieldTable::default()).await?;
    for key in ["a", "b", "c"] {
        send(&channel, &exchange, key).await?;
    }
    equal!(drain(&channel, &first).await?, ["a"]);
    equal!(drain(&channel, &second).await?, ["b"]);
    Ok(())
}

async fn fanout(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let exchange = exchange(&world, &channel, ExchangeKind::Fanout).await?;
    let first = bound(&channel, &exchange, "", FieldTable::default()).await?;
    let second = bound(&channel, &exchange, "ignored", FieldTable::default()).await?;
    send(&channel, &exchange, "any").await?;
    equal!(drain(&channel, &first).await?, ["any"]);
    equal!(drain(&channel, &second).await?, ["any"]);
    Ok(())
}

async fn topic(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let exchange = exchange(&world, &channel, ExchangeKind::Topic).await?;
    let wanted: [(&str, &[&str]); 5] = [
        ("usa.*", &["usa.news"]),
        ("#.weather", &["usa.x.weather", "weather"]),
        ("#", &["usa.news", "usa.x.weather", "weather"]),
        ("usa.#", &["usa.news", "usa.x.weather"]),
        ("*.*.weather", &["usa.x.weather"]),
    ];
    let mut queues = Vec::new();
    for (pattern, _) in wanted {
        queues.push(bound(&channel, &exchange, pattern, FieldTable::default()).await?);
    }
    for key in ["usa.news", "usa.x.weather", "weather"] {
        send(&channel, &exchange, key).await?;
    }
    for ((_, keys), queue) in wanted.iter().zip(&queues) {
        equal!(
            drain(&channel, queue).await?,
            keys.iter().map(ToString::to_string).collect::<Vec<_>>()
        );
    }
    Ok(())
}

async fn headers(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let exchange = exchange(&world, &channel, ExchangeKind::Headers).await?;
    let wanted: [(&[(&str, &str)], &[&str]); 4] = [
        (&[("x-match", "all"), ("a", "1"), ("b", "2")], &["both"]),
        (&[("x-match", "any"), ("a", "1"), ("b", "2")], &["both", "one"]),
        (&[("x-match", "all-with-x"), ("x-a", "1")], &["x"]),
        (
            &[("x-match", "any-with-x"), ("x-a", "1"), ("a", "1")],
            &["both", "one", "x"],
        ),
    ];
    let mut queues = Vec::new();
    for (arguments, _) in wanted {
        queues.push(bound(&channel, &exchange, "", table(arguments)).await?);
    }
    let messages: [(&str, &[(&str, &str)]); 4] = [
        ("both", &[("a", "1"), ("b", "2")]),
        ("one", &[("a", "1")]),
        ("none", &[("a", "9")]),
        ("x", &[("x-a", "1")]),
    ];
    for (body, headers) in messages {
        publish(
            &channel,
            &exchange,
            "",
            body,
            BasicProperties::default().with_headers(table(headers)),
        )
        .await?;
    }
    for ((_, names), queue) in wanted.iter().zip(&queues) {
        equal!(
            drain(&channel, queue).await?,
            names.iter().map(ToString::to_string).collect::<Vec<_>>()
        );
    }
    Ok(())
}

async fn exchange_to_exchange(world: World) -> Outcome {
    let (_connection, channel) = world.confirming().await?;
    let source = exchange(&world, &channel, ExchangeKind::Direct).await?;
    let sink = exchange(&world, &channel, ExchangeKind::Fanout).await?;
    // A second binding keeps the auto-delete source alive after the unbind.
    let _kept = bound(&channel, &source, "kept", FieldTable::default()).await?;
    let options = ExchangeBindOptions::default();
    channel
        .exchange_bind(
            sink.clone(),
            source.clone(),
            "k".into(),
            options,
            FieldTable::default(),
        )
        .await?;
    let queue = bound(&channel, &sink, "", FieldTable::default()).await?;
    send(&channel, &source, "k").await?;
    send(&channel, &source, "other").await?;
    equal!(drain(&channel, &queue).await?, ["k"]);
    let options = ExchangeUnbindOptions::default();
    channel
        .exchange_unbind(sink, source.clone(), "k".into(), options, FieldTable::default())
        .await?;
    send(&channel, &source, "k").await?;
    equal!(drain(&channel, &queue).await?.len(), 0);
    Ok(())
}
