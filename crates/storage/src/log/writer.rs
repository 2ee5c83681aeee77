//! The log's thread: takes what has gathered, writes it, syncs, tells how far that went. Whatever arrives during a sync is
//! written and synced together next; there is no timer before a sync that somebody waits for.

use super::chain::{Chain, LogFile};
use super::format::{begin_block, seal_block};
use super::ledger::Ledger;
use super::mark::{MARKS, Mark};
use super::pending::{Pending, Shared, Sleep, WRITE_SOON};
use super::{Callbacks, JournalId, Position};
use crate::error::StorageError;
use crate::file_system::write_all_at;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The longest wait before something is tried again, as a multiple of the shortest one.
const LONGEST: u32 = 64;

pub(crate) struct Writer<C> {
    pub shared: Arc<Shared>,
    pub callbacks: C,
    pub chain: Chain,
    pub ledger: Ledger,
    pub size_limit: u64,
    pub lazy_sync: Duration,
    turn: Turn,
    /// Everything before has been written, in this thread's view.
    written: u64,
    durable: u64,
    /// When the oldest of what is not yet synced was first seen.
    unsynced_since: Option<Instant>,
    /// The newest file when journals were last asked to free the oldest one, and that one.
    asked: Option<(u64, u64)>,
    /// How long a step that lost nothing waits at first before it is tried again.
    retry: Duration,
    /// There was no next file when it was looked for last, and that was told.
    stalled: bool,
    /// How long the next wait is.
    patience: Duration,
    /// When the next file is looked after again, whatever comes.
    look_at: Option<Instant>,
}

/// What one turn carries from the lock to the disk. Its memory is reused.
struct Turn {
    blocks: VecDeque<Vec<u8>>,
    sync: bool,
    /// Somebody waits to be told of the sync.
    awaited: bool,
    closing: bool,
}

impl<C: Callbacks> Writer<C> {
    pub(crate) fn new(
        shared: Arc<Shared>,
        callbacks: C,
        chain: Chain,
        ledger: Ledger,
        written: u64,
        options: &super::LogOptions,
    ) -> Self {
        let turn = Turn {
            blocks: VecDeque::new(),
            sync: false,
            awaited: false,
            closing: false,
        };
        Self {
            shared,
            callbacks,
            chain,
            ledger,
            size_limit: options.size_limit,
            lazy_sync: Duration::from_millis(options.lazy_sync_ms),
            turn,
            written,
            durable: written,
            unsynced_since: None,
            asked: None,
            retry: Duration::from_millis(options.retry_ms),
            stalled: false,
            patience: Duration::from_millis(options.retry_ms),
            look_at: None,
        }
    }

    /// Runs until the log is closed or fails.
    pub(crate) fn run(mut self) {
        let mut alarm = Alarm {
            shared: self.shared.clone(),
            armed: true,
        };
        self.free_files();
        let outcome = self.serve();
        alarm.armed = false;
        match outcome {
            Ok(()) => stop(
                &self.shared,
                StorageError::Gone {
                    what: "the log is closed".to_owned(),
                },
                false,
            ),
            Err(error) => {
                stop(&self.shared, error.clone(), true);
                self.callbacks.failed(&error);
            }
        }
    }

    fn serve(&mut self) -> Result<(), StorageError> {
        loop {
            self.wait()?;
            while let Some(block) = self.turn.blocks.pop_front() {
                self.write(block)?;
            }
            if self.turn.sync {
                self.sync()?;
                if std::mem::take(&mut self.turn.awaited) {
                    self.callbacks.durable(Position(self.durable));
                }
                self.free_files();
                self.ask_for_space();
            }
            if self.turn.closing {
                return self.finish();
            }
            self.look_ahead();
        }
    }

