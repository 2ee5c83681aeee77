//! The last route that a channel found.

use model::Message;

/// A route, and the messages that it is good for: the next one is often like the last.
#[derive(Default)]
pub(super) struct Last {
    route: Vec<u8>,
    /// The property list, if the route depends on it.
    properties: Option<Vec<u8>>,
    pub(super) target: usize,
}

impl Last {
    pub(super) fn is_good_for(&self, message: &Message<'_>) -> bool {
        let same = |known: &Vec<u8>| known == message.properties;
        self.route == message.route.as_bytes() && self.properties.as_ref().is_none_or(same)
    }

    /// Remembers where this message went, and whether that depended on its properties.
    pub(super) fn remember(&mut self, message: &Message<'_>, by_properties: bool, target: usize) {
        let copy = |to: &mut Vec<u8>, from: &[u8]| {
            to.clear();
            to.extend_from_slice(from);
        };
        copy(&mut self.route, message.route.as_bytes());
        self.properties = by_properties.then(|| {
            let mut kept = self.properties.take().unwrap_or_default();
            copy(&mut kept, message.properties);
            kept
        });
        self.target = target;
    }
}
