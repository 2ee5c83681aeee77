//! A running load: a few threads that drive all its connections.
//!
//! What never happens here: a thread for each connection, a lock that two busy threads meet on for a message, a message that
//! is published before it is due.
//!
//! Reading order: [`Load`] opens connections with an [`opener::Opener`] (blocking, sixteen at a time) and hands them to
//! [`driver`]s, one a thread. A driver turns its [`link`]s: reads once, lets the [`producer`]s publish what is due, lets the
//! [`consumer`]s take what came, writes once. [`waiting`] is what it sleeps on; [`shared`] is what threads have in common;
//! [`confirms`] remembers what the broker has not confirmed, [`answers`] handles frames off the straight path.

mod answers;
mod confirms;
mod consumer;
mod driver;
mod link;
mod opener;
mod producer;
mod shared;
#[cfg(test)]
mod stories;
pub(crate) mod waiting;

use crate::client::{Addresses, Client};
use crate::clock;
use crate::failure::Failure;
use crate::measure::Recorder;
use crate::oauth2::{Token, Tokens};
use crate::plan::{ExitWhen, Plan};
use crate::topology::Topology;
use crate::verify::Verdict;
use driver::{Driver, Mailbox, Order};
use model::table::Table;
use opener::Opener;
use shared::{Shared, lock};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How long consumers may take to be acknowledged before producers start all the same.
const CONSUMERS_START: Duration = Duration::from_secs(30);
/// How often a thread that waits for an event of others looks.
const GLANCE: Duration = Duration::from_millis(2);

/// A load that is running.
pub struct Load {
    plan: Arc<Plan>,
    shared: Arc<Shared>,
    opener: Arc<Opener>,
    topology: Arc<Topology>,
    mailboxes: Vec<Mailbox>,
    threads: Vec<JoinHandle<Result<(), Failure>>>,
    /// For looking at queues and deleting them; opened anew if it is lost.
    configuration: Option<Client>,
    token: Option<(Token, Instant)>,
    /// Product and version.
    server: (String, String),
}

impl Load {
    /// Declares the topology, opens all connections, starts consumers, then producers.
    ///
    /// `listen` gets PerfTest's lines of the start. With `topology` what is declared already is used.
    ///
    /// # Errors
    /// If the broker can't be reached or refuses something; nothing keeps running then.
    pub fn start(
        plan: &Plan,
        topology: Option<Arc<Topology>>,
        listen: &mut (dyn FnMut(String) + Send),
    ) -> Result<Self, Failure> {
        let plan = Arc::new(plan.clone());
        let addresses = Addresses::new(&plan.uris, plan.allocation);
        let token = plan.connection.oauth2.as_ref().map(Tokens::fetch).transpose()?;
        let secret = token.as_ref().map(|it| it.value.clone());
        let name = "perf-test-configuration-0";
        let declares = plan.declare_uri.as_ref();
        let declares = declares.map(|uri| Addresses::new(std::slice::from_ref(uri), plan.allocation));
        let declares = declares.as_ref().unwrap_or(&addresses);
        let mut client = declares.open(0, &plan.connection, name, &plan.id, secret.as_deref())?;
        client.open_channel(1)?;
        let topology = match topology {
            Some(topology) => topology,
            None => Arc::new(Topology::declare(&plan, &mut client, 1)?),
        };
        let server = server(client.server_properties());
        let opener = Arc::new(Opener::new(plan.clone(), topology.clone(), addresses, secret));
        let mut load = Self {
            shared: Arc::new(Shared::new(plan.clone(), plan.threads.max(1))),
            plan,
            opener,
            topology,
            mailboxes: Vec::new(),
            threads: Vec::new(),
            configuration: Some(client),
            token: token.map(|it| (it, Instant::now())),
            server,
        };
        load.opener.tell_to(load.shared.clone());
        match load.begin(listen) {
            Ok(()) => Ok(load),
            Err(failure) => {
                load.close();
                Err(failure)
            }
        }
    }

    fn begin(&mut self, listen: &mut (dyn FnMut(String) + Send)) -> Result<(), Failure> {
        for number in 0..self.plan.threads.max(1) {
            let driver = Driver::new(number, self.shared.clone(), self.opener.clone())
                .map_err(|error| Failure::Lost(format!("can't wait for sockets: {error}")))?;
            self.mailboxes.push(driver.mailbox());
            let spawned = thread::Builder::new()
                .name(format!("drive {number}"))
                .spawn(move || driver.run());
            self.threads
                .push(spawned.map_err(|error| Failure::Lost(format!("can't start a thread: {error}")))?);
        }
        let (id, consuming, producing) = (&self.plan.id, &self.plan.consuming, &self.plan.producing);
        let mut announce = |role: &str, number: usize, channels: usize| {
            listen(format!("id: {id}, starting {role} #{number}"));
            for channel in 0..channels {
                listen(format!("id: {id}, starting {role} #{number}, channel #{channel}"));
            }
        };
        let mut each = |number: usize| announce("consumer", number, consuming.channels);
        self.opener
            .open_all(false, consuming.consumers, &self.mailboxes, &mut each)?;
        let mut each = |number: usize| announce("producer", number, producing.channels);
        self.opener
            .open_all(true, producing.producers, &self.mailboxes, &mut each)?;
        self.start_consumers();
        let at = clock::now();
        self.order(|| Order::Start {
            producers: true,
            number: None,
            at,
        });
        Ok(())
    }

