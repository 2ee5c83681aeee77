//! How many logins were tried, by the door at which they were.

use std::sync::atomic::{AtomicU64, Ordering};

/// Where somebody logs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What was tried since the start of the node, or since it was forgotten.
#[derive(Debug, Default)]
pub struct LoginAttempts {
    succeeded: [AtomicU64; 2],
    failed: [AtomicU64; 2],
}

impl LoginAttempts {
    /// Somebody tried.
    pub fn record(&self, door: LoginDoor, succeeded: bool) {
        let counts = if succeeded { &self.succeeded } else { &self.failed };
        counts[door as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// The doors at which somebody tried, with how many succeeded and failed.
    pub fn by_door(&self) -> Vec<(LoginDoor, u64, u64)> {
        let count = |counts: &[AtomicU64; 2], door| counts[door as usize].load(Ordering::Relaxed);
        let all = LoginDoor::ALL.into_iter();
        all.map(|door| (door, count(&self.succeeded, door), count(&self.failed, door)))
            .filter(|(_, succeeded, failed)| succeeded + failed > 0)
            .collect()
    }

    /// Begins anew.
    pub fn forget(&self) {
        let counts = self.succeeded.iter().chain(&self.failed);
        counts.for_each(|count| count.store(0, Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doors_at_which_nobody_tried_are_not_told_of() {
        let attempts = LoginAttempts::default();
        assert!(attempts.by_door().is_empty());
        attempts.record(LoginDoor::Http, true);
        attempts.record(LoginDoor::Http, true);
        attempts.record(LoginDoor::Http, false);
        assert_eq!(attempts.by_door(), [(LoginDoor::Http, 2, 1)]);
        attempts.forget();
        assert!(attempts.by_door().is_empty());
    }
}
