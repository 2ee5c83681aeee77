//! What surrounds a node: files, clocks, chance and threads. Everything that the node does not decide comes in through
//! one value, so that a test can turn all of a node in one thread and do it again exactly.

use crate::file_system::FileSystem;
use std::fmt::Debug;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The surroundings of a node. [`System`](crate::System) is the real one.
pub trait World: Send + Sync + Debug {
    /// The files.
    fn files(&self) -> Arc<dyn FileSystem>;

    /// The time since some moment before the node started. It never goes back.
    fn elapsed(&self) -> Duration;

    /// What the wall clock shows, in milliseconds since the Unix epoch. Anybody may set it.
    fn wall_ms(&self) -> u64;

    /// Fills `bytes` with what nobody can guess.
    ///
    /// # Errors
    /// The system has no randomness.
    fn random(&self, bytes: &mut [u8]) -> io::Result<()>;

    /// Starts a thread that does the task's steps until it ends.
    ///
    /// # Errors
    /// The system gives no thread.
    fn start(&self, name: &str, task: Box<dyn Task>) -> io::Result<Arc<dyn Thread>>;

    /// Lets time pass for the calling thread.
    fn pause(&self, time: Duration);
}

/// What a thread does, in steps. A step waits for nothing but files.
pub trait Task: Send {
    /// Does what there is to do now.
    fn step(&mut self) -> Step;
}

/// How a task goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// At once.
    Again,
    /// When it is woken, or after so long. A wake-up that came during the step counts. It may go on earlier than that.
    Sleep(Option<Duration>),
    /// It does not: the thread ends.
    End,
}

/// A thread that was started.
pub trait Thread: Send + Sync + Debug {
    /// Has the task make a step if it sleeps, or another one if it is in one.
    fn wake(&self);

    /// Waits until the task has ended. Does nothing on the task's own thread. False if it has panicked.
    fn join(&self) -> bool;

    /// True if nobody but the caller makes the task's steps: whoever waits for the task has to make them, with [`Thread::turn`].
    fn is_turned(&self) -> bool;

    /// Makes a step of the task in the caller's thread, if it is one that is turned.
    fn turn(&self);
}
