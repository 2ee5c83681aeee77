//! What existed when something was asked for: all pieces of a long answer tell of this, however much comes and goes meanwhile.

use broker::View;
use broker::stats::{Channel, Connection, Consumer};
use std::sync::{Arc, OnceLock};

/// A channel and the connection that it is on.
pub type OnConnection = (Arc<Connection>, Arc<Channel>);

/// What exists, and of those who come and go what the asker may see, from when it is first looked for.
#[derive(Debug)]
pub struct Snapshot {
    /// What is declared.
    pub view: Arc<View>,
    /// Who is connected.
    pub connections: OnceLock<Vec<Arc<Connection>>>,
    /// Their channels.
    pub channels: OnceLock<Vec<OnConnection>>,
    /// Who consumes.
    pub consumers: OnceLock<Vec<Arc<Consumer>>>,
}

impl Snapshot {
    /// Of this moment.
    pub fn of(view: Arc<View>) -> Self {
        Self {
            view,
            connections: OnceLock::new(),
            channels: OnceLock::new(),
            consumers: OnceLock::new(),
        }
    }

    /// What its lists take, in bytes.
    pub fn bytes(&self) -> usize {
        fn bytes<T>(list: &OnceLock<Vec<T>>) -> usize {
            list.get().map_or(0, |list| list.capacity() * size_of::<T>())
        }
        bytes(&self.connections) + bytes(&self.channels) + bytes(&self.consumers)
    }
}
