//! Looking through a queue's messages without taking them: nothing is consumed, marked or put elsewhere. And taking some out,
//! wherever they stand, for operators who move or delete them.
//!
//! The queue says in short looks which messages are there and where their bytes lie; the bytes are read by whoever asked, one
//! block at a time, apart from the queue and from the threads that page for its consumers. What was moved or consumed between the
//! two is looked at again. So a browser is never in anybody's way, and sees of each moment what was there then.

use crate::node::pager::StoreFiles;
use crate::node::paging::{Found, Nearby, Paged};
use crate::queues::{Queue, Status};
use crate::session::Session;
use catalog::Refusal;
use model::{Block, Message, Ranges, Seq, Timestamp};
use queue::store::{Bytes, Source};
use queue::{Glimpse, Request, Standing};
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many messages one look at the queue is for: they are looked at again if it takes long to read them.
const LOOK: u64 = 256;
/// How often messages are looked at again because they were moved while their bytes were read.
const ATTEMPTS: usize = 5;

/// Where browsing begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first message.
    Head,
    /// So many messages before this one, or before the end.
    Before(Option<Seq>, u64),
    /// With this message, or the next one that is there.
    At(Seq),
    /// With the message before which so many are.
    Index(u64),
    /// With the first message that the broker received at this time or later.
    Time(Timestamp),
}

/// A message as it is there.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// Its number: what browsing goes on from, and what it is taken by.
    pub seq: Seq,
    /// Whose it is.
    pub standing: Standing,
    /// It may have been delivered before.
    pub redelivered: bool,
    /// How often it came back.
    pub returns: u32,
    /// When the broker received it. Messages that were put together on disk have the time of the first.
    pub received: Timestamp,
    /// It was published as persistent.
    pub persistent: bool,
    /// The message.
    pub message: Message<'a>,
}

/// How browsing ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Browsed {
    /// Where it goes on; `None` if the end of the queue was reached.
    pub next: Option<Seq>,
    /// Messages that are there and cannot be read: the disk has damaged them.
    pub unreadable: u64,
}

/// Somebody who browses one queue.
pub struct Browser {
    queue: Arc<Queue>,
    files: StoreFiles,
}

/// Messages that somebody took out of a queue. They stand again where they stood, unmarked, once this is dropped.
pub struct TakenOut {
    queue: Arc<Queue>,
    seqs: Ranges,
}

impl TakenOut {
    /// Which ones.
    pub fn seqs(&self) -> &Ranges {
        &self.seqs
    }

    /// Some of them are to be gone: they are elsewhere, or nobody wants them. If the process ends before that is
    /// durable, they come back.
    pub fn remove(&mut self, gone: Ranges) {
        if gone.is_empty() {
            return;
        }
        self.seqs = self.seqs.iter().filter(|seq| !gone.contains(*seq)).collect();
        self.queue.end_taking(Request::Remove { seqs: gone });
    }
}

impl Drop for TakenOut {
    fn drop(&mut self) {
        if !self.seqs.is_empty() {
            let seqs = std::mem::take(&mut self.seqs);
            self.queue.end_taking(Request::PutBack { seqs });
        }
    }
}

impl Session {
    /// Somebody who may read the queue browses it.
    ///
    /// # Errors
    /// No such queue, no read permission, another connection's exclusive queue.
    pub fn browse(&self, queue: &str) -> Result<Browser, Refusal> {
        let queue = self.queue_to_look_at(queue)?;
        let files = queue.node().files();
        Ok(Browser { queue, files })
    }
}

impl Browser {
    /// Where a start is now; `None` for the head.
    pub fn place(&self, start: Start) -> Option<Seq> {
        match start {
            Start::Head => None,
            Start::At(seq) => Some(seq),
            Start::Before(before, count) => self.queue.back(before, count),
            Start::Index(index) => self.skip(index),
            Start::Time(time) => self.since(time),
        }
    }

