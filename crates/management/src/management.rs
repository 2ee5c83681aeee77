//! Starting and stopping the HTTP API.

use crate::admin_socket;
use crate::call::Hall;
use crate::options::{Options, StartError};
use crate::serve::{Doors, serve};
use broker::Broker;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// How many requests are worked on at a time; others wait. It bounds the processors and the memory that the API takes.
const REQUESTS: usize = 4;

/// How long requests may go on after the stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// The door for people.
pub struct Management {
    address: Option<SocketAddr>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Management {
    /// Listens and serves who comes.
    ///
    /// # Errors
    /// The address or the admin socket cannot be listened on, or a thread cannot be started.
    pub fn start(broker: Arc<Broker>, mut options: Options) -> Result<Self, StartError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(REQUESTS)
            .thread_name("http")
            .build()
            .map_err(StartError::Thread)?;
        let http = match options.address {
            Some(address) => {
                Some(listen(&runtime, address).map_err(|error| StartError::Listen { address, error })?)
            }
            None => None,
        };
        let admin = match &options.admin_socket {
            Some(path) => Some(listen_locally(&runtime, path)?),
            None => None,
        };
        let address = http.as_ref().and_then(|http| http.local_addr().ok());
        options
            .listeners
            .extend(address.map(|address| crate::options::Listener {
                protocol: "http",
                address,
            }));
        let (stop, stopped) = watch::channel(false);
        let hall = Arc::new(Hall { broker, options });
        let thread = std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                runtime.block_on(serve(Doors { http, admin }, hall, stopped));
                runtime.shutdown_timeout(PATIENCE);
            })
            .map_err(StartError::Thread)?;
        Ok(Self {
            address,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Where it listens, if it does; a port that the system chose is filled in.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Ends all threads. May be called twice.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.address {
            Some(address) => write!(f, "HTTP API on {address}"),
            None => f.write_str("HTTP API without a port"),
        }
    }
}

fn listen(runtime: &Runtime, address: SocketAddr) -> std::io::Result<TcpListener> {
    // The standard library sets SO_REUSEADDR, so that a restart finds its port free.
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    let _inside = runtime.enter();
    TcpListener::from_std(listener)
}

fn listen_locally(runtime: &Runtime, path: &Path) -> Result<UnixListener, StartError> {
    let _inside = runtime.enter();
    let listener = admin_socket::listen(path).and_then(UnixListener::from_std);
    listener.map_err(|error| StartError::AdminSocket {
        path: path.to_owned(),
        error,
    })
}
