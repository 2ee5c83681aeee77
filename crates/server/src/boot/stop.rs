//! What ends a run: SIGINT and SIGTERM, of which the first asks the node to stop and the second ends it where it is; or
//! an operator, who stops the broker and starts it again. SIGHUP: files are read again.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, iterator};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The process is to end; the signal's name.
    Signal(&'static str),
    /// The broker is to stop, and the process to stay (`stop_app`).
    Stopped,
    /// The broker is to run again (`start_app`).
    Started,
}

/// What has arrived and was not looked at yet.
enum Arrived {
    Signal(i32),
    Order(Ended),
}

/// The signals and orders that have not been looked at yet.
pub struct Signals {
    arrived: Receiver<Arrived>,
    caller: Sender<Arrived>,
    /// A signal has come that ends the process.
    asked: Arc<AtomicBool>,
}

/// Ends a wait from another thread.
#[derive(Clone)]
pub struct Caller(Sender<Arrived>);

impl Caller {
    /// Does it.
    pub fn call(&self, order: Ended) {
        // Nobody waits any more where the process ends anyhow.
        let _ = self.0.send(Arrived::Order(order));
    }
}

impl Signals {
    /// From now on signals wait here instead of ending the process.
    ///
    /// # Errors
    /// The system takes no handler, or no thread can be started.
    pub fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the flag that the first signal sets makes the second one end the process.
            // Ending anywhere is safe: what was confirmed is on disk.
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        let mut signals = iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let (caller, arrived) = mpsc::channel();
        let heard = caller.clone();
        let forward = move || {
            for signal in signals.forever() {
                if heard.send(Arrived::Signal(signal)).is_err() {
                    return;
                }
            }
        };
        std::thread::Builder::new()
            .name("signals".into())
            .spawn(forward)?;
        Ok(Self {
            arrived,
            caller,
            asked,
        })
    }

    /// Says whether the process is not told to end, whoever waits for what.
    pub fn goes_on(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let asked = Arc::clone(&self.asked);
        move || !asked.load(Ordering::SeqCst)
    }

    /// Something by which other threads end a wait.
    pub fn caller(&self) -> Caller {
        Caller(self.caller.clone())
    }

    /// Waits for what ends a wait. Each SIGHUP before it is answered by `again`.
    pub fn wait(&self, again: impl Fn()) -> Ended {
        loop {
            // A channel that this side has a sender of does not end.
            match self.arrived.recv() {
                Ok(Arrived::Signal(SIGHUP)) => again(),
                Ok(Arrived::Signal(SIGINT)) => return Ended::Signal("SIGINT"),
                Ok(Arrived::Signal(_)) | Err(_) => return Ended::Signal("SIGTERM"),
                Ok(Arrived::Order(order)) => return order,
            }
        }
    }
}
