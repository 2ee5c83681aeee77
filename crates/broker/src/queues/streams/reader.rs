//! Somebody who takes chunks as they are: it reads by itself, on its own thread, and is told when there is something.

use super::log::{StreamLog, parts};
use crate::clients::outbox::Event;
use crate::node::ends::{Ends, Outlet};
use crate::queues::Queue;
use bytes::Bytes;
use model::ConsumerId;
use model::chunk::{HEADER_BYTES, Matcher};
use queue::Request;
use queue::stream::{ReadRequest, StreamRequest};
use std::collections::VecDeque;
use std::sync::Arc;
use storage::StreamCursor;

/// A chunk as readers are sent it.
#[derive(Clone, Debug)]
pub struct ReadChunk {
    /// What it says of itself.
    pub header: [u8; HEADER_BYTES],
    /// Its entries.
    pub entries: Bytes,
}

/// What a reader has.
#[derive(Clone, Debug)]
pub enum NextChunk {
    /// A chunk.
    Here(ReadChunk),
    /// Nothing now: the reader's outbox is told with the first chunk after this was said.
    Later,
    /// Nothing so far, and there is more to look at: others may have their turn first.
    AskAgain,
}

/// So many pages are looked at before others have their turn.
const PAGES_AT_ONCE: usize = 4;

/// Somebody who takes chunks.
pub struct StreamReader {
    queue: Arc<Queue>,
    log: Arc<StreamLog>,
    id: ConsumerId,
    outlet: Outlet,
    position: u64,
    filter: Option<Matcher>,
    cursor: Option<StreamCursor>,
    /// Chunks that were read from a file.
    page: VecDeque<Bytes>,
}

impl StreamReader {
    /// Begins at this offset. The queue knows the reader by this name.
    pub(crate) fn new(
        (queue, log): (Arc<Queue>, Arc<StreamLog>),
        id: ConsumerId,
        outlet: Outlet,
        position: u64,
        filter: Option<Matcher>,
    ) -> Self {
        log.attach();
        Self {
            queue,
            log,
            id,
            outlet,
            position,
            filter,
            cursor: None,
            page: VecDeque::new(),
        }
    }

    /// The next chunk of messages that is safe and that the filter lets pass.
    pub fn read(&mut self) -> NextChunk {
        for _ in 0..PAGES_AT_ONCE {
            while let Some(bytes) = self.page.pop_front() {
                if let Some(chunk) = self.take(&bytes) {
                    return NextChunk::Here(chunk);
                }
            }
            let below = self.log.committed();
            if self.position >= below {
                self.all_read();
                return NextChunk::Later;
            }
            if let Some(chunk) = self.log.newest(self.position) {
                self.page.push_back(chunk);
                continue;
            }
            match self.log.read(&mut self.cursor, self.position, below) {
                Ok(page) if !page.is_empty() => self.page = page,
                Ok(_) => {
                    // What is below was dropped meanwhile, or is damaged to its end; or a full disk has it taken back, and it
                    // comes again.
                    self.cursor = None;
                    let end = below.min(self.log.end());
                    if self.position >= end {
                        self.all_read();
                        return NextChunk::Later;
                    }
                    self.position = end;
                }
                Err(error) => {
                    self.log.complain(&error);
                    self.give_up();
                    return NextChunk::Later;
                }
            }
        }
        NextChunk::AskAgain
    }

    /// It cannot be read here now: whoever reads is told that it is over, and may begin again where it was.
    fn give_up(&self) {
        self.outlet.outbox.send(Event::ConsumerCancelled {
            channel: self.outlet.channel,
            consumer: self.id,
        });
    }

    /// Where the last chunk begins that is safe; 0 if there is none.
    pub fn committed_chunk(&self) -> u64 {
        self.log.last_chunk().unwrap_or(0)
    }

    /// The next offset that it looks at.
    pub fn position(&self) -> u64 {
        self.position
    }

    fn take(&mut self, bytes: &Bytes) -> Option<ReadChunk> {
        let (header, filter, entries) = parts(bytes)?;
        if header.next_offset() <= self.position {
            return None;
        }
        self.position = header.next_offset();
        let passes = |wanted: &Matcher| wanted.passes(&bytes[filter]);
        self.filter.as_ref().is_none_or(passes).then(|| ReadChunk {
            header: header.to_bytes(),
            entries: bytes.slice(entries),
        })
    }

    fn all_read(&mut self) {
        // A file that is dropped is not held open for somebody who needs nothing of it.
        self.cursor = None;
        self.ask(ReadRequest::Sent {
            reader: self.id,
            next: self.position,
            chunks: 0,
        });
    }

    fn ask(&self, request: ReadRequest<Ends>) {
        let request = Box::new(StreamRequest::Read(request));
        self.queue.submit(Request::Stream(request));
    }
}

impl Drop for StreamReader {
    fn drop(&mut self) {
        self.log.detach();
        self.ask(ReadRequest::Detach { reader: self.id });
    }
}
