//! SIGINT and SIGTERM: the first one asks the node to stop, the second one ends it where it is. SIGHUP: files are read again.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::{flag, iterator};
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// The signals that have not been looked at yet.
pub struct Signals {
    arrived: iterator::Signals,
}

impl Signals {
    /// From now on signals wait here instead of ending the process.
    ///
    /// # Errors
    /// The system takes no handler.
    pub fn listen() -> io::Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the flag that the first signal sets makes the second one end the process.
            // Ending anywhere is safe: what was confirmed is on disk.
            flag::register_conditional_shutdown(signal, 1, Arc::clone(&asked))?;
            flag::register(signal, Arc::clone(&asked))?;
        }
        Ok(Self {
            arrived: iterator::Signals::new([SIGINT, SIGTERM, SIGHUP])?,
        })
    }

    /// Waits for a signal that ends the node, and names it. Each SIGHUP before it is answered by `again`.
    pub fn wait(mut self, again: impl Fn()) -> &'static str {
        for signal in self.arrived.forever() {
            match signal {
                SIGHUP => again(),
                SIGINT => return "SIGINT",
                _ => break,
            }
        }
        "SIGTERM"
    }
}
