//! Ctrl-C and SIGTERM: the first asks to come to an end, the second ends at once.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the user wants the run to end.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Listens for the signals from now on.
    ///
    /// # Errors
    /// The system refuses it.
    pub fn on_signals() -> Result<Self, String> {
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM] {
            // In this order: at the first signal the flag is not set yet, and the process stays.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop.asked))
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop.asked)))
                .map_err(|e| format!("signals can't be waited for: {e}"))?;
        }
        Ok(stop)
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }

    /// Asks for it, as a signal does.
    #[cfg(test)]
    pub fn ask(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }
}
