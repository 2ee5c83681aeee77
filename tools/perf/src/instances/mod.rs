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
use model::table::Table;
use protocol::amqp::method::QueueDeclare;
use protocol::amqp::{Method, RawTable};
use std::time::{Duration, Instant};

/// How often an instance counts.
const BETWEEN_COUNTS: Duration = Duration::from_millis(100);
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
    // A classic queue, whatever the virtual host's default is: the broker deletes it with its last consumer.
    Table::new()
        .with("x-queue-type", "classic")
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::scripted::{Offer, Peer, plan, start};
    use protocol::amqp::encode;
    use protocol::amqp::method::*;
    use std::io::Write;
    use std::net::TcpStream;

    /// A broker on which `counts` instances are seen, one count after the other; with `called`, somebody says go after them.
    /// Gives the name of the queue and how many messages were published.
    fn broker(mut peer: Peer<TcpStream>, counts: &[u32], called: bool) -> (String, usize) {
        peer.log_in(&Offer::default());
        let (mut counts, mut queue_name, mut published) = (counts.iter(), String::new(), 0);
        loop {
            let mut out = Vec::new();
            let more = peer.next(|channel, method| match method {
                Method::ChannelOpen(_) => encode::method(&mut out, channel, &ChannelOpenOk {}),
                Method::BasicQos(_) => encode::method(&mut out, channel, &BasicQosOk {}),
                Method::BasicConsume(_) => {
                    encode::method(&mut out, channel, &BasicConsumeOk { consumer_tag: "t" })
                }
                Method::ConnectionClose(_) => encode::method(&mut out, channel, &ConnectionCloseOk {}),
                Method::BasicPublish(_) => published += 1,
                Method::QueueDeclare(declare) => {
                    queue_name = declare.queue.to_owned();
                    let next = if declare.passive { counts.next() } else { Some(&0) };
                    let ok = QueueDeclareOk {
                        queue: declare.queue,
                        message_count: 0,
                        consumer_count: next.copied().unwrap_or(1),
                    };
                    encode::method(&mut out, channel, &ok);
                    if counts.len() == 0 && declare.passive && called {
                        let deliver = BasicDeliver {
                            consumer_tag: "t",
                            ..Default::default()
                        };
                        encode::content(&mut out, channel, &deliver, b"\0\0", b"go", 0);
                    }
                }
                other => panic!("{other:?}"),
            });
            if more.is_none() || peer.socket.write_all(&out).is_err() {
                return (queue_name, published);
            }
        }
    }

    fn waited(
        timeout: Duration,
        counts: &'static [u32],
        called: bool,
    ) -> (Result<(), Failure>, String, usize) {
        let (uri, thread) = start(move |peer| broker(peer, counts, called));
        let mut plan = plan("--id run");
        plan.uris = vec![uri];
        let instances = Instances {
            expected: 3,
            namespace: Some("space".into()),
            timeout,
        };
        let result = barrier(&plan, &instances);
        let (queue, published) = thread.join().unwrap();
        (result, queue, published)
    }

    #[test]
    fn whoever_sees_that_all_are_there_tells_the_others() {
        let (result, queue, published) = waited(Duration::from_secs(60), &[1, 2, 3], false);
        assert_eq!(
            (result, queue.as_str(), published),
            (Ok(()), "perf-test-instances-space-run", 3)
        );
    }

    #[test]
    fn whoever_is_told_starts_even_if_others_have_left() {
        let (result, _, published) = waited(Duration::from_secs(60), &[1, 2], true);
        assert_eq!((result, published), (Ok(()), 0));
    }

    #[test]
    fn too_few_instances_are_counted_in_the_reason() {
        let (result, _, published) = waited(Duration::ZERO, &[2], false);
        let text = result.unwrap_err().to_string();
        assert!(
            text.starts_with("2 of 3 instances came") && text.contains("--instance-sync-timeout"),
            "{text}"
        );
        assert_eq!(published, 0);
    }
}
