//! All connections of a node.

use super::Connection;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// All connections, by id: in the order in which they were opened.
#[derive(Debug, Default)]
pub struct Registry {
    connections: RwLock<BTreeMap<u64, Arc<Connection>>>,
}

impl Registry {
    pub(crate) fn enter(&self, connection: Arc<Connection>) {
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        connections.insert(connection.id, connection);
    }

    pub(crate) fn leave(&self, id: u64) -> Option<Arc<Connection>> {
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        connections.remove(&id)
    }

    /// All of them, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<Connection>> {
        let connections = self.connections.read().unwrap_or_else(PoisonError::into_inner);
        connections.values().cloned().collect()
    }
}
