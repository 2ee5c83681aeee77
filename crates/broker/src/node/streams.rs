//! The folder of a node's streams, and the threads that write and read their files, apart from the fast path. Whatever is done
//! for one stream is done by one thread of each sort, in order.

use crate::worker::Worker;
use model::QueueId;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use storage::{FileSystem, StorageError, StreamFiles, World, move_files, remove_files};

/// Threads that write and sync. A stream's sync takes as long as its disk likes, and others need not wait for it.
const WRITERS: usize = 4;

/// Threads that read what is not in memory any more, for consumers who take messages.
const READERS: usize = 2;

/// So many streams have their files open for writing.
const OPEN_MOST: usize = 64;

/// So many bytes are kept for readers of all streams together.
const KEPT_MOST: usize = 64 << 20;

type Job = Box<dyn FnOnce() + Send>;

/// A stream that is written to.
pub trait Written: Send + Sync {
    /// Which one.
    fn stream(&self) -> QueueId;

    /// Nothing has come for a while: no file stays open. Called by its writing thread.
    fn rest(&self);
}

/// The folder, and its threads, which start with the first stream.
pub struct StreamFolder {
    world: Arc<dyn World>,
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    writers: [Worker<Job>; WRITERS],
    readers: [Worker<Job>; READERS],
    /// Streams whose files are open for writing, the one that was written to last at the end.
    open: Mutex<VecDeque<Weak<dyn Written>>>,
    /// How often the files of a stream are to be removed that are there.
    removing: Mutex<BTreeMap<QueueId, usize>>,
    /// What is kept of all streams for their readers, in bytes.
    kept: AtomicUsize,
    /// All streams that there were at the start are open: others are new.
    is_swept: AtomicBool,
}

impl StreamFolder {
    /// The folder at this place; it is made with the first stream.
    pub fn new(world: Arc<dyn World>, dir: PathBuf) -> Self {
        Self {
            fs: world.files(),
            world,
            dir,
            writers: Default::default(),
            readers: Default::default(),
            open: Mutex::default(),
            removing: Mutex::default(),
            kept: AtomicUsize::new(0),
            is_swept: AtomicBool::new(false),
        }
    }

    /// The folder of a stream, which bears its number: that is never given to another one.
    fn dir_of(&self, stream: QueueId) -> PathBuf {
        self.dir.join(stream.0.to_string())
    }

    /// Where files of a stream are put that are damaged.
    fn aside_of(&self, stream: QueueId) -> PathBuf {
        self.dir.join(format!("{}.damaged", stream.0))
    }

    /// The numbers of streams that have a folder.
    fn numbers(&self) -> Vec<QueueId> {
        // If there is no stream, there is no folder of them.
        let names = self.fs.list(&self.dir).unwrap_or_default();
        let numbers = names.iter().filter_map(|name| name.parse().ok());
        numbers.map(QueueId).collect()
    }

    /// True for streams that are opened now for the first time, if they were declared just now.
    pub fn opens_new_ones(&self) -> bool {
        self.is_swept.load(Ordering::Acquire)
    }

    /// Opens the files of a stream, or makes them.
    ///
    /// # Errors
    /// They can't be read, the system gives no thread, or the stream is new and there are files of its number.
    pub fn open(&self, stream: QueueId, is_new: bool) -> Result<StreamFiles, StorageError> {
        self.begin_threads()?;
        let dir = self.dir_of(stream);
        if is_new && self.fs.list(&dir).is_ok_and(|names| !names.is_empty()) {
            return Err(StorageError::Refused {
                what: format!(
                    "{} has files of another stream that had its number: move them away, and restart the node",
                    dir.display()
                ),
            });
        }
        StreamFiles::open(self.fs.clone(), &dir, stream.0)
    }

    fn begin_threads(&self) -> Result<(), StorageError> {
        for (at, writer) in self.writers.iter().enumerate() {
            self.begin(writer, &format!("stream-writer-{at}"))?;
        }
        for (at, reader) in self.readers.iter().enumerate() {
            self.begin(reader, &format!("stream-reader-{at}"))?;
        }
        Ok(())
    }

    fn begin(&self, worker: &Worker<Job>, name: &str) -> Result<(), StorageError> {
        // A panic is that of one stream, and the thread works for others, too.
        let work = |job: Job| {
            if catch_unwind(AssertUnwindSafe(job)).is_err() {
                tracing::error!(
                    area = "storage",
                    "what was to be done for a stream has panicked (a bug)"
                );
            }
        };
        let started = worker.start(self.world.as_ref(), name, work);
        started.map_err(|error| StorageError::from_io("start a thread for", &self.dir, error))
    }

    /// Has something written, after everything else that was sent for this stream.
    pub fn write(&self, stream: QueueId, job: impl FnOnce() + Send + 'static) {
        self.writers[stream.0 as usize % WRITERS].send(Box::new(job));
    }

    /// Has something read.
    pub fn read(&self, stream: QueueId, job: impl FnOnce() + Send + 'static) {
        self.readers[stream.0 as usize % READERS].send(Box::new(job));
    }

    /// Has the files of a stream removed by its writing thread, after everything else that was sent for it. Until that is done,
    /// the files of another copy of it are opened by that thread only.
    pub fn remove(&self, stream: QueueId, job: impl FnOnce() + Send + 'static) {
        *self.removing().entry(stream).or_default() += 1;
        // Without a thread it is done by the next start.
        let _ = self.begin_threads();
        self.write(stream, job);
    }

