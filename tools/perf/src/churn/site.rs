//! What a churn makes on the broker, so that all of it can be taken away again.

use super::options::{Keys, Options};
use super::what::What;
use crate::client::Client;
use crate::failure::Failure;
use model::table::Table;
use protocol::amqp::method::{ExchangeDeclare, QueueBind, QueueDeclare};
use protocol::amqp::{RawTable, encode};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Bindings that are written before the broker is asked whether it got them.
const IN_FLIGHT: u64 = 1_000;
/// Messages that a queue nobody consumes from keeps; older ones go.
const KEPT: i64 = 1_000;
/// The channel for looks that the broker may answer by closing it.
const LOOK: u16 = 9;
/// RabbitMQ's NOT_FOUND.
const NOT_FOUND: u16 = 404;

/// Names, and what has been made of them.
pub struct Site {
    id: String,
    pub exchange: String,
    exchange_type: String,
    durable: bool,
    /// A load publishes to the exchange and declares it, durable as PerfTest does.
    shared: bool,
    keys: Keys,
    /// The exchange was not there before.
    owns_exchange: bool,
    made: Mutex<BTreeSet<String>>,
    next_key: AtomicU64,
    /// Bindings of the preload that the broker has.
    pub loaded: AtomicU64,
}

impl Site {
    /// `background`: name and type of the exchange that the load beside publishes to.
    pub fn new(options: &Options, id: &str, background: Option<(&str, &str)>) -> Self {
        let own = (format!("perf-churn-{id}"), "direct");
        let (exchange, kind) = match (&options.exchange, background, &options.exchange_type) {
            (Some(name), Some((theirs, kind)), _) if name == theirs => (name.clone(), kind),
            (Some(name), _, _) => (name.clone(), "direct"),
            (None, Some((name, kind)), None) if !name.is_empty() => (name.to_owned(), kind),
            _ => own,
        };
        Self {
            id: id.to_owned(),
            shared: background.is_some_and(|(name, _)| name == exchange),
            exchange,
            exchange_type: options.exchange_type.clone().unwrap_or_else(|| kind.to_owned()),
            durable: options.durable,
            keys: options.keys,
            owns_exchange: false,
            made: Mutex::default(),
            next_key: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
        }
    }

