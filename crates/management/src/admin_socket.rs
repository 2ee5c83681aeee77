//! The node's admin socket: the same API for whoever may open a file of the data directory, without a password.
//!
//! RabbitMQ lets in whoever can read the node's Erlang cookie; here the mode of a folder and of a socket in it say the same. The
//! socket is there without the port of the HTTP API too.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The folder of the socket below the data directory: nobody else may enter it, so nobody reaches a socket that is not closed yet.
const FOLDER: &str = "admin";
/// The socket's name in it.
const NAME: &str = "socket";

/// Where a node with this data directory has its admin socket.
pub fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER).join(NAME)
}

/// Listens on the admin socket. One that a killed node left is replaced: the data directory is locked, so nobody listens there.
///
/// # Errors
/// The socket cannot be made; its path may be longer than the system takes (108 bytes on Linux).
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    if let Some(folder) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_its_owner_reaches_the_socket_and_a_stale_one_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        for _ in 0..2 {
            let listener = listen(&path).unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            UnixStream::connect(&path).unwrap();
            drop(listener);
        }
    }
}
