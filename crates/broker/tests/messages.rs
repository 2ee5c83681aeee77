//! Sessions without a front end: publish and consume on a broker whose log is real.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

#[path = "support/client.rs"]
mod client;

use broker::{AlarmReason, Broker, ConsumerSettings, DeclareQueue, Disposal, Event, Options, Publisher};
use client::{CHANNEL, Client, options};
use model::Ranges;

/// Property flags with nothing but delivery mode 2.
const PERSISTENT: &[u8] = &[0x10, 0x00, 2];
const TRANSIENT: &[u8] = &[0, 0];

#[test]
fn confirmed_messages_survive_a_restart_and_settled_ones_do_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    {
        let broker = Broker::open(options(&dir)).unwrap();
        let client = Client::open(&broker);
        client.declare("q", true);
        let mut publisher = client.session.publisher(CHANNEL, 1);
        for number in 1..=1000u64 {
            let queues = client.publish(
                &mut publisher,
                "q",
                PERSISTENT,
                format!("message {number}").as_bytes(),
                Some(number),
            );
            assert_eq!(queues, 1);
        }
        publisher.flush();
        let mut confirmed = 0;
        client.wait(|event| {
            if let Event::Confirm { numbers, .. } = event {
                confirmed += numbers.count();
            }
            (confirmed == 1000).then_some(())
        });
        for _ in 0..10 {
            let (delivery, queue) = client.get().unwrap();
            queue.settle(None, delivery.seqs, Disposal::Accepted);
        }
        broker.close();
    }
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    let settings = ConsumerSettings {
        paused: false,
        no_ack: true,
        exclusive: false,
        prefetch: 0,
        priority: 0,
        window: 1 << 20,
    };
    let _subscription = client.session.consume(CHANNEL, "q", settings, None).unwrap();
    let mut bodies = Vec::new();
    client.wait(|event| {
        if let Event::Deliver { delivery, .. } = event {
            for seq in delivery.seqs.iter() {
                let message = delivery.block.message((seq - delivery.base) as usize);
                bodies.push(String::from_utf8(message.body.to_vec()).unwrap());
            }
        }
        (bodies.len() == 990).then_some(())
    });
    let expected: Vec<String> = (11..=1000).map(|number| format!("message {number}")).collect();
    assert_eq!(bodies, expected);
    client.session.close();
    broker.close();
}

#[test]
fn a_long_backlog_is_paged_out_and_comes_back_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    for (queue, durable, properties) in [("durable", true, PERSISTENT), ("transient", false, TRANSIENT)] {
        client.declare(queue, durable);
        let mut publisher = client.session.publisher(CHANNEL, 1);
        let body = vec![b'x'; 10_000];
        const COUNT: u64 = 8_000;
        for number in 0..COUNT {
            let mut numbered = body.clone();
            numbered[..8].copy_from_slice(&number.to_be_bytes());
            client.publish(&mut publisher, queue, properties, &numbered, None);
            if number % 20 == 0
                && let Some(pressure) = publisher.flush()
            {
                client::await_release(&pressure);
            }
        }
        publisher.flush();
        let settings = ConsumerSettings {
            paused: false,
            no_ack: false,
            exclusive: false,
            prefetch: 100,
            priority: 0,
            window: 1 << 20,
        };
        let subscription = client.session.consume(CHANNEL, queue, settings, None).unwrap();
        let mut next = 0;
        client.wait(|event| {
            if let Event::Deliver { delivery, .. } = event {
                for seq in delivery.seqs.iter() {
                    let body = delivery.block.message((seq - delivery.base) as usize).body;
                    assert_eq!(u64::from_be_bytes(body[..8].try_into().unwrap()), next);
                    next += 1;
                }
                subscription.flow(delivery.bytes() as u32);
                subscription
                    .queue()
                    .settle(Some(subscription.consumer()), delivery.seqs, Disposal::Accepted);
            }
            (next == COUNT).then_some(())
        });
        subscription.cancel();
        assert_eq!(client.delete(queue, true, true).ready, 0);
    }
    broker.close();
}

