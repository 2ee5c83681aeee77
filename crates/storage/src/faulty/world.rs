//! The files behind [`FaultyFs`](super::FaultyFs): what a reader sees, what is durable, and what lies between.

use super::{Fault, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, Default)]
pub(super) struct World {
    pub(super) inodes: BTreeMap<u64, Inode>,
    pub(super) directories: BTreeMap<PathBuf, Directory>,
    pub(super) next_inode: u64,
    pub(super) calls: u64,
    pub(super) plan: BTreeMap<u64, Fault>,
    pub(super) full_from: Option<u64>,
    pub(super) off: bool,
    pub(super) read_only: bool,
    pub(super) no_descriptor: bool,
    /// Syncs of files do nothing and say that they did.
    pub(super) lies: bool,
    pub(super) free_space: u64,
    /// So often a file can't become longer.
    pub(super) refusals: u64,
    /// One reference more than files are open.
    pub(super) descriptors: Arc<()>,
    pub(super) locks: BTreeSet<PathBuf>,
    pub(super) holders: BTreeMap<PathBuf, String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Inode {
    pub(super) now: Vec<u8>,
    pub(super) durable: Vec<u8>,
    pub(super) unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Debug, Clone, Default)]
pub(super) struct Directory {
    /// The directory's own name is durable: its parent was synced since it was made.
    pub(super) linked: bool,
    pub(super) now: BTreeMap<String, u64>,
    pub(super) durable: BTreeMap<String, u64>,
    pub(super) unsynced: Vec<NameChange>,
}

#[derive(Debug, Clone)]
pub(super) enum NameChange {
    Link(String, u64),
    Unlink(String),
    Rename(String, String, u64),
}

const SECTOR: usize = 512;

pub(super) fn split(path: &Path) -> (PathBuf, String) {
    let dir = path.parent().unwrap_or(Path::new("")).to_owned();
    (
        dir,
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
    )
}

pub(super) fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

/// How many calls a disk stays full.
const FULL_CALLS: u64 = 24;

impl World {
    /// Fails if the process may open nothing more.
    pub(super) fn descriptor(&self) -> io::Result<()> {
        match self.no_descriptor {
            true => Err(rustix::io::Errno::MFILE.into()),
            false => Ok(()),
        }
    }

    /// Counts a call. `Ok(true)`: handle only half.
    pub(super) fn call(&mut self, changes: bool) -> io::Result<bool> {
        self.calls += 1;
        if self.off {
            return Err(io::Error::other("the machine is off"));
        }
        if changes && self.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if self
            .full_from
            .is_some_and(|from| (from..from + FULL_CALLS).contains(&self.calls))
        {
            return Err(io::ErrorKind::StorageFull.into());
        }
        match self.plan.remove(&self.calls) {
            None => Ok(false),
            Some(Fault::Short) => Ok(true),
            Some(Fault::ShortThenFull) => {
                self.full_from = Some(self.calls + 1);
                Ok(true)
            }
            Some(Fault::PowerCut) => {
                self.off = true;
                Err(io::Error::other("the machine is off"))
            }
            Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::NoDescriptor) => Err(rustix::io::Errno::MFILE.into()),
            Some(Fault::Io) => Err(io::Error::other("injected input/output error")),
        }
    }

    /// A file is to be so long at least.
    pub(super) fn grow(&mut self, number: u64, length: u64) -> io::Result<()> {
        if self.refusals > 0 && self.inode(number)?.now.len() < length as usize {
            self.refusals -= 1;
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }

    pub(super) fn find(&self, path: &Path) -> Option<u64> {
        let (dir, name) = split(path);
        self.directories.get(&dir)?.now.get(&name).copied()
    }

    pub(super) fn new_inode(&mut self, inode: Inode) -> u64 {
        let number = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(number, inode);
        number
    }

    pub(super) fn inode(&mut self, number: u64) -> io::Result<&mut Inode> {
        self.inodes.get_mut(&number).ok_or_else(missing)
    }

    pub(super) fn directory(&mut self, dir: &Path) -> io::Result<&mut Directory> {
        self.directories.get_mut(dir).ok_or_else(missing)
    }

    pub(super) fn calm(&mut self) {
        self.off = false;
        self.no_descriptor = false;
        self.plan.clear();
        self.full_from = None;
        self.refusals = 0;
        self.locks.clear();
    }

    pub(super) fn reboot(&mut self, random: &mut Random) {
        self.calm();
        for inode in self.inodes.values_mut() {
            inode.reboot(random);
        }
        let vanished: Vec<PathBuf> = self
            .directories
            .iter()
            .filter(|(_, d)| !d.linked && random.chance())
            .map(|(p, _)| p.clone())
            .collect();
        self.directories
            .retain(|path, _| !vanished.iter().any(|gone| path.starts_with(gone)));
        for directory in self.directories.values_mut() {
            directory.linked = true;
            directory.reboot(random);
        }
    }
}

impl Change {
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Length(length) => set_length(bytes, *length),
            Change::Write {
                offset,
                bytes: written,
            } => put(bytes, *offset, written),
        }
    }
}

/// Growth by preallocation is made of fresh zero pages, which cost nothing until they are touched: a test may use a log
/// with its usual sizes.
pub(super) fn set_length(bytes: &mut Vec<u8>, length: usize) {
    if length <= bytes.len() {
        bytes.truncate(length);
        return;
    }
    let mut grown = vec![0; length];
    grown[..bytes.len()].copy_from_slice(bytes);
    *bytes = grown;
}

pub(super) fn put(bytes: &mut Vec<u8>, offset: usize, written: &[u8]) {
    let end = offset + written.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[offset..end].copy_from_slice(written);
}

impl Inode {
    pub(super) fn change(&mut self, change: Change) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        for change in self.unsynced.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    pub(super) fn reboot(&mut self, random: &mut Random) {
        let mood = random.below(4);
        for change in std::mem::take(&mut self.unsynced) {
            let fate = if mood < 2 { mood } else { random.below(3) };
            match (&change, fate) {
                (_, 0) => {}
                (_, 1) => change.apply(&mut self.durable),
                (Change::Length(_), _) => change.apply(&mut self.durable),
                (Change::Write { offset, bytes }, _) => tear(&mut self.durable, *offset, bytes, random),
            }
        }
        self.now = self.durable.clone();
    }
}

/// Each sector of the write reaches the disk or not.
pub(super) fn tear(durable: &mut Vec<u8>, offset: usize, bytes: &[u8], random: &mut Random) {
    let mut at = offset;
    let end = offset + bytes.len();
    while at < end {
        let next = ((at / SECTOR + 1) * SECTOR).min(end);
        if random.chance() {
            put(durable, at, &bytes[at - offset..next - offset]);
        }
        at = next;
    }
}

impl Directory {
    pub(super) fn change(&mut self, change: NameChange) {
        change.apply(&mut self.now);
        self.unsynced.push(change);
    }

    pub(super) fn reboot(&mut self, random: &mut Random) {
        // Journaling file systems lose a suffix of such changes; POSIX allows losing any.
        let kept_prefix = random.below(self.unsynced.len() as u64 + 1) as usize;
        let any = random.chance();
        for (at, change) in std::mem::take(&mut self.unsynced).into_iter().enumerate() {
            if if any { random.chance() } else { at < kept_prefix } {
                change.apply(&mut self.durable);
            }
        }
        self.now = self.durable.clone();
    }
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut BTreeMap<String, u64>) {
        match self {
            NameChange::Link(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            NameChange::Unlink(name) => {
                names.remove(name);
            }
            NameChange::Rename(from, to, inode) => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }
}
