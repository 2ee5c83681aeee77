//! Waiting until as many instances are there as were expected, so that several processes, on one machine or many, start at the
//! same time.
//!
//! PerfTest finds the others with multicast or through Kubernetes. All instances reach the same broker anyway, so here they
//! meet there, which needs nothing else: each consumes from one queue, named after the id and the namespace, whose number of
//! consumers is the number of instances. Whoever sees that all are there publishes a message for each; whoever has got one
//! starts, even if others have left by then.

use crate::client::{Addresses, Client};
use crate::failure::Failure;
use crate::oauth2::Tokens;
use crate::plan::{Instances, Plan};
use model::table::{Table, Value};
use protocol::amqp::method::QueueDeclare;
use protocol::amqp::{Method, RawTable};
use std::time::{Duration, Instant};

/// How often an instance counts.
const BETWEEN_COUNTS: Duration = Duration::from_millis(100);
/// If all instances die, the broker deletes the queue after this time without use.
const EXPIRY: Duration = Duration::from_secs(60);
const CHANNEL: u16 = 1;

/// Waits until `instances.expected` processes wait here, on the same broker and virtual host, with the same id and namespace.
///
/// # Errors
/// [`Failure::Connect`] if they have not all come in time; what the broker refuses.
pub fn barrier(plan: &Plan, instances: &Instances) -> Result<(), Failure> {
    if instances.expected <= 1 {
        return Ok(());
    }
    let token = plan.connection.oauth2.as_ref().map(Tokens::fetch).transpose()?;
    let token = token.as_ref().map(|it| it.value.as_str());
    let addresses = Addresses::new(&plan.uris, plan.allocation);
    let mut client = addresses.open(0, &plan.connection, "perf-test-instance-sync", &plan.id, token)?;
    let result = meet(&mut client, &queue_name(plan, instances), instances);
    client.close();
    result
}

fn queue_name(plan: &Plan, instances: &Instances) -> String {
    match &instances.namespace {
        Some(namespace) => format!("perf-test-instances-{namespace}-{}", plan.id),
        None => format!("perf-test-instances-{}", plan.id),
    }
}

fn meet(client: &mut Client, queue: &str, instances: &Instances) -> Result<(), Failure> {
    let deadline = Instant::now() + instances.timeout;
    let mut arguments = Vec::new();
    // A classic queue, whatever the virtual host's default is: it can be deleted with its last consumer.
    Table::new()
        .with("x-queue-type", "classic")
        .with("x-expires", Value::Long(EXPIRY.as_millis() as i64))
        .encode(&mut arguments);
    client.open_channel(CHANNEL)?;
    let declare = QueueDeclare {
        queue,
        durable: true,
        auto_delete: true,
        arguments: RawTable(&arguments),
        ..Default::default()
    };
    client.declare_queue(CHANNEL, &declare)?;
    // One message and no more for each instance; what it leaves unacknowledged goes to the others when it is gone.
    client.qos(CHANNEL, 1, false)?;
    let mut delivered = |method: &Method<'_>| matches!(method, Method::BasicDeliver(_)).then_some(());
    let consume = protocol::amqp::method::BasicConsume {
        queue,
        ..Default::default()
    };
    client.call(CHANNEL, &consume, |method| {
        matches!(method, Method::BasicConsumeOk(_)).then_some(())
    })?;
    let mut most = 0;
    loop {
        let passive = QueueDeclare {
            queue,
            passive: true,
            ..Default::default()
        };
        let mut called = false;
        let consumers = client.call(CHANNEL, &passive, |method| match method {
            Method::QueueDeclareOk(ok) => Some(ok.consumer_count),
            other => {
                called |= delivered(other).is_some();
                None
            }
        })?;
        if called {
            return Ok(());
        }
        most = most.max(consumers);
        if consumers as usize >= instances.expected {
            for _ in 0..instances.expected {
                client.publish(CHANNEL, "", queue, b"\0\0", b"go")?;
            }
            return Ok(());
        }
        if Instant::now() >= deadline {
            return Err(Failure::Connect(format!(
                "{most} of {} instances came within {} s: start the others with the same --id, --instance-sync-namespace, broker and virtual host, or wait longer with --instance-sync-timeout",
                instances.expected,
                instances.timeout.as_secs()
            )));
        }
        let look = (Instant::now() + BETWEEN_COUNTS).min(deadline);
        if client.wait(CHANNEL, look, &mut delivered)?.is_some() {
            return Ok(());
        }
    }
}
