//! Sockets in the file system.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Makes a socket that those may open whom `mode` lets. One on which nobody listens any more (its process was killed)
/// is replaced.
///
/// # Errors
/// Somebody listens there, something else has the name, or the system refuses; a path may have 107 bytes on Linux.
pub(crate) fn bind(path: &Path, mode: u32) -> io::Result<UnixListener> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            let text = "the path exists and is not a socket";
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
        }
        Ok(_) => match UnixStream::connect(path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path)?,
            Err(error) => return Err(error),
            Ok(_) => return Err(io::ErrorKind::AddrInUse.into()),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(mode))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
