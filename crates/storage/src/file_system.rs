//! The only way to files. Two implementations: [`Disk`](crate::Disk) and [`FaultyFs`](crate::faulty::FaultyFs).

use crate::error::StorageError;
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// An existing file, to read.
    Read,
    /// An existing file, to read and write.
    Write,
    /// A new or emptied file, to read and write.
    Create,
}

/// What a reader is about to do, so that the page cache can prepare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Advice {
    /// The range will be read soon: start now.
    WillNeed,
    /// The range will not be read again: its pages may go.
    DontNeed,
}

/// The outcome of asking for a lock.
pub enum Locking {
    /// Ours until dropped.
    Held(Box<dyn Send + Sync>),
    /// Somebody else's; with what they wrote about themselves.
    Taken(String),
}

/// Files and directories, as far as logs need them.
pub trait FileSystem: Send + Sync + Debug {
    /// Opens a file. A created file is durable only after [`sync_dir`](Self::sync_dir) of its directory.
    fn open(&self, path: &Path, access: Access) -> io::Result<Arc<dyn File>>;
    /// Renames a file, replacing what has the new name; durable after `sync_dir`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file; durable after `sync_dir`.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes a directory and those above it. No error if it exists.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, dir: &Path) -> io::Result<()>;
    /// Names of the directory's files and directories, sorted. Names that are not UTF-8 are left out: none is ours.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes the directory's names durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
    /// Bytes that an unprivileged process may still write on the file system of `dir`.
    fn free_space(&self, dir: &Path) -> io::Result<u64>;
    /// Takes an exclusive lock on a file, made if needed, and writes `holder` into it.
    fn lock(&self, path: &Path, holder: &str) -> io::Result<Locking>;
}

/// An open file. All access is at explicit offsets, so one descriptor serves many threads.
pub trait File: Send + Sync + Debug {
    /// Reads up to `buf.len()` bytes; fewer at the end of the file or by chance.
    fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes up to `buf.len()` bytes; may write fewer.
    fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize>;
    /// Makes the content, and what is needed to find it, durable. After an error the content is in doubt for ever:
    /// the kernel may have dropped the dirty pages, and a second attempt would succeed without having written them.
    fn sync_data(&self) -> io::Result<()>;
    /// Reserves space and sets the length to at least `length`.
    fn allocate(&self, length: u64) -> io::Result<()>;
    /// Cuts or extends with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Length in bytes.
    fn len(&self) -> io::Result<u64>;
    /// True if the file has no bytes.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }
    /// A hint; may do nothing.
    fn advise(&self, offset: u64, length: u64, advice: Advice);
}

/// Writes all of `buf`, carrying on after short writes.
pub(crate) fn write_all_at(file: &dyn File, mut buf: &[u8], mut offset: u64) -> io::Result<()> {
    while !buf.is_empty() {
        match file.write_at(buf, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                buf = &buf[written..];
                offset += written as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads until `buf` is full or the file ends; returns how much was read.
pub(crate) fn read_full_at(file: &dyn File, buf: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buf.len() {
        match file.read_at(&mut buf[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Puts these bytes in the place of a file's, durably and as a whole: after a crash the file is as it was, or as it is now.
/// Beside it one of the same name that ends with `.tmp` is used.
///
/// # Errors
/// The file system has one. The file is as it was then, or as it is to be.
pub fn replace_file(fs: &dyn FileSystem, path: &Path, bytes: &[u8]) -> Result<(), StorageError> {
    let mut draft = path.as_os_str().to_owned();
    draft.push(".tmp");
    let (draft, dir) = (PathBuf::from(draft), path.parent().unwrap_or(path));
    let failed = |action, path: &Path| {
        let path = path.to_owned();
        move |e| StorageError::from_io(action, &path, e)
    };
    let file = fs
        .open(&draft, Access::Create)
        .map_err(failed("create", &draft))?;
    write_all_at(file.as_ref(), bytes, 0).map_err(failed("write", &draft))?;
    file.sync_data().map_err(failed("sync", &draft))?;
    fs.rename(&draft, path).map_err(failed("rename", &draft))?;
    fs.sync_dir(dir).map_err(failed("sync the directory", dir))
}

/// All bytes of a file, which has at most `limit`; `None` if there is none.
///
/// # Errors
/// It can't be read, or is longer.
pub fn read_file(fs: &dyn FileSystem, path: &Path, limit: usize) -> Result<Option<Vec<u8>>, StorageError> {
    let file = match fs.open(path, Access::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::from_io("open", path, error)),
    };
    let mut bytes = vec![0; limit + 1];
    let read = read_full_at(file.as_ref(), &mut bytes, 0);
    let read = read.map_err(|error| StorageError::from_io("read", path, error))?;
    if read > limit {
        return Err(StorageError::corrupt(
            path,
            limit as u64,
            "it is longer than it can be",
        ));
    }
    bytes.truncate(read);
    Ok(Some(bytes))
}

/// Removes a directory and the files in it. What a crash leaves of it can be removed in the same way.
///
/// # Errors
/// The file system has one; some of it may be gone.
pub fn remove_files(fs: &dyn FileSystem, dir: &Path) -> Result<(), StorageError> {
    for name in fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))? {
        let path = dir.join(name);
        fs.remove(&path)
            .map_err(|e| StorageError::from_io("remove", &path, e))?;
    }
    fs.remove_dir(dir)
        .map_err(|e| StorageError::from_io("remove the directory", dir, e))
}

/// Moves the files in a directory to another one of the same file system, made if needed, durably, and removes the directory.
///
/// # Errors
/// The file system has one; some may have been moved.
pub fn move_files(fs: &dyn FileSystem, dir: &Path, to: &Path) -> Result<(), StorageError> {
    create_dir_durably(fs, to)?;
    for name in fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))? {
        let path = dir.join(&name);
        fs.rename(&path, &to.join(name))
            .map_err(|e| StorageError::from_io("rename", &path, e))?;
    }
    for synced in [to, dir] {
        fs.sync_dir(synced)
            .map_err(|e| StorageError::from_io("sync the directory", synced, e))?;
    }
    fs.remove_dir(dir)
        .map_err(|e| StorageError::from_io("remove the directory", dir, e))
}

/// Makes a directory, and those above it, so that a crash cannot take them away again. Names of those that are there
/// already are made durable as well: the process that made them may have ended because just that had failed.
pub(crate) fn create_dir_durably(fs: &dyn FileSystem, dir: &Path) -> Result<(), StorageError> {
    fs.create_dir(dir)
        .map_err(|e| StorageError::from_io("create the directory", dir, e))?;
    let above: Vec<&Path> = dir.ancestors().filter_map(Path::parent).collect();
    for parent in above.into_iter().rev() {
        let parent = if parent == Path::new("") {
            Path::new(".")
        } else {
            parent
        };
        match fs.sync_dir(parent) {
            Err(error) if was_there(&error) => {}
            outcome => outcome.map_err(|e| StorageError::from_io("sync the directory", parent, e))?,
        }
    }
    Ok(())
}

/// We may pass through a directory but not read it, or it is of a file system that is only read: then nothing was made in it.
fn was_there(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    matches!(
        error.kind(),
        PermissionDenied | ReadOnlyFilesystem | InvalidInput | Unsupported
    )
}
