//! Opens the connections of a load, many at a time, and lost ones again.

use super::consumer::Consumer;
use super::driver::{Mailbox, Order};
use super::link::{Link, Role};
use super::producer::Producer;
use super::shared::{Shared, lock};
use crate::client::{Addresses, Agreed, Client, Transport};
use crate::clock;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::topology::Topology;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// Connections that are opened at the same time.
const AT_ONCE: usize = 16;

/// A connection that is ready to be driven.
pub type Connection = (Transport, Agreed, Vec<u8>);

/// A connection that was lost and is back.
pub struct Reopened {
    /// Which link of its thread.
    pub slot: usize,
    pub connection: Connection,
    /// The queues of its consumers.
    pub queues: Vec<Vec<String>>,
}

/// See the module.
pub struct Opener {
    plan: Arc<Plan>,
    topology: Arc<Topology>,
    addresses: Addresses,
    shared: OnceLock<Arc<Shared>>,
    token: Mutex<Option<String>>,
    told: Arc<AtomicU64>,
    ended: AtomicBool,
    pause: (Mutex<()>, Condvar),
    recovering: AtomicUsize,
}

impl Opener {
    pub fn new(
        plan: Arc<Plan>,
        topology: Arc<Topology>,
        addresses: Addresses,
        token: Option<String>,
    ) -> Self {
        Self {
            plan,
            topology,
            addresses,
            shared: OnceLock::new(),
            token: Mutex::new(token),
            told: Arc::new(AtomicU64::new(0)),
            ended: AtomicBool::new(false),
            pause: (Mutex::new(()), Condvar::new()),
            recovering: AtomicUsize::new(0),
        }
    }

    /// Lets it tell of connections that are lost and back.
    pub fn tell_to(&self, shared: Arc<Shared>) {
        let _ = self.shared.set(shared);
    }

    /// Connections opened from now on use this token.
    pub fn set_token(&self, token: String) {
        *lock(&self.token) = Some(token);
    }

    /// Connections that are lost and not back yet.
    pub fn recovering(&self) -> usize {
        self.recovering.load(Relaxed)
    }

    /// Nothing is opened again from now on.
    pub fn end(&self) {
        self.ended.store(true, Relaxed);
        self.pause.1.notify_all();
    }