#[test]
fn a_stuck_message_does_not_keep_the_space_of_its_neighbours() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(Options {
        message_memory: 1 << 20,
        ..options(&dir)
    })
    .unwrap();
    let client = Client::open(&broker);
    client.declare("transient", false);
    let mut publisher = client.session.publisher(CHANNEL, 1);
    for _ in 0..100 {
        client.publish(&mut publisher, "transient", TRANSIENT, &vec![b'x'; 1 << 20], None);
        if let Some(pressure) = publisher.flush() {
            client::await_release(&pressure);
        }
    }
    let segments = segment_files(&dir);
    let first = segments.iter().min().unwrap();
    let settings = ConsumerSettings {
        paused: false,
        no_ack: false,
        exclusive: false,
        prefetch: 0,
        priority: 0,
        window: 4 << 20,
    };
    let subscription = client
        .session
        .consume(CHANNEL, "transient", settings, None)
        .unwrap();
    let mut number = 0;
    client.wait(|event| {
        let Event::Deliver { delivery, .. } = event else {
            return None;
        };
        for seq in delivery.seqs.iter() {
            let (consumer, one) = (subscription.consumer(), Ranges::one(seq));
            if number != 30 {
                subscription
                    .queue()
                    .settle(Some(consumer), one, Disposal::Accepted);
            }
            number += 1;
        }
        subscription.flow(delivery.bytes() as u32);
        (number == 100).then_some(())
    });
    let begun = std::time::Instant::now();
    while first.exists() {
        assert!(begun.elapsed().as_secs() < 20, "one message keeps 64 MiB");
        std::thread::yield_now();
    }
    subscription.cancel();
    broker.close();
}

/// The files of all queues' backlogs.
fn segment_files(dir: &tempfile::TempDir) -> Vec<std::path::PathBuf> {
    let files = |dir: std::path::PathBuf| std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
    files(dir.path().join("queues")).flat_map(files).collect()
}

#[test]
fn rejected_and_returned_messages_take_their_ways() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(options(&dir)).unwrap();
    let client = Client::open(&broker);
    client.declare("q", false);
    let mut publisher = client.session.publisher(CHANNEL, 1);
    for body in [b"a", b"b", b"c"] {
        client.publish(&mut publisher, "q", TRANSIENT, body, None);
    }
    publisher.flush();
    let get = || client.get().unwrap();
    let (a, queue) = get();
    let (b, _) = get();
    queue.give_back(None, a.seqs.clone(), true);
    queue.settle(None, b.seqs.clone(), Disposal::Rejected);
    let (again, _) = get();
    assert_eq!(again.seqs, a.seqs);
    assert!(again.redelivered);
    let (c, _) = get();
    assert_eq!(c.seqs, Ranges::one(3));
    assert!(client.get().is_none());
    broker.close();
}

#[test]
fn a_second_broker_on_the_same_directory_is_refused_and_alarms_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Broker::open(Options {
        disk_free_limit: u64::MAX,
        ..Options::new(dir.path())
    })
    .unwrap();
    let refused = Broker::open(options(&dir)).unwrap_err();
    assert!(
        refused.to_string().contains("in use by another process"),
        "{refused}"
    );
    assert_eq!(broker.alarm(), Some(AlarmReason::Disk));
    let client = Client::open(&broker);
    client.wait(|event| matches!(event, Event::Alarm(Some(AlarmReason::Disk))).then_some(()));
    broker.close();
}

/// Publishes one persistent message to `q` and waits for its confirm.
fn publish_confirmed(client: &Client, publisher: &mut Publisher, body: &[u8], number: u64) {
    client.publish(publisher, "q", PERSISTENT, body, Some(number));
    publisher.flush();
    client.wait(|event| matches!(event, Event::Confirm { .. }).then_some(()));
}

#[test]
fn a_damaged_record_costs_its_own_message_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    {
        let broker = Broker::open(options(&dir)).unwrap();
        let client = Client::open(&broker);
        client.declare("q", true);
        let mut publisher = client.session.publisher(CHANNEL, 1);
        for (number, body) in [b"the first one".as_slice(), b"the second one", b"the third one"]
            .into_iter()
            .enumerate()
        {
            publish_confirmed(&client, &mut publisher, body, number as u64 + 1);
        }
        broker.close();
    }
    let damaged = std::fs::read_dir(dir.path().join("log")).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        let Some(at) = bytes.windows(14).position(|window| window == b"the second one") else {
            return false;
        };
        bytes[at] ^= 1;
        std::fs::write(&path, bytes).is_ok()
    });
    assert!(damaged, "the message's bytes stand in the log");
    for (expected, number) in [(2, 1), (3, 2)] {
        let broker = Broker::open(options(&dir)).unwrap();
        let client = Client::open(&broker);
        let declare = DeclareQueue {
            name: "q".into(),
            passive: true,
            ..DeclareQueue::default()
        };
        assert_eq!(
            client
                .session
                .declare_queue(CHANNEL, declare)
                .unwrap()
                .value
                .ready,
            expected
        );
        publish_confirmed(
            &client,
            &mut client.session.publisher(CHANNEL, 1),
            b"a later one",
            number,
        );
        client.session.close();
        broker.close();
    }
}
