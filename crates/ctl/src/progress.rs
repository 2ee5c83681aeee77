//! How far a long command is, for somebody at a terminal.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// A line on standard error that counts; nothing if that is no terminal.
pub struct Progress {
    what: &'static str,
    total: usize,
    done: usize,
    shown: Option<Instant>,
    is_shown: bool,
}

impl Progress {
    /// Starts to count to `total`; 0 if nobody knows.
    pub fn new(what: &'static str, total: usize) -> Self {
        Self {
            what,
            total,
            done: 0,
            shown: None,
            is_shown: io::stderr().is_terminal(),
        }
    }

    /// Now somebody knows.
    pub fn total(&mut self, total: u64) {
        self.total = total as usize;
    }

    /// One more is done.
    pub fn step(&mut self) {
        self.add(1);
    }

    /// So many more are done.
    pub fn add(&mut self, more: u64) {
        self.done += more as usize;
        let now = Instant::now();
        if self.is_shown && self.shown.is_none_or(|last| now.duration_since(last) >= EVERY) {
            self.shown = Some(now);
            let of = match self.total {
                0 => String::new(),
                total => format!(" of {total}"),
            };
            let _ = write!(io::stderr(), "\r\x1b[K{}: {}{of}", self.what, self.done);
        }
    }

    /// Takes the line away.
    pub fn end(self) {
        if self.shown.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
