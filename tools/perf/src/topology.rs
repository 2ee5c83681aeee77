//! The exchange, the queues and the bindings of a run, as PerfTest has them.
//!
//! Who declares what (PerfTest's `MulticastParams`): queues of a pattern are declared once, before anybody connects; a list of
//! queues likewise. Without names, **each consumer has the broker make up a queue of its own**, all bound with the same key,
//! so that every consumer gets every message. Exclusive queues, too, are declared by the consumer, on its connection. Those
//! two are [`Topology::declares_own`].
//!
//! Keys: the plan's, if it has one; else a queue of a pattern has its name for a key, and all others share one random UUID.
//!
//! A number of a producer or a consumer is that of its channel, counted over all connections: PerfTest moves on to the next
//! queue of a pattern with each channel.

use crate::client::Client;
use crate::failure::Failure;
use crate::plan::{Exchange, Plan, QueueNames, Queues};
use protocol::amqp::RawTable;
use protocol::amqp::method::{ExchangeDeclare, QueueDeclare};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// From this version on the broker refuses queues that are neither durable nor exclusive, so PerfTest asks for durable ones.
const DURABLE_FROM: (u32, u32) = (4, 3);
/// Thousands of connections may come back at once; what one of them has just declared again, the others need not.
const FRESH: Duration = Duration::from_secs(1);

/// Where a producer publishes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Route {
    /// Empty: the default exchange.
    pub exchange: String,
    /// `None`: a random one for each message.
    pub routing_key: Option<String>,
}

/// See the module.
#[derive(Debug)]
pub struct Topology {
    exchange: Exchange,
    queues: Queues,
    durable: bool,
    arguments: Vec<u8>,
    random: bool,
    /// The plan's key, or the UUID in its place.
    key: String,
    key_given: bool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    exchange_declared: bool,
    /// Queues that did not exist before, or might not have: what is declared again after a connection was lost.
    declared: BTreeSet<String>,
    /// Names that the broker made up, by consumer.
    own: BTreeMap<usize, String>,
    refreshed: Option<Instant>,
}

impl Topology {
    /// Declares the exchange and all queues that are not a consumer's own, and binds them. With `--predeclared` only what is
    /// missing is declared, as in PerfTest; existing queues are bound all the same.
    ///
    /// # Errors
    /// [`Failure::Usage`] if exclusive queues would be shared; what the broker refuses.
    pub fn declare(plan: &Plan, client: &mut Client, channel: u16) -> Result<Self, Failure> {
        check_exclusive(plan)?;
        let version_wants_durable = client
            .server_version()
            .is_none_or(|version| version >= DURABLE_FROM);
        let mut arguments = Vec::new();
        plan.queues.arguments.encode(&mut arguments);
        let topology = Self {
            exchange: plan.exchange.clone(),
            queues: plan.queues.clone(),
            durable: plan.queues.durable || (!plan.queues.exclusive && version_wants_durable),
            arguments,
            random: plan.routing.random,
            key: plan.routing.key.clone().unwrap_or_else(uuid),
            key_given: plan.routing.key.is_some(),
            state: Mutex::default(),
        };
        topology.declare_exchange(client, channel)?;
        if !topology.queues.exclusive {
            for name in topology.named() {
                topology.declare_queue(name, client, channel)?;
            }
        }
        Ok(topology)
    }

    /// Where producer `index` publishes to.
    pub fn producer(&self, index: usize) -> Route {
        let key = if self.random {
            None
        } else {
            Some(self.key_of(index).to_owned())
        };
        Route {
            exchange: self.exchange.name.clone(),
            routing_key: key,
        }
    }

    /// The queues of consumer `index`; empty as long as a queue of its own has no name.
    pub fn consumer(&self, index: usize) -> Vec<String> {
        match &self.queues.names {
            QueueNames::ServerNamed => self.state().own.get(&index).cloned().into_iter().collect(),
            QueueNames::Fixed(names) => names.clone(),
            QueueNames::Sequence(names) => names
                .get(index % names.len().max(1))
                .cloned()
                .into_iter()
                .collect(),
        }
    }

