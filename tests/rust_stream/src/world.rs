//! What a test gets: an environment, fresh names, waiting with a deadline, checks.

use std::env;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use futures_lite::StreamExt;
use rabbitmq_stream_client::types::{Delivery, Message, OffsetSpecification};
use rabbitmq_stream_client::{Consumer, Environment, EnvironmentBuilder, NoDedup, Producer};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

pub type Failure = Box<dyn std::error::Error + Send + Sync>;
pub type Outcome = Result<(), Failure>;
pub type Body = fn(World) -> Pin<Box<dyn Future<Output = Outcome> + Send>>;

const DEADLINE: Duration = Duration::from_secs(30);
static NAMES: AtomicU32 = AtomicU32::new(0);

/// A test and what it needs.
pub struct Case {
    pub name: &'static str,
    pub body: Body,
    pub control: bool,
}

impl Case {
    /// Why this test cannot run here.
    pub fn skipped(&self) -> Option<&'static str> {
        if env::var("STREAM_PORT").is_err() {
            return Some("no port of the stream protocol is given");
        }
        (self.control && env::var("CONTROL_PORT").is_err()).then_some("no control over this broker")
    }
}

/// `case!(name of an async fn)`, with `control` behind it if it restarts the broker.
#[macro_export]
macro_rules! case {
    ($name:ident) => {
        $crate::case!(@ $name, false)
    };
    ($name:ident, control) => {
        $crate::case!(@ $name, true)
    };
    (@ $name:ident, $control:expr) => {
        $crate::world::Case {
            name: stringify!($name),
            body: |world| Box::pin($name(world)),
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

/// Connects, and makes names.
pub struct World;

impl World {
    pub fn name(&self) -> String {
        let nanos = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_nanos());
        format!("rust.{nanos:x}.{}", NAMES.fetch_add(1, Ordering::Relaxed))
    }

    pub fn builder(&self) -> Result<EnvironmentBuilder, Failure> {
        let host = env::var("AMQP_HOST").unwrap_or_else(|_| "127.0.0.1".to_owned());
        Ok(Environment::builder()
            .host(&host)
            .port(env::var("STREAM_PORT")?.parse()?))
    }

    pub async fn environment(&self) -> Result<Environment, Failure> {
        Ok(self.builder()?.build().await?)
    }

    /// An environment with a stream; the test deletes it.
    pub async fn stream(&self) -> Result<(Environment, String), Failure> {
        let environment = self.environment().await?;
        let name = self.name();
        environment.stream_creator().create(&name).await?;
        Ok((environment, name))
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

pub fn plain(body: impl ToString) -> Message {
    Message::builder().body(body.to_string()).build()
}

pub fn numbers(from: u32, to: u32) -> Vec<String> {
    (from..to).map(|number| number.to_string()).collect()
}

/// Publishes numbers in one batch, and waits until each is confirmed.
pub async fn fill(producer: &Producer<NoDedup>, from: u32, to: u32) -> Outcome {
    let statuses = producer
        .batch_send_with_confirm((from..to).map(plain).collect())
        .await?;
    equal!(statuses.len(), (to - from) as usize);
    equal!(statuses.iter().all(|status| status.confirmed()), true);
    Ok(())
}

/// A message a batch.
pub async fn one_by_one(producer: &Producer<NoDedup>, from: u32, to: u32) -> Outcome {
    for number in from..to {
        equal!(producer.send_with_confirm(plain(number)).await?.confirmed(), true);
    }
    Ok(())
}

pub async fn reading(
    environment: &Environment,
    stream: &str,
    from: OffsetSpecification,
) -> Result<Consumer, Failure> {
    Ok(environment.consumer().offset(from).build(stream).await?)
}

pub async fn next(consumer: &mut Consumer) -> Result<Delivery, Failure> {
    let got = tokio::time::timeout(DEADLINE, consumer.next()).await?;
    Ok(got.ok_or("the consumer has ended")??)
}

pub fn text(delivery: &Delivery) -> String {
    String::from_utf8_lossy(delivery.message().data().unwrap_or_default()).into_owned()
}

pub async fn take(consumer: &mut Consumer, count: usize) -> Result<Vec<String>, Failure> {
    let mut texts = Vec::new();
    while texts.len() < count {
        texts.push(text(&next(consumer).await?));
    }
    Ok(texts)
}

pub async fn nothing_more(consumer: &mut Consumer) -> Outcome {
    match tokio::time::timeout(Duration::from_millis(500), consumer.next()).await {
        Err(_) => Ok(()),
        Ok(got) => Err(format!("something came: {got:?}").into()),
    }
}
