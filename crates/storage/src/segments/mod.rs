//! Per-owner files for what stays long: the backlog of a long queue. Entries are bytes; an entry lies in one file. An owner has
//! the name of a journal, so that queues and groups of one number are two. Reading order: `place` (an entry on disk), `owner`
//! (appending, syncing, freeing), `books` (what is still needed), `descriptors` (open files).

mod books;
mod descriptors;
mod owner;
mod place;

pub use place::{Entry, Place};

use crate::error::StorageError;
use crate::file_system::{FileSystem, create_dir_durably, read_full_at};
use crate::journal::{JournalId, Kind};
use descriptors::{Descriptors, check_version};
use owner::{Around, Owner};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Settings of the segment files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentOptions {
    /// A file is not extended above this size; an entry larger than this gets a file of its own. At most 3 GiB.
    pub segment_bytes: u64,
    /// How many files are kept open.
    pub open_files: usize,
}

impl Default for SegmentOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 64 << 20,
            open_files: 256,
        }
    }
}

/// All owners' segments. Memory: a few numbers per file; none per entry.
#[derive(Debug)]
pub struct Segments {
    fs: Arc<dyn FileSystem>,
    dir: PathBuf,
    options: SegmentOptions,
    descriptors: Descriptors,
    owners: RwLock<HashMap<JournalId, Arc<Owner>>>,
}

impl Segments {
    /// Opens `dir`, made if needed. Afterwards the caller [`adopt`](Self::adopt)s every entry it still needs and then
    /// calls [`sweep`](Self::sweep).
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, options: SegmentOptions) -> Result<Self, StorageError> {
        create_dir_durably(fs.as_ref(), dir)?;
        let mut owners = HashMap::new();
        for name in fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))? {
            match owner(&name) {
                Some(id) => {
                    let files = segment_files(fs.as_ref(), &dir.join(&name))?;
                    owners.insert(id, Arc::new(Owner::new(id, &files)));
                }
                // Of another version, which says so in its files.
                None if number(&name).is_some() => drop(segment_files(fs.as_ref(), &dir.join(&name))?),
                None => {}
            }
        }
        let descriptors = Descriptors::new(fs.clone(), dir, options.open_files);
        Ok(Self {
            fs,
            dir: dir.to_owned(),
            options,
            descriptors,
            owners: RwLock::new(owners),
        })
    }

    fn around(&self) -> Around<'_> {
        Around {
            fs: self.fs.as_ref(),
            dir: &self.dir,
            descriptors: &self.descriptors,
            options: &self.options,
        }
    }

    fn owner(&self, id: JournalId) -> Option<Arc<Owner>> {
        self.owners
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&id)
            .cloned()
    }

    fn owner_or_new(&self, id: JournalId) -> Arc<Owner> {
        if let Some(owner) = self.owner(id) {
            return owner;
        }
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        owners
            .entry(id)
            .or_insert_with(|| Arc::new(Owner::new(id, &[])))
            .clone()
    }

    /// Writes entries, each given in its parts, and adds their places to `places`. They are durable after
    /// [`sync`](Self::sync). Each part has its own checksum and can be read when others are damaged.
    ///
    /// # Errors
    /// After an error none of these entries exists and `places` is as it was; the next append goes to a new file.
    /// [`StorageError::TooLarge`] for an entry above 1 GiB. After a failed sync every append fails.
    pub fn append<'a>(
        &self,
        owner: JournalId,
        entries: impl IntoIterator<Item = impl AsRef<[&'a [u8]]>>,
        places: &mut Vec<Place>,
    ) -> Result<(), StorageError> {
        self.owner_or_new(owner).append(&self.around(), entries, places)
    }

    /// Makes everything the owner appended before durable, names included. Does not hold up appends.
    ///
    /// # Errors
    /// After a failure nothing appended since the last sync may be relied on, and every later sync and append of the
    /// owner fails.
    pub fn sync(&self, owner: JournalId) -> Result<(), StorageError> {
        match self.owner(owner) {
            Some(owner) => owner.sync(&self.around()),
            None => Ok(()),
        }
    }

    /// What the owner has appended is going to be made durable by a [`sync`](Self::sync) on another thread: until that begins,
    /// [`let_go`](Self::let_go) lets go of nothing.
    pub fn await_sync(&self, owner: JournalId) {
        if let Some(owner) = self.owner(owner) {
            owner.await_sync();
        }
    }

    /// Nothing that the owner appended since the last sync needs to be durable: its files are not kept open for that.
    pub fn let_go(&self, owner: JournalId) {
        if let Some(owner) = self.owner(owner) {
            owner.let_go();
        }
    }

    /// The bytes of one entry, verified. Takes no lock that appends hold.
    ///
    /// # Errors
    /// [`StorageError::Gone`] if its file was deleted; [`StorageError::Corrupt`] if any of it does not read as written.
    pub fn read(&self, owner: JournalId, place: Place) -> Result<Vec<u8>, StorageError> {
        let whole = self.read_parts(owner, place)?.whole();
        whole.ok_or_else(|| wrong(&self.descriptors.path((owner, place.segment)), place))
    }

    /// One entry with those of its parts that read as written.
    ///
    /// # Errors
    /// [`StorageError::Gone`] if its file was deleted; [`StorageError::Corrupt`] if nothing of it reads as written.
    pub fn read_parts(&self, owner: JournalId, place: Place) -> Result<Entry, StorageError> {
        let file = self.descriptors.get((owner, place.segment))?;
        let path = || self.descriptors.path((owner, place.segment));
        let io = |e| StorageError::from_io("read", &path(), e);
        if place.end() > file.len().map_err(io)? {
            return Err(wrong(&path(), place));
        }
        let mut bytes = vec![0; place.disk_bytes() as usize];
        let read = read_full_at(file.as_ref(), &mut bytes, u64::from(place.offset)).map_err(io)?;
        bytes.truncate(read);
        place.decode(owner, bytes).ok_or_else(|| wrong(&path(), place))
    }

    /// An entry is needed no more. Call it only when that is durable: its file may be deleted at once. If deleting
    /// fails, the file stays until the next start.
    pub fn free(&self, owner: JournalId, place: Place) {
        if let Some(owner) = self.owner(owner) {
            let _ = owner.free(&self.around(), place);
        }
    }

    /// Nothing more is appended for now: the file that was written last is deleted, too, if nothing in it is needed. If deleting
    /// fails, it stays until the next start.
    pub fn rest(&self, owner: JournalId) {
        if let Some(owner) = self.owner(owner) {
            let _ = owner.rest(&self.around());
        }
    }

    /// A segment that is not written any more and worth rewriting, because little of it is needed or because it is one of many
    /// small ones: append what is needed of it anew, and free the old places. Each is named once.
    pub fn sparse(&self, owner: JournalId) -> Option<u32> {
        self.owner(owner)?.books().sparse(self.options.segment_bytes)
    }

    /// At start: this entry is needed. False if it is not there: its file is missing or too short.
    pub fn adopt(&self, owner: JournalId, place: Place) -> bool {
        self.owner_or_new(owner).books().add(place)
    }

    /// True if no owner has a file.
    pub fn is_empty(&self) -> bool {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.values().all(|owner| owner.books().is_empty())
    }

    /// At start, after all adoptions: deletes what nobody adopted, or moves it to the folder that `aside` names for the
    /// owner. Returns how many files were deleted and moved.
    ///
    /// # Errors
    /// The first failure; what could be done is.
    pub fn sweep(
        &self,
        aside: &dyn Fn(JournalId) -> Option<PathBuf>,
    ) -> Result<(usize, usize), StorageError> {
        let mut owners = self.owners.write().unwrap_or_else(PoisonError::into_inner);
        let mut outcome = Ok(());
        let (mut deleted, mut moved) = (0, 0);
        owners.retain(|id, owner| {
            let aside = aside(*id);
            match owner.sweep(&self.around(), aside.as_deref()) {
                Ok((files, empty)) => {
                    *(if aside.is_some() { &mut moved } else { &mut deleted }) += files;
                    !empty || owner.books().lacks_files()
                }
                Err(error) => {
                    outcome = Err(error);
                    true
                }
            }
        });
        outcome.map(|()| (deleted, moved))
    }

    /// Deletes everything of an owner.
    ///
    /// # Errors
    /// The first failure to delete; the next start's [`sweep`](Self::sweep) tries again.
    pub fn remove(&self, owner: JournalId) -> Result<(), StorageError> {
        let removed = self
            .owners
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&owner);
        match removed {
            Some(owner) => owner.remove(&self.around()),
            None => Ok(()),
        }
    }

    /// How many files an owner has.
    pub fn owner_files(&self, owner: JournalId) -> usize {
        self.owner(owner).map_or(0, |owner| owner.books().count())
    }

    /// Bytes of entries that are needed, and bytes of all files.
    pub fn owner_bytes(&self, owner: JournalId) -> (u64, u64) {
        self.owner(owner).map_or((0, 0), |owner| owner.books().totals())
    }
}

