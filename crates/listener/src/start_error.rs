//! Why a listener cannot be opened.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Why a listener cannot be opened. The text tells an operator what to do.
#[derive(Debug)]
pub enum StartError {
    /// This address cannot be listened on.
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system says.
        error: io::Error,
    },
    /// This socket in the file system cannot be made.
    Local {
        /// Where it was to be.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// A thread or its runtime cannot be started.
    Thread(io::Error),
    /// TLS cannot be set up; the sentence names the file or the setting.
    Tls(String),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen { address, error } if error.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "cannot listen on {address}: another process (perhaps another broker) listens there already"
                )
            }
            Self::Listen { address, error } => write!(f, "cannot listen on {address}: {error}"),
            Self::Local { path, error } if error.kind() == io::ErrorKind::AddrInUse => {
                let path = path.display();
                write!(
                    f,
                    "cannot listen on the socket {path}: another process listens there already"
                )
            }
            Self::Local { path, error } => {
                write!(f, "cannot listen on the socket {}: {error}", path.display())
            }
            Self::Thread(error) => write!(f, "a thread for connections cannot be started: {error}"),
            Self::Tls(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for StartError {}
