//! The log as messages for a collector (syslog): `log.syslog.*`. Lines wait in a bounded buffer for a thread that sends
//! them, so that a collector that is slow or gone holds nobody up; what doesn't fit is lost, and how much is said as
//! soon as the collector is there again.

mod form;
mod wire;

pub use form::{Facility, Protocol};
pub use wire::Transport;

use super::{area, line};
use crate::logs::{LogFormat, SyslogOptions};
use form::Form;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::{Duration, Instant, SystemTime};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};
use wire::Wire;

/// So many lines may wait.
const WAITING_MOST: usize = 4_096;
/// How long a collector that can't be reached is left alone.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the end of the node waits for what is still to be sent.
const LAST: Duration = Duration::from_secs(2);

/// A line on its way.
struct SyslogLine {
    level: Level,
    at: SystemTime,
    text: String,
}

enum Message {
    Line(SyslogLine),
    /// Everything before it is sent, or lost: this is told.
    End(SyncSender<()>),
}

/// Where lines are handed over.
#[derive(Clone, Debug)]
pub struct Syslog {
    line: SyncSender<Message>,
    lost: Arc<AtomicU64>,
    format: LogFormat,
}

impl Syslog {
    /// Starts to send. A collector that isn't there yet is no error.
    ///
    /// # Errors
    /// Certificates that can't be read, or no thread.
    pub fn start(options: &SyslogOptions, host: &str) -> io::Result<Self> {
        let form = Form::new(options, host);
        let wire = Wire::new(options)?;
        let (line, lines) = sync_channel(WAITING_MOST);
        let lost: Arc<AtomicU64> = Arc::default();
        let sender = Sender {
            form,
            wire,
            lost: Arc::clone(&lost),
            is_reached: true,
            again: Instant::now(),
        };
        let work = move || sender.send(&lines);
        std::thread::Builder::new().name("syslog".into()).spawn(work)?;
        Ok(Self {
            line,
            lost,
            format: options.format,
        })
    }

    /// Waits until what was logged is sent, but not for long.
    pub fn finish(&self) {
        let (told, heard) = sync_channel(1);
        if self.line.try_send(Message::End(told)).is_ok() {
            // A collector that is gone is not waited for.
            let _ = heard.recv_timeout(LAST);
        }
    }
}

impl<S: Subscriber> Layer<S> for Syslog {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let text = match self.format {
            LogFormat::Text => {
                let (area, text) = line::area_and_text(event);
                let area = area.unwrap_or_else(|| area::crate_of(event.metadata()).to_owned());
                format!("{area}: {text}")
            }
            LogFormat::Json => line::json(event),
        };
        let line = SyslogLine {
            level: *event.metadata().level(),
            at: SystemTime::now(),
            text,
        };
        if self.line.try_send(Message::Line(line)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The thread's side.
struct Sender {
    form: Form,
    wire: Wire,
    lost: Arc<AtomicU64>,
    is_reached: bool,
    /// Not to be tried before.
    again: Instant,
}

impl Sender {
    fn send(mut self, lines: &Receiver<Message>) {
        while let Ok(message) = lines.recv() {
            match message {
                Message::Line(line) => self.line(&line),
                Message::End(told) => {
                    // Whoever asked may be gone.
                    let _ = told.try_send(());
                }
            }
        }
    }

    fn line(&mut self, line: &SyslogLine) {
        if !self.is_reached && Instant::now() < self.again {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let text = self.form.message(line.level, line.at, &line.text);
        match self.wire.send(text.as_bytes()) {
            Ok(()) => {
                self.is_reached = true;
                let lost = self.lost.swap(0, Ordering::Relaxed);
                if lost > 0 {
                    let text = format!("log: {lost} lines of the log could not be sent and are lost here");
                    let text = self.form.message(Level::WARN, SystemTime::now(), &text);
                    // It is only about what is lost already.
                    let _ = self.wire.send(text.as_bytes());
                }
            }
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                self.again = Instant::now() + PAUSE;
                if std::mem::replace(&mut self.is_reached, false) {
                    // There may be no other log to say it in.
                    eprintln!(
                        "leveret: {} can't be reached, and lines of the log are lost: {error}",
                        self.wire
                    );
                }
            }
        }
    }
}
