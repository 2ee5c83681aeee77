//! The log's thread: takes what has gathered, writes it, syncs, tells how far that went. Whatever arrives during a sync is
//! written and synced together next; there is no timer before a sync that somebody waits for.

use super::carry::{self, CARRIED};
use super::chain::{Chain, LogFile};
use super::format::{begin_block, seal_block};
use super::ledger::Ledger;
use super::mark::Mark;
use super::pending::{Shared, Sleep, WRITE_SOON};
use super::{Callbacks, JournalId, Kind, Position};
use crate::error::StorageError;
use crate::file_system::write_all_at;
use crate::world::{Step, Task, World};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The longest wait before something is tried again, as a multiple of the shortest one.
const LONGEST: u32 = 64;

pub(crate) struct Writer<C> {
    world: Arc<dyn World>,
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
    unsynced_since: Option<Duration>,
    /// The newest file when journals were last asked to free the oldest one, and that one.
    asked: Option<(u64, u64)>,
    /// How long a step that lost nothing waits at first before it is tried again.
    retry: Duration,
    /// There was no next file when it was looked for last, and that was told.
    stalled: bool,
    /// How long the next wait is; it grows with each failure.
    retry_after: Duration,
    /// When the next file is looked after again, whatever comes.
    look_at: Option<Duration>,
    /// When a file to go on in is looked for again; what is to be written waits for it.
    roll_at: Option<Duration>,
    /// Nothing is written any more.
    ended: bool,
}

/// What one turn carries from the lock to the disk. Its memory is reused.
struct Turn {
    /// It was taken, and is not at its end.
    under_way: bool,
    /// All of its blocks are in the files: what is left to do is to sync them.
    is_written: bool,
    blocks: VecDeque<Vec<u8>>,
    sync: bool,
    /// Somebody waits to be told of the sync.
    awaited: bool,
    closing: bool,
}

impl<C: Callbacks> Writer<C> {
    pub(crate) fn new(
        world: Arc<dyn World>,
        shared: Arc<Shared>,
        callbacks: C,
        chain: Chain,
        ledger: Ledger,
        written: u64,
        options: &super::LogOptions,
    ) -> Self {
        let turn = Turn {
            under_way: false,
            is_written: false,
            blocks: VecDeque::new(),
            sync: false,
            awaited: false,
            closing: false,
        };
        Self {
            world,
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
            retry_after: Duration::from_millis(options.retry_ms),
            look_at: None,
            roll_at: None,
            ended: false,
        }
    }

    /// The log comes to its end, in good order or with an error.
    fn end(&mut self, failure: Option<StorageError>) {
        self.ended = true;
        match failure {
            None => stop(
                &self.shared,
                StorageError::Gone {
                    what: "the log is closed".to_owned(),
                },
                false,
            ),
            Some(error) => {
                stop(&self.shared, error.clone(), true);
                self.callbacks.failed(&error);
            }
        }
    }

    fn serve(&mut self) -> Result<Step, StorageError> {
        if !self.turn.under_way
            && let Some(sleep) = self.take_turn()?
        {
            return Ok(Step::Sleep(sleep));
        }
        while let Some(block) = self.turn.blocks.pop_front() {
            if let Err(block) = self.write(block)? {
                self.turn.blocks.push_front(block);
                let now = self.world.elapsed();
                return Ok(Step::Sleep(self.roll_at.map(|at| at.saturating_sub(now))));
            }
        }
        // The sync is a step of its own, so that a thread which is turned can stand before it, as one does whose disk hangs.
        if self.turn.sync && !std::mem::replace(&mut self.turn.is_written, true) {
            return Ok(Step::Again);
        }
        self.turn.under_way = false;
        if self.turn.sync {
            self.sync()?;
            self.shared.busy_since.store(0, Ordering::Relaxed);
            if std::mem::take(&mut self.turn.awaited) {
                self.callbacks.durable(Position(self.durable));
            }
            self.free_files();
            self.ask_for_space();
        }
        if self.turn.closing {
            self.finish()?;
            return Ok(Step::End);
        }
        self.shared.busy_since.store(0, Ordering::Relaxed);
        self.look_ahead();
        Ok(Step::Again)
    }

