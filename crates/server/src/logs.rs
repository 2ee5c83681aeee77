//! How events of the node are written: one line each, as text or as JSON, to the console and to a file.
//!
//! Text: `2026-11-21 02:00:00.123 [info] gateway: connection accepted peer=127.0.0.1:5000`. Times are UTC. Crates log through
//! `tracing`, with a field `area` where the crate alone doesn't say enough.

mod area;
mod clock;
mod line;
mod log_file;
mod options;
mod published;
mod recent;
mod rotation;
mod syslog;

pub use options::{ConsoleStream, Level, LogFormat, LogOptions, SyslogOptions};
pub use rotation::{Moment, Rotation};
pub use syslog::{Facility, Protocol, Transport};

use broker::{Broker, OpenError};
use management::LogTail;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::Registry;
use tracing_subscriber::util::SubscriberInitExt;

use area::AreaLevels;
use line::LineFormat;
use log_file::LogFile;
use published::Published;
use recent::{Recent, RecentLevels};
use syslog::Syslog;

/// Where and why logging can't start.
#[derive(Debug)]
pub struct LogError {
    pub path: PathBuf,
    pub source: io::Error,
}

impl std::fmt::Display for LogError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "cannot write the log file {}: {}",
            self.path.display(),
            self.source
        )
    }
}

impl std::error::Error for LogError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The log of a running process.
#[derive(Clone, Debug, Default)]
pub struct Log {
    file: Option<Arc<Mutex<LogFile>>>,
    published: Option<Published>,
    syslog: Option<Syslog>,
    tail: Arc<LogTail>,
}

impl Log {
    /// From now on lines are published too, if the configuration says so.
    ///
    /// # Errors
    /// There is another exchange of that name.
    pub fn publish(&self, broker: &Arc<Broker>) -> Result<(), OpenError> {
        let Some(published) = &self.published else {
            return Ok(());
        };
        broker.declare_log_exchange()?;
        published.belong_to(broker);
        Ok(())
    }

    /// The last lines.
    pub fn tail(&self) -> Arc<LogTail> {
        Arc::clone(&self.tail)
    }

    /// Waits a little for what is on its way to a collector.
    pub fn finish(&self) {
        if let Some(syslog) = &self.syslog {
            syslog.finish();
        }
    }

    /// Goes on in a new file if somebody has put the log file aside.
    pub fn reopen(&self) {
        if let Some(file) = &self.file {
            file.lock().unwrap_or_else(PoisonError::into_inner).reopen();
        }
    }
}

/// Starts logging for the whole process, on a machine of this name. A second call changes nothing.
///
/// # Errors
/// The log file or its directory can't be made or written, or the certificates of a collector can't be read.
pub fn start(options: &LogOptions, data_dir: &Path, host: &str) -> Result<Log, LogError> {
    let mut log = Log::default();
    let mut layers: Vec<Box<dyn Layer<Registry> + Send + Sync>> = Vec::new();
    if options.console {
        let format = LineFormat::new(options.console_format);
        let filter = AreaLevels::new(options, options.console_level);
        let console = layer().event_format(format).with_ansi(false);
        layers.push(match options.console_stream {
            ConsoleStream::Stdout => console.with_writer(io::stdout).with_filter(filter).boxed(),
            ConsoleStream::Stderr => console.with_writer(io::stderr).with_filter(filter).boxed(),
        });
    }
    if let Some(file) = log_file(options, data_dir)? {
        let file = Arc::new(Mutex::new(file));
        log.file = Some(Arc::clone(&file));
        let writer = move || Shared(Arc::clone(&file));
        let format = LineFormat::new(options.file_format);
        let filter = AreaLevels::new(options, options.file_level);
        layers.push(
            layer()
                .event_format(format)
                .with_ansi(false)
                .with_writer(writer)
                .with_filter(filter)
                .boxed(),
        );
    }
    if options.exchange {
        let published = Published::new(options.exchange_format);
        log.published = Some(published.clone());
        let format = LineFormat::new(options.exchange_format);
        // What goes wrong with publishing is not published.
        let filter = AreaLevels::new(options, options.exchange_level).without("notices");
        layers.push(
            layer()
                .event_format(format)
                .with_ansi(false)
                .with_writer(published)
                .with_filter(filter)
                .boxed(),
        );
    }
    if options.syslog.enabled {
        let failed = |source| LogError {
            path: "log.syslog.ssl_options".into(),
            source,
        };
        let syslog = Syslog::start(&options.syslog, host).map_err(failed)?;
        log.syslog = Some(syslog.clone());
        let filter = AreaLevels::new(options, options.syslog.level);
        layers.push(syslog.with_filter(filter).boxed());
    }
    let recent = AreaLevels::new(options, options.most_talkative());
    layers.push(
        Recent(Arc::clone(&log.tail))
            .with_filter(RecentLevels(recent))
            .boxed(),
    );
    // Fails only if a subscriber is set already, which then goes on serving.
    let _ = tracing_subscriber::registry().with(layers).try_init();
    Ok(log)
}

/// The log file as it is written to, line by line.
struct Shared(Arc<Mutex<LogFile>>);

impl io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

fn log_file(options: &LogOptions, data_dir: &Path) -> Result<Option<LogFile>, LogError> {
    let Some(name) = &options.file else {
        return Ok(None);
    };
    let dir = options.dir.clone().unwrap_or_else(|| data_dir.join("logs"));
    let path = dir.join(name);
    let opened = LogFile::open(&path, options.rotation.clone());
    opened.map(Some).map_err(|source| LogError { path, source })
}

/// Changes how much every output writes until the next start. False if there is no level of this name.
pub fn set_level(name: &str) -> bool {
    let level = match name {
        "debug" => Level::Debug,
        "info" => Level::Info,
        "warning" => Level::Warning,
        // There is nothing worse than an error here.
        "error" | "critical" => Level::Error,
        "none" => Level::None,
        _ => return false,
    };
    area::overrule(level_filter(level));
    true
}

fn level_filter(level: Level) -> LevelFilter {
    match level {
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warning => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
        Level::None => LevelFilter::OFF,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn a_log_file_that_cannot_be_made_is_named() {
        let mut options = Config::default().log;
        options.file = Some("leveret.log".into());
        options.dir = Some("/proc/nowhere".into());
        let error = log_file(&options, Path::new("var")).unwrap_err().to_string();
        assert!(
            error.starts_with("cannot write the log file /proc/nowhere/leveret.log: "),
            "{error}"
        );
    }
}
