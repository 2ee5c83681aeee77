//! The node's admin socket: the same API for whoever may open a file of the data directory, without a password.
//!
//! RabbitMQ lets in whoever can read the node's Erlang cookie; here the mode of a folder and of a socket in it say the same. The
//! socket is there without the port of the HTTP API too.

use crate::options::HTTP;
use listener::{Endpoint, Listener, SocketOptions, StartError};
use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder of the socket below the data directory: nobody else may enter it, so nobody reaches a socket that is not
/// closed yet.
const FOLDER: &str = "admin";
/// The socket's name in it.
const NAME: &str = "socket";

/// Where a node with this data directory has its admin socket.
pub fn path(data_dir: &Path) -> PathBuf {
    data_dir.join(FOLDER).join(NAME)
}

/// Listens on the admin socket. Must be called inside the runtime that will accept.
///
/// # Errors
/// [`StartError::Local`]: the socket cannot be made; its path may be longer than the system takes (107 bytes on Linux).
pub fn listen(path: &Path) -> Result<Listener, StartError> {
    make_folder(path).map_err(|error| StartError::Local {
        path: path.to_owned(),
        error,
    })?;
    Listener::open(
        Endpoint::local(HTTP, path.to_owned(), 0o600),
        &SocketOptions::default(),
    )
}

fn make_folder(socket: &Path) -> io::Result<()> {
    let Some(folder) = socket.parent() else {
        return Ok(());
    };
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    fs::set_permissions(folder, Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn only_its_owner_reaches_the_socket_and_a_stale_one_is_replaced() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        let dir = tempfile::tempdir().unwrap();
        let path = path(dir.path());
        make_folder(&path).unwrap();
        // As a node that was killed leaves it.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        for _ in 0..2 {
            let listener = listen(&path).unwrap();
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
            UnixStream::connect(&path).unwrap();
            drop(listener);
        }
    }
}
