//! All that operators see of a node's clients.

use super::exchange::Exchanges;
use super::totals::Gone;
use super::{Channel, Churn, Connection, DeadLetterCounts, LoginAttempts, Totals};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

/// All connections, and what those did that are gone.
#[derive(Debug, Default)]
pub struct Registry {
    /// By id: in the order in which they were opened.
    connections: RwLock<BTreeMap<u64, Arc<Connection>>>,
    gone: Gone,
    exchanges: Exchanges,
    churn: Churn,
    login_attempts: LoginAttempts,
    dead_letters: DeadLetterCounts,
}

impl Registry {
    /// All connections, oldest first.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        let connections = self.connections.read().unwrap_or_else(PoisonError::into_inner);
        connections.values().cloned().collect()
    }

    /// What was done in each virtual host since the start, by those who are here and those who are gone.
    pub fn totals(&self) -> HashMap<Arc<str>, Totals> {
        // Who leaves meanwhile may be missed, never counted twice: those who are gone are read first.
        let mut totals = self.gone.all();
        for connection in self.connections() {
            let total = totals.entry(connection.vhost.clone()).or_default();
            total.add_connection(&connection);
            connection
                .channels()
                .iter()
                .for_each(|channel| total.add_channel(channel));
        }
        totals
    }

    /// The same for the whole node.
    pub fn total(&self) -> Totals {
        let mut total = Totals::default();
        self.totals().values().for_each(|of_one| total.add(of_one));
        total
    }

    /// A message was published that came by no connection; see [`Totals::add_publish`].
    pub fn published(&self, vhost: &Arc<str>, bytes: usize, lost: bool, refused: bool) {
        self.gone
            .change(vhost, |totals| totals.add_publish(bytes, lost, refused));
    }

    /// Somebody asked a queue for a message, by no connection; see [`Totals::add_get`].
    pub fn got(&self, vhost: &Arc<str>, no_ack: bool, found: Option<bool>) {
        self.gone.change(vhost, |totals| totals.add_get(no_ack, found));
    }

    /// What was published to exchanges.
    pub fn exchanges(&self) -> &Exchanges {
        &self.exchanges
    }

    /// How much came and went.
    pub fn churn(&self) -> &Churn {
        &self.churn
    }

    /// Who tried to log in.
    pub fn login_attempts(&self) -> &LoginAttempts {
        &self.login_attempts
    }

    /// What was dead-lettered.
    pub fn dead_letters(&self) -> &DeadLetterCounts {
        &self.dead_letters
    }

    pub(crate) fn enter(&self, connection: Arc<Connection>) {
        Churn::more(&self.churn.connections_opened);
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        connections.insert(connection.id, connection);
    }

    pub(crate) fn leave(&self, id: u64) -> Option<Arc<Connection>> {
        let mut connections = self.connections.write().unwrap_or_else(PoisonError::into_inner);
        let left = connections.remove(&id);
        drop(connections);
        if let Some(connection) = &left {
            Churn::more(&self.churn.connections_closed);
            self.gone
                .change(&connection.vhost, |totals| totals.add_connection(connection));
        }
        left
    }

    pub(super) fn channel_opened(&self) {
        Churn::more(&self.churn.channels_opened);
    }

    pub(super) fn channel_left(&self, connection: &Connection, channel: &Channel) {
        Churn::more(&self.churn.channels_closed);
        self.gone
            .change(&connection.vhost, |totals| totals.add_channel(channel));
    }
}
