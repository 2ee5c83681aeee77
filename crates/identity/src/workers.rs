//! Threads that may wait for other servers. This crate starts no other threads.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How many logins wait for other servers at the same time.
const THREADS: usize = 16;
/// How many more may wait for a thread; further ones are refused at once.
const BACKLOG: usize = 1_024;

/// Something to be done that may take its time.
pub type Work = Box<dyn FnOnce() + Send>;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    backlog: SyncSender<Work>,
}

impl Workers {
    /// Starts them.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start() -> std::io::Result<Self> {
        let (backlog, work) = sync_channel(BACKLOG);
        let work = Arc::new(Mutex::new(work));
        for number in 0..THREADS {
            let work = work.clone();
            std::thread::Builder::new()
                .name(format!("identity-{number}"))
                .spawn(move || run(&work))?;
        }
        Ok(Self { backlog })
    }

    /// Adds work to the backlog.
    ///
    /// # Errors
    /// The backlog is full; the work comes back.
    pub fn give(&self, work: Work) -> Result<(), Work> {
        match self.backlog.try_send(work) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => Err(work),
        }
    }
}

fn run(backlog: &Mutex<Receiver<Work>>) {
    loop {
        let next = backlog.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(work) => work(),
            Err(_) => return,
        }
    }
}
