//! The last route that a channel found.

use model::Message;
use model::properties::PropertiesBuf;

/// A route, and the messages that it is good for: the next one is often like the last.
#[derive(Default)]
pub(super) struct Last {
    route: Vec<u8>,
    /// The properties, if the route depends on them.
    properties: Option<PropertiesBuf>,
    pub(super) target: usize,
}

impl Last {
    pub(super) fn is_good_for(&self, message: &Message<'_>) -> bool {
        let same = |known: &PropertiesBuf| known.as_properties() == message.properties;
        self.route == message.route.as_bytes() && self.properties.as_ref().is_none_or(same)
    }

    /// Remembers where this message went, and whether that depended on its properties.
    pub(super) fn remember(&mut self, message: &Message<'_>, by_properties: bool, target: usize) {
        self.route.clear();
        self.route.extend_from_slice(message.route.as_bytes());
        self.properties = by_properties.then(|| {
            let mut kept = self.properties.take().unwrap_or_default();
            kept.copy_from(message.properties);
            kept
        });
        self.target = target;
    }
}
