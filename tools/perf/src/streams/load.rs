//! A running load: a few threads that drive all its connections.

use super::accounts::Accounts;
use super::consumer::{Consumer, Subscription};
use super::counted::Counted;
use super::driver::{Driver, Mailbox, Order};
use super::link::{Link, Parties};
use super::message::Template;
use super::opener::{self, Group, Publishing, Ready};
use super::plan::Plan;
use super::producer::{Producer, Route};
use super::shared::{Shared, lock};
use super::site::{self, Address, Place};
use super::wire::Client;
use crate::clock;
use crate::failure::Failure;
use crate::verify::Verdict;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Connections that are opened at a time.
const AT_A_TIME: usize = 16;
/// How long the goodbyes may take.
const GOODBYE: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(2);

/// A load that is running.
pub struct Load {
    shared: Arc<Shared>,
    mailboxes: Vec<Mailbox>,
    threads: Vec<JoinHandle<Result<(), Failure>>>,
}

/// What a thread is going to drive.
#[derive(Default)]
struct Draft {
    groups: Vec<(Address, Group)>,
    /// Producers with their numbers in the run.
    producers: Vec<(usize, Vec<Publisher>)>,
    consumers: usize,
    /// Who publishes under each number of each link: producer of the thread and which of its streams.
    publishers: BTreeMap<usize, Vec<(usize, usize, Publishing)>>,
    /// The link of each node that has room for one more publisher, and for one more subscription.
    room: (HashMap<Address, usize>, HashMap<Address, usize>),
}

/// A producer on one of its streams.
#[derive(Debug, Clone, Copy)]
struct Publisher {
    link: usize,
    /// Its number there.
    id: u8,
    /// Its number in the run.
    number: u32,
}

impl Draft {
    /// A link to this node that has room.
    fn link(
        &mut self,
        address: &Address,
        publishes: bool,
        most: usize,
        name: impl FnOnce() -> String,
    ) -> usize {
        let room = if publishes {
            &mut self.room.0
        } else {
            &mut self.room.1
        };
        if let Some(link) = room.get(address) {
            let group = &self.groups[*link].1;
            if group.publishers.len().max(group.subscriptions.len()) < most {
                return *link;
            }
        }
        let link = self.groups.len();
        room.insert(address.clone(), link);
        self.groups.push((
            address.clone(),
            Group {
                name: name(),
                ..Group::default()
            },
        ));
        link
    }
}

/// Who is where, before anything is connected.
struct Drafts {
    threads: Vec<Draft>,
    /// For each publisher of the run, its stream.
    published: Vec<String>,
    /// The reader of each stream and name or consumer.
    readers: HashMap<(String, String), usize>,
}

impl Drafts {
    fn new(plan: &Plan, places: &HashMap<String, Place>) -> Result<Self, Failure> {
        let parties = plan.producing.producers + plan.consuming.consumers;
        let threads = plan.threads.min(parties).max(1);
        let mut drafts = Self {
            threads: (0..threads).map(|_| Draft::default()).collect(),
            published: Vec::new(),
            readers: HashMap::new(),
        };
        for number in 0..plan.producing.producers {
            drafts.producer(plan, places, number)?;
        }
        for number in 0..plan.consuming.consumers {
            drafts.consumer(plan, places, number)?;
        }
        Ok(drafts)
    }

    fn producer(
        &mut self,
        plan: &Plan,
        places: &HashMap<String, Place>,
        number: usize,
    ) -> Result<(), Failure> {
        let count = self.threads.len();
        let draft = &mut self.threads[number % count];
        let stream = &plan.streams.names[number % plan.streams.names.len()];
        let reference = plan
            .producing
            .names
            .as_ref()
            .map(|names| names.of(stream, number + 1));
        let producer = draft.producers.len();
        let mut routes = Vec::new();
        for (at, stream) in plan.partitions_of(stream).into_iter().enumerate() {
            let leader = &place(places, &stream)?.leader;
            let name = || format!("stream-perf-producer-{number}");
            let link = draft.link(leader, true, plan.producing.by_connection, name);
            let group = &mut draft.groups[link].1;
            let publishing = Publishing {
                stream: stream.clone(),
                reference: reference.clone(),
            };
            let id = group.publishers.len() as u8;
            group.publishers.push(publishing.clone());
            draft
                .publishers
                .entry(link)
                .or_default()
                .push((producer, at, publishing));
            let number = self.published.len() as u32;
            routes.push(Publisher { link, id, number });
            self.published.push(stream);
        }
        draft.producers.push((number, routes));
        Ok(())
    }

