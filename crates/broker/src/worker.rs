//! A thread with a mailbox: it does what it is sent, in that order, until it is stopped.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// What is in a worker's mailbox.
enum Mail<J> {
    Job(J),
    /// Behind the last job that is still done.
    Stop,
}

/// The way to a thread that does jobs. Those that are sent before it starts wait for it.
pub struct Worker<J> {
    mailbox: Mailbox<J>,
    /// Until the thread starts.
    waiting: Mutex<Option<Jobs<J>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// Where jobs are handed in.
pub struct Mailbox<J>(Sender<Mail<J>>);

impl<J> Mailbox<J> {
    /// Has this done, after everything that was sent before. Once the worker has stopped nobody does it.
    pub fn send(&self, job: J) {
        let _ = self.0.send(Mail::Job(job));
    }
}

impl<J> Clone for Mailbox<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The thread's end of the mailbox: the next job, when there is one. It ends where the worker was stopped.
pub struct Jobs<J>(Receiver<Mail<J>>);

impl<J> Iterator for Jobs<J> {
    type Item = J;

    fn next(&mut self) -> Option<J> {
        match self.0.recv() {
            Ok(Mail::Job(job)) => Some(job),
            Ok(Mail::Stop) | Err(_) => None,
        }
    }
}

impl<J> Default for Worker<J> {
    fn default() -> Self {
        let (sender, receiver) = channel();
        Self {
            mailbox: Mailbox(sender),
            waiting: Mutex::new(Some(Jobs(receiver))),
            thread: Mutex::default(),
        }
    }
}

impl<J: Send + 'static> Worker<J> {
    /// Starts the thread, once.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(&self, name: &str, work: impl FnOnce(Jobs<J>) + Send + 'static) -> std::io::Result<()> {
        let Some(jobs) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || work(jobs))?;
        *self.thread.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
        Ok(())
    }

    /// Where jobs for it are handed in, to be kept elsewhere.
    pub fn mailbox(&self) -> Mailbox<J> {
        self.mailbox.clone()
    }

    /// Has this done, after everything that was sent before. Once the worker has stopped nobody does it.
    pub fn send(&self, job: J) {
        self.mailbox.send(job);
    }

    /// Ends the thread when it has done what was sent before, and waits for it.
    pub fn stop(&self) {
        let _ = self.mailbox.0.send(Mail::Stop);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(thread) = thread else { return };
        let name = thread.thread().name().unwrap_or_default().to_owned();
        if thread.join().is_err() {
            tracing::error!("the thread '{name}' ended unexpectedly (a bug)");
        }
    }
}
