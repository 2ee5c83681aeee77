//! Browsing beside publishers and consumers, over memory, log and segments: everything is seen once with its body, in order, and
//! nothing feels it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

#[path = "support/client.rs"]
mod client;

use broker::{Broker, Browsed, ConsumerSettings, Disposal, Event, Seen, Standing, Start};
use client::{CHANNEL, Client, options};
use model::{Seq, Timestamp};
use std::ops::ControlFlow;

const PERSISTENT: &[u8] = b"\x10\x00\x02";
const COUNT: u64 = 4_000;

fn number(seen: &Seen<'_>) -> u64 {
    u64::from_be_bytes(seen.message.body[..8].try_into().unwrap())
}

/// What somebody sees who begins there and has enough after so many.
fn see(client: &Client, queue: &str, start: Start, count: usize) -> (Vec<(u64, Standing, bool)>, Browsed) {
    let browser = client.session.browse(queue).unwrap();
    let mut all = Vec::new();
    let browsed = browser.each(browser.place(start), |seen| {
        if all.len() == count {
            return ControlFlow::Break(());
        }
        all.push((number(seen), seen.standing, seen.redelivered));
        ControlFlow::Continue(())
    });
    (all, browsed)
}

fn fill(client: &Client, queue: &str) {
    client.declare(queue, true);
    let mut publisher = client.session.publisher(CHANNEL, 1);
    for number in 0..COUNT {
        let mut body = vec![b'x'; 10_000];
        body[..8].copy_from_slice(&number.to_be_bytes());
        client.publish(&mut publisher, queue, PERSISTENT, &body, None);
        if number % 20 == 0
            && let Some(pressure) = publisher.flush()
        {
            client::await_release(&pressure);
        }
    }
    publisher.flush();
}

fn numbers(seen: &[(u64, Standing, bool)]) -> Vec<u64> {
    seen.iter().map(|(number, ..)| *number).collect()
}

#[test]
fn a_backlog_on_disk_is_seen_from_any_place_and_stays_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    fill(&client, "q");
    let all: Vec<u64> = (0..COUNT).collect();
    for _ in 0..2 {
        let (seen, browsed) = see(&client, "q", Start::Head, usize::MAX);
        assert_eq!(numbers(&seen), all);
        assert!(
            seen.iter()
                .all(|(_, standing, again)| *standing == Standing::Ready && !again)
        );
        assert_eq!(browsed, Browsed::default());
    }
    let (seen, browsed) = see(&client, "q", Start::Index(2_500), 3);
    assert_eq!(numbers(&seen), [2_500, 2_501, 2_502]);
    let next = browsed.next.unwrap();
    let (seen, _) = see(&client, "q", Start::At(next), 1);
    assert_eq!(numbers(&seen), [2_503]);
    let (seen, _) = see(&client, "q", Start::Before(Some(next), 2), 2);
    assert_eq!(numbers(&seen), [2_501, 2_502]);
    let (seen, browsed) = see(&client, "q", Start::Before(None, 2), 10);
    assert_eq!((numbers(&seen), browsed.next), (vec![3_998, 3_999], None));
    assert!(see(&client, "q", Start::Index(COUNT), 1).0.is_empty());
    assert!(see(&client, "q", Start::At(Seq::MAX), 1).0.is_empty());
    let now = Timestamp(client.session.now_ms());
    assert!(
        see(&client, "q", Start::Time(Timestamp(now.0 + 60_000)), 1)
            .0
            .is_empty()
    );
    assert_eq!(numbers(&see(&client, "q", Start::Time(Timestamp(1)), 1).0), [0]);

    // Nothing was marked, and the order is the same: after a restart too, where everything lies on disk.
    broker.close();
    drop((client, broker));
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    let (seen, _) = see(&client, "q", Start::Head, usize::MAX);
    assert_eq!(numbers(&seen), all);
    assert!(seen.iter().all(|(.., again)| !again));
    broker.close();
}

#[test]
fn browsing_while_others_consume_shows_each_moment_and_disturbs_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    fill(&client, "q");
    let settings = ConsumerSettings {
        paused: false,
        no_ack: false,
        exclusive: false,
        prefetch: 50,
        priority: 0,
        window: 1 << 20,
    };
    let browsing = std::thread::scope(|scope| {
        let browsing = scope.spawn(|| {
            let onlooker = Client::open(&broker);
            let mut rounds = 0;
            loop {
                let (seen, browsed) = see(&onlooker, "q", Start::Head, usize::MAX);
                assert_eq!(browsed.unreadable, 0);
                let numbers = numbers(&seen);
                assert!(numbers.is_sorted_by(|a, b| a < b), "seen twice or out of order");
                rounds += 1;
                if numbers.is_empty() {
                    return rounds;
                }
            }
        });
        let subscription = client.session.consume(CHANNEL, "q", settings, None).unwrap();
        let mut next = 0;
        client.wait(|event| {
            if let Event::Deliver { delivery, .. } = event {
                assert!(!delivery.redelivered);
                for seq in delivery.seqs.iter() {
                    let body = delivery.block.message((seq - delivery.base) as usize).body;
                    assert_eq!(u64::from_be_bytes(body[..8].try_into().unwrap()), next);
                    next += 1;
                }
                subscription.flow(delivery.bytes() as u32);
                let (holder, seqs) = (Some(subscription.consumer()), delivery.seqs);
                subscription.queue().settle(holder, seqs, Disposal::Accepted);
            }
            (next == COUNT).then_some(())
        });
        browsing.join().unwrap()
    });
    assert!(browsing >= 1);
    broker.close();
}