    /// Takes what there is to do; or says how long nothing will be, if nobody wakes the thread: `None` is for ever.
    fn take_turn(&mut self) -> Result<Option<Option<Duration>>, StorageError> {
        let shared = self.shared.clone();
        let mut pending = shared.lock();
        pending.sleep = Sleep::No;
        if let Some(error) = pending.refused.take() {
            return Err(error);
        }
        let now = self.world.elapsed();
        let unsynced = pending.bytes > 0 || self.written > self.durable;
        let due = unsynced.then(|| *self.unsynced_since.get_or_insert(now) + self.lazy_sync);
        let sync = pending.urgent() || due.is_some_and(|due| due <= now);
        if sync || pending.bytes >= WRITE_SOON {
            self.turn.under_way = true;
            self.turn.is_written = false;
            self.turn.sync = sync;
            self.turn.closing = pending.closing;
            pending.take(&mut self.turn.blocks);
            let since = now.as_nanos() as u64;
            shared.busy_since.store(since.max(1), Ordering::Relaxed);
            if sync {
                self.turn.awaited = std::mem::take(&mut pending.awaited);
                if std::mem::take(&mut pending.wants_space) {
                    self.asked = None;
                }
            }
            return Ok(None);
        }
        if self.look_at.is_some_and(|at| at <= now) {
            self.turn.under_way = true;
            self.turn.sync = false;
            self.turn.closing = false;
            return Ok(None);
        }
        let next = due.into_iter().chain(self.look_at).min();
        pending.sleep = match next {
            Some(_) => Sleep::UntilDeadline,
            None => Sleep::Sound,
        };
        Ok(Some(next.map(|at| at.saturating_sub(now))))
    }

    /// Writes one block to the file it fits in. Gives it back if there is none for the moment.
    fn write(&mut self, mut block: Vec<u8>) -> Result<Result<(), Vec<u8>>, StorageError> {
        let length = block.len() as u64;
        let Some((last, offset)) = self.place_for(length)? else {
            return Ok(Err(block));
        };
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
        Ok(Ok(()))
    }

    /// The file and offset for `length` more bytes; a new file if the last one is full. `None` if there is none for the moment.
    fn place_for(&mut self, length: u64) -> Result<Option<(LogFile, u64)>, StorageError> {
        if let Some(last) = self.chain.last() {
            if let Some(offset) = self.chain.room(&last, length) {
                return Ok(Some((last, offset)));
            }
            // A new file's existence says that all before it is durable; recovery relies on that.
            self.sync()?;
        }
        if !self.roll(length)? {
            return Ok(None);
        }
        match self.chain.last() {
            Some(last) => Ok(Some((last, super::format::FILE_HEADER as u64))),
            None => Err(no_file()),
        }
    }

