//! A file system in memory that fails on demand. For tests, here and in other crates; never used by the broker itself.
//!
//! What it models: data is durable after `sync_data`, names after `sync_dir`, and nothing else is. A crash keeps of
//! everything else an arbitrary part: each write whole, torn by sector, or not at all. A failed sync leaves the written
//! data readable but never durable, even if a later sync succeeds, as Linux file systems do.

mod random;
mod world;

pub use random::Random;

use crate::file_system::{Access, Advice, File, FileSystem, Locking};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use world::{Change, Directory, Inode, NameChange, World, missing, split};

/// What a chosen call does instead of its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Fails with EIO. A sync that fails so loses what it should have made durable.
    Io,
    /// Fails with ENOSPC.
    Full,
    /// Fails with EMFILE.
    NoDescriptor,
    /// A write or read handles only half of its bytes, and reports that; other calls work.
    Short,
    /// A write handles half of its bytes, and for a while every later call fails with ENOSPC.
    ShortThenFull,
    /// The power fails: this and every later call does nothing and fails. Then [`FaultyFs::crash`] tells what is left.
    PowerCut,
}

/// The file system. Clones share the same files.
#[derive(Debug, Clone)]
pub struct FaultyFs {
    world: Arc<Mutex<World>>,
}

#[derive(Debug)]
struct FaultyFile {
    world: Arc<Mutex<World>>,
    inode: u64,
    writable: bool,
    /// One reference for each open file.
    _open: Arc<()>,
}

struct FaultyLock {
    world: Arc<Mutex<World>>,
    path: PathBuf,
}

impl Default for FaultyFs {
    fn default() -> Self {
        Self::new()
    }
}

impl FaultyFs {
    /// An empty file system with a gigabyte of free space.
    pub fn new() -> Self {
        let world = World {
            next_inode: 1,
            free_space: 1 << 30,
            ..World::default()
        };
        Self {
            world: Arc::new(Mutex::new(world)),
        }
    }