    fn consumer(
        &mut self,
        plan: &Plan,
        places: &HashMap<String, Place>,
        number: usize,
    ) -> Result<(), Failure> {
        let count = self.threads.len();
        let draft = &mut self.threads[(plan.producing.producers + number) % count];
        let of = &plan.streams.names[number % plan.streams.names.len()];
        let consuming = &plan.consuming;
        let name = consuming.store_every.map(|_| consuming.names.of(of, number + 1));
        for stream in plan.partitions_of(of) {
            let address = opener::node_to_read(plan, &stream, place(places, &stream)?)?;
            let link = draft.link(&address, false, consuming.by_connection, || {
                format!("stream-perf-consumer-{number}")
            });
            let mut it = Subscription::new(draft.consumers, stream.clone(), consuming.from);
            it.name.clone_from(&name);
            it.super_stream =
                (consuming.single_active && plan.streams.partitions.is_some()).then(|| of.clone());
            // Of single active consumers with one name, all together are one reader.
            let who = name
                .clone()
                .filter(|_| consuming.single_active)
                .unwrap_or_else(|| number.to_string());
            let next = self.readers.len();
            it.reader = *self.readers.entry((stream, who)).or_insert(next);
            draft.groups[link].1.subscriptions.push(it);
        }
        draft.consumers += 1;
        Ok(())
    }

    fn accounts(&self) -> Accounts {
        let readers_of = |stream: &String| {
            self.readers
                .iter()
                .filter(|((of, _), _)| of == stream)
                .map(|(_, it)| *it)
                .collect()
        };
        Accounts::new(
            self.published.iter().map(readers_of).collect(),
            self.readers.len(),
        )
    }
}

fn place<'p>(places: &'p HashMap<String, Place>, stream: &str) -> Result<&'p Place, Failure> {
    places
        .get(stream)
        .ok_or_else(|| Failure::Lost(format!("nobody said who has the stream '{stream}'")))
}

impl Load {
    /// Makes the streams, opens all connections, starts consumers, then producers.
    ///
    /// # Errors
    /// If the broker can't be reached or refuses something; nothing keeps running then.
    pub fn start(plan: &Arc<Plan>, tell: &mut dyn FnMut(String)) -> Result<Self, Failure> {
        let mut locator = site::connect_any(plan, "stream-perf-locator")?;
        site::create(plan, &mut locator, tell)?;
        let places = places(plan, &mut locator)?;
        check_frames(plan, &locator)?;
        locator.close();
        let drafts = Drafts::new(plan, &places)?;
        let accounts = plan.verify.then(|| drafts.accounts());
        let ready = open_all(plan, &drafts)?;
        let shared = Arc::new(Shared::new(plan.clone(), accounts));
        let mut load = Self {
            shared,
            mailboxes: Vec::new(),
            threads: Vec::new(),
        };
        let templates = Arc::new(Template::all(plan));
        for ((number, draft), ready) in drafts.threads.into_iter().enumerate().zip(ready) {
            if let Err(failure) = load.spawn(number, draft, ready, &templates) {
                load.close();
                return Err(failure);
            }
        }
        (0..plan.producing.producers).for_each(|_| tell("Starting producer".to_owned()));
        let at = clock::now();
        load.mailboxes
            .iter()
            .for_each(|mailbox| mailbox.send(Order::Start { at }));
        Ok(load)
    }

    fn spawn(
        &mut self,
        number: usize,
        draft: Draft,
        ready: Vec<Ready>,
        templates: &Arc<Vec<Template>>,
    ) -> Result<(), Failure> {
        let plan = &self.shared.plan;
        let routes_of = |(producer, publishers): &(usize, Vec<Publisher>)| {
            let routes = publishers.iter().map(|it| {
                Route::new(
                    it.link,
                    it.id,
                    it.number,
                    ready[it.link].bases[usize::from(it.id)],
                )
            });
            Producer::new(plan.clone(), templates.clone(), *producer, routes.collect())
        };
        let parties = Parties {
            producers: draft.producers.iter().map(routes_of).collect(),
            consumers: (0..draft.consumers)
                .map(|_| Consumer::new(plan.clone()))
                .collect(),
            woken: Vec::new(),
        };
        let now = clock::now();
        let mut publishers = draft.publishers;
        let links = ready
            .into_iter()
            .zip(draft.groups)
            .enumerate()
            .map(|(at, (ready, (_, group)))| {
                Link::new(
                    at,
                    group.name,
                    ready,
                    publishers.remove(&at).unwrap_or_default(),
                    now,
                )
            });
        let driver = Driver::new(number, self.shared.clone(), links.collect(), parties);
        let driver = driver
            .map_err(|error| Failure::Lost(format!("can't wait for sockets: {error} (see `ulimit -n`)")))?;
        self.mailboxes.push(driver.mailbox());
        let thread = thread::Builder::new()
            .name(format!("drive {number}"))
            .spawn(move || driver.run());
        self.threads
            .push(thread.map_err(|error| Failure::Lost(format!("can't start a thread: {error}")))?);
        Ok(())
    }

    /// What was counted since the last time.
    pub fn take(&self) -> Counted {
        let mut all = Counted::new();
        for counted in &self.shared.counted {
            lock(counted).drain_into(&mut all);
        }
        all
    }

    /// Whether all producers, or all consumers, that have an end have come to it.
    pub fn is_over(&self) -> bool {
        let plan = &self.shared.plan;
        let bounded = (
            plan.producing.messages.is_some(),
            plan.consuming.messages.is_some(),
        );
        let producing = bounded.0 && self.shared.producing.load(Relaxed) > 0;
        let consuming = bounded.1 && self.shared.consuming.load(Relaxed) > 0;
        (bounded.0 || bounded.1) && !producing && !consuming || self.is_broken()
    }

