//! The node's one write-ahead log. Reading order: `journal` (whose a record is), `format`, `pending` (appending), `writer` (the
//! thread), `ledger` and `mark` (what may go), `groups`, `stretch` and `tails` (reading by index), `carry` (entries that are
//! written again), `chain` (files), `ends` (which
//! of them belong to the log) and `ahead` (the next one), `walk` and `recovery` (opening).

mod ahead;
mod aside;
mod carry;
mod chain;
mod ends;
mod format;
mod groups;
mod ledger;
mod mark;
mod options;
mod pending;
mod recovery;
mod stretch;
mod tails;
mod walk;
mod writer;

pub(crate) use crate::journal::{JournalId, Kind};
pub use aside::{SetAside, set_journals_aside};
pub use options::LogOptions;
pub use pending::Batch;
pub use recovery::{Cut, Damage, Recovery};
pub use tails::TailLimits;

use crate::error::StorageError;
use crate::file_system::{FileSystem, create_dir_durably};
use crate::world::{Thread, World};
use chain::{Chain, Files, read_record};
use ends::EndsFile;
use pending::{Pending, Shared};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tails::Tails;
use writer::Writer;

/// An offset in the node's log, ever growing over all files and restarts. No record is at 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// What the log tells its owner. All are called on the log's thread, one at a time; while one runs, nothing is written.
/// They may append to the log, but must not wait for it.
pub trait Callbacks: Send + 'static {
    /// Everything before this position is synced. Told after each sync that somebody waited for, see [`Batch::await_sync`].
    fn durable(&self, up_to: Position);
    /// A sync took so long. Told before what became durable with it.
    fn synced(&self, _took: Duration) {}
    /// There is no file to go on in, or none to follow the present one, for want of space or descriptors; it is tried again.
    /// Nothing is lost, but publishers should be held back. `None`: there is one again.
    fn stalled(&self, _error: Option<&StorageError>) {}
    /// A write or sync of data failed. Once; nothing becomes durable afterwards.
    fn failed(&self, error: &StorageError);
    /// The log is over its size. These journals need something before `before`: each is asked to write down anew what it still
    /// needs, and then to release what is before. Asked after a sync; again when the log has grown by another file. What members
    /// of groups have promised the log writes again by itself; for their entries it asks, as for those of any journal.
    fn reclaim(&self, journals: Vec<JournalId>, before: Position);
}

/// A write-ahead log with group commit. It says how far it is durable, and knows nobody who waits for that.
pub struct Log {
    shared: Arc<Shared>,
    files: Arc<Files>,
    recovery: Recovery,
    world: Arc<dyn World>,
    /// Where what members of groups lack is kept when the log gives it up.
    tails: OnceLock<Tails>,
    writer: Arc<dyn Thread>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Log")
    }
}

impl Log {
    /// Opens the log in `dir`, made if needed, and shows every record that is still needed to `replay`, in order. A write
    /// that a crash interrupted is cut off. Damage that can be attributed to journals is reported in
    /// [`recovery`](Self::recovery), which the caller must look at.
    ///
    /// # Errors
    /// [`StorageError::Corrupt`] if there is damage that may be anybody's, [`StorageError::Incomplete`] if a file is missing,
    /// unless `options.quarantine` is set; [`StorageError::Version`] for another format; whatever the file system reports.
    /// Nothing has been changed after the first three; `replay` may have seen records if the file system failed late.
    pub fn open(
        world: Arc<dyn World>,
        dir: &Path,
        options: LogOptions,
        callbacks: impl Callbacks,
        replay: &mut dyn FnMut(JournalId, Position, &[u8]),
    ) -> Result<Self, StorageError> {
        Self::open_if(world, dir, options, callbacks, replay, &mut |_| Ok(()))
    }