    /// Waits for something to do and takes it.
    fn wait(&mut self) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let mut pending = shared.lock();
        loop {
            if let Some(error) = pending.refused.take() {
                return Err(error);
            }
            let unsynced = pending.bytes > 0 || self.written > self.durable;
            let due = match (unsynced, self.unsynced_since) {
                (false, _) => None,
                (true, Some(since)) => Some(since + self.lazy_sync),
                (true, None) => {
                    let now = Instant::now();
                    self.unsynced_since = Some(now);
                    Some(now + self.lazy_sync)
                }
            };
            let from_now = |at: Instant| at.saturating_duration_since(Instant::now());
            let left = due.map(from_now);
            let sync = pending.urgent() || left == Some(Duration::ZERO);
            if sync || pending.bytes >= WRITE_SOON {
                self.turn.sync = sync;
                self.turn.closing = pending.closing;
                pending.take(&mut self.turn.blocks);
                if sync {
                    self.turn.awaited = std::mem::take(&mut pending.awaited);
                }
                return Ok(());
            }
            let look = self.look_at.map(from_now);
            if look == Some(Duration::ZERO) {
                self.turn.sync = false;
                self.turn.closing = false;
                return Ok(());
            }
            let left = left.into_iter().chain(look).min();
            pending.sleep = if left.is_some() {
                Sleep::UntilDeadline
            } else {
                Sleep::Sound
            };
            pending = sleep(&shared, pending, left);
        }
    }

    /// Writes one block to the file it fits in.
    fn write(&mut self, mut block: Vec<u8>) -> Result<(), StorageError> {
        let length = block.len() as u64;
        let (last, offset) = self.place_for(length)?;
        let (position, synced) = (self.written, self.durable);
        let ledger = &mut self.ledger;
        seal_block(
            &mut block,
            last.header.salt,
            position,
            synced,
            |journal, at, payload| {
                note(ledger, journal, at, payload);
            },
        );
        write_all_at(last.file.as_ref(), &block, offset)
            .map_err(|e| StorageError::from_io("write", &last.path, e))?;
        self.chain.advance(length, last.size);
        self.written += length;
        let mut pending = self.shared.lock();
        pending.written = self.written;
        self.shared.written.store(self.written, Ordering::Release);
        pending.bytes -= block.len();
        self.shared.publish(&pending);
        pending.give_back(block);
        self.shared.show_progress(pending);
        Ok(())
    }

    /// The file and offset for `length` more bytes; a new file if the last one is full.
    fn place_for(&mut self, length: u64) -> Result<(LogFile, u64), StorageError> {
        if let Some(last) = self.chain.last() {
            if let Some(offset) = self.chain.room(&last, length) {
                return Ok((last, offset));
            }
            // A new file's existence says that all before it is durable; recovery relies on that.
            self.sync()?;
        }
        self.roll(length)?;
        match self.chain.last() {
            Some(last) => Ok((last, super::format::FILE_HEADER as u64)),
            None => Err(StorageError::Gone {
                what: "the log has no file to write to".to_owned(),
            }),
        }
    }

    /// Begins a new file. What goes wrong here loses nothing, so it is tried until it works or the log is to be closed.
    fn roll(&mut self, room: u64) -> Result<(), StorageError> {
        loop {
            // A file that was made ahead is taken if it is ready; if it is not, this one does not wait for it.
            self.note_ahead();
            match self.chain.roll(self.written, room) {
                Ok(None) => break,
                Ok(Some(scarce)) => {
                    self.stall(&scarce);
                    break;
                }
                Err(error) => {
                    self.stall(&error);
                    if self.retry.is_zero() || self.rest() {
                        return Err(error);
                    }
                }
            }
        }
        self.ledger.add_file(Position(self.written));
        self.shared.size.store(self.chain.size(), Ordering::Relaxed);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        if self.durable < self.written {
            if let Some(last) = self.chain.last() {
                let began = Instant::now();
                last.file
                    .sync_data()
                    .map_err(|e| StorageError::from_io("sync", &last.path, e))?;
                self.callbacks.synced(began.elapsed());
            }
            self.durable = self.written;
            self.shared.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.unsynced_since = None;
        let mut pending = self.shared.lock();
        pending.durable = self.durable;
        self.shared.show_progress(pending);
        Ok(())
    }

    /// Frees the oldest files that nobody needs. Only after a sync: the ledger knows of releases as soon as they are
    /// written, and the snapshots they rely on must be durable before anything goes. If it fails, the next sync tries again.
    fn free_files(&mut self) {
        let free = self.ledger.free_files();
        if free > 0 && self.chain.free_oldest(free).is_ok() {
            (0..free).for_each(|_| self.ledger.drop_oldest());
            self.shared.size.store(self.chain.size(), Ordering::Relaxed);
        }
    }

    /// Tells that there is no next file. Told once until there is one.
    pub(crate) fn stall(&mut self, error: &StorageError) {
        if !std::mem::replace(&mut self.stalled, true) {
            self.patience = self.retry;
            self.callbacks.stalled(Some(error));
        }
        self.look_at = Some(Instant::now() + self.patience);
    }

    /// Looks what became of the file that is being made ahead.
    fn note_ahead(&mut self) {
        if let Some(Err(error)) = self.chain.take_ahead() {
            self.stall(&error);
        }
    }

    /// Looks after the next file. One that could not be made is tried again now and then, whether anything is written or not.
    fn look_ahead(&mut self) {
        self.note_ahead();
        if self.stalled && self.chain.has_spare() {
            self.stalled = false;
            self.callbacks.stalled(None);
        }
        let now = Instant::now();
        if self.stalled && self.look_at.is_none_or(|at| at <= now) && !self.chain.is_making() {
            self.be_patient();
            self.chain.make_ahead();
        }
        self.look_at = match self.stalled || self.chain.is_making() {
            true => Some(now + self.patience),
            false => None,
        };
    }

    fn be_patient(&mut self) {
        self.patience = (self.patience * 2).min(self.retry * LONGEST);
    }

    /// Waits before something is tried again. True if the log is to be closed.
    fn rest(&mut self) -> bool {
        let until = Instant::now() + self.patience;
        self.be_patient();
        let shared = self.shared.clone();
        let mut pending = shared.lock();
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if pending.closing || left.is_zero() {
                return pending.closing;
            }
            pending = sleep(&shared, pending, Some(left));
        }
    }

    /// If the log is too large, asks those who need the oldest file to let go of it.
    fn ask_for_space(&mut self) {
        if self.chain.used() <= self.size_limit {
            return;
        }
        let (Some((oldest, behind)), Some(last)) = (self.chain.oldest(), self.chain.last()) else {
            return;
        };
        // Those who did not answer are asked again, but only when the log has grown by another file.
        if self.asked != Some((last.header.sequence, oldest)) {
            self.asked = Some((last.header.sequence, oldest));
            self.callbacks.reclaim(self.ledger.holders_of_oldest(), behind);
        }
    }

    /// Ends the log with an empty block that vouches for all before it.
    fn finish(&mut self) -> Result<(), StorageError> {
        let mut block = Vec::new();
        begin_block(&mut block);
        let length = block.len() as u64;
        let (last, offset) = self.place_for(length)?;
        seal_block(
            &mut block,
            last.header.salt,
            self.written,
            self.durable,
            |_, _, _| {},
        );
        write_all_at(last.file.as_ref(), &block, offset)
            .map_err(|e| StorageError::from_io("write", &last.path, e))?;
        self.written += length;
        self.sync()?;
        self.chain.close(self.written)
    }
}

