//! The real world: the operating system's clocks, randomness and threads.

use crate::disk::Disk;
use crate::file_system::FileSystem;
use crate::world::{Step, Task, Thread, World};
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The operating system, with its own files or others in their place.
#[derive(Debug)]
pub struct System {
    files: Arc<dyn FileSystem>,
    started: Instant,
}

impl System {
    /// The real world, but with these files.
    pub fn over(files: Arc<dyn FileSystem>) -> Arc<Self> {
        Arc::new(Self {
            files,
            started: Instant::now(),
        })
    }

    /// The real world.
    pub fn real() -> Arc<Self> {
        Self::over(Arc::new(Disk))
    }
}

impl World for System {
    fn files(&self) -> Arc<dyn FileSystem> {
        self.files.clone()
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    fn wall_ms(&self) -> u64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        since.as_millis() as u64
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(|error| io::Error::other(error.to_string()))
    }

    fn start(&self, name: &str, mut task: Box<dyn Task>) -> io::Result<Arc<dyn Thread>> {
        let joined = thread::Builder::new().name(name.to_owned()).spawn(move || {
            loop {
                match task.step() {
                    Step::Again => {}
                    Step::Sleep(None) => thread::park(),
                    Step::Sleep(Some(time)) => thread::park_timeout(time),
                    Step::End => return,
                }
            }
        })?;
        Ok(Arc::new(Native {
            thread: joined.thread().clone(),
            joined: Mutex::new(Some(joined)),
        }))
    }

    fn pause(&self, time: Duration) {
        thread::park_timeout(time);
    }
}

/// A thread of the operating system.
struct Native {
    thread: thread::Thread,
    joined: Mutex<Option<JoinHandle<()>>>,
}

impl Thread for Native {
    fn wake(&self) {
        self.thread.unpark();
    }

    fn join(&self) -> bool {
        if self.thread.id() == thread::current().id() {
            return true;
        }
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner).take();
        joined.is_none_or(|joined| joined.join().is_ok())
    }

    fn is_turned(&self) -> bool {
        false
    }

    fn turn(&self) {}
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread '{}'", self.thread.name().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct Count(u32, Sender<u32>);

    impl Task for Count {
        fn step(&mut self) -> Step {
            self.0 += 1;
            self.1.send(self.0).unwrap();
            match self.0 {
                1 => Step::Again,
                2 => Step::Sleep(None),
                3 => Step::Sleep(Some(Duration::from_millis(1))),
                _ => Step::End,
            }
        }
    }

    #[test]
    fn a_thread_makes_steps_sleeps_until_it_is_woken_and_ends() {
        let (sender, steps) = channel();
        let world = System::real();
        let thread = world.start("count", Box::new(Count(0, sender))).unwrap();
        assert_eq!((steps.recv(), steps.recv()), (Ok(1), Ok(2)));
        thread.wake();
        assert_eq!((steps.recv(), steps.recv()), (Ok(3), Ok(4)));
        assert!(thread.join() && steps.recv().is_err());
    }
}
