//! How many logins were tried, by the door at which they were, and by whom if an operator wants to know.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

/// So many sources are told apart at most: who tries names at random costs no memory without end.
const SOURCES: usize = 4096;
/// So many bytes of a user's name are kept, which may be any text that somebody sent.
const NAME: usize = 255;

/// Where somebody logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoginDoor {
    /// A connection for messages.
    Amqp,
    /// A request to the HTTP API.
    Http,
}

impl LoginDoor {
    const ALL: [Self; 2] = [Self::Amqp, Self::Http];

    /// RabbitMQ's name of the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp091",
            Self::Http => "http",
        }
    }
}

/// Who tried to log in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoginSource {
    /// From where.
    pub address: IpAddr,
    /// As whom.
    pub user: String,
    /// At which door.
    pub door: LoginDoor,
}

/// What was tried since the start of the node, or since it was forgotten.
#[derive(Debug, Default)]
pub struct LoginAttempts {
    succeeded: [AtomicU64; 2],
    failed: [AtomicU64; 2],
    /// Sources are told apart.
    tracks: AtomicBool,
    /// How many succeeded and failed.
    sources: Mutex<BTreeMap<LoginSource, (u64, u64)>>,
}

impl LoginAttempts {
    /// Somebody tried.
    pub fn record(&self, door: LoginDoor, address: IpAddr, user: &str, succeeded: bool) {
        let counts = if succeeded { &self.succeeded } else { &self.failed };
        counts[door as usize].fetch_add(1, Ordering::Relaxed);
        if self.tracks.load(Ordering::Relaxed) {
            let source = LoginSource {
                address: address.to_canonical(),
                user: user[..user.floor_char_boundary(NAME)].to_owned(),
                door,
            };
            self.record_source(source, succeeded);
        }
    }

    fn record_source(&self, source: LoginSource, succeeded: bool) {
        let mut sources = self.lock();
        if sources.len() >= SOURCES && !sources.contains_key(&source) {
            return;
        }
        let (good, bad) = sources.entry(source).or_default();
        *(if succeeded { good } else { bad }) += 1;
    }

    /// Whether sources are told apart from now on. What is known of them stays known.
    pub fn track(&self, tracks: bool) {
        self.tracks.store(tracks, Ordering::Relaxed);
    }

    /// The doors at which somebody tried, with how many succeeded and failed.
    pub fn by_door(&self) -> Vec<(LoginDoor, u64, u64)> {
        let count = |counts: &[AtomicU64; 2], door| counts[door as usize].load(Ordering::Relaxed);
        let all = LoginDoor::ALL.into_iter();
        all.map(|door| (door, count(&self.succeeded, door), count(&self.failed, door)))
            .filter(|(_, succeeded, failed)| succeeded + failed > 0)
            .collect()
    }

    /// Who tried while sources were told apart, with how many succeeded and failed.
    pub fn by_source(&self) -> Vec<(LoginSource, u64, u64)> {
        let sources = self.lock();
        let all = sources.iter();
        all.map(|(source, (succeeded, failed))| (source.clone(), *succeeded, *failed))
            .collect()
    }

    /// Begins anew.
    pub fn forget(&self) {
        let counts = self.succeeded.iter().chain(&self.failed);
        counts.for_each(|count| count.store(0, Ordering::Relaxed));
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<LoginSource, (u64, u64)>> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn doors_at_which_nobody_tried_are_not_told_of() {
        let attempts = LoginAttempts::default();
        assert!(attempts.by_door().is_empty());
        attempts.record(LoginDoor::Http, HERE, "a", true);
        attempts.record(LoginDoor::Http, HERE, "b", true);
        attempts.record(LoginDoor::Http, HERE, "b", false);
        assert_eq!(attempts.by_door(), [(LoginDoor::Http, 2, 1)]);
        assert!(attempts.by_source().is_empty());
        attempts.forget();
        assert!(attempts.by_door().is_empty());
    }

    #[test]
    fn sources_are_told_apart_only_while_somebody_wants_it() {
        let attempts = LoginAttempts::default();
        attempts.track(true);
        attempts.record(LoginDoor::Amqp, HERE, "a", true);
        attempts.record(LoginDoor::Amqp, HERE, "a", false);
        attempts.track(false);
        attempts.record(LoginDoor::Amqp, HERE, "a", false);
        let source = LoginSource {
            address: HERE,
            user: "a".into(),
            door: LoginDoor::Amqp,
        };
        assert_eq!(attempts.by_source(), [(source, 1, 1)]);
        attempts.forget();
        assert!(attempts.by_source().is_empty());
    }

    #[test]
    fn names_tried_at_random_have_an_end() {
        let attempts = LoginAttempts::default();
        attempts.track(true);
        for name in 0..SOURCES + 10 {
            attempts.record(
                LoginDoor::Http,
                HERE,
                &format!("{name}{}", "ö".repeat(300)),
                false,
            );
        }
        assert_eq!(attempts.by_source().len(), SOURCES);
        assert!(
            attempts
                .by_source()
                .iter()
                .all(|(source, ..)| source.user.len() <= NAME)
        );
    }
}
