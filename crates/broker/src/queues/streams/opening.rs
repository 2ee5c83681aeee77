//! A stream's files that could not be opened for want of room or of file descriptors: on the stream's writing thread it is tried
//! again until they can be, or it fails for something that does not pass.

use super::log::{StreamLog, name_of};
use super::recovered;
use super::writing::TRY_AGAIN_MS;
use crate::node::Node;
use crate::node::ends::Ends;
use crate::queues::Queue;
use queue::Request;
use queue::stream::{Stream, StreamSettings};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use storage::StorageError;

/// A stream as its files have it.
pub(super) type Opened = (Stream<Ends>, Arc<StreamLog>);

/// Opens the files of a stream, which may be `is_new`.
///
/// # Errors
/// They can't be read, or made.
pub(super) fn open(
    known: &catalog::Queue,
    settings: StreamSettings,
    node: &Arc<Node>,
    is_new: bool,
) -> Result<Opened, StorageError> {
    let files = node.streams.open(known.id, is_new)?;
    let log = StreamLog::new(known, node.clone(), files);
    let machine = recovered::machine(&log, settings)?;
    // Those that a kill has left.
    log.drop_below(machine.segments().first_offset());
    Ok((machine, log))
}

/// See the module.
pub(super) struct Opening {
    /// What the stream is to be opened with.
    pub settings: StreamSettings,
    /// In milliseconds since the Unix epoch; `None` while it is tried.
    tries_at_ms: Option<u64>,
    attempt: Arc<Attempt>,
}

/// What the thread has.
struct Attempt {
    known: catalog::Queue,
    node: Arc<Node>,
    is_new: bool,
    queue: OnceLock<Weak<Queue>>,
    result: Mutex<Option<Result<Opened, StorageError>>>,
}

impl Attempt {
    fn result(&self) -> MutexGuard<'_, Option<Result<Opened, StorageError>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Opening {
    /// It failed just now.
    pub fn new(known: &catalog::Queue, settings: StreamSettings, node: &Arc<Node>, is_new: bool) -> Self {
        Self {
            settings,
            tries_at_ms: Some(node.now().0 + TRY_AGAIN_MS),
            attempt: Arc::new(Attempt {
                known: known.clone(),
                node: node.clone(),
                is_new,
                queue: OnceLock::new(),
                result: Mutex::default(),
            }),
        }
    }

    /// This queue is turned when it was tried. Once.
    pub fn belongs_to(&self, queue: &Arc<Queue>) {
        let _ = self.attempt.queue.set(Arc::downgrade(queue));
    }

    /// The queue that it is.
    pub fn queue(&self) -> Option<Arc<Queue>> {
        self.attempt.queue.get().and_then(Weak::upgrade)
    }

    /// What it is called in the log.
    pub fn name(&self) -> Box<str> {
        name_of(&self.attempt.known)
    }

    /// When [`go_on`](Self::go_on) is to be called, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub fn wakes_at_ms(&self) -> u64 {
        self.tries_at_ms.unwrap_or(u64::MAX)
    }

    /// Has it tried, if it is time for that; returns what has come of it, unless it is to be tried once more.
    pub fn go_on(&mut self, now_ms: u64) -> Option<Result<Opened, StorageError>> {
        let result = self.attempt.result().take();
        if let Some(Err(error)) = &result
            && error.may_pass()
        {
            self.tries_at_ms = Some(now_ms + TRY_AGAIN_MS);
            return None;
        }
        if self.tries_at_ms.take_if(|at| *at <= now_ms).is_some() {
            let (attempt, settings) = (self.attempt.clone(), self.settings.clone());
            let (node, stream) = (&self.attempt.node, self.attempt.known.id);
            node.streams.write(stream, move || {
                let opened = open(&attempt.known, settings, &attempt.node, attempt.is_new);
                *attempt.result() = Some(opened);
                if let Some(queue) = attempt.queue.get().and_then(Weak::upgrade) {
                    queue.submit(Request::Wake);
                }
            });
        }
        result
    }
}
