//! Who publishes to a queue, on the node that leads it.

use crate::node::Queue;
use broker::groups::Receipt;
use broker::{ChannelId, Outbox};
use model::properties::Properties;
use model::{Block, BlockBuilder, Message, Ranges, RouteBuf, Timestamp};
use queue::Request;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So many publishes may wait for their confirms.
pub const WINDOW: u64 = 1_000;

/// So many messages are in the queue at most: then all are taken out. They stay in memory: nothing is written to segments.
pub const KEPT: u64 = 5_000;

/// The queue is led elsewhere by now.
#[derive(Debug)]
pub struct Moved;

pub struct Publisher<'a> {
    queue: &'a Queue,
    outbox: Arc<Outbox>,
    body: Vec<u8>,
    route: RouteBuf,
    published: u64,
    pub kept: u64,
}

impl<'a> Publisher<'a> {
    /// Publishes bodies of so many bytes.
    pub fn new(queue: &'a Queue, body: usize) -> Self {
        queue.confirms.begin();
        Self {
            queue,
            outbox: Arc::new(Outbox::new()),
            body: vec![b'x'; body],
            route: RouteBuf::new(b"", b"q"),
            published: 0,
            kept: KEPT,
        }
    }

    /// The last publish that is confirmed.
    pub fn confirmed(&self) -> u64 {
        self.queue.confirms.last()
    }

    /// Publishes so many messages in blocks of so many, as far as the window lets it, and waits for the last confirm.
    /// With `a_second`, no more than that in a second.
    pub fn publish(&mut self, messages: u64, block: u64, a_second: Option<f64>) -> Result<(), Moved> {
        let (began, before) = (Instant::now(), self.published);
        let (to, window) = (before + messages, WINDOW.max(block));
        while self.published < to {
            if self.published - self.confirmed() >= window {
                self.wait(self.published - window / 2)?;
            }
            self.publish_block(block.min(to - self.published))?;
            if let Some(rate) = a_second {
                let due = Duration::from_secs_f64((self.published - before) as f64 / rate);
                std::thread::sleep(due.saturating_sub(began.elapsed()));
            }
        }
        self.wait(to)
    }

    /// Waits for a confirm. A leader that is deposed confirms nothing any more.
    fn wait(&self, number: u64) -> Result<(), Moved> {
        while !self.queue.confirms.wait(number) {
            if !self.queue.hosted.leads() {
                return Err(Moved);
            }
        }
        Ok(())
    }

    fn publish_block(&mut self, count: u64) -> Result<(), Moved> {
        let numbers = Ranges::span(self.published + 1, self.published + count);
        if self.published / self.kept < (self.published + count) / self.kept {
            self.purge()?;
        }
        self.published += count;
        let receipt = Receipt {
            outbox: self.outbox.clone(),
            channel: ChannelId(1),
            numbers,
            queue: None,
            timed: None,
        };
        self.submit(Request::Enqueue {
            block: Arc::new(self.block(count)),
            receipt: Some(receipt),
        })
    }

    fn block(&self, count: u64) -> Block {
        let mut block = BlockBuilder::default();
        for _ in 0..count {
            let properties = Properties::amqp091(b"");
            block.push_message(&Message::new(self.route.as_route(), properties, &self.body));
        }
        block.finish(true, Timestamp(1))
    }

    /// Takes out everything that is in the queue.
    pub fn purge(&self) -> Result<(), Moved> {
        let last = self
            .queue
            .hosted
            .inspect(|queue| model::Machine::status(queue).next_seq);
        let seqs = Ranges::span(1, last.unwrap_or(2).max(2) - 1);
        self.submit(Request::GiveUp { seqs })
    }

    fn submit(&self, request: Request<broker::groups::Ends>) -> Result<(), Moved> {
        let submitted = self.queue.hosted.submit(Timestamp(1), request);
        submitted.map_err(|_| Moved)
    }
}