    /// Consumers first, so that what is published is consumed at once; with a start delay later, so that a backlog grows.
    fn start_consumers(&self) {
        let consuming = &self.plan.consuming;
        if consuming.consumers == 0 {
            return;
        }
        if !consuming.start_delay.is_zero() || consuming.slow_start {
            let (mailboxes, shared) = (self.mailboxes.clone(), self.shared.clone());
            let delayed = move || start_later(&mailboxes, &shared);
            // Without a thread to spare they start at once.
            if thread::Builder::new()
                .name("start consumers".into())
                .spawn(delayed)
                .is_ok()
            {
                return;
            }
        }
        let at = clock::now();
        self.order(|| Order::Start {
            producers: false,
            number: None,
            at,
        });
        if consuming.polling.is_some() {
            return;
        }
        let consumers = consuming.consumers * consuming.channels;
        let wanted: usize = (0..consumers)
            .map(|index| self.topology.consumer(index).len())
            .sum();
        let since = Instant::now();
        while self.shared.consuming.load(Relaxed) < wanted
            && since.elapsed() < CONSUMERS_START
            && self.shared.ended().1.is_none()
        {
            thread::park_timeout(GLANCE);
        }
    }

    fn order(&self, order: impl Fn() -> Order) {
        for mailbox in &self.mailboxes {
            mailbox.send(order());
        }
    }

    /// What was counted since the last time.
    pub fn take(&self) -> Recorder {
        let mut all = Recorder::new();
        for recorder in &self.shared.recorders {
            lock(recorder).drain_into(&mut all);
        }
        all
    }

    /// Messages published and consumed so far.
    pub fn totals(&self) -> (u64, u64) {
        (
            self.shared.published.load(Relaxed),
            self.shared.consumed.load(Relaxed),
        )
    }

    /// Messages that are published and not consumed, as far as one queue gets each.
    pub fn depth_estimate(&self) -> u64 {
        let (published, consumed) = self.totals();
        published.saturating_sub(consumed)
    }

    /// What the broker calls itself: product and version.
    pub fn server(&self) -> (&str, &str) {
        (&self.server.0, &self.server.1)
    }

    /// What users should read now: connections lost and back, alarms.
    pub fn told(&self) -> Vec<String> {
        self.shared.told()
    }

    /// True when as many producers and consumers are done as PerfTest waits for, or one of them has failed.
    pub fn is_over(&self) -> bool {
        let producers = self.plan.producing.producers * self.plan.producing.channels;
        let consumers = self.plan.consuming.consumers * self.plan.consuming.channels;
        let mut wanted = 0;
        if self.plan.producing.messages.is_some() {
            wanted += producers;
        }
        if self.plan.consuming.messages.is_some() || self.plan.stopping.exit_when.is_some() {
            wanted += consumers;
        }
        let (count, failure) = self.shared.ended();
        count >= wanted.max(1) || failure.is_some()
    }

    /// Consumers have come to their end as `--exit-when` says.
    pub fn consumers_end(&self, why: ExitWhen) {
        let reason = match why {
            ExitWhen::Empty => "Consumer queue(s) empty",
            ExitWhen::Idle => "Consumer is idle for more than 1 second",
        };
        for _ in 0..self.plan.consuming.consumers * self.plan.consuming.channels {
            self.shared.count_down(reason);
        }
    }

    /// Why producers and consumers have ended so far, with how many.
    pub fn reasons(&self) -> Vec<(String, usize)> {
        self.shared.reasons()
    }

    /// The first failure, if there was one.
    pub fn failure(&self) -> Option<Failure> {
        self.shared.ended().1
    }

    /// Connections that are lost and not back.
    pub fn recovering(&self) -> usize {
        self.opener.recovering()
    }

    /// Producers publish nothing any more.
    pub fn stop_producers(&self) {
        self.shared.producers_stop.store(true, Relaxed);
        self.shared.wake_all();
    }

    /// What `--verify` has found so far; `complete` if nothing more can come.
    pub fn verdict(&self, complete: bool) -> Option<Verdict> {
        self.shared
            .ledger
            .as_ref()
            .map(|ledger| lock(ledger).report(complete))
    }

