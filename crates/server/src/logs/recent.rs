//! The log as the HTTP API shows its last lines.

use super::area::{self, AreaLevels};
use super::line;
use management::{LogLine, LogTail};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tracing::subscriber::Interest;
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter, Layer};

/// Hands lines over.
pub struct Recent(pub Arc<LogTail>);

impl<S: Subscriber> Layer<S> for Recent {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let (area, text) = line::area_and_text(event);
        let meta = event.metadata();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.0.push(LogLine {
            at_ms: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
            level: line::level_name(*meta.level()),
            area: area.unwrap_or_else(|| area::crate_of(meta).to_owned()),
            text,
        });
    }
}

/// Which lines those are: what the outputs write, and the audit trail in any case.
pub struct RecentLevels(pub AreaLevels);

impl RecentLevels {
    /// The audit trail speaks from a place of its own, so other events need not be looked into for their area.
    fn is_audit(meta: &Metadata<'_>) -> bool {
        meta.target() == "management::audit"
    }
}

impl<S> Filter<S> for RecentLevels
where
    AreaLevels: Filter<S>,
{
    fn enabled(&self, meta: &Metadata<'_>, context: &Context<'_, S>) -> bool {
        Self::is_audit(meta) || self.0.enabled(meta, context)
    }

    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        match Self::is_audit(meta) {
            true => Interest::always(),
            false => self.0.callsite_enabled(meta),
        }
    }

    fn event_enabled(&self, event: &Event<'_>, context: &Context<'_, S>) -> bool {
        Self::is_audit(event.metadata()) || self.0.event_enabled(event, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::{Level, LogOptions};
    use tracing_subscriber::layer::SubscriberExt;

    #[test]
    fn what_outputs_write_is_kept_and_the_audit_trail_in_any_case() {
        let tail = Arc::new(LogTail::default());
        let levels = RecentLevels(AreaLevels::new(&LogOptions::default(), Level::Warning));
        let layer = Recent(Arc::clone(&tail)).with_filter(levels);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(target: "gateway::amqp", area = "connection", "accepted");
            tracing::warn!(target: "gateway::amqp", area = "connection", peer = "127.0.0.1:5000", "lost\n");
            tracing::info!(target: "management::audit", area = "audit", "user 'ada': DELETE /api/queues/%2F/a");
        });
        let kept = format!("{tail:?}");
        assert!(!kept.contains("accepted"), "{kept}");
        assert!(kept.contains("lost\\\\n peer=127.0.0.1:5000"), "{kept}");
        assert!(kept.contains("DELETE /api/queues/%2F/a"), "{kept}");
    }
}
