//! How many logins were tried, by protocol, and by whom if an operator wants to know.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{
    Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, Ordering},
};

/// So many sources are told apart at most: who tries names at random costs no memory without end.
const SOURCES: usize = 4096;
/// So many bytes of a user's name are kept, which may be any text that somebody sent.
const NAME: usize = 255;

/// Who tried to log in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LoginSource {
    /// From where.
    pub address: IpAddr,
    /// As whom.
    pub user: String,
    /// By which protocol, in RabbitMQ's labels: `amqp091`, `http`.
    pub protocol: &'static str,
}

/// What was tried since the start of the node, or since it was forgotten.
#[derive(Debug, Default)]
pub struct LoginAttempts {
    /// How many succeeded and failed, by protocol.
    protocols: Mutex<BTreeMap<&'static str, (u64, u64)>>,
    /// Sources are told apart.
    tracks: AtomicBool,
    /// How many succeeded and failed.
    sources: Mutex<BTreeMap<LoginSource, (u64, u64)>>,
}

impl LoginAttempts {
    /// Somebody tried.
    pub fn record(&self, protocol: &'static str, address: IpAddr, user: &str, succeeded: bool) {
        add(locked(&self.protocols).entry(protocol).or_default(), succeeded);
        if self.tracks.load(Ordering::Relaxed) {
            let source = LoginSource {
                address: address.to_canonical(),
                user: user[..user.floor_char_boundary(NAME)].to_owned(),
                protocol,
            };
            self.record_source(source, succeeded);
        }
    }

    fn record_source(&self, source: LoginSource, succeeded: bool) {
        let mut sources = locked(&self.sources);
        if sources.len() >= SOURCES && !sources.contains_key(&source) {
            return;
        }
        add(sources.entry(source).or_default(), succeeded);
    }

    /// Whether sources are told apart from now on. What is known of them stays known.
    pub fn track(&self, tracks: bool) {
        self.tracks.store(tracks, Ordering::Relaxed);
    }

    /// The protocols by which somebody tried, with how many succeeded and failed.
    pub fn by_protocol(&self) -> Vec<(&'static str, u64, u64)> {
        let protocols = locked(&self.protocols);
        let all = protocols.iter();
        all.map(|(protocol, (succeeded, failed))| (*protocol, *succeeded, *failed))
            .collect()
    }

    /// Who tried while sources were told apart, with how many succeeded and failed.
    pub fn by_source(&self) -> Vec<(LoginSource, u64, u64)> {
        let sources = locked(&self.sources);
        let all = sources.iter();
        all.map(|(source, (succeeded, failed))| (source.clone(), *succeeded, *failed))
            .collect()
    }

    /// Begins anew.
    pub fn forget(&self) {
        locked(&self.protocols).clear();
        locked(&self.sources).clear();
    }
}

fn add((succeeded, failed): &mut (u64, u64), success: bool) {
    *(if success { succeeded } else { failed }) += 1;
}

fn locked<T>(counts: &Mutex<T>) -> MutexGuard<'_, T> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn protocols_by_which_nobody_tried_are_not_told_of() {
        let attempts = LoginAttempts::default();
        assert!(attempts.by_protocol().is_empty());
        attempts.record("http", HERE, "a", true);
        attempts.record("http", HERE, "b", true);
        attempts.record("http", HERE, "b", false);
        assert_eq!(attempts.by_protocol(), [("http", 2, 1)]);
        assert!(attempts.by_source().is_empty());
        attempts.forget();
        assert!(attempts.by_protocol().is_empty());
    }

    #[test]
    fn sources_are_told_apart_only_while_somebody_wants_it() {
        let attempts = LoginAttempts::default();
        attempts.track(true);
        attempts.record("amqp091", HERE, "a", true);
        attempts.record("amqp091", HERE, "a", false);
        attempts.track(false);
        attempts.record("amqp091", HERE, "a", false);
        let source = LoginSource {
            address: HERE,
            user: "a".into(),
            protocol: "amqp091",
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
            attempts.record("http", HERE, &format!("{name}{}", "ö".repeat(300)), false);
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
