//! A thread with a mailbox: it does what it is sent, in that order, until it is stopped.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use storage::{Step, Task, Thread, World};

/// What is in a worker's mailbox.
enum Mail<J> {
    Job(J),
    /// Tell when everything sent before is done.
    Report(Sender<()>),
    /// Behind the last job that is still done.
    Stop,
}

/// The way to a thread that does jobs. Those that are sent before it starts wait for it.
pub struct Worker<J> {
    mailbox: Mailbox<J>,
    /// Until the thread starts.
    waiting: Mutex<Option<Receiver<Mail<J>>>>,
}

/// Where jobs are handed in.
pub struct Mailbox<J>(Arc<Way<J>>);

struct Way<J> {
    sender: Sender<Mail<J>>,
    thread: OnceLock<Arc<dyn Thread>>,
}

impl<J> Mailbox<J> {
    /// Has this done, after everything that was sent before. Once the worker has stopped nobody does it.
    pub fn send(&self, job: J) {
        self.post(Mail::Job(job));
    }

    fn post(&self, mail: Mail<J>) {
        let _ = self.0.sender.send(mail);
        if let Some(thread) = self.0.thread.get() {
            thread.wake();
        }
    }
}

impl<J> Clone for Mailbox<J> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The thread's end of the mailbox.
struct Working<J, F> {
    mail: Receiver<Mail<J>>,
    work: F,
}

impl<J: Send, F: FnMut(J) + Send> Task for Working<J, F> {
    fn step(&mut self) -> Step {
        match self.mail.try_recv() {
            Ok(Mail::Job(job)) => (self.work)(job),
            Ok(Mail::Report(done)) => drop(done.send(())),
            Err(TryRecvError::Empty) => return Step::Sleep(None),
            Ok(Mail::Stop) | Err(TryRecvError::Disconnected) => return Step::End,
        }
        Step::Again
    }
}

impl<J> Default for Worker<J> {
    fn default() -> Self {
        let (sender, receiver) = channel();
        let way = Way {
            sender,
            thread: OnceLock::new(),
        };
        Self {
            mailbox: Mailbox(Arc::new(way)),
            waiting: Mutex::new(Some(receiver)),
        }
    }
}

impl<J: Send + 'static> Worker<J> {
    /// Starts the thread, once; it does `work` with each job.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn start(
        &self,
        world: &dyn World,
        name: &str,
        work: impl FnMut(J) + Send + 'static,
    ) -> std::io::Result<()> {
        let Some(mail) = self.waiting.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let thread = world.start(name, Box::new(Working { mail, work }))?;
        // What was sent before anybody could be woken.
        self.mailbox.0.thread.get_or_init(|| thread).wake();
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

    /// Waits until everything is done that was sent before. Not for the thread itself.
    pub fn wait(&self) {
        let (done, waiting) = channel();
        self.mailbox.post(Mail::Report(done));
        let Some(thread) = self.mailbox.0.thread.get() else {
            return;
        };
        if !thread.is_turned() {
            // An error means that the thread has ended: then there is nothing to wait for.
            let _ = waiting.recv();
            return;
        }
        while waiting.try_recv() == Err(TryRecvError::Empty) {
            thread.turn();
        }
    }

    /// Ends the thread when it has done what was sent before, and waits for it.
    pub fn stop(&self) {
        self.mailbox.post(Mail::Stop);
        let Some(thread) = self.mailbox.0.thread.get() else {
            return;
        };
        if !thread.join() {
            tracing::error!("{thread:?} ended unexpectedly (a bug)");
        }
    }
}
