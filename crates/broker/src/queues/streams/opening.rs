//! A stream's files that could not be opened for want of room or of file descriptors: on the stream's writing thread it is tried
//! again until they can be, or it fails for something that does not pass.

use super::log::{StreamLog, name_of};
use super::recovered;
use super::writing::TRY_AGAIN_MS;
use crate::node::Node;
use crate::node::ends::Ends;
use crate::queues::{Queue, group_of};
use model::Index;
use queue::Request;
use queue::stream::{Stream, StreamSettings};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use storage::StorageError;

/// What the files of a stream are opened for.
pub(super) trait Open: Sized + Send + 'static {
    /// Opens the files of a stream.
    ///
    /// # Errors
    /// They can't be read, or made.
    fn open(
        known: &catalog::Queue,
        settings: StreamSettings,
        node: &Arc<Node>,
        is_new: bool,
    ) -> Result<(Self, Arc<StreamLog>), StorageError>;
}

/// The machine of a stream of one node is what the files have.
impl Open for Stream<Ends> {
    fn open(
        known: &catalog::Queue,
        settings: StreamSettings,
        node: &Arc<Node>,
        is_new: bool,
    ) -> Result<(Self, Arc<StreamLog>), StorageError> {
        let files = node.streams.open(known.id, is_new)?;
        let log = StreamLog::new(known, node.clone(), files, None);
        let machine = recovered::machine(&log, settings)?;
        // Those that a kill has left.
        log.drop_below(machine.segments().first_offset());
        Ok((machine, log))
    }
}

/// Up to which entry the files of a stream of several nodes have its chunks.
pub(super) struct Handed(pub Index);

impl Open for Handed {
    fn open(
        known: &catalog::Queue,
        _: StreamSettings,
        node: &Arc<Node>,
        _: bool,
    ) -> Result<(Self, Arc<StreamLog>), StorageError> {
        let opened = Self::open_files(known, node);
        let has_others = known.members().count() > 1;
        let damage = opened.as_ref().err().filter(|it| has_others && it.is_damage());
        let Some(error) = damage else { return opened };
        let aside = node.streams.set_aside(known.id)?;
        tracing::error!(
            area = "storage",
            "{}: this node's files of it are damaged, and are kept in {}; what they had is fetched of other nodes: {error}",
            name_of(known),
            aside.display()
        );
        Self::open_files(known, node)
    }
}

impl Handed {
    /// A node that becomes a member again goes on with what it had: all of that was committed.
    fn open_files(known: &catalog::Queue, node: &Arc<Node>) -> Result<(Self, Arc<StreamLog>), StorageError> {
        let files = node.streams.open(known.id, false)?;
        let log = StreamLog::new(known, node.clone(), files, Some(group_of(known)));
        let handed = recovered::last_index(&log)?;
        Ok((Self(handed), log))
    }
}

/// See the module.
pub(super) struct Opening<T> {
    /// What the stream is to be opened with.
    pub settings: StreamSettings,
    /// In milliseconds since the Unix epoch; `None` while it is tried.
    tries_at_ms: Option<u64>,
    attempt: Arc<Attempt<T>>,
}

/// What came of it.
type Opened<T> = Result<(T, Arc<StreamLog>), StorageError>;

/// What the thread has.
struct Attempt<T> {
    known: catalog::Queue,
    node: Arc<Node>,
    is_new: bool,
    queue: OnceLock<Weak<Queue>>,
    result: Mutex<Option<Opened<T>>>,
}

impl<T> Attempt<T> {
    fn result(&self) -> MutexGuard<'_, Option<Opened<T>>> {
        self.result.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: Open> Opening<T> {
    /// It failed just now, for this. None if that does not pass: then an operator has to do something about it.
    pub fn after(
        error: &StorageError,
        known: &catalog::Queue,
        settings: StreamSettings,
        node: &Arc<Node>,
        is_new: bool,
    ) -> Option<Self> {
        let name = name_of(known);
        if error.may_pass() {
            tracing::error!(
                area = "storage",
                "{name} cannot be opened: {error}; it takes and gives nothing until it can be, which is tried by itself"
            );
            let tries_at_ms = node.now().0 + TRY_AGAIN_MS;
            return Some(Self::new(known, settings, node, is_new, tries_at_ms));
        }
        cannot_be_opened(&name, error);
        None
    }

    /// It failed for something that does not pass.
    pub fn is_over(&self, error: &StorageError) {
        cannot_be_opened(&name_of(&self.attempt.known), error);
    }

    /// The files of an earlier copy are to be removed before.
    pub fn behind_removal(known: &catalog::Queue, settings: StreamSettings, node: &Arc<Node>) -> Self {
        Self::new(known, settings, node, false, 0)
    }

    fn new(
        known: &catalog::Queue,
        settings: StreamSettings,
        node: &Arc<Node>,
        is_new: bool,
        tries_at_ms: u64,
    ) -> Self {
        Self {
            settings,
            tries_at_ms: Some(tries_at_ms),
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

    /// When [`go_on`](Self::go_on) is to be called, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub fn wakes_at_ms(&self) -> u64 {
        self.tries_at_ms.unwrap_or(u64::MAX)
    }

    /// Has it tried, if it is time for that; returns what has come of it, unless it is to be tried once more.
    pub fn go_on(&mut self, now_ms: u64) -> Option<Opened<T>> {
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
                let opened = T::open(&attempt.known, settings, &attempt.node, attempt.is_new);
                *attempt.result() = Some(opened);
                if let Some(queue) = attempt.queue.get().and_then(Weak::upgrade) {
                    queue.submit(Request::Wake);
                }
            });
        }
        result
    }
}

/// Until an operator has done something about that.
fn cannot_be_opened(name: &str, error: &StorageError) {
    tracing::error!(
        area = "storage",
        "{name} cannot be opened, and takes and gives nothing until it is mended or deleted: {error}"
    );
}
