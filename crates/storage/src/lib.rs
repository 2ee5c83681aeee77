//! The logs on disk. This crate does not know what a message is: it imports nothing of ours, keeps bytes under kinds and
//! numbers that others give out, and never looks into them.
//!
//! Three kinds of files. [`Log`]: the node's one write-ahead log with group commit, for everything that must be durable
//! soon. [`Segments`]: files per owner for what stays long. [`StreamFiles`]: what is appended, and read many times. All
//! write through [`FileSystem`], which has a real implementation, [`Disk`], and one for tests that fails on demand
//! (`faulty`). Files, clocks, chance and threads come in as one value, a [`World`].
//!
//! What never happens here: a promise is kept before its bytes are synced; a payload is handed out that does not match
//! its checksum; a failed write or sync is tried again; bytes on disk, whatever they are, cause a panic; a second
//! process works on the same directory ([`DirectoryLock`]).
//!
//! Reading order: [`World`], [`FileSystem`], `log/mod.rs`, `segments/mod.rs`, `streams/mod.rs`, `faulty`.

mod copy;
mod directory_lock;
mod disk;
mod error;
#[cfg(any(test, feature = "faulty"))]
pub mod faulty;
mod file_system;
mod journal;
mod log;
mod segments;
mod streams;
mod system;
mod world;

pub use copy::copy_files;
pub use directory_lock::DirectoryLock;
pub use disk::Disk;
pub use error::StorageError;
pub use file_system::{
    Access, Advice, File, FileSystem, Locking, move_files, read_file, remove_files, replace_file,
};
pub use journal::{GroupEntry, HardState, JournalId, Kind};
pub use log::{
    Batch, Callbacks, Cut, Damage, Log, LogOptions, Position, Recovery, SetAside, TailLimits,
    set_journals_aside,
};
pub use segments::{Entry, Place, SegmentOptions, Segments};
pub use streams::{
    FrameHead, Page, StreamCursor, StreamDamage, StreamEntry, StreamFiles, StreamSegment, TornEnd,
};

pub use system::System;
pub use world::{Step, Task, Thread, World};

/// The error of [`Log`].
pub type LogError = StorageError;
/// The error of [`Segments`].
pub type SegmentError = StorageError;