    /// Messages that are ready in the queues of the load, as the broker says.
    ///
    /// # Errors
    /// If the broker can't be asked.
    pub fn ready_messages(&mut self) -> Result<u64, Failure> {
        let topology = self.topology.clone();
        let result = self.ask(|client| {
            let mut ready = 0;
            for queue in topology.queues() {
                ready += client.queue_depth(1, queue)?;
            }
            Ok(ready)
        });
        if result.is_err() {
            // The next look opens another connection.
            self.configuration = None;
        }
        result
    }

    fn ask<T>(&mut self, question: impl FnOnce(&mut Client) -> Result<T, Failure>) -> Result<T, Failure> {
        if self.configuration.is_none() {
            let addresses = Addresses::new(&self.plan.uris, self.plan.allocation);
            let token = self.token.as_ref().map(|(token, _)| token.value.as_str());
            let name = "perf-test-configuration-0";
            let mut client = addresses.open(0, &self.plan.connection, name, &self.plan.id, token)?;
            client.open_channel(1)?;
            self.configuration = Some(client);
        }
        match &mut self.configuration {
            Some(client) => question(client),
            None => Err(Failure::Lost("no connection to ask the broker on".into())),
        }
    }

    /// Fetches a new token when four fifths of the old one's life are over, and gives it to all connections.
    ///
    /// # Errors
    /// If the token server does not give one; the old one may be good for a while.
    pub fn refresh_token(&mut self) -> Result<(), Failure> {
        let (Some(oauth2), Some((token, since))) = (&self.plan.connection.oauth2, &self.token) else {
            return Ok(());
        };
        if token.refresh_after().is_none_or(|life| since.elapsed() < life) {
            return Ok(());
        }
        let fresh = Tokens::fetch(oauth2)?;
        self.opener.set_token(fresh.value.clone());
        self.order(|| Order::UpdateSecret(fresh.value.clone()));
        self.token = Some((fresh, Instant::now()));
        Ok(())
    }

    /// Ends the load: closes all connections (for `--shutdown-timeout` at most), deletes what the plan says, and returns what
    /// was counted since the last [`Self::take`].
    pub fn stop(mut self) -> Recorder {
        self.stop_producers();
        let last = self.take();
        self.close();
        if self.plan.consuming.polling.is_some() && self.plan.queues.auto_delete {
            // Nobody ever consumed, so the broker does not delete them by itself; PerfTest does it, too.
            let topology = self.topology.clone();
            if let Err(failure) = self.ask(|client| topology.delete_queues(client)) {
                self.shared
                    .tell(format!("The queues could not be deleted: {failure}"));
            }
        }
        if self.plan.queues.delete_at_end {
            let topology = self.topology.clone();
            if let Err(failure) = self.ask(|client| topology.delete(client)) {
                self.shared
                    .tell(format!("The queues could not be deleted: {failure}"));
            }
        }
        if let Some(client) = self.configuration.take() {
            client.close();
        }
        last
    }

    fn close(&mut self) {
        self.opener.end();
        self.order(|| Order::Close);
        let until = Instant::now() + self.plan.stopping.shutdown_timeout;
        for thread in self.threads.drain(..) {
            while !thread.is_finished() && Instant::now() < until {
                thread::park_timeout(GLANCE);
            }
            if thread.is_finished() {
                // A thread that panicked has said so on stderr.
                let _ = thread.join();
            }
        }
    }
}

/// `--consumer-start-delay`, then `--slow-start`: a second between consumers.
fn start_later(mailboxes: &[Mailbox], shared: &Shared) {
    let consuming = &shared.plan.consuming;
    pause(consuming.start_delay);
    let start = |number| {
        for mailbox in mailboxes {
            mailbox.send(Order::Start {
                producers: false,
                number,
                at: clock::now(),
            });
        }
    };
    if !consuming.slow_start {
        return start(None);
    }
    for number in 0..consuming.consumers {
        start(Some(number));
        shared.tell("Delaying start by 1 second because -S/--slow-start was requested".into());
        pause(Duration::from_secs(1));
    }
}

/// What a broker calls itself. Leveret answers to RabbitMQ's name, for clients that insist on it, and says who it is beside.
fn server(properties: &Table) -> (String, String) {
    let text = |name: &str| properties.get(name).and_then(|it| it.as_str()).map(str::to_owned);
    if let Some(version) = text("leveret_version") {
        return ("Leveret".to_owned(), version);
    }
    let unknown = || "unknown".to_owned();
    (
        text("product").unwrap_or_else(unknown),
        text("version").unwrap_or_else(unknown),
    )
}

/// Lets time pass; nobody has anything to say meanwhile.
fn pause(time: Duration) {
    let until = Instant::now() + time;
    while Instant::now() < until {
        thread::park_timeout(until.saturating_duration_since(Instant::now()));
    }
}
