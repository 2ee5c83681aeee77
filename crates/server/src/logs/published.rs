//! The log as messages of the broker, from the moment when there is one.

use super::line::level_name;
use crate::logs::LogFormat;
use broker::Broker;
use std::io;
use std::sync::{Arc, OnceLock, Weak};
use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// Where lines go that are published.
#[derive(Clone, Debug)]
pub struct Published {
    broker: Arc<OnceLock<Weak<Broker>>>,
    content_type: &'static str,
}

impl Published {
    /// For lines of this form.
    pub fn new(format: LogFormat) -> Self {
        Self {
            broker: Arc::default(),
            content_type: match format {
                LogFormat::Text => "text/plain",
                LogFormat::Json => "application/json",
            },
        }
    }

    /// Introduces the broker; what was logged before is not published. Once.
    pub fn belong_to(&self, broker: &Arc<Broker>) {
        let _ = self.broker.set(Arc::downgrade(broker));
    }
}

impl<'a> MakeWriter<'a> for Published {
    type Writer = PublishedLine;

    /// The level is in the key, so a writer without one serves nobody.
    fn make_writer(&'a self) -> PublishedLine {
        PublishedLine {
            to: Weak::new(),
            level: "info",
            content_type: self.content_type,
        }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> PublishedLine {
        PublishedLine {
            to: self.broker.get().cloned().unwrap_or_default(),
            level: level_name(*meta.level()),
            content_type: self.content_type,
        }
    }
}

/// One line on its way; it is written in one piece.
pub struct PublishedLine {
    to: Weak<Broker>,
    level: &'static str,
    content_type: &'static str,
}

impl io::Write for PublishedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(broker) = self.to.upgrade() {
            let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
            broker.publish_log_line(self.level, self.content_type, line);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
