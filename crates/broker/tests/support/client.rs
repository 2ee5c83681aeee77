//! A session's client that waits for events, in place of a connection.

#![allow(dead_code, reason = "each test uses what it needs")]
#![allow(clippy::disallowed_methods, reason = "a client outside of the broker")]

use broker::{
    Answer, Broker, ChannelId, DeclareQueue, Deleting, Delivery, Event, Options, Outbox, Pressure, Publisher,
    QueueDeleted, QueueQuestion, QueueRef, Session,
};
use model::properties::Properties;
use model::{Message, RouteBuf};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// The one channel of a client.
pub const CHANNEL: ChannelId = ChannelId(1);

/// A client that waits for events.
pub struct Client {
    outbox: Arc<Outbox>,
    pub session: Arc<Session>,
    waking: Arc<Waking>,
    /// What came behind the event that was waited for last.
    later: Mutex<VecDeque<Event>>,
}

#[derive(Default)]
struct Waking(Mutex<bool>, Condvar);

impl Wake for Waking {
    fn wake(self: Arc<Self>) {
        *self.0.lock().unwrap() = true;
        self.1.notify_all();
    }
}

impl Client {
    pub fn open(broker: &Arc<Broker>) -> Self {
        let outbox = Arc::new(Outbox::new());
        let user = broker
            .authenticate("guest", b"guest", "127.0.0.1".parse().unwrap())
            .unwrap();
        let session = broker.connect(user, "/", outbox.clone()).unwrap();
        Self {
            outbox,
            session,
            waking: Arc::default(),
            later: Mutex::default(),
        }
    }

    /// Waits until some event satisfies `found`; gives back what it found. What came before that is forgotten.
    pub fn wait<T>(&self, mut found: impl FnMut(Event) -> Option<T>) -> T {
        let waker = Waker::from(self.waking.clone());
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut later = self.later.lock().unwrap();
        loop {
            while let Some(event) = later.pop_front() {
                if let Some(answer) = found(event) {
                    return answer;
                }
            }
            let mut events = Vec::new();
            self.outbox.take(&mut events, &waker);
            if !events.is_empty() {
                later.extend(events);
                continue;
            }
            let mut rung = self.waking.0.lock().unwrap();
            while !*rung {
                let left = deadline.saturating_duration_since(Instant::now());
                assert!(!left.is_zero(), "nothing came within 20 seconds");
                rung = self.waking.1.wait_timeout(rung, left).unwrap().0;
            }
            *rung = false;
        }
    }

    pub fn declare(&self, name: &str, durable: bool) {
        let declare = DeclareQueue {
            name: name.into(),
            durable,
            ..DeclareQueue::default()
        };
        let done = self.session.declare_queue(CHANNEL, declare).unwrap();
        if let Some(expected) = done.durable {
            self.wait(|event| {
                matches!(event, Event::Durable { ticket, .. } if ticket == expected).then_some(())
            });
        }
    }

    /// What a queue has answered.
    pub fn answer(&self, awaited: QueueQuestion) -> Option<Answer> {
        self.wait(|event| match event {
            Event::Answer { question, answer, .. } if question == awaited => Some(answer),
            _ => None,
        })
    }

    /// Gets a message of `q`.
    pub fn get(&self) -> Option<(Delivery, QueueRef)> {
        let (queue, question) = self.session.get(CHANNEL, "q", false).unwrap();
        let got = self.session.got(&queue, self.answer(question)).unwrap();
        got.map(|(delivery, _)| (delivery, queue))
    }

    /// Deletes a queue.
    pub fn delete(&self, queue: &str, if_unused: bool, if_empty: bool) -> QueueDeleted {
        let asked = self.session.delete_queue(CHANNEL, queue, if_unused, if_empty);
        let mut deleting = asked.unwrap();
        loop {
            match deleting {
                Deleting::Done(deleted) => return deleted,
                Deleting::Asked(deletion) => {
                    let answer = self.answer(deletion.question());
                    deleting = self.session.go_on_deleting(CHANNEL, deletion, answer).unwrap();
                }
            }
        }
    }

    pub fn publish(
        &self,
        publisher: &mut Publisher,
        queue: &str,
        properties: &[u8],
        body: &[u8],
        number: Option<u64>,
    ) -> u32 {
        let route = RouteBuf::new(b"", queue.as_bytes());
        let message = Message::new(route.as_route(), Properties::amqp091(properties), body);
        publisher.publish(&message, number).unwrap().queues
    }
}

/// Options for a broker in this directory, however full the disk is.
pub fn options(dir: &tempfile::TempDir) -> Options {
    Options {
        disk_free_limit: 0,
        ..Options::new(dir.path())
    }
}

/// Waits until the back-pressure is released.
pub fn await_release(pressure: &Pressure) {
    let waking: Arc<Waking> = Arc::default();
    let waker = Waker::from(waking.clone());
    while !pressure.poll(&waker) {
        let rung = waking.0.lock().unwrap();
        drop(
            waking
                .1
                .wait_timeout_while(rung, Duration::from_secs(1), |rung| !*rung)
                .unwrap(),
        );
    }
}
