//! Lines of log about connections that come: thousands that come at once must not cost thousands of lines.

use crate::connection::Millis;
use std::sync::{Mutex, PoisonError};

/// So many a second have a line each; of the others there is one line that says how many they were.
const LINES: u32 = 100;

/// The connections of one second.
#[derive(Debug)]
pub struct Accepted {
    second: u64,
    told: u32,
    silent: u32,
}

/// Of all protocols together.
static ACCEPTED: Mutex<Accepted> = Mutex::new(Accepted::new());

/// What is to be logged of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Lines {
    /// It has a line of its own.
    own: bool,
    /// So many before it had none.
    silent: u32,
}

impl Accepted {
    const fn new() -> Self {
        Self {
            second: 0,
            told: 0,
            silent: 0,
        }
    }

    fn note(&mut self, now: Millis) -> Lines {
        let second = now / 1_000;
        let mut silent = 0;
        if second != self.second {
            silent = self.silent;
            *self = Self {
                second,
                ..Self::new()
            };
        }
        let own = self.told < LINES;
        match own {
            true => self.told += 1,
            false => self.silent += 1,
        }
        Lines { own, silent }
    }
}

/// Logs that a connection was accepted, of a protocol of this name.
pub fn log(protocol: &str, name: &dyn std::fmt::Display, now: Millis) {
    let lines = ACCEPTED.lock().unwrap_or_else(PoisonError::into_inner).note(now);
    if lines.silent > 0 {
        tracing::info!(
            area = "connection",
            "accepted {} more connections within a second, without a line for each",
            lines.silent
        );
    }
    if lines.own {
        tracing::info!(area = "connection", "accepting {protocol} connection {name}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_connections_in_a_second_have_a_hundred_lines_and_then_one() {
        let mut accepted = Accepted::new();
        let lines: Vec<Lines> = (0..4_500).map(|at| accepted.note(5_000 + at / 10)).collect();
        assert_eq!(lines.iter().filter(|lines| lines.own).count(), LINES as usize);
        assert!(lines.iter().all(|lines| lines.silent == 0));
        let next = accepted.note(6_000);
        assert_eq!((next.own, next.silent), (true, 4_400));
        assert_eq!(accepted.note(6_001).silent, 0);
    }
}