    /// True if the queues of consumer `index` are to be declared on its own connection with [`Self::declare_for_consumer`],
    /// after each connecting.
    pub fn declares_own(&self, _index: usize) -> bool {
        match self.queues.names {
            QueueNames::ServerNamed => !self.queues.predeclared,
            _ => self.queues.exclusive,
        }
    }

    /// Declares and binds the queues of consumer `index` on its own connection, again after it was lost. A queue that the
    /// broker named may have another name afterwards: ask [`Self::consumer`]. The channel may have been closed and opened
    /// again, so what it is to be set to comes after.
    ///
    /// # Errors
    /// What the broker refuses.
    pub fn declare_for_consumer(
        &self,
        index: usize,
        client: &mut Client,
        channel: u16,
    ) -> Result<(), Failure> {
        if self.queues.names != QueueNames::ServerNamed {
            for name in self.consumer(index) {
                self.declare_queue(&name, client, channel)?;
            }
            return Ok(());
        }
        let before = self.state().own.get(&index).cloned();
        if let Some(name) = before
            && !self.queues.exclusive
            && exists(client, channel, |client| look(client, channel, &name))?
        {
            // It outlived the connection, with its messages: a new one beside it would leave them to rot.
            return Ok(());
        }
        let name = self.declare_new("", client, channel)?;
        self.bind(&name, self.key_of(index), client, channel)?;
        self.state().own.insert(index, name);
        Ok(())
    }

    /// Declares again, after a connection was lost, what was declared before: auto-delete queues go with their last consumer,
    /// transient ones with the broker. What others have just declared again is left alone.
    ///
    /// # Errors
    /// What the broker refuses.
    pub fn redeclare(&self, client: &mut Client, channel: u16) -> Result<(), Failure> {
        let names: Vec<String> = {
            let state = self.state();
            if state.refreshed.is_some_and(|last| last.elapsed() < FRESH) {
                return Ok(());
            }
            state.declared.iter().cloned().collect()
        };
        self.declare_exchange(client, channel)?;
        if !self.queues.exclusive {
            for name in names {
                self.declare_queue(&name, client, channel)?;
            }
        }
        self.state().refreshed = Some(Instant::now());
        Ok(())
    }

    /// All queues whose names are known by now.
    pub fn queues(&self) -> Vec<String> {
        let named = self.named().iter().cloned();
        let mut all: Vec<String> = named.chain(self.state().own.values().cloned()).collect();
        let mut seen = BTreeSet::new();
        all.retain(|name| seen.insert(name.clone()));
        all
    }

    /// Deletes the queues and the exchange, unless the broker has them from the start (`amq.*`).
    ///
    /// # Errors
    /// The first refusal, after all have been tried; what does not exist any more is no refusal.
    pub fn delete(&self, client: &mut Client) -> Result<(), Failure> {
        let mut result = self.delete_queues(client);
        if !is_builtin(&self.exchange.name) {
            let deleted = gone(client, |client, channel| {
                client.delete_exchange(channel, &self.exchange.name)
            });
            result = result.and(deleted);
        }
        result
    }

    /// Deletes the queues alone. PerfTest does so after `--polling` for auto-delete queues, which the broker never deletes
    /// since they had no consumer.
    ///
    /// # Errors
    /// As [`Self::delete`].
    pub fn delete_queues(&self, client: &mut Client) -> Result<(), Failure> {
        let mut result = Ok(());
        if !self.queues.exclusive {
            for name in self.queues() {
                let deleted = gone(client, |client, channel| client.delete_queue(channel, &name));
                result = result.and(deleted);
            }
        }
        result
    }

    fn named(&self) -> &[String] {
        match &self.queues.names {
            QueueNames::ServerNamed => &[],
            QueueNames::Fixed(names) | QueueNames::Sequence(names) => names,
        }
    }

    fn key_of(&self, index: usize) -> &str {
        match &self.queues.names {
            QueueNames::Sequence(names) if !self.key_given && !names.is_empty() => {
                &names[index % names.len()]
            }
            _ => &self.key,
        }
    }

