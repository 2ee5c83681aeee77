//! How important an event of each area must be to be written to one output.
//!
//! An event's area is its field `area`, else the crate it comes from (the first part of its target). Areas have the
//! names of RabbitMQ's log categories where there is one: connection, channel, queue, user.

use super::level_filter;
use crate::logs::{Level, LogOptions};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU8, Ordering};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::subscriber::Interest;
use tracing::{Event, Metadata};
use tracing_subscriber::layer::{Context, Filter};

/// The levels of one output.
#[derive(Debug)]
pub struct AreaLevels {
    default: LevelFilter,
    by_area: BTreeMap<String, LevelFilter>,
}

/// The level that an operator gave to all outputs: its place in [`LEVELS`], counted from 1; 0 for none.
static OVERRULED: AtomicU8 = AtomicU8::new(0);

const LEVELS: [LevelFilter; 6] = [
    LevelFilter::OFF,
    LevelFilter::ERROR,
    LevelFilter::WARN,
    LevelFilter::INFO,
    LevelFilter::DEBUG,
    LevelFilter::TRACE,
];

fn overruled() -> Option<LevelFilter> {
    let place = OVERRULED.load(Ordering::Relaxed);
    LEVELS.get(usize::from(place).checked_sub(1)?).copied()
}

/// From now on this level holds for all outputs and areas.
pub fn overrule(level: LevelFilter) {
    let place = LEVELS
        .iter()
        .position(|known| *known == level)
        .map_or(0, |at| at + 1);
    OVERRULED.store(u8::try_from(place).unwrap_or(0), Ordering::Relaxed);
    // What was found to be of no interest may be now.
    tracing::callsite::rebuild_interest_cache();
}

impl AreaLevels {
    /// `level` is the output's own; a category's level, where there is one, counts instead for its area.
    pub fn new(options: &LogOptions, level: Level) -> Self {
        let mut by_area: BTreeMap<_, _> = options
            .categories
            .iter()
            .map(|(name, level)| (name.clone(), level_filter(*level)))
            .collect();
        let default = by_area.remove("default").unwrap_or_else(|| level_filter(level));
        Self { default, by_area }
    }

    /// The same without events of this area.
    pub fn without(mut self, area: &str) -> Self {
        self.by_area.insert(area.to_owned(), LevelFilter::OFF);
        self
    }

    fn most(&self) -> LevelFilter {
        if let Some(level) = overruled() {
            return level;
        }
        self.by_area
            .values()
            .copied()
            .chain([self.default])
            .max()
            .unwrap_or(self.default)
    }

    fn passes(&self, area: &str, level: tracing::Level) -> bool {
        if let Some(most) = overruled() {
            return level <= most;
        }
        level <= *self.by_area.get(area).unwrap_or(&self.default)
    }
}

impl<S> Filter<S> for AreaLevels {
    fn enabled(&self, meta: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        *meta.level() <= self.most()
    }

    fn callsite_enabled(&self, meta: &'static Metadata<'static>) -> Interest {
        // The area is known only with the event itself.
        if *meta.level() <= self.most() {
            Interest::sometimes()
        } else {
            Interest::never()
        }
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        if self.by_area.is_empty() {
            return true;
        }
        let mut found = AreaField::default();
        event.record(&mut found);
        let area = found
            .area
            .as_deref()
            .unwrap_or_else(|| crate_of(event.metadata()));
        self.passes(area, *event.metadata().level())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.most())
    }
}

/// The crate that an event comes from.
pub fn crate_of<'a>(meta: &Metadata<'a>) -> &'a str {
    meta.target().split("::").next().unwrap_or_default()
}

#[derive(Default)]
struct AreaField {
    area: Option<String>,
}

impl Visit for AreaField {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "area" {
            self.area = Some(value.to_owned());
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn Debug) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};
    use tracing::Subscriber;
    use tracing_subscriber::layer::{Layer, SubscriberExt};

    #[derive(Clone, Default)]
    struct Seen(Arc<Mutex<Vec<String>>>);

    impl<S: Subscriber> Layer<S> for Seen {
        fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
            let mut found = AreaField::default();
            event.record(&mut found);
            let area = found
                .area
                .unwrap_or_else(|| crate_of(event.metadata()).to_owned());
            self.0
                .lock()
                .unwrap()
                .push(format!("{area} {}", event.metadata().level()));
        }
    }

    #[test]
    fn categories_have_levels_of_their_own() {
        let mut options = LogOptions::default();
        options.categories.insert("connection".to_owned(), Level::Error);
        options.categories.insert("queue".to_owned(), Level::Debug);
        let seen = Seen::default();
        let layer = seen.clone().with_filter(AreaLevels::new(&options, Level::Info));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::info!(area = "connection", "accepted");
            tracing::error!(area = "connection", "refused");
            tracing::debug!(area = "queue", "declared");
            tracing::debug!(area = "log", "synced");
            tracing::info!(target: "broker::host", "turned");
            tracing::debug!(target: "broker::host", "turned");
        });
        assert_eq!(
            *seen.0.lock().unwrap(),
            ["connection ERROR", "queue DEBUG", "broker INFO"]
        );
    }

    #[test]
    fn the_default_category_is_everything_else() {
        let mut options = LogOptions::default();
        options.categories.insert("default".to_owned(), Level::Warning);
        let levels = AreaLevels::new(&options, Level::Debug);
        assert!(levels.passes("log", tracing::Level::WARN) && !levels.passes("log", tracing::Level::INFO));
    }
}
