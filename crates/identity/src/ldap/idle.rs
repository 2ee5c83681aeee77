//! Connections to directories that are kept for the next question: opening and securing one takes longer than asking.
//!
//! Whoever takes one logs in on it anew, so nobody asks as somebody else.

use super::connection::Connection;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The connections, the one that was used last at the end.
pub struct Idle {
    kept: Mutex<Vec<Kept>>,
    most: usize,
    timeout: Duration,
}

struct Kept {
    /// The number of the server in the settings.
    server: usize,
    connection: Connection,
    since: Instant,
}

impl Idle {
    /// Keeps so many for so long. When nobody asks any more, the last ones stay until somebody does.
    pub fn new(most: usize, timeout: Duration) -> Self {
        let kept = Mutex::default();
        Self { kept, most, timeout }
    }

    /// One to this server, if there is one; those that were not used for too long go.
    pub fn take(&self, server: usize, now: Instant) -> Option<Connection> {
        let mut kept = self.kept();
        kept.retain(|it| now.saturating_duration_since(it.since) < self.timeout);
        let at = kept.iter().rposition(|it| it.server == server)?;
        Some(kept.remove(at).connection)
    }

    /// Keeps one on which everything has been answered.
    pub fn keep(&self, server: usize, connection: Connection, now: Instant) {
        let mut kept = self.kept();
        if kept.len() < self.most && !self.timeout.is_zero() {
            let since = now;
            kept.push(Kept {
                server,
                connection,
                since,
            });
        }
    }

    fn kept(&self) -> MutexGuard<'_, Vec<Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn so_many_are_kept_for_so_long_and_each_for_its_server() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connection = || Connection::open("127.0.0.1", port, Duration::from_secs(20)).unwrap();
        let now = Instant::now();
        let (idle, later) = (Idle::new(2, Duration::from_secs(5)), now + Duration::from_secs(4));
        for server in [0, 1, 0] {
            idle.keep(server, connection(), now);
        }
        assert!(idle.take(0, later).is_some());
        assert!(
            idle.take(0, later).is_none(),
            "only two are kept, one for each server"
        );
        assert!(idle.take(1, now + Duration::from_secs(5)).is_none());
        assert!(idle.kept().is_empty());
        let none = Idle::new(2, Duration::ZERO);
        none.keep(0, connection(), now);
        assert!(none.take(0, now).is_none());
    }
}