    fn lock_world(&self) -> MutexGuard<'_, World> {
        locked(&self.world)
    }

    /// True after a power cut, a crash or a kill: nothing works here any more.
    pub fn is_off(&self) -> bool {
        self.lock_world().off
    }

    /// How many calls have been made.
    pub fn calls(&self) -> u64 {
        self.lock_world().calls
    }

    /// The `call`-th call from now on (1 is the next) does `fault` instead of its work.
    pub fn fail_at(&self, call: u64, fault: Fault) {
        let mut world = self.lock_world();
        let call = world.calls + call;
        world.plan.insert(call, fault);
    }

    /// How many files are open, copies' included.
    pub fn open_files(&self) -> usize {
        let world = self.lock_world();
        Arc::strong_count(&world.descriptors) - 1
    }

    /// From now on nothing can be opened, or again: the process has no descriptor left.
    pub fn set_no_descriptor(&self, none: bool) {
        self.lock_world().no_descriptor = none;
    }

    /// From now on syncs of files do nothing and say that they did, as if they had been left out.
    pub fn set_lying(&self) {
        self.lock_world().lies = true;
    }

    /// From now on every write, creation, rename and removal is refused, as on a read-only mount.
    pub fn set_read_only(&self) {
        self.lock_world().read_only = true;
    }

    /// What [`FileSystem::free_space`] answers.
    pub fn set_free_space(&self, bytes: u64) {
        self.lock_world().free_space = bytes;
    }

    /// Pulls the plug: every further call on this file system fails. Returns what a reboot finds: all that is durable,
    /// and of the rest what `seed` decides.
    pub fn crash(&self, seed: u64) -> Self {
        let mut world = self.lock_world();
        world.off = true;
        let mut after = world.clone();
        after.reboot(&mut Random(seed));
        Self {
            world: Arc::new(Mutex::new(after)),
        }
    }

    /// Stops the process without the power: everything written stays, even unsynced. Every further call on this file
    /// system fails; the returned one has the files.
    pub fn kill(&self) -> Self {
        let mut world = self.lock_world();
        world.off = true;
        let mut after = world.clone();
        after.calm();
        Self {
            world: Arc::new(Mutex::new(after)),
        }
    }

    /// An independent copy of all files, with no faults planned.
    pub fn copy(&self) -> Self {
        let mut copy = self.lock_world().clone();
        copy.descriptors = Arc::default();
        copy.calm();
        Self {
            world: Arc::new(Mutex::new(copy)),
        }
    }

    /// Changes a file's bytes behind everybody's back, as a failing disk does. True if the file exists.
    pub fn corrupt(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> bool {
        let mut world = self.lock_world();
        let Some(number) = world.find(path) else {
            return false;
        };
        let Some(inode) = world.inodes.get_mut(&number) else {
            return false;
        };
        change(&mut inode.now);
        inode.durable = inode.now.clone();
        inode.unsynced.clear();
        true
    }

    /// Puts a file there, durably.
    pub fn plant(&self, path: &Path, bytes: Vec<u8>) {
        let mut world = self.lock_world();
        let number = world.new_inode(Inode {
            now: bytes.clone(),
            durable: bytes,
            unsynced: Vec::new(),
        });
        let (dir, name) = split(path);
        let directory = world.directories.entry(dir).or_default();
        directory.linked = true;
        directory.now.insert(name.clone(), number);
        directory.durable.insert(name, number);
    }

    /// A file's bytes as a reader sees them now.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.lock_world();
        world
            .find(path)
            .and_then(|number| world.inodes.get(&number))
            .map(|inode| inode.now.clone())
    }

    /// The disk is full: so often a file can't become longer, until there is space again.
    pub fn set_full(&self, refusals: u64) {
        self.lock_world().refusals = refusals;
    }

    /// Whether it still is.
    pub fn is_full(&self) -> bool {
        self.lock_world().refusals > 0
    }

    /// All files, sorted by path.
    pub fn files(&self) -> Vec<PathBuf> {
        let world = self.lock_world();
        let mut paths = Vec::new();
        for (dir, directory) in &world.directories {
            paths.extend(directory.now.keys().map(|name| dir.join(name)));
        }
        paths
    }
}