    /// Shows the messages from a place on, one after the other, until `visit` has seen enough: it breaks before the message that
    /// browsing is to go on with.
    pub fn each(&self, from: Option<Seq>, mut visit: impl FnMut(&Seen<'_>) -> ControlFlow<()>) -> Browsed {
        let mut browsed = Browsed {
            next: from,
            unreadable: 0,
        };
        let mut failed = (None, 0);
        loop {
            let glance = self.queue.look_at(browsed.next, 0, LOOK);
            let mut again = false;
            // What was read last may hold the next span too.
            let mut last: Option<(Source, Found)> = None;
            for span in &glance.spans {
                let Some(found) = self.find(span, &mut last) else {
                    failed = match failed {
                        (Some(seq), times) if seq == span.first => (Some(seq), times + 1),
                        _ => (Some(span.first), 1),
                    };
                    browsed.next = Some(span.first);
                    again = failed.1 < ATTEMPTS;
                    if again {
                        break;
                    }
                    browsed.unreadable += span.last + 1 - span.first;
                    continue;
                };
                for seq in span.first..=span.last {
                    if found.damaged.contains(seq - span.base) {
                        browsed.unreadable += 1;
                        continue;
                    }
                    if visit(&Seen::of(span, seq, &found.block)).is_break() {
                        browsed.next = Some(seq);
                        return browsed;
                    }
                }
            }
            if again {
                continue;
            }
            browsed.next = glance.next;
            if browsed.next.is_none() {
                return browsed;
            }
        }
    }

    /// The span's block, if it can be read and holds the span.
    fn find(&self, span: &Glimpse, last: &mut Option<(Source, Found)>) -> Option<Found> {
        let found = match span.bytes.as_ref()? {
            Bytes::Memory(block) => Found::intact(block.clone()),
            Bytes::Source(source) => match last {
                Some((known, found)) if known == source => found.clone(),
                _ => {
                    let found = self
                        .queue
                        .read(&self.files, *source, &mut Nearby::default())
                        .ok()?;
                    *last = Some((*source, found.clone()));
                    found
                }
            },
        };
        let holds = span.base <= span.first && span.last - span.base < found.block.len() as u64;
        holds.then_some(found)
    }

    /// Whether messages can be taken out here. Where several nodes have the queue they would have to agree first.
    pub fn can_take(&self) -> bool {
        self.queue.replica().is_none()
    }

    /// Takes those of the messages that are ready, wherever they stand: nobody else gets them meanwhile.
    pub fn take(&self, seqs: Ranges) -> TakenOut {
        TakenOut {
            seqs: self.queue.take_out(seqs),
            queue: self.queue.clone(),
        }
    }

    fn skip(&self, index: u64) -> Option<Seq> {
        let mut from = None;
        let mut left = index;
        loop {
            let glance = self.queue.look_at(from, left, 1);
            left -= glance.skipped;
            match (glance.spans.first(), glance.next) {
                (Some(span), _) => return Some(span.first),
                (None, None) => return Some(Seq::MAX),
                (None, next) => from = next,
            }
        }
    }

    /// The place of the first message that came at that time or later: messages of a queue that does not sort them came in the
    /// order of their numbers. The head of one that does.
    fn since(&self, time: Timestamp) -> Option<Seq> {
        let (mut low, mut high) = self.queue.bounds()?;
        while low < high {
            let middle = low + (high - low) / 2;
            let mut found = None;
            self.each(Some(middle), |seen| {
                found = Some((seen.seq, seen.received));
                ControlFlow::Break(())
            });
            match found {
                Some((seq, received)) if received < time => low = seq + 1,
                _ => high = middle,
            }
        }
        Some(low)
    }

    /// The queue's numbers after its last turn.
    pub fn status(&self) -> Status {
        self.queue.status()
    }

    /// The number of the next message to come; `None` if it is not higher than all that are there, as in queues that
    /// sort their messages.
    pub fn end(&self) -> Option<Seq> {
        Some(self.queue.bounds()?.1)
    }

    /// A name for this life of the queue in this run of the broker: numbers of messages mean something only within it.
    pub fn edition(&self) -> String {
        format!("{}.{}", self.queue.id.0, self.queue.node().run)
    }
}

impl<'a> Seen<'a> {
    /// One of the messages of a span, which lies in this block.
    fn of(span: &Glimpse, seq: Seq, block: &'a Block) -> Self {
        Self {
            seq,
            standing: span.standing,
            redelivered: span.redelivered,
            returns: span.returns,
            received: block.received(),
            persistent: block.persistent(),
            message: block.message((seq - span.base) as usize),
        }
    }
}
