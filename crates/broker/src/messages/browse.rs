//! Looking through a queue's messages without taking them: nothing is consumed, marked or put elsewhere. And taking some out,
//! wherever they stand, for operators who move or delete them.
//!
//! The queue says in short looks which messages are there and where their bytes lie; the bytes are read by whoever asked, one
//! block at a time, apart from the queue and from the threads that page for its consumers. What was moved or consumed between the
//! two is looked at again. So a browser is never in anybody's way, and sees of each moment what was there then.

use crate::clients::outbox::{ChannelId, Outbox, Question};
use crate::node::ends::Reply;
use crate::node::pager::StoreFiles;
use crate::node::paging::{Found, Nearby, Paged};
use crate::queues::{Queue, Status};
use crate::session::Session;
use catalog::Refusal;
use model::{Block, Incarnation, Message, Ranges, Seq, Timestamp};
use queue::store::{Bytes, Source};
use queue::{Answer, Glimpse, Request, Standing};
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
    /// Where answers come that are waited for.
    outbox: Arc<Outbox>,
}

/// Waits for the answer to a question, which comes to the outbox of the session that browses. `None` if there is none: it is not
/// known then what became of what was asked.
pub type Wait<'a> = &'a dyn Fn(Question) -> Option<Answer>;

/// Messages that somebody took out of a queue. They stand again where they stood, unmarked, once this is dropped.
pub struct TakenOut {
    queue: Arc<Queue>,
    outbox: Arc<Outbox>,
    seqs: Ranges,
    /// In which term this node leads the queue, if several nodes have it: whoever leads next knows nothing of their having been
    /// taken out, and what is asked of this one afterwards comes to nothing.
    in_term: Option<u64>,
}

impl TakenOut {
    /// Which ones.
    pub fn seqs(&self) -> &Ranges {
        &self.seqs
    }

    /// Some of them are to be gone: they are elsewhere, or nobody wants them. If the process ends before that is
    /// durable, they come back. Where several nodes have the queue it is waited until a majority has it on record; false if that
    /// is not known, or another node leads by now: then they may be there again.
    pub fn remove(&mut self, gone: Ranges, wait: Wait<'_>) -> bool {
        if gone.is_empty() {
            return true;
        }
        self.seqs = self.seqs.without(&gone);
        let remove = Request::Remove { seqs: gone };
        let Some(term) = self.in_term else {
            self.queue.end_taking(remove);
            return true;
        };
        let (question, reply) = question(&self.queue, &self.outbox);
        // Its answer comes when what was asked before is on record.
        let recall = Request::Recall {
            sender: Incarnation(0),
            from: u64::MAX,
            reply,
        };
        self.queue.submit_in(term, vec![remove, recall]) && wait(question).is_some()
    }
}

fn question(queue: &Queue, outbox: &Arc<Outbox>) -> (Question, Reply) {
    let question = Question(queue.node().number());
    let reply = Reply {
        outbox: outbox.clone(),
        channel: ChannelId(0),
        question,
        no_ack: false,
    };
    (question, reply)
}

impl Drop for TakenOut {
    fn drop(&mut self) {
        if !self.seqs.is_empty() {
            let seqs = std::mem::take(&mut self.seqs);
            let back = Request::PutBack { seqs };
            match self.in_term {
                // In another term they are there already.
                Some(term) => drop(self.queue.submit_in(term, vec![back])),
                None => self.queue.end_taking(back),
            }
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
        let outbox = self.outbox().clone();
        Ok(Browser { queue, files, outbox })
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

    /// Takes those of the messages that are ready, wherever they stand: nobody else gets them meanwhile. Where several nodes have
    /// the queue it is waited until this one has proven that it leads; none are taken if it does not, or that is not known.
    pub fn take(&self, seqs: Ranges, wait: Wait<'_>) -> TakenOut {
        match self.queue.replica().map(|replica| replica.term()) {
            None => self.taken(self.queue.take_out(seqs), None),
            Some(None) => self.taken(Ranges::new(), None),
            Some(Some(term)) => self.take_in(term, seqs, wait),
        }
    }

    fn take_in(&self, term: u64, seqs: Ranges, wait: Wait<'_>) -> TakenOut {
        let (question, reply) = question(&self.queue, &self.outbox);
        let asked = Request::TakeOut {
            seqs: seqs.clone(),
            reply,
        };
        if !self.queue.submit_in(term, vec![asked]) {
            return self.taken(Ranges::new(), Some(term));
        }
        match wait(question) {
            Some(Answer::Taken(taken)) => self.taken(taken, Some(term)),
            _ => {
                // Those that were taken all the same are put back.
                drop(self.taken(seqs, Some(term)));
                self.taken(Ranges::new(), Some(term))
            }
        }
    }

    fn taken(&self, seqs: Ranges, in_term: Option<u64>) -> TakenOut {
        TakenOut {
            queue: self.queue.clone(),
            outbox: self.outbox.clone(),
            seqs,
            in_term,
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

    /// The queue's name.
    pub fn name(&self) -> &str {
        &self.queue.name
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