    fn is_broken(&self) -> bool {
        self.failure().is_some() || self.threads.iter().any(JoinHandle::is_finished)
    }

    /// Why it can't go on, if so.
    pub fn failure(&self) -> Option<Failure> {
        self.shared.failure()
    }

    /// Connections that are lost and not back yet.
    pub fn recovering(&self) -> usize {
        self.shared.recovering.load(Relaxed)
    }

    /// Lines for the user.
    pub fn told(&self) -> Vec<String> {
        self.shared.told()
    }

    /// Messages that were published and consumed so far, and those that are not confirmed.
    pub fn totals(&self) -> (u64, u64, u64) {
        let it = &self.shared;
        (
            it.published.load(Relaxed),
            it.consumed.load(Relaxed),
            it.unconfirmed.load(Relaxed),
        )
    }

    /// Producers publish no more.
    pub fn stop_producers(&self) {
        self.shared.quiet.store(true, Relaxed);
    }

    /// With `--verify`, what the ledgers show; `complete` if nothing more can come.
    pub fn verdict(&self, complete: bool) -> Option<Verdict> {
        self.shared.accounts().map(|accounts| accounts.report(complete))
    }

    /// Closes all connections, as far as the brokers let it within a few seconds.
    pub fn close(self) -> Option<Failure> {
        self.stop_producers();
        self.shared.over.store(true, Relaxed);
        self.mailboxes
            .iter()
            .for_each(|mailbox| mailbox.send(Order::Close));
        let deadline = Instant::now() + GOODBYE;
        let mut failure = self.shared.failure();
        for handle in self.threads {
            while !handle.is_finished() && Instant::now() < deadline {
                thread::park_timeout(GLANCE);
            }
            // One that still waits for a broker's goodbye ends with the program.
            if handle.is_finished() {
                let ended = handle.join().unwrap_or_else(|_| {
                    Err(Failure::Lost(
                        "a thread of the load broke down; this is a bug".into(),
                    ))
                });
                failure = failure.or(ended.err());
            }
        }
        failure
    }
}

/// Who has each stream of the run.
fn places(plan: &Plan, locator: &mut Client) -> Result<HashMap<String, Place>, Failure> {
    let used = plan
        .producing
        .producers
        .max(plan.consuming.consumers)
        .min(plan.streams.names.len());
    let streams: Vec<String> = plan.streams.names[..used]
        .iter()
        .flat_map(|name| plan.partitions_of(name))
        .collect();
    let places = site::locate(locator, &streams)?;
    Ok(streams.into_iter().zip(places).collect())
}

/// A message that fits into no frame is told before the run, not in it.
fn check_frames(plan: &Plan, locator: &Client) -> Result<(), Failure> {
    let frame_max = u64::from(locator.agreed().frame_max);
    let message = plan.producing.size as u64 + 64;
    if frame_max > 0 && message > frame_max && plan.producing.producers > 0 {
        return Err(Failure::Usage(format!(
            "--size {} does not fit into a frame, which may have {frame_max} bytes here: write a smaller one (--requested-max-frame-size and the broker's stream.frame_max decide)",
            plan.producing.size
        )));
    }
    Ok(())
}

/// Opens the connections of all threads: those that consume first, so that nothing is published before its readers are there.
fn open_all(plan: &Plan, drafts: &Drafts) -> Result<Vec<Vec<Ready>>, Failure> {
    let mut jobs: Vec<(usize, usize)> = Vec::new();
    for (thread, draft) in drafts.threads.iter().enumerate() {
        jobs.extend((0..draft.groups.len()).map(|link| (thread, link)));
    }
    jobs.sort_by_key(|(thread, link)| drafts.threads[*thread].groups[*link].1.subscriptions.is_empty());
    let opened: Vec<Mutex<Option<Result<Ready, Failure>>>> = jobs.iter().map(|_| Mutex::new(None)).collect();
    let (next, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME.min(jobs.len()) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Relaxed)
                    && at < jobs.len()
                    && failed.load(Relaxed) == 0
                {
                    let (thread, link) = jobs[at];
                    let (address, group) = &drafts.threads[thread].groups[link];
                    let ready = opener::open(plan, address, group);
                    failed.fetch_add(usize::from(ready.is_err()), Relaxed);
                    *lock(&opened[at]) = Some(ready);
                }
            });
        }
    });
    let mut ready: Vec<BTreeMap<usize, Ready>> = drafts.threads.iter().map(|_| BTreeMap::new()).collect();
    let mut failure = None;
    for ((thread, link), opened) in jobs.into_iter().zip(opened) {
        match opened
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
        {
            Some(Ok(it)) => drop(ready[thread].insert(link, it)),
            Some(Err(it)) => drop(failure.get_or_insert(it)),
            None => {}
        }
    }
    match failure {
        Some(failure) => Err(failure),
        None => Ok(ready
            .into_iter()
            .map(|links| links.into_values().collect())
            .collect()),
    }
}
