//! Threads that may wait for other servers. All that is spawned in this room stands here.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

/// How many logins wait for other servers at the same time.
const THREADS: usize = 16;
/// How many more may stand in line; further ones are refused at once.
const LINE: usize = 1_024;

/// Something to be done that may take its time.
pub type Work = Box<dyn FnOnce() + Send>;

/// The threads. They end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    line: SyncSender<Work>,
}

impl Workers {
    /// Starts them.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start() -> std::io::Result<Self> {
        let (line, work) = sync_channel(LINE);
        let work = Arc::new(Mutex::new(work));
        for number in 0..THREADS {
            let work = work.clone();
            std::thread::Builder::new()
                .name(format!("identity-{number}"))
                .spawn(move || toil(&work))?;
        }
        Ok(Self { line })
    }

    /// Puts work into the line.
    ///
    /// # Errors
    /// The line is too long; the work comes back.
    pub fn give(&self, work: Work) -> Result<(), Work> {
        match self.line.try_send(work) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(work) | TrySendError::Disconnected(work)) => Err(work),
        }
    }
}

fn toil(line: &Mutex<Receiver<Work>>) {
    loop {
        let next = line.lock().unwrap_or_else(PoisonError::into_inner).recv();
        match next {
            Ok(work) => work(),
            Err(_) => return,
        }
    }
}
