//! What the node itself publishes, for whoever has bound a queue: events, traced messages, lines of the log.
//!
//! One thread publishes, so that nobody who has something to tell waits for queues, or holds a lock while they are turned.
//! Notices are at most once, as RabbitMQ's are: beyond a limit they are dropped, and the log says how many.

use crate::broker::Broker;
use crate::worker::Worker;
use catalog::Envelope;
use model::properties::PropertiesBuf;
use model::{BlockBuilder, Message, RouteBuf};
use queue::fifo::Request;
use smallvec::SmallVec;
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

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
    /// Starts the thread.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(&self, broker: &Arc<Broker>) -> std::io::Result<()> {
        let world = broker.node().world.clone();
        let (broker, counts) = (Arc::downgrade(broker), self.counts.clone());
        self.worker.start(world.as_ref(), "notices", move |notice| {
            tell(&broker, &counts, &notice)
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

fn tell(broker: &Weak<Broker>, counts: &Counts, notice: &Notice) {
    counts.bytes.fetch_sub(notice.bytes(), Ordering::Relaxed);
    if let Some(broker) = broker.upgrade() {
        publish(&broker, notice);
    }
    let lost = counts.lost.swap(0, Ordering::Relaxed);
    if lost > 0 {
        tracing::warn!(
            area = "notices",
            "{lost} events, traced messages or lines of the log were not published: more came than their queues take"
        );
    }
}

/// Gives a notice to the queues that it finds; there may be none.
fn publish(broker: &Broker, notice: &Notice) {
    let view = broker.view();
    let Some(exchange) = view.exchange(&notice.vhost, notice.exchange) else {
        return;
    };
    let mut queues = SmallVec::new();
    let properties = notice.properties.as_properties();
    let mut envelope = Envelope::new(&notice.routing_key, properties).with_witness(&**broker.node());
    view.route(exchange, &mut envelope, &mut queues);
    if queues.is_empty() {
        return;
    }
    let mut builder = BlockBuilder::new();
    let route = RouteBuf::new(notice.exchange.as_bytes(), &notice.routing_key);
    builder.push_message(&Message::new(route.as_route(), properties, &notice.body));
    let block = Arc::new(builder.finish(properties.persistent(), broker.node().now()));
    for queue in queues.iter().filter_map(|id| broker.queues().get(*id)) {
        queue.submit(Request::Enqueue {
            block: block.clone(),
            receipt: None,
        });
    }
}