    /// Declares the exchange unless it is there.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn declare_exchange(&mut self, client: &mut Client, channel: u16) -> Result<(), Failure> {
        if exchange_exists(client, &self.exchange)? {
            return Ok(());
        }
        let declare = ExchangeDeclare {
            exchange: &self.exchange,
            kind: &self.exchange_type,
            durable: self.durable || self.shared,
            ..Default::default()
        };
        client.declare_exchange(channel, &declare)?;
        self.owns_exchange = true;
        Ok(())
    }

    /// The queue of a worker, which stays until the end.
    pub fn worker_queue(&self, worker: usize) -> String {
        format!("perf-churn-{}-{worker}", self.id)
    }

    /// A queue that comes and goes.
    pub fn fresh_queue(&self, worker: usize, number: u64) -> String {
        format!("perf-churn-{}-{worker}-{number}", self.id)
    }

    /// A routing key that was not used before.
    pub fn key(&self, worker: usize) -> String {
        match self.keys {
            Keys::Random => format!("{:032x}", fastrand::u128(..)),
            Keys::Sequential => format!("{worker}.{}", self.next_key.fetch_add(1, Relaxed)),
        }
    }

    /// Declares a queue; `short`: it keeps few messages. Queues that aren't durable are exclusive, since newer brokers refuse
    /// others that aren't durable.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn declare_queue(
        &self,
        client: &mut Client,
        channel: u16,
        name: &str,
        short: bool,
    ) -> Result<(), Failure> {
        let mut arguments = Vec::new();
        if short {
            Table::new().with("x-max-length", KEPT).encode(&mut arguments);
        }
        let declare = QueueDeclare {
            arguments: RawTable(&arguments),
            ..self.declaration(name)
        };
        self.made().insert(name.to_owned());
        client.declare_queue(channel, &declare).map(drop)
    }

    /// Writes the frame that declares a queue.
    pub fn encode_declare(&self, frames: &mut Vec<u8>, channel: u16, name: &str) {
        self.made().insert(name.to_owned());
        encode::method(frames, channel, &self.declaration(name));
    }

    fn declaration<'a>(&self, queue: &'a str) -> QueueDeclare<'a> {
        QueueDeclare {
            queue,
            durable: self.durable,
            exclusive: !self.durable,
            ..Default::default()
        }
    }

    /// These queues are deleted.
    pub fn forget(&self, names: &[String]) {
        let mut made = self.made();
        for name in names {
            made.remove(name);
        }
    }

    /// Deletes a queue.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn delete_queue(&self, client: &mut Client, channel: u16, name: &str) -> Result<(), Failure> {
        client.delete_queue(channel, name)?;
        self.made().remove(name);
        Ok(())
    }

    /// Gives a queue this many bindings with keys of their own; many under way at a time. `stop` is asked now and then.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn bind_many(
        &self,
        client: &mut Client,
        channel: u16,
        queue: &str,
        bindings: u64,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        let mut left = bindings;
        while left > 0 && !stop() {
            let chunk = left.min(IN_FLIGHT);
            let mut frames = Vec::new();
            for _ in 1..chunk {
                let key = self.key(usize::MAX);
                let bind = QueueBind {
                    queue,
                    exchange: &self.exchange,
                    routing_key: &key,
                    no_wait: true,
                    ..Default::default()
                };
                encode::method(&mut frames, channel, &bind);
            }
            client.write(&frames)?;
            // Its answer comes after all of them are done.
            client.bind_queue(channel, queue, &self.exchange, &self.key(usize::MAX))?;
            self.loaded.fetch_add(chunk, Relaxed);
            left -= chunk;
        }
        Ok(())
    }

    /// What is left to delete.
    pub fn left(&self) -> usize {
        self.made().len() + usize::from(self.owns_exchange)
    }

    /// Deletes everything that was made and is there still.
    ///
    /// # Errors
    /// The first thing that could not be deleted; the rest was tried.
    pub fn clean(&self, client: &mut Client, channel: u16) -> Result<(), Failure> {
        let mut first = Ok(());
        // Exclusive queues have gone with their connections.
        let names: Vec<String> = self.made().iter().filter(|_| self.durable).cloned().collect();
        for name in names {
            let deleted = self.delete_queue(client, channel, &name);
            keep_first(&mut first, deleted);
            reopen(client, channel)?;
        }
        if self.owns_exchange {
            keep_first(&mut first, client.delete_exchange(channel, &self.exchange));
        }
        first
    }

    fn made(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether each worker's queue keeps few messages: nobody consumes what is published.
pub fn is_short(what: What) -> bool {
    what.publishes()
}

fn keep_first(first: &mut Result<(), Failure>, result: Result<(), Failure>) {
    if first.is_ok() {
        *first = result;
    }
}

/// A refusal closes the channel.
fn reopen(client: &mut Client, channel: u16) -> Result<(), Failure> {
    if client.is_open(channel) {
        Ok(())
    } else {
        client.open_channel(channel)
    }
}

/// # Errors
/// If the broker can't be asked.
pub fn exchange_exists(client: &mut Client, exchange: &str) -> Result<bool, Failure> {
    if exchange.is_empty() || exchange.starts_with("amq.") {
        return Ok(true);
    }
    let look = ExchangeDeclare {
        exchange,
        kind: "direct",
        passive: true,
        ..Default::default()
    };
    exists(client, |client| client.declare_exchange(LOOK, &look))
}

/// # Errors
/// If the broker can't be asked.
pub fn queue_exists(client: &mut Client, queue: &str) -> Result<bool, Failure> {
    exists(client, |client| client.queue_depth(LOOK, queue).map(drop))
}

fn exists(
    client: &mut Client,
    look: impl FnOnce(&mut Client) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    client.open_channel(LOOK)?;
    match look(client) {
        Ok(()) => client.close_channel(LOOK).map(|()| true),
        Err(Failure::Refused { code: NOT_FOUND, .. }) => Ok(false),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subcommand::Request;

    fn site(line: &str, background: Option<(&str, &str)>) -> Site {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let Ok(Request::Run(options)) = Options::read(&words) else {
            panic!("{line}")
        };
        Site::new(&options, "x", background)
    }

    #[test]
    fn the_exchange_is_the_named_one_else_the_backgrounds_else_an_own_one() {
        let theirs = Some(("direct", "topic"));
        for (line, background, exchange, kind) in [
            ("--what bind", None, "perf-churn-x", "direct"),
            ("--what bind", theirs, "direct", "topic"),
            ("--what bind", Some(("", "direct")), "perf-churn-x", "direct"),
            (
                "--what bind --exchange-type fanout",
                theirs,
                "perf-churn-x",
                "fanout",
            ),
            (
                "--what bind --exchange e --exchange-type fanout",
                theirs,
                "e",
                "fanout",
            ),
            ("--what bind --exchange direct", theirs, "direct", "topic"),
        ] {
            let site = site(line, background);
            assert_eq!(
                (site.exchange.as_str(), site.exchange_type.as_str()),
                (exchange, kind),
                "{line}"
            );
        }
    }

    #[test]
    fn keys_are_never_the_same_twice() {
        for line in ["--what bind", "--what bind --keys sequential"] {
            let site = site(line, None);
            let keys: BTreeSet<_> = (0..1_000).map(|worker| site.key(worker % 3)).collect();
            assert_eq!(keys.len(), 1_000);
        }
    }
}