fn wrong(path: &Path, place: Place) -> StorageError {
    StorageError::corrupt(
        path,
        u64::from(place.offset),
        "an entry does not match its checksums",
    )
}

/// The owner whose directory has this name.
fn owner(name: &str) -> Option<JournalId> {
    let (kind, id) = name.split_once('-')?;
    let kind = u8::try_from(number(kind)?).ok()?;
    Some(JournalId::new(Kind(kind), number(id)?))
}

/// A name that is a number written the usual way, so that no two names mean the same.
fn number(name: &str) -> Option<u64> {
    let number: u64 = name.parse().ok()?;
    (number.to_string() == name).then_some(number)
}

/// Numbers and sizes of an owner's files.
fn segment_files(fs: &dyn FileSystem, dir: &Path) -> Result<Vec<(u32, u64)>, StorageError> {
    let mut files = Vec::new();
    for name in fs.list(dir).map_err(|e| StorageError::from_io("list", dir, e))? {
        let segment = name
            .strip_suffix(".segment")
            .and_then(number)
            .and_then(|n| u32::try_from(n).ok());
        if let Some(segment) = segment {
            let path = dir.join(&name);
            let file = fs
                .open(&path, crate::file_system::Access::Read)
                .map_err(|e| StorageError::from_io("open", &path, e))?;
            check_version(file.as_ref(), &path)?;
            files.push((
                segment,
                file.len()
                    .map_err(|e| StorageError::from_io("ask the length of", &path, e))?,
            ));
        }
    }
    Ok(files)
}