/// Waits for the next wake-up, `left` at the longest; what the sleep was about is over then.
fn sleep<'a>(
    shared: &Shared,
    pending: MutexGuard<'a, Pending>,
    left: Option<Duration>,
) -> MutexGuard<'a, Pending> {
    let mut pending = match left {
        Some(left) => {
            shared
                .wake
                .wait_timeout(pending, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0
        }
        None => shared.wake.wait(pending).unwrap_or_else(PoisonError::into_inner),
    };
    pending.sleep = Sleep::No;
    pending
}

/// Keeps the books about a record that is written.
fn note(ledger: &mut Ledger, journal: JournalId, at: Position, payload: &[u8]) {
    if journal != MARKS {
        ledger.record(journal, at);
    } else if let Some(mark) = Mark::decode(payload, at) {
        ledger.release(mark.journal, mark.before);
    }
}

/// From now on nothing is written: whoever waits gets `error`, whatever is appended is dropped.
fn stop(shared: &Shared, error: StorageError, failed: bool) {
    let mut pending = shared.lock();
    shared.failed.store(failed, Ordering::Release);
    pending.stopped = Some(error);
    pending.discard();
    shared.publish(&pending);
    shared.show_progress(pending);
}

/// If the thread dies of a panic, nobody must wait for it for ever.
struct Alarm {
    shared: Arc<Shared>,
    armed: bool,
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if self.armed {
            stop(
                &self.shared,
                StorageError::Gone {
                    what: "the log's thread died".to_owned(),
                },
                true,
            );
        }
    }
}
