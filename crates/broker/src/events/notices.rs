//! What the node itself publishes, for whoever has bound a queue: events, traced messages, lines of the log.
//!
//! One thread publishes, so that nobody who has something to tell waits for queues, or holds a lock while they are turned.
//! Notices are at most once, as RabbitMQ's are: beyond a limit they are dropped, and the log says how many.

use crate::worker::Worker;
use model::properties::PropertiesBuf;
use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
use storage::World;

/// How much may wait to be published, in bytes.
const WAITING_BYTES: usize = 16 * 1024 * 1024;

/// What a notice takes beside its properties and body, in bytes: nearly enough.
const NOTICE_BYTES: usize = 200;

/// A message from the node.
pub struct Notice {
    /// The exchange's virtual host.
    pub vhost: Arc<str>,
    /// Mostly an internal exchange.
    pub exchange: &'static str,
    pub routing_key: Vec<u8>,
    pub properties: PropertiesBuf,
    pub body: Vec<u8>,
}

impl Notice {
    fn bytes(&self) -> usize {
        NOTICE_BYTES + self.routing_key.len() + self.properties.as_properties().len() + self.body.len()
    }
}

/// The thread, and the way to it.
#[derive(Default)]
pub struct Notices {
    worker: Worker<Notice>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    /// Bytes on their way to the thread.
    bytes: AtomicUsize,
    /// Notices dropped since the log was last told.
    lost: AtomicU64,
}

impl Notices {
    /// Starts the thread, which has each one published by `publish`.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(
        &self,
        world: &dyn World,
        publish: impl Fn(&Notice) + Send + 'static,
    ) -> std::io::Result<()> {
        let counts = self.counts.clone();
        self.worker.start(world, "notices", move |notice: Notice| {
            counts.bytes.fetch_sub(notice.bytes(), Ordering::Relaxed);
            publish(&notice);
            counts.warn_of_lost();
        })
    }

    /// Has this published, unless too much waits already.
    pub fn send(&self, notice: Notice) {
        let bytes = notice.bytes();
        if self.counts.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes > WAITING_BYTES {
            self.counts.bytes.fetch_sub(bytes, Ordering::Relaxed);
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        self.worker.send(notice);
    }

    /// Publishes what waits and ends the thread.
    pub fn stop(&self) {
        self.worker.stop();
    }
}

impl Counts {
    fn warn_of_lost(&self) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(
                area = "notices",
                "{lost} events, traced messages or lines of the log were not published: more came than their queues take"
            );
        }
    }
}