    /// The same, if `accept` lets it: it is shown what was found after everything was replayed, and before anything is changed.
    ///
    /// # Errors
    /// Those of [`Log::open`] and of `accept`.
    pub fn open_if(
        world: Arc<dyn World>,
        dir: &Path,
        options: LogOptions,
        callbacks: impl Callbacks,
        replay: &mut dyn FnMut(JournalId, Position, &[u8]),
        accept: &mut dyn FnMut(&Recovery) -> Result<(), StorageError>,
    ) -> Result<Self, StorageError> {
        let fs = world.files();
        create_dir_durably(fs.as_ref(), dir)?;
        let recovered = recovery::recover(fs.as_ref(), dir, &options, replay)?;
        let recovery::Recovered {
            found,
            ends,
            aside,
            leftovers,
            mut ledger,
            groups,
            end,
            synced,
            report,
        } = recovered;
        accept(&report)?;
        if let Some((file, ends)) = &ends {
            file.write_again(*ends)?;
        }
        for path in &leftovers {
            fs.remove(path)
                .map_err(|e| StorageError::from_io("remove", path, e))?;
        }
        for path in &aside {
            recovery::set_aside(fs.as_ref(), path)?;
        }
        let ends = match ends {
            Some(known) if known.1.newest >= known.1.oldest => known,
            // One that names no file yet may not be there for good: the sync of its name may have failed.
            unnamed => {
                let ends = unnamed.map_or_else(|| recovery::ends_of(&found, end), |(_, ends)| ends);
                (EndsFile::create(fs.as_ref(), dir, ends)?, ends)
            }
        };
        let mut chain = Chain::new(world.clone(), dir, options.clone(), found, ends);
        chain.write_again(synced, end)?;
        let scarce = chain.roll(end, 0)?;
        ledger.add_file(Position(end));
        chain.trim_previous(end)?;
        let shared = Arc::new(Shared::new(end, groups));
        shared.size.store(chain.size(), Ordering::Relaxed);
        let files = chain.files();
        let mut writer = Writer::new(
            world.clone(),
            shared.clone(),
            callbacks,
            chain,
            ledger,
            end,
            &options,
        );
        if let Some(error) = scarce {
            writer.stall(&error);
        }
        writer.free_files();
        let writer = world
            .start("log", Box::new(writer))
            .map_err(|e| StorageError::from_io("start the thread for", dir, e))?;
        Ok(Self {
            shared,
            files,
            recovery: report,
            world,
            tails: OnceLock::new(),
            writer,
        })
    }

    /// Reads the log in `dir` as [`Log::open`] would, and changes nothing.
    ///
    /// # Errors
    /// As [`Log::open`].
    pub fn inspect(
        fs: &dyn FileSystem,
        dir: &Path,
        options: &LogOptions,
        replay: &mut dyn FnMut(JournalId, Position, &[u8]),
    ) -> Result<Recovery, StorageError> {
        Ok(recovery::recover(fs, dir, options, replay)?.report)
    }