    fn declare_exchange(&self, client: &mut Client, channel: u16) -> Result<(), Failure> {
        let Exchange { name, kind } = &self.exchange;
        if is_builtin(name) {
            return Ok(());
        }
        let declare = ExchangeDeclare {
            exchange: name,
            kind,
            durable: true,
            ..Default::default()
        };
        let passive = ExchangeDeclare {
            passive: true,
            ..declare
        };
        let declared_before = self.state().exchange_declared;
        if self.queues.predeclared
            && !declared_before
            && exists(client, channel, |client| {
                client.declare_exchange(channel, &passive)
            })?
        {
            return Ok(());
        }
        client.declare_exchange(channel, &declare)?;
        self.state().exchange_declared = true;
        Ok(())
    }

    fn declare_queue(&self, name: &str, client: &mut Client, channel: u16) -> Result<(), Failure> {
        let declared_before = self.state().declared.contains(name);
        let there = self.queues.predeclared
            && !declared_before
            && exists(client, channel, |client| look(client, channel, name))?;
        if !there {
            self.declare_new(name, client, channel)?;
            self.state().declared.insert(name.to_owned());
        }
        let key = match &self.queues.names {
            QueueNames::Sequence(_) if !self.key_given => name,
            _ => &self.key,
        };
        self.bind(name, key, client, channel)
    }

    /// The queue's name, which the broker makes up if `name` is empty.
    fn declare_new(&self, name: &str, client: &mut Client, channel: u16) -> Result<String, Failure> {
        let declare = QueueDeclare {
            queue: name,
            durable: self.durable,
            exclusive: self.queues.exclusive,
            auto_delete: self.queues.auto_delete,
            arguments: RawTable(&self.arguments),
            ..Default::default()
        };
        client
            .declare_queue(channel, &declare)
            .map(|declared| declared.name)
    }

    fn bind(&self, queue: &str, key: &str, client: &mut Client, channel: u16) -> Result<(), Failure> {
        // Every queue is bound to the default exchange already, and to no other key.
        if self.exchange.name.is_empty() || self.queues.skip_binding {
            return Ok(());
        }
        client.bind_queue(channel, queue, &self.exchange.name, key)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// PerfTest lets consumers of one exclusive queue share a connection; here each has its own, and the broker would refuse.
fn check_exclusive(plan: &Plan) -> Result<(), Failure> {
    let queues = match &plan.queues.names {
        QueueNames::ServerNamed => return Ok(()),
        QueueNames::Fixed(_) => 1,
        QueueNames::Sequence(names) => names.len(),
    };
    let consumers = plan.consuming.consumers;
    if plan.queues.exclusive && consumers > queues {
        return Err(Failure::Usage(format!(
            "--exclusive: a queue belongs to one connection, so there can be {queues} consumer(s) and not {consumers}: use --consumers {queues} (with --consumer-channel-count for more), or leave out --exclusive"
        )));
    }
    Ok(())
}

/// Exchanges that exist in each virtual host and that nobody may declare.
fn is_builtin(exchange: &str) -> bool {
    exchange.is_empty() || exchange.starts_with("amq.")
}

fn look(client: &mut Client, channel: u16, queue: &str) -> Result<(), Failure> {
    let passive = QueueDeclare {
        queue,
        passive: true,
        ..Default::default()
    };
    client.declare_queue(channel, &passive).map(drop)
}

/// Whether something exists. The broker closes the channel if it does not, so the channel is opened again.
fn exists(
    client: &mut Client,
    channel: u16,
    look: impl FnOnce(&mut Client) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    match look(client) {
        Ok(()) => Ok(true),
        Err(Failure::Refused { code: 404, .. }) => {
            client.open_channel(channel)?;
            Ok(false)
        }
        Err(failure) => Err(failure),
    }
}

/// Deletes something on channel 1; RabbitMQ takes it kindly if it is gone already, other brokers close the channel.
fn gone(
    client: &mut Client,
    delete: impl FnOnce(&mut Client, u16) -> Result<(), Failure>,
) -> Result<(), Failure> {
    if !client.is_open(1) {
        client.open_channel(1)?;
    }
    match delete(client, 1) {
        Err(Failure::Refused { code: 404, .. }) => Ok(()),
        other => other,
    }
}

/// A random UUID (RFC 9562, version 4).
fn uuid() -> String {
    let wide = fastrand::u128(..) & !(0xf << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let hex = format!("{wide:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests;
