//! What a test gets: connections, fresh names, waiting with a deadline, checks.

use std::env;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use futures_lite::StreamExt;
use lapin::message::Delivery;
use lapin::options::{
    BasicConsumeOptions, BasicGetOptions, BasicPublishOptions, BasicQosOptions, ConfirmSelectOptions,
    QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties, Consumer, ErrorKind};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Outcome = Result<(), Failure>;
pub type Body = fn(World) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

pub const DEADLINE: Duration = Duration::from_secs(30);
static NAMES: AtomicU32 = AtomicU32::new(0);

/// A test and what it needs.
pub struct Case {
    pub name: &'static str,
    pub body: Body,
    pub leveret_only: Option<&'static str>,
    pub control: bool,
}

impl Case {
    /// Why this test cannot run here.
    pub fn skipped(&self) -> Option<&'static str> {
        if env::var("LEVERET").as_deref() == Ok("0") && self.leveret_only.is_some() {
            return self.leveret_only;
        }
        (self.control && env::var("CONTROL_PORT").is_err()).then_some("no control over this broker")
    }
}

/// `case!(name of an async fn)`, with `leveret_only = reason` or `control` behind it.
#[macro_export]
macro_rules! case {
    ($name:ident) => {
        $crate::case!(@ $name, None, false)
    };
    ($name:ident, leveret_only = $reason:expr) => {
        $crate::case!(@ $name, Some($reason), false)
    };
    ($name:ident, control) => {
        $crate::case!(@ $name, None, true)
    };
    (@ $name:ident, $reason:expr, $control:expr) => {
        $crate::world::Case {
            name: stringify!($name),
            body: |world| Box::pin($name(world)),
            leveret_only: $reason,
            control: $control,
        }
    };
}

/// Fails the test unless both are equal.
#[macro_export]
macro_rules! equal {
    ($got:expr, $wanted:expr) => {{
        let (got, wanted) = (&$got, &$wanted);
        if got != wanted {
            return Err(format!("{}:{}: got {got:?}, want {wanted:?}", file!(), line!()).into());
        }
    }};
}

fn setting(name: &str, otherwise: &str) -> String {
    env::var(name).unwrap_or_else(|_| otherwise.to_owned())
}

pub fn port() -> String {
    setting("AMQP_PORT", "5672")
}

pub fn alarm_port() -> String {
    env::var("ALARM_PORT").unwrap_or_else(|_| port())
}

pub fn address(user: &str, port: &str, vhost: &str) -> String {
    format!(
        "amqp://{user}@{}:{port}/{vhost}",
        setting("AMQP_HOST", "127.0.0.1")
    )
}

/// Opens connections and makes names.
#[derive(Default)]
pub struct World;

impl World {
    pub fn name(&self) -> ShortString {
        let nanos = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_nanos());
        format!("lapin.{nanos:x}.{}", NAMES.fetch_add(1, Ordering::Relaxed)).into()
    }

    pub async fn connect(&self, port: &str) -> Result<Connection, Failure> {
        let address = address("guest:guest", port, "%2f");
        Ok(Connection::connect(&address, ConnectionProperties::default()).await?)
    }

    /// A connection with one channel in confirm mode; dropping the connection closes both.
    pub async fn confirming(&self) -> Result<(Connection, Channel), Failure> {
        let connection = self.connect(&port()).await?;
        let channel = connection.create_channel().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        Ok((connection, channel))
    }

    /// Asks the harness for something to happen to the broker.
    pub async fn control(&self, verb: &str) -> Outcome {
        let mut line = TcpStream::connect(format!("127.0.0.1:{}", env::var("CONTROL_PORT")?)).await?;
        line.write_all(format!("{verb}\n").as_bytes()).await?;
        let mut answer = String::new();
        BufReader::new(line).read_line(&mut answer).await?;
        equal!(answer.trim(), "ok");
        Ok(())
    }
}

/// A server-named, exclusive queue.
pub async fn own_queue(channel: &Channel, arguments: FieldTable) -> Result<ShortString, Failure> {
    let queue = channel
        .queue_declare("".into(), QueueDeclareOptions::exclusive(), arguments)
        .await?;
    Ok(queue.name().clone())
}

