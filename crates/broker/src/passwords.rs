//! Passwords whose hashes take long to look at: two threads look at them, so that nobody else waits, however many come.
//!
//! Who came in by a password comes in by it again without a look for a minute: each request of the HTTP API brings one. What is kept is
//! a code under a key of this process, which says nothing about a password.

use crate::access::{Answer, Attempt, LoginRefusal};
use crate::broker::Broker;
use catalog::PasswordHash;
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

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

struct Job {
    broker: Weak<Broker>,
    attempt: Attempt,
    answer: Answer,
    since: Instant,
}

/// The threads, once the first such password comes, and who was let in lately.
#[derive(Default)]
pub struct Passwords {
    line: OnceLock<Option<SyncSender<Job>>>,
    known: Mutex<HashMap<[u8; 32], Instant>>,
    key: OnceLock<Option<[u8; 32]>>,
}

impl Passwords {
    /// Has a login looked at on another thread.
    pub fn give(&self, broker: &Arc<Broker>, attempt: Attempt, answer: Answer) {
        let job = Job {
            broker: Arc::downgrade(broker),
            attempt,
            answer,
            since: Instant::now(),
        };
        let refused = match self.line.get_or_init(start) {
            None => Some(job),
            Some(line) => match line.try_send(job) {
                Ok(()) => None,
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
        known.get(&code).is_some_and(|until| *until > Instant::now())
    }

    /// This is the password.
    pub fn learn(&self, hash: &PasswordHash, password: &[u8]) {
        let Some(code) = self.code(hash, password) else {
            return;
        };
        let now = Instant::now();
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
            getrandom::fill(&mut key).ok().map(|()| key)
        });
        key.as_ref().map(|key| hash.code(key, password))
    }
}

fn late() -> LoginRefusal {
    LoginRefusal::Authority("too many logins are waiting for password verification; try again".into())
}

/// All that is spawned here. The threads end when the line is dropped.
fn start() -> Option<SyncSender<Job>> {
    let (line, jobs) = sync_channel(LINE);
    let jobs = Arc::new(Mutex::new(jobs));
    for number in 0..THREADS {
        let jobs = jobs.clone();
        let spawned = std::thread::Builder::new()
            .name(format!("passwords-{number}"))
            .spawn(move || look(&jobs));
        if let Err(error) = spawned {
            tracing::error!(
                area = "connection",
                "the threads that verify passwords could not be started, so users with slow hashes cannot log in: \
                 {error}"
            );
            return None;
        }
    }
    Some(line)
}

fn look(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        let Some(broker) = job.broker.upgrade() else {
            return;
        };
        let found = match job.since.elapsed() > STALE {
            true => Err(late()),
            false => broker.known(&job.attempt),
        };
        (job.answer)(found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
