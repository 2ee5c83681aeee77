//! Passwords whose hashes take long to look at: two threads look at them, so that nobody else waits, however many come.
//!
//! Who came in by a password comes in by it again without a look for a minute: each request of the HTTP API brings one.
//! What is kept is a code under a key of this process, which says nothing about a password.

use crate::clients::access::{Answer, LoginRefusal, User};
use catalog::PasswordHash;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use storage::{Step, Task, Thread, World};

/// How many hashes are looked at together. Each takes 19 MiB meanwhile.
const THREADS: usize = 2;
/// How many logins more may stand in line; further ones are refused at once.
const LINE: usize = 1_024;
/// Whoever has waited so long in the line has gone: no client waits longer for its login.
const STALE: Duration = Duration::from_secs(10);
/// How long somebody comes in again without a look.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// So many are known at the most.
const KNOWN: usize = 10_000;

/// Looks at a password; `None` once the broker is gone.
type Look = Box<dyn FnOnce() -> Option<Result<User, LoginRefusal>> + Send>;

struct Job {
    look: Look,
    answer: Answer,
    since: Duration,
}

/// The threads, once the first such password comes, and who was let in lately.
pub struct Passwords {
    world: Arc<dyn World>,
    backlog: OnceLock<Option<LoginBacklog>>,
    known: Mutex<HashMap<[u8; 32], Duration>>,
    key: OnceLock<Option<[u8; 32]>>,
}

/// The logins whose passwords wait to be checked, and the threads that check them.
struct LoginBacklog {
    sender: SyncSender<Job>,
    threads: Vec<Arc<dyn Thread>>,
}

impl Passwords {
    /// Nobody is known; there is no thread yet.
    pub fn new(world: Arc<dyn World>) -> Self {
        Self {
            world,
            backlog: OnceLock::new(),
            known: Mutex::default(),
            key: OnceLock::new(),
        }
    }

    /// Has a login looked at on another thread.
    pub fn give(
        &self,
        look: impl FnOnce() -> Option<Result<User, LoginRefusal>> + Send + 'static,
        answer: Answer,
    ) {
        let job = Job {
            look: Box::new(look),
            answer,
            since: self.world.elapsed(),
        };
        let refused = match self.backlog.get_or_init(|| start(&self.world)) {
            None => Some(job),
            Some(line) => match line.sender.try_send(job) {
                Ok(()) => {
                    line.threads.iter().for_each(|thread| thread.wake());
                    None
                }
                Err(TrySendError::Full(job) | TrySendError::Disconnected(job)) => Some(job),
            },
        };
        if let Some(job) = refused {
            (job.answer)(Err(late()));
        }
    }

    /// True if this was the password a short while ago, and the hash is still the same.
    pub fn knows(&self, hash: &PasswordHash, password: &[u8]) -> bool {
        let Some(code) = self.code(hash, password) else {
            return false;
        };
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .get(&code)
            .is_some_and(|until| *until > self.world.elapsed())
    }

    /// This is the password.
    pub fn learn(&self, hash: &PasswordHash, password: &[u8]) {
        let Some(code) = self.code(hash, password) else {
            return;
        };
        let now = self.world.elapsed();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KNOWN {
            known.retain(|_, until| *until > now);
        }
        if known.len() < KNOWN {
            known.insert(code, now + KNOWN_FOR);
        }
    }

    /// `None` if the system has no randomness for a key: then nobody is known.
    fn code(&self, hash: &PasswordHash, password: &[u8]) -> Option<[u8; 32]> {
        let key = self.key.get_or_init(|| {
            let mut key = [0; 32];
            self.world.random(&mut key).ok().map(|()| key)
        });
        key.as_ref().map(|key| hash.code(key, password))
    }
}

fn late() -> LoginRefusal {
    LoginRefusal::Authority("too many logins are waiting for password verification; try again".into())
}

/// All that is started here. The threads end when the line is dropped.
fn start(world: &Arc<dyn World>) -> Option<LoginBacklog> {
    let (sender, jobs) = sync_channel(LINE);
    let jobs = Arc::new(Mutex::new(jobs));
    let mut threads = Vec::new();
    for number in 0..THREADS {
        let looking = Looking {
            jobs: jobs.clone(),
            world: world.clone(),
        };
        match world.start(&format!("passwords-{number}"), Box::new(looking)) {
            Ok(thread) => threads.push(thread),
            Err(error) => {
                tracing::error!(
                    area = "connection",
                    "the threads that verify passwords could not be started, so users with slow hashes cannot log in: \
                     {error}"
                );
                return None;
            }
        }
    }
    Some(LoginBacklog { sender, threads })
}

impl Drop for LoginBacklog {
    fn drop(&mut self) {
        // Whoever sleeps finds that there is no line any more.
        self.sender = sync_channel(0).0;
        self.threads.iter().for_each(|thread| thread.wake());
    }
}

/// What each of the threads does.
struct Looking {
    jobs: Arc<Mutex<Receiver<Job>>>,
    world: Arc<dyn World>,
}

impl Task for Looking {
    fn step(&mut self) -> Step {
        let next = self
            .jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .try_recv();
        let job = match next {
            Ok(job) => job,
            Err(TryRecvError::Empty) => return Step::Sleep(None),
            Err(TryRecvError::Disconnected) => return Step::End,
        };
        let found = match self.world.elapsed().saturating_sub(job.since) > STALE {
            true => Some(Err(late())),
            false => (job.look)(),
        };
        let Some(found) = found else {
            return Step::End;
        };
        (job.answer)(found);
        Step::Again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Broker;
    use crate::clients::access::Attempt;
    use crate::{Options, PasswordHashing};
    use std::sync::mpsc;

    #[test]
    fn a_slow_password_is_looked_at_elsewhere_and_then_known() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            password_hashing: PasswordHashing::Argon2id,
            ..Options::new(dir.path())
        };
        let broker = Broker::open(options).unwrap();
        let hash = broker.hash_password(b"secret").unwrap();
        assert!(hash.is_slow());
        let administrator = broker.administrator("guest");
        administrator.put_user("jane", Some(hash), vec![]).unwrap();
        let attempt = |password: &str| Attempt {
            user: "jane".into(),
            password: Some(password.into()),
            peer: [127, 0, 0, 1].into(),
        };
        assert!(broker.takes_time(&attempt("secret")) && broker.takes_time(&attempt("wrong")));
        let ask = |password: &str| {
            let (sender, receiver) = mpsc::channel();
            let told = move |found| {
                let name = std::thread::current().name().unwrap_or_default().to_owned();
                sender.send((found, name)).unwrap();
            };
            broker.login(attempt(password), Box::new(told));
            receiver.recv().unwrap()
        };
        let (found, thread) = ask("wrong");
        assert_eq!(found.unwrap_err(), LoginRefusal::Credentials);
        assert!(thread.starts_with("passwords-"));
        assert_eq!(&*ask("secret").0.unwrap().name, "jane");
        assert!(!broker.takes_time(&attempt("secret")) && broker.takes_time(&attempt("wrong")));
        // A new password ends that.
        let hash = broker.hash_password(b"secret").unwrap();
        administrator.put_user("jane", Some(hash), vec![]).unwrap();
        assert!(broker.takes_time(&attempt("secret")));
        administrator.delete_user("jane").unwrap();
        assert!(ask("secret").0.is_err());
        broker.close();
    }
}