/// A durable queue of a name of its own.
pub async fn durable_queue(world: &World, channel: &Channel) -> Result<ShortString, Failure> {
    let queue = world.name();
    let options = QueueDeclareOptions::durable();
    channel
        .queue_declare(queue.clone(), options, FieldTable::default())
        .await?;
    Ok(queue)
}

/// Arguments or headers.
pub fn with(entries: &[(&str, AMQPValue)]) -> FieldTable {
    let mut table = FieldTable::default();
    for (key, value) in entries {
        table.insert((*key).into(), value.clone());
    }
    table
}

pub fn words(text: &str) -> AMQPValue {
    AMQPValue::LongString(text.into())
}

/// Publishes and waits for the confirm.
pub async fn publish(
    channel: &Channel,
    exchange: &ShortString,
    key: &str,
    body: &str,
    properties: BasicProperties,
) -> Outcome {
    let options = BasicPublishOptions::default();
    let confirm = channel
        .basic_publish(exchange.clone(), key.into(), options, body.as_bytes(), properties)
        .await?
        .await?;
    equal!(confirm.is_ack(), true);
    Ok(())
}

/// Publishes the numbers from 0.
pub async fn fill(channel: &Channel, queue: &ShortString, count: usize) -> Outcome {
    for n in 0..count {
        publish(
            channel,
            &"".into(),
            queue.as_str(),
            &n.to_string(),
            BasicProperties::default(),
        )
        .await?;
    }
    Ok(())
}

pub fn text(delivery: &Delivery) -> String {
    String::from_utf8_lossy(&delivery.data).into_owned()
}

pub fn numbers(range: std::ops::Range<usize>) -> Vec<String> {
    range.map(|n| n.to_string()).collect()
}

/// Everything in the queue.
pub async fn drain(channel: &Channel, queue: &ShortString) -> Result<Vec<String>, Failure> {
    let mut bodies = Vec::new();
    while let Some(got) = channel
        .basic_get(queue.clone(), BasicGetOptions { no_ack: true })
        .await?
    {
        bodies.push(text(&got.delivery));
    }
    Ok(bodies)
}

/// Ready messages.
pub async fn ready(channel: &Channel, queue: &ShortString) -> Result<u32, Failure> {
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    Ok(channel
        .queue_declare(queue.clone(), passive, FieldTable::default())
        .await?
        .message_count())
}

pub async fn consume(channel: &Channel, queue: &ShortString, no_ack: bool) -> Result<Consumer, Failure> {
    let options = BasicConsumeOptions {
        no_ack,
        ..BasicConsumeOptions::default()
    };
    Ok(channel
        .basic_consume(queue.clone(), "".into(), options, FieldTable::default())
        .await?)
}

pub async fn prefetch(channel: &Channel, count: u16, global: bool) -> Outcome {
    channel.basic_qos(count, BasicQosOptions { global }).await?;
    Ok(())
}

/// The next deliveries.
pub async fn take(consumer: &mut Consumer, count: usize) -> Result<Vec<Delivery>, Failure> {
    let mut got = Vec::new();
    while got.len() < count {
        let next = tokio::time::timeout(DEADLINE, consumer.next()).await;
        let delivery = next
            .map_err(|_| format!("{} of {count} deliveries", got.len()))?
            .ok_or("the consumer ended")??;
        got.push(delivery);
    }
    Ok(got)
}

pub fn bodies(deliveries: &[Delivery]) -> Vec<String> {
    deliveries.iter().map(text).collect()
}

/// Checks that the broker refused with this code, scope and text.
pub fn refused<T: Debug>(result: Result<T, lapin::Error>, code: u16, hard: bool, part: &str) -> Outcome {
    let error = match result {
        Err(error) => error,
        Ok(value) => return Err(format!("not refused but {value:?}").into()),
    };
    let ErrorKind::ProtocolError(reply) = error.kind() else {
        return Err(format!("not the broker's refusal: {error}").into());
    };
    equal!(reply.get_id(), code);
    equal!(error.is_amqp_hard_error(), hard);
    if !reply.get_message().as_str().contains(part) {
        return Err(format!("the text is {:?}", reply.get_message()).into());
    }
    Ok(())
}