    /// Opens `count` connections of producers or of consumers and gives each to its thread. `each` is told the number of each
    /// before it is opened, in order.
    ///
    /// # Errors
    /// The first failure; connections that were opened stay open until the load is closed.
    pub fn open_all(
        &self,
        producers: bool,
        count: usize,
        mailboxes: &[Mailbox],
        each: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(), Failure> {
        let next = Mutex::new((0, each));
        let failed: Mutex<Option<Failure>> = Mutex::new(None);
        thread::scope(|scope| {
            for _ in 0..AT_ONCE.min(count) {
                scope.spawn(|| {
                    while lock(&failed).is_none() {
                        let number = {
                            let mut next = lock(&next);
                            let number = next.0;
                            if number == count {
                                break;
                            }
                            next.0 += 1;
                            (next.1)(number);
                            number
                        };
                        // Producers of one index sit beside the consumers of the next one, so that with two threads a pair
                        // does not share one.
                        let thread = (number + usize::from(producers)) % mailboxes.len();
                        match self.open_link(producers, number) {
                            Ok(link) => mailboxes[thread].send(Order::Adopt(Box::new(link))),
                            Err(failure) => {
                                lock(&failed).get_or_insert(failure);
                            }
                        }
                    }
                });
            }
        });
        failed.into_inner().unwrap_or_default().map_or(Ok(()), Err)
    }

    fn open_link(&self, producers: bool, number: usize) -> Result<Link, Failure> {
        let (transport, agreed, unused) = self.open(producers, number)?;
        let start = clock::now();
        let role = if producers {
            let channels = self.plan.producing.channels;
            let all = (0..channels).map(|at| {
                let index = number * channels + at;
                let route = self.topology.producer(index);
                Producer::new(
                    &self.plan,
                    index as u32,
                    at as u16 + 1,
                    &route,
                    agreed.frame_max,
                    start,
                )
            });
            Role::Producers(all.collect::<Result<_, _>>()?)
        } else {
            let channels = self.plan.consuming.channels;
            let all = self.queues(number).into_iter().enumerate().map(|(at, queues)| {
                let index = number * channels + at;
                Consumer::new(&self.plan, index, at as u16 + 1, queues, self.told.clone())
            });
            Role::Consumers(all.collect())
        };
        Ok(Link::new(number, role, transport, agreed, unused, start))
    }

    /// The queues of each consumer of a connection. A queue that the broker names may be another one after a reconnect.
    fn queues(&self, number: usize) -> Vec<Vec<String>> {
        let channels = self.plan.consuming.channels;
        let indices = number * channels..(number + 1) * channels;
        indices.map(|index| self.topology.consumer(index)).collect()
    }

    /// Opens a connection with its channels, in the modes that the plan asks for.
    fn open(&self, producers: bool, number: usize) -> Result<Connection, Failure> {
        let role = if producers { "producer" } else { "consumer" };
        let name = format!("perf-test-{role}-{number}");
        let mut client = self.connect(number, &name)?;
        if producers {
            for channel in 1..=self.plan.producing.channels as u16 {
                client.open_channel(channel)?;
                if self.plan.producing.confirm.is_some() {
                    client.confirm_select(channel)?;
                }
                if self.plan.producing.transaction > 0 {
                    client.tx_select(channel)?;
                }
            }
        } else {
            for channel in 1..=self.plan.consuming.channels as u16 {
                client.open_channel(channel)?;
                self.set_up_consumer(&mut client, channel, number)?;
            }
        }
        client.hand_over()
    }

    fn connect(&self, number: usize, name: &str) -> Result<Client, Failure> {
        let token = lock(&self.token).clone();
        self.addresses.open(
            number,
            &self.plan.connection,
            name,
            &self.plan.id,
            token.as_deref(),
        )
    }

    fn set_up_consumer(&self, client: &mut Client, channel: u16, number: usize) -> Result<(), Failure> {
        let consuming = &self.plan.consuming;
        let index = number * consuming.channels + usize::from(channel) - 1;
        if self.topology.declares_own(index) {
            self.topology.declare_for_consumer(index, client, channel)?;
        }
        if consuming.prefetch > 0 {
            client.qos(channel, consuming.prefetch, false)?;
        }
        if consuming.channel_prefetch > 0 {
            client.qos(channel, consuming.channel_prefetch, true)?;
        }
        if consuming.transaction > 0 {
            client.tx_select(channel)?;
        }
        Ok(())
    }

    /// Opens a lost connection again, for as long as the load goes on: a pause, an attempt, and so on.
    pub fn reopen(
        self: &Arc<Self>,
        producers: bool,
        number: usize,
        slot: usize,
        failure: Failure,
        mailbox: Mailbox,
    ) {
        self.recovering.fetch_add(1, Relaxed);
        let opener = self.clone();
        let role = if producers { "producer" } else { "consumer" };
        // Thousands may be lost at once, and each message says the same.
        if self.recovering() <= 3 {
            self.tell(format!(
                "Connection of {role} #{number} lost: {failure}. Trying again."
            ));
        }
        let spawned = thread::Builder::new()
            .name(format!("reopen {role} {number}"))
            .stack_size(256 * 1024)
            .spawn(move || {
                let mut said = String::new();
                while opener.rest() {
                    match opener.reopen_once(producers, number) {
                        Ok(connection) => {
                            opener.recovering.fetch_sub(1, Relaxed);
                            let queues = if producers {
                                Vec::new()
                            } else {
                                opener.queues(number)
                            };
                            mailbox.send(Order::Reopened(Reopened {
                                slot,
                                connection,
                                queues,
                            }));
                            return;
                        }
                        Err(failure) => {
                            let text = failure.to_string();
                            if text != said && opener.recovering() <= 3 {
                                opener.tell(format!("Connection of {role} #{number} not back yet: {text}"));
                                said = text;
                            }
                        }
                    }
                }
            });
        if let Err(error) = spawned {
            self.tell(format!("Connection of {role} #{number} stays lost: {error}"));
        }
    }

    fn reopen_once(&self, producers: bool, number: usize) -> Result<Connection, Failure> {
        let mut client = self.connect(number, "perf-test-configuration-0")?;
        client.open_channel(1)?;
        self.topology.redeclare(&mut client, 1)?;
        client.close();
        self.open(producers, number)
    }

    /// The pause before an attempt; false if the load has ended.
    fn rest(&self) -> bool {
        let Some((least, most)) = self.plan.connection.recovery else {
            return false;
        };
        let spread = most.saturating_sub(least).as_millis() as u64;
        let pause = least + Duration::from_millis(fastrand::u64(0..=spread));
        let guard = lock(&self.pause.0);
        let waited = self
            .pause
            .1
            .wait_timeout_while(guard, pause, |()| !self.ended.load(Relaxed));
        drop(waited);
        !self.ended.load(Relaxed)
    }

    fn tell(&self, line: String) {
        if let Some(shared) = self.shared.get() {
            shared.tell(line);
        }
    }
}
