//! The thread of some listeners: it opens, serves, and closes.

use listener::{Endpoint, Listener, SocketOptions, StartError};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// A thread that serves until it is told to stop, or dropped.
#[derive(Debug)]
pub struct Served {
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A runtime for one thread of this name, with at most so many more for what takes long.
///
/// # Errors
/// [`StartError::Thread`].
pub fn runtime(name: &str, workers: usize) -> Result<Runtime, StartError> {
    let mut builder = Builder::new_current_thread();
    builder.enable_io().enable_time().max_blocking_threads(workers);
    builder.thread_name(name).build().map_err(StartError::Thread)
}

/// Listens there. Must be called inside the runtime that will accept.
///
/// # Errors
/// One of them cannot be opened.
pub fn open(endpoints: &[Endpoint]) -> Result<Vec<Listener>, StartError> {
    let open = |endpoint: &Endpoint| Listener::open(endpoint.clone(), &SocketOptions::default());
    endpoints.iter().map(open).collect()
}

impl Served {
    /// Serves on a thread of this name. `serve` ends when the watch says so; what it has spawned may go on for `grace` then.
    ///
    /// # Errors
    /// [`StartError::Thread`].
    pub fn start<F: Future<Output = ()>>(
        name: &str,
        runtime: Runtime,
        grace: Duration,
        serve: impl FnOnce(watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                runtime.block_on(serve(stopped));
                runtime.shutdown_timeout(grace);
            })
            .map_err(StartError::Thread)?;
        Ok(Self {
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Ends it. May be called twice.
    pub fn stop(&self) {
        // Who serves no more needs not be told.
        let _ = self.stop.send(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}