    /// What opening found.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// Appends what `write` puts into the batch. Never waits for the disk; see [`pending_bytes`](Self::pending_bytes) for
    /// back-pressure. After a failure it is accepted and dropped, see [`Batch::is_stopped`]. `write` must not use the log.
    pub fn append<T>(&self, write: impl FnOnce(&mut Batch<'_>) -> T) -> T {
        let mut pending = self.shared.lock();
        pending.make_room();
        let written = write(&mut Batch {
            pending: &mut pending,
        });
        if pending.stopped.is_some() {
            pending.discard();
            return written;
        }
        self.shared.publish(&pending);
        let wake = pending.must_wake();
        drop(pending);
        if wake {
            self.writer.wake();
        }
        written
    }

    /// The payload of the record at `at`, verified. Waits for the write, not for the sync, of one that was just appended.
    ///
    /// # Errors
    /// [`StorageError::Gone`] if its file was released; [`StorageError::Corrupt`] if it does not read as written, or if no
    /// record begins there.
    pub fn read(&self, at: Position) -> Result<Vec<u8>, StorageError> {
        if at.0 < self.shared.written.load(Ordering::Acquire) {
            return read_record(&self.files, at);
        }
        let mut pending = self.shared.lock();
        while at.0 >= pending.written {
            if let Some(error) = &pending.stopped {
                return Err(error.clone());
            }
            if at.0 >= pending.end() {
                return Err(StorageError::Gone {
                    what: format!("the log has not reached position {}", at.0),
                });
            }
            if let Some(payload) = pending.find(at) {
                return Ok(payload.to_vec());
            }
            pending = self.await_progress(pending);
        }
        drop(pending);
        read_record(&self.files, at)
    }

    /// `journal` needs nothing before `before` any more; it wrote a snapshot at `before`, or needs nothing at all. Takes
    /// effect when everything appended until now is durable, and lasts over restarts.
    pub fn release(&self, journal: JournalId, before: Position) {
        self.append(|batch| batch.release(journal, before));
    }

    /// `journal` is deleted: it needs nothing of what was appended until now.
    pub fn forget(&self, journal: JournalId) {
        self.append(|batch| batch.forget(journal));
    }

    /// A group's entries below this index are needed no more: they are in a checkpoint. Takes effect as
    /// [`release`](Self::release) does.
    pub fn release_group(&self, group: u64, below: u64) {
        self.append(|batch| batch.release_group(group, below));
    }

    /// Bytes appended and not yet written. Cheap.
    pub fn pending_bytes(&self) -> usize {
        self.shared.pending_bytes.load(Ordering::Relaxed)
    }

    /// Nothing before this position is in the log any more.
    pub fn begin(&self) -> Position {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        Position(files.front().map_or(0, |file| file.header.base))
    }

    /// How many files it has had since it was made.
    pub fn files_made(&self) -> u64 {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.back().map_or(0, |file| file.header.sequence)
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.shared.size.load(Ordering::Relaxed)
    }

    /// How often what was appended has been synced since the log was opened. Cheap.
    pub fn syncs(&self) -> u64 {
        self.shared.syncs.load(Ordering::Relaxed)
    }

    /// How long the log has been at what it writes and syncs just now, waiting for space included; `None` if it has nothing to
    /// do. A disk that hangs is seen here while it does: nothing else is told until it answers. Cheap.
    pub fn busy_for(&self) -> Option<Duration> {
        let since = self.shared.busy_since.load(Ordering::Relaxed);
        let now = || self.world.elapsed();
        (since > 0).then(|| now().saturating_sub(Duration::from_nanos(since)))
    }

    /// True once a write or sync has failed.
    pub fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Acquire)
    }

    /// A position behind everything appended so far.
    pub fn end(&self) -> Position {
        Position(self.shared.lock().end())
    }

    /// Everything before this position is synced.
    pub fn durable(&self) -> Position {
        Position(self.shared.lock().durable)
    }

    /// Waits until everything appended so far is durable; not until that was told. Not for callbacks.
    ///
    /// # Errors
    /// The failure that stopped the log.
    pub fn sync(&self) -> Result<(), StorageError> {
        let mut pending = self.shared.lock();
        let target = pending.end();
        pending.sync_to = pending.sync_to.max(target);
        self.writer.wake();
        loop {
            if let Some(error) = &pending.stopped {
                return Err(error.clone());
            }
            if pending.durable >= target {
                return Ok(());
            }
            pending = self.await_progress(pending);
        }
    }

    /// Has those asked again, behind a sync, who need the oldest file of a log that is too large. It asks by itself as it grows;
    /// this is for whoever keeps it from growing until it is shorter, for what is asked may be lost.
    pub fn ask_for_space(&self) {
        self.shared.lock().wants_space = true;
        self.writer.wake();
    }

    /// The log is about to be closed: from now on it fails where it would have waited for space or descriptors for its next file.
    /// So nobody who has to end first waits for that.
    pub fn close_soon(&self) {
        self.shared.lock().closing_soon = true;
        self.writer.wake();
    }

    /// Writes and syncs what is pending, tells so, and ends the thread. What is appended
    /// afterwards is dropped. Dropping the log does the same.
    ///
    /// # Errors
    /// The failure that stopped the log, now or earlier.
    pub fn close(&self) -> Result<(), StorageError> {
        self.stop();
        match &self.shared.lock().stopped {
            Some(error) if self.failed() => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

impl Log {
    /// Waits until the writer has got on.
    fn await_progress<'a>(&'a self, pending: MutexGuard<'a, Pending>) -> MutexGuard<'a, Pending> {
        if !self.writer.is_turned() {
            return self.shared.wait_for_progress(pending);
        }
        drop(pending);
        self.writer.turn();
        self.shared.lock()
    }

    /// Does not wait on the log's own thread: the last owner may be a callback.
    fn stop(&self) {
        self.shared.lock().closing = true;
        self.writer.wake();
        self.writer.join();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.stop();
    }
}