    /// They are removed. What was put aside of it goes as well.
    pub fn is_removed(&self, stream: QueueId) {
        let _ = self.remove_if_there(&self.aside_of(stream));
        let mut removing = self.removing();
        if let Some(times) = removing.get_mut(&stream) {
            *times -= 1;
            if *times == 0 {
                removing.remove(&stream);
            }
        }
    }

    /// Whether files of this stream are still to be removed.
    pub fn is_removing(&self, stream: QueueId) -> bool {
        self.removing().contains_key(&stream)
    }

    fn removing(&self) -> MutexGuard<'_, BTreeMap<QueueId, usize>> {
        self.removing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes the files of a stream that are not open.
    ///
    /// # Errors
    /// One cannot be removed.
    pub fn remove_closed(&self, stream: QueueId) -> Result<(), StorageError> {
        self.remove_if_there(&self.dir_of(stream))
    }

    fn remove_if_there(&self, dir: &Path) -> Result<(), StorageError> {
        match self.fs.list(dir) {
            Ok(_) => remove_files(self.fs.as_ref(), dir),
            Err(_) => Ok(()),
        }
    }

    /// Puts the files of a stream aside, which are not open, in place of those that were put there before. Returns where they
    /// are.
    ///
    /// # Errors
    /// One cannot be moved.
    pub fn set_aside(&self, stream: QueueId) -> Result<PathBuf, StorageError> {
        let aside = self.aside_of(stream);
        self.remove_if_there(&aside)?;
        move_files(self.fs.as_ref(), &self.dir_of(stream), &aside)?;
        Ok(aside)
    }

    /// A stream was written to, by its writing thread: its files stay open, and those of another one are closed, perhaps.
    pub fn wrote(&self, log: &Arc<dyn Written>) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |it: &Weak<dyn Written>| std::ptr::addr_eq(it.as_ptr(), Arc::as_ptr(log));
        // Those that are busy stand at the end.
        if let Some(at) = open.iter().rposition(is_it) {
            open.remove(at);
        }
        open.push_back(Arc::downgrade(log));
        let rests = if open.len() > OPEN_MOST {
            open.pop_front()
        } else {
            None
        };
        drop(open);
        if let Some(log) = rests.and_then(|log| log.upgrade()) {
            self.write(log.stream(), move || log.rest());
        }
    }

    /// True if more may be kept for readers.
    pub fn may_keep(&self) -> bool {
        self.kept.load(Ordering::Relaxed) < KEPT_MOST
    }

    /// A stream keeps so many bytes for its readers, after so many.
    pub fn keeps(&self, before: usize, after: usize) {
        if after > before {
            self.kept.fetch_add(after - before, Ordering::Relaxed);
        } else {
            self.kept.fetch_sub(before - after, Ordering::Relaxed);
        }
    }

    /// At a start, once all streams are open that there are: deletes what interrupted deletions have left of others, or moves it
    /// to the folder that `aside` names, if nobody knows whether they were deleted. Streams that are opened from now on are new.
    pub fn sweep(&self, is_known: impl Fn(QueueId) -> bool, aside: impl Fn(QueueId) -> Option<PathBuf>) {
        let unknown = self.numbers().into_iter().filter(|stream| !is_known(*stream));
        for stream in unknown {
            let dir = self.dir_of(stream);
            let aside = aside(stream);
            let outcome = match &aside {
                None => remove_files(self.fs.as_ref(), &dir),
                Some(aside) => move_files(self.fs.as_ref(), &dir, aside),
            };
            let dir = dir.display();
            match (outcome, aside) {
                (Ok(()), None) => {
                    tracing::info!(
                        area = "storage",
                        "{dir} was of a stream whose deletion came before the node's end; it is removed"
                    );
                }
                (Ok(()), Some(aside)) => tracing::error!(
                    area = "storage",
                    "{dir} was of a stream that no definition names: its files are kept in {}; definitions that were lost may \
                     explain them",
                    aside.display()
                ),
                (Err(error), _) => tracing::warn!(
                    area = "storage",
                    "{dir} is of a stream that does not exist any more, and remains until the next start: {error}"
                ),
            }
        }
        self.is_swept.store(true, Ordering::Release);
    }

    /// Has the threads finish what was sent before, and waits for them.
    pub fn stop(&self) {
        // What is written may leave something for another round.
        for _ in 0..2 {
            self.writers.iter().for_each(Worker::wait);
        }
        self.writers.iter().for_each(Worker::stop);
        self.readers.iter().for_each(Worker::stop);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::{StreamEntry, System};

    const STREAM: QueueId = QueueId(7);

    #[test]
    fn what_is_damaged_is_put_aside_and_goes_with_its_stream() {
        let dir = tempfile::tempdir().unwrap();
        let folder = StreamFolder::new(System::real(), dir.path().join("streams"));
        let names = || folder.fs.list(&dir.path().join("streams")).unwrap();
        for body in [b"one", b"two"] {
            let files = folder.open(STREAM, false).unwrap();
            assert_eq!(files.segment_count(), 0, "it begins anew");
            let entry = StreamEntry {
                first: 0,
                count: 1,
                tracks: false,
                time_ms: 1,
                term: 1,
                index: 1,
                starts_file: false,
                bytes: body,
                checksum: 0,
            };
            files.append(&[entry]).unwrap();
            files.sync().unwrap();
            let aside = folder.set_aside(STREAM).unwrap();
            assert_eq!(names(), ["7.damaged"]);
            assert_eq!(folder.fs.list(&aside).unwrap().len(), 2, "chunks and an index");
        }
        assert!(folder.numbers().is_empty());
        folder.remove_closed(STREAM).unwrap();
        folder.is_removed(STREAM);
        assert!(names().is_empty());
    }
}