fn locked(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FileSystem for FaultyFs {
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>> {
        let mut world = self.lock_world();
        world.call(access == Access::Create)?;
        world.descriptor()?;
        let (dir, name) = split(path);
        let inode = match (world.find(path), access) {
            (Some(inode), Access::Create) => {
                world.inode(inode)?.change(Change::Length(0));
                inode
            }
            (Some(inode), _) => inode,
            (None, Access::Create) => {
                let inode = world.new_inode(Inode::default());
                world.directory(&dir)?.change(NameChange::Link(name, inode));
                inode
            }
            (None, _) => return Err(missing()),
        };
        Ok(Arc::new(FaultyFile {
            world: self.world.clone(),
            inode,
            writable: access != Access::Read,
            _open: world.descriptors.clone(),
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut world = self.lock_world();
        world.call(true)?;
        let inode = world.find(from).ok_or_else(missing)?;
        let ((dir, from), (other, to)) = (split(from), split(to));
        if dir == other {
            world.directory(&dir)?.change(NameChange::Rename(from, to, inode));
        } else {
            world.directory(&other)?.change(NameChange::Link(to, inode));
            world.directory(&dir)?.change(NameChange::Unlink(from));
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut world = self.lock_world();
        world.call(true)?;
        world.find(path).ok_or_else(missing)?;
        let (dir, name) = split(path);
        world.directory(&dir)?.change(NameChange::Unlink(name));
        Ok(())
    }

    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.lock_world();
        world.call(false)?;
        for dir in dir.ancestors() {
            if !world.directories.contains_key(dir) {
                if world.read_only {
                    return Err(io::ErrorKind::ReadOnlyFilesystem.into());
                }
                let linked = dir.parent().is_none_or(|parent| parent == Path::new(""));
                world.directories.insert(
                    dir.to_owned(),
                    Directory {
                        linked,
                        ..Directory::default()
                    },
                );
            }
        }
        Ok(())
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.lock_world();
        world.call(true)?;
        if !world.directory(dir)?.now.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        world.directories.remove(dir);
        Ok(())
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let mut world = self.lock_world();
        world.call(false)?;
        let mut names: Vec<String> = world.directory(dir)?.now.keys().cloned().collect();
        for inner in world
            .directories
            .keys()
            .filter(|inner| inner.parent() == Some(dir))
        {
            names.push(split(inner).1);
        }
        names.sort();
        Ok(names)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut world = self.lock_world();
        if let Err(error) = world.call(false) {
            if !world.off
                && let Some(directory) = world.directories.get_mut(dir)
            {
                directory.unsynced.clear();
            }
            return Err(error);
        }
        world.descriptor()?;
        for (inner, directory) in &mut world.directories {
            directory.linked |= inner.parent() == Some(dir);
        }
        let directory = world.directory(dir)?;
        for change in directory.unsynced.drain(..) {
            change.apply(&mut directory.durable);
        }
        Ok(())
    }

    fn free_space(&self, _dir: &Path) -> io::Result<u64> {
        let mut world = self.lock_world();
        world.call(false)?;
        Ok(world.free_space)
    }

    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locking> {
        let mut world = self.lock_world();
        world.call(true)?;
        if !world.locks.insert(path.to_owned()) {
            return Ok(Locking::Taken(
                world.holders.get(path).cloned().unwrap_or_default(),
            ));
        }
        world.holders.insert(path.to_owned(), holder.to_owned());
        Ok(Locking::Held(Box::new(FaultyLock {
            world: self.world.clone(),
            path: path.to_owned(),
        })))
    }
}

impl Drop for FaultyLock {
    fn drop(&mut self) {
        locked(&self.world).locks.remove(&self.path);
    }
}

impl File for FaultyFile {
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut world = locked(&self.world);
        let half = world.call(false)?;
        let bytes = &world.inode(self.inode)?.now;
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let mut length = buf.len().min(bytes.len() - start);
        if half && length > 1 {
            length /= 2;
        }
        buf[..length].copy_from_slice(&bytes[start..start + length]);
        Ok(length)
    }

    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let mut world = locked(&self.world);
        let half = world.call(true)?;
        if !self.writable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let length = if half && buf.len() > 1 {
            buf.len() / 2
        } else {
            buf.len()
        };
        world.grow(self.inode, offset + length as u64)?;
        world.inode(self.inode)?.change(Change::Write {
            offset: offset as usize,
            bytes: buf[..length].to_vec(),
        });
        Ok(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut world = locked(&self.world);
        let outcome = world.call(false);
        match outcome {
            Ok(_) if world.lies => Ok(()),
            Ok(_) => {
                world.inode(self.inode)?.sync();
                Ok(())
            }
            Err(error) => {
                // The pages are clean now, though they never reached the disk. A machine that is off does not even that.
                if !world.off {
                    world.inode(self.inode)?.unsynced.clear();
                }
                Err(error)
            }
        }
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let mut world = locked(&self.world);
        world.call(true)?;
        if length > world.free_space {
            return Err(io::ErrorKind::StorageFull.into());
        }
        world.grow(self.inode, length)?;
        let inode = world.inode(self.inode)?;
        if inode.now.len() < length as usize {
            inode.change(Change::Length(length as usize));
        }
        Ok(())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut world = locked(&self.world);
        world.call(true)?;
        world.inode(self.inode)?.change(Change::Length(length as usize));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        let mut world = locked(&self.world);
        world.call(false)?;
        Ok(world.inode(self.inode)?.now.len() as u64)
    }

    fn advise(&self, _offset: u64, _length: u64, _advice: Advice) {}
}