    /// Begins a new file. What goes wrong here loses nothing, so it is tried until it works or the log is to be closed: false if
    /// it has to be tried again.
    fn roll(&mut self, room: u64) -> Result<bool, StorageError> {
        let now = self.world.elapsed();
        let pending = self.shared.lock();
        let closing = pending.closing || pending.closing_soon;
        drop(pending);
        if self.roll_at.is_some_and(|at| at > now) && !closing {
            return Ok(false);
        }
        // A file that was made ahead is taken if it is ready; if it is not, this one does not wait for it.
        self.note_ahead();
        match self.chain.roll(self.written, room) {
            Ok(None) => {}
            Ok(Some(scarce)) => self.stall(&scarce),
            Err(error) => {
                self.stall(&error);
                if self.retry.is_zero() || closing {
                    return Err(error);
                }
                self.roll_at = Some(now + self.retry_after);
                self.back_off();
                return Ok(false);
            }
        }
        self.roll_at = None;
        self.ledger.add_file(Position(self.written));
        self.shared.size.store(self.chain.size(), Ordering::Relaxed);
        Ok(true)
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        if self.durable < self.written {
            if let Some(last) = self.chain.last() {
                let began = self.world.elapsed();
                last.file
                    .sync_data()
                    .map_err(|e| StorageError::from_io("sync", &last.path, e))?;
                self.callbacks.synced(self.world.elapsed().saturating_sub(began));
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
    pub(crate) fn free_files(&mut self) {
        let free = self.ledger.free_files();
        if free > 0 && self.chain.free_oldest(free).is_ok() {
            (0..free).for_each(|_| self.ledger.drop_oldest());
            self.shared.size.store(self.chain.size(), Ordering::Relaxed);
        }
    }

    /// Tells that there is no next file. Told once until there is one.
    pub(crate) fn stall(&mut self, error: &StorageError) {
        if !std::mem::replace(&mut self.stalled, true) {
            self.retry_after = self.retry;
            self.callbacks.stalled(Some(error));
        }
        self.look_at = Some(self.world.elapsed() + self.retry_after);
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
        let now = self.world.elapsed();
        if self.stalled && self.look_at.is_none_or(|at| at <= now) && !self.chain.is_making() {
            self.back_off();
            self.chain.make_ahead();
        }
        // However often there is a turn: a log in use would never look again.
        let later = self.look_at.filter(|at| *at > now);
        self.look_at = match self.stalled || self.chain.is_making() {
            true => Some(later.unwrap_or(now + self.retry_after)),
            false => None,
        };
    }

    fn back_off(&mut self) {
        self.retry_after = (self.retry_after * 2).min(self.retry * LONGEST);
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
            let mut holders = self.ledger.holders_of_oldest();
            self.carry_promises(&mut holders, behind);
            self.callbacks.reclaim(holders, behind);
        }
    }

    /// What members of groups have promised is written again by the log itself, so that no group is woken for it. Under the lock
    /// of those who append: nobody can promise something later meanwhile, which the older promise would then stand behind.
    fn carry_promises(&self, holders: &mut Vec<JournalId>, behind: Position) {
        let carried = |holder: &JournalId| {
            if holder.kind != Kind::HARD_STATE {
                return false;
            }
            let mut pending = self.shared.lock();
            let Some((at, promise)) = pending.groups.promise(holder.number) else {
                return false;
            };
            if at < behind {
                pending.make_room();
                pending.record(*holder, |out| promise.encode(out));
                self.shared.publish(&pending);
            }
            true
        };
        holders.retain(|holder| !carried(holder));
    }

    /// Ends the log with an empty block that vouches for all before it.
    fn finish(&mut self) -> Result<(), StorageError> {
        let mut block = Vec::new();
        begin_block(&mut block);
        let length = block.len() as u64;
        let (last, offset) = self.place_for(length)?.ok_or_else(no_file)?;
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

impl<C: Callbacks> Task for Writer<C> {
    fn step(&mut self) -> Step {
        match self.serve() {
            Ok(Step::End) => self.end(None),
            Ok(step) => return step,
            Err(error) => self.end(Some(error)),
        }
        Step::End
    }
}

/// If the thread dies of a panic, nobody must wait for it for ever.
impl<C> Drop for Writer<C> {
    fn drop(&mut self) {
        if !self.ended {
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

fn no_file() -> StorageError {
    StorageError::Gone {
        what: "the log has no file to write to".to_owned(),
    }
}

/// Keeps the books about a record that is written.
fn note(ledger: &mut Ledger, journal: JournalId, at: Position, payload: &[u8]) {
    if journal.kind != Kind::LOG {
        ledger.record(journal, at);
    } else if journal == CARRIED {
        carry::group_of(payload)
            .into_iter()
            .for_each(|group| ledger.record(group, at));
    } else if let Some(mark) = Mark::decode(payload, at) {
        ledger.release(mark.journal, mark.before);
    }
}

/// From now on nothing is written: whoever waits gets `error`, whatever is appended is dropped.
fn stop(shared: &Shared, error: StorageError, failed: bool) {
    let mut pending = shared.lock();
    shared.busy_since.store(0, Ordering::Relaxed);
    shared.failed.store(failed, Ordering::Release);
    pending.stopped = Some(error);
    pending.discard();
    shared.publish(&pending);
    shared.show_progress(pending);
}
