//! Copies of files, before they are changed in a way that nobody could take back.

use crate::error::StorageError;
use crate::file_system::{Access, FileSystem, create_dir_durably, read_full_at, write_all_at};
use std::path::Path;

const PIECE: usize = 1 << 20;

/// Copies the files of `from` to `to`, which is made; durable when this returns. Parts that are all zeros take no space.
///
/// # Errors
/// Whatever the file system reports; what has been copied stays.
pub fn copy_files(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<(), StorageError> {
    create_dir_durably(fs, to)?;
    for name in fs
        .list(from)
        .map_err(|e| StorageError::from_io("list", from, e))?
    {
        copy_file(fs, &from.join(&name), &to.join(&name))?;
    }
    fs.sync_dir(to)
        .map_err(|e| StorageError::from_io("sync the directory", to, e))
}

fn copy_file(fs: &dyn FileSystem, from: &Path, to: &Path) -> Result<(), StorageError> {
    let reading = |e| StorageError::from_io("read", from, e);
    let writing = |e| StorageError::from_io("write", to, e);
    let source = fs.open(from, Access::Read).map_err(reading)?;
    let copy = fs.open(to, Access::Create).map_err(writing)?;
    let length = source.len().map_err(reading)?;
    copy.set_len(length).map_err(writing)?;
    let mut buffer = vec![0; PIECE];
    let mut offset = 0;
    loop {
        let read = read_full_at(source.as_ref(), &mut buffer, offset).map_err(reading)?;
        if read == 0 {
            break;
        }
        if buffer[..read].iter().any(|byte| *byte != 0) {
            write_all_at(copy.as_ref(), &buffer[..read], offset).map_err(writing)?;
        }
        offset += read as u64;
    }
    copy.sync_data().map_err(|e| StorageError::from_io("sync", to, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faulty::FaultyFs;
    use std::path::PathBuf;

    #[test]
    fn a_copy_outlives_a_power_cut() {
        let fs = FaultyFs::new();
        let long = [vec![0; PIECE], vec![7; 100], vec![0; 50]].concat();
        fs.plant(&PathBuf::from("/data/log/a"), long.clone());
        fs.plant(&PathBuf::from("/data/log/b"), Vec::new());
        copy_files(&fs, Path::new("/data/log"), Path::new("/data/aside/log")).unwrap();
        for seed in 0..10 {
            let after = fs.crash(seed);
            assert_eq!(after.bytes(Path::new("/data/aside/log/a")), Some(long.clone()));
            assert_eq!(after.bytes(Path::new("/data/aside/log/b")), Some(Vec::new()));
        }
    }
}
