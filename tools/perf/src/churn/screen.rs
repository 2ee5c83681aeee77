//! Lines on the console with a bar below them.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Where lines go. Clones print above the same bar, which is there only if standard error is a terminal.
#[derive(Clone)]
pub struct Screen {
    bar: ProgressBar,
    muted: Arc<AtomicBool>,
}

impl Screen {
    pub fn new() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            muted: Arc::default(),
        }
    }

    /// Prints a line; where nobody reads any more, nothing happens.
    pub fn line(&self, text: &str) {
        self.bar.suspend(|| {
            let mut out = io::stdout().lock();
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        });
    }

    /// From here on what others write here is not shown; [`Self::line`] still is.
    pub fn mute(&self) {
        self.muted.store(true, Relaxed);
    }

    /// Shows a bar from 0 to `whole`; what was shown before is gone.
    pub fn bar(&mut self, whole: u64, what: &str) {
        self.clear();
        if !io::stderr().is_terminal() {
            return;
        }
        self.bar.set_draw_target(ProgressDrawTarget::stderr());
        self.bar.reset();
        self.bar.set_length(whole);
        if let Ok(style) = ProgressStyle::with_template("{prefix} {bar:20} {percent:>3} %  {wide_msg}") {
            self.bar.set_style(style);
        }
        self.bar.set_prefix(what.to_owned());
    }

    /// How far it is; the message tells the rest of the time if the pace stays.
    pub fn advance(&self, done: u64, elapsed: Duration, words: &str) {
        let whole = self.bar.length().unwrap_or(0);
        let left = rest(done, whole, elapsed).map_or(String::new(), |s| format!(", {s} s left"));
        self.bar.set_position(done.min(whole));
        self.bar.set_message(format!("{words}{left}"));
    }

    /// Whether a bar shows.
    pub fn has_bar(&self) -> bool {
        !self.bar.is_hidden() && !self.bar.is_finished()
    }

    /// Takes the bar away.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.muted.load(Relaxed) {
            self.bar.suspend(|| io::stdout().write_all(bytes))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Seconds that the rest takes at the pace so far.
fn rest(done: u64, whole: u64, elapsed: Duration) -> Option<u64> {
    if done == 0 || done >= whole {
        return None;
    }
    let rest_s = elapsed.as_secs_f64() * (whole - done) as f64 / done as f64;
    Some(rest_s.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_the_pace_says() {
        assert_eq!(rest(25, 100, Duration::from_secs(10)), Some(30));
        assert_eq!(rest(0, 100, Duration::from_secs(10)), None);
        assert_eq!(rest(100, 100, Duration::from_secs(10)), None);
    }
}
