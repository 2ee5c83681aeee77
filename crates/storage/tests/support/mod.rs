//! What the tests of this crate share: a log over any file system, and numbers that wait until it is durable.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "test code of which each binary uses its part"
)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use storage::{
    Batch, Callbacks, FileSystem, JournalId, Kind, Log, LogError, LogOptions, Position, Recovery, System,
};

/// What the log told its owner.
#[derive(Debug)]
pub enum Told {
    Durable(Vec<u64>),
    Failed(LogError),
    Reclaim(Vec<JournalId>, Position),
    Stalled(bool),
}

/// Numbers that wait until the log is durable up to a position.
pub type Waiting = Arc<Mutex<VecDeque<(Position, u64)>>>;

/// Passes everything on.
pub struct Ear {
    told: Mutex<Sender<Told>>,
    waiting: Waiting,
}

impl Ear {
    fn tell(&self, told: Told) {
        let _ = self.told.lock().unwrap().send(told);
    }
}

impl Callbacks for Ear {
    fn durable(&self, up_to: Position) {
        let mut waiting = self.waiting.lock().unwrap();
        let due = waiting.partition_point(|(position, _)| *position <= up_to);
        let kept = waiting.drain(..due).map(|(_, promise)| promise).collect();
        self.tell(Told::Durable(kept));
    }

    fn failed(&self, error: &LogError) {
        self.tell(Told::Failed(error.clone()));
    }

    fn stalled(&self, error: Option<&LogError>) {
        self.tell(Told::Stalled(error.is_some()));
    }

    fn reclaim(&self, journals: Vec<JournalId>, before: Position) {
        self.tell(Told::Reclaim(journals, before));
    }
}

/// A replayed record.
pub type Seen = (JournalId, Position, Vec<u8>);

/// An opened log with what it replayed and what it tells.
pub struct Opened {
    pub log: Log,
    pub waiting: Waiting,
    pub replayed: Vec<Seen>,
    pub told: Receiver<Told>,
}

/// The journal of a queue.
pub fn journal_id(number: u64) -> JournalId {
    JournalId::new(Kind::QUEUE, number)
}

pub const DIR: &str = "/data/log";

/// Files of 16 KiB: tests must see many of them.
pub fn small() -> LogOptions {
    LogOptions {
        file_bytes: 16 << 10,
        size_limit: 64 << 10,
        // Faults are planned by the number of a call: no other thread may make any.
        make_ahead: false,
        ..LogOptions::default()
    }
}

pub fn dir() -> PathBuf {
    PathBuf::from(DIR)
}

pub fn open(fs: impl FileSystem + 'static, options: LogOptions) -> Result<Opened, LogError> {
    open_in(Arc::new(fs), &dir(), options)
}

pub fn open_in(fs: Arc<dyn FileSystem>, dir: &Path, options: LogOptions) -> Result<Opened, LogError> {
    let (sender, told) = channel();
    let waiting = Waiting::default();
    let ear = Ear {
        told: Mutex::new(sender),
        waiting: waiting.clone(),
    };
    let mut replayed = Vec::new();
    let mut replay = |journal, position, payload: &[u8]| replayed.push((journal, position, payload.to_vec()));
    let log = Log::open(System::over(fs), dir, options, ear, &mut replay)?;
    Ok(Opened {
        log,
        waiting,
        replayed,
        told,
    })
}

/// Opens a log whose recovery `accept` must let pass.
pub fn open_if(
    fs: impl FileSystem + 'static,
    options: LogOptions,
    accept: &mut dyn FnMut(&Recovery) -> Result<(), LogError>,
) -> Result<Log, LogError> {
    let ear = Ear {
        told: Mutex::new(channel().0),
        waiting: Waiting::default(),
    };
    Log::open_if(
        System::over(Arc::new(fs)),
        &dir(),
        options,
        ear,
        &mut |_, _, _| {},
        accept,
    )
}

impl Opened {
    /// Appends one record without a promise.
    pub fn put(&self, journal: u64, payload: &[u8]) -> Position {
        self.log
            .append(|batch| batch.record(journal_id(journal), |out| out.extend_from_slice(payload)))
    }

    /// Appends one record and waits until its promise is kept. False if the log fails instead.
    pub fn keep(&self, journal: u64, payload: &[u8], promise: u64) -> bool {
        self.log.append(|batch| {
            batch.record(journal_id(journal), |out| out.extend_from_slice(payload));
            wait(&self.waiting, batch, promise);
        });
        self.await_promise(promise)
    }

    /// False if the log has failed. What it tells meanwhile is lost.
    pub fn await_promise(&self, promise: u64) -> bool {
        // Failure is told once only, perhaps to an earlier call.
        if self.log.failed() {
            return false;
        }
        while let Ok(told) = self.told.recv() {
            match told {
                Told::Durable(kept) if kept.contains(&promise) => return true,
                Told::Failed(_) => return false,
                _ => {}
            }
        }
        false
    }

    /// Waits until the log tells that it stalls, or goes on.
    pub fn await_stall(&self, stalled: bool) {
        while let Ok(told) = self.told.recv() {
            match told {
                Told::Stalled(now) if now == stalled => return,
                Told::Failed(error) => panic!("{error}"),
                _ => {}
            }
        }
        panic!("the log is gone");
    }

    pub fn payloads(&self, journal: u64) -> Vec<Vec<u8>> {
        self.replayed
            .iter()
            .filter(|seen| seen.0 == journal_id(journal))
            .map(|seen| seen.2.clone())
            .collect()
    }
}

/// Has the number wait until everything appended so far is synced.
pub fn wait(waiting: &Waiting, batch: &mut Batch<'_>, number: u64) {
    let up_to = batch.await_sync();
    waiting.lock().unwrap().push_back((up_to, number));
}

/// What was done to a log, in order.
#[derive(Debug, Clone)]
pub enum Op {
    Record(Seen),
    Release(JournalId, Position),
}

/// What replay must show after these.
pub fn visible(ops: &[Op]) -> Vec<&Seen> {
    let mut seen: Vec<&Seen> = Vec::new();
    for op in ops {
        match op {
            Op::Record(record) => seen.push(record),
            Op::Release(journal, before) => seen.retain(|record| record.0 != *journal || record.1 >= *before),
        }
    }
    seen
}

/// Checks that `replayed` is what some number of `ops`, at least `promised`, leaves visible. Returns that number.
pub fn check_prefix(ops: &[Op], promised: usize, replayed: &[Seen]) -> usize {
    let fits = |count: &usize| visible(&ops[..*count]).into_iter().eq(replayed);
    match (promised..=ops.len()).rev().find(fits) {
        Some(count) => count,
        None => panic!(
            "{} records replayed, not what the first {promised}..={} operations leave; numbers below that fit: {:?}",
            replayed.len(),
            ops.len(),
            (0..promised).rev().find(fits)
        ),
    }
}
