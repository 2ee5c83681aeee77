//! One thread of a load: it turns its links, as they are ready and as their moments come.

use super::link::{Link, Role, Turn};
use super::opener::{Opener, Reopened};
use super::producer::Wants;
use super::shared::{Shared, lock};
use super::waiting::{LONGEST, Ready, Waiting, bounded};
use crate::clock;
use crate::failure::Failure;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What one read may bring, in bytes. Smaller costs system calls, larger leaves the cache.
const SCRATCH: usize = 256 * 1024;

/// What a thread is told to do.
pub enum Order {
    /// Drives a connection from now on.
    Adopt(Box<Link>),
    /// Lets consumers consume, or producers publish.
    Start {
        producers: bool,
        number: Option<usize>,
        at: u64,
    },
    /// A lost connection is back.
    Reopened(Reopened),
    /// Connections get a newer token.
    UpdateSecret(String),
    /// Closes all connections in order and ends.
    Close,
}

/// The way to a thread.
#[derive(Clone)]
pub struct Mailbox {
    orders: Sender<Order>,
    waker: Arc<mio::Waker>,
}

impl Mailbox {
    pub fn send(&self, order: Order) {
        // A thread that has ended needs no orders.
        let _ = self.orders.send(order);
        let _ = self.waker.wake();
    }
}

/// See the module.
pub struct Driver {
    shared: Arc<Shared>,
    opener: Arc<Opener>,
    /// Which thread it is.
    number: usize,
    waiting: Waiting,
    orders: Receiver<Order>,
    mailbox: Mailbox,
    links: Vec<Slot>,
    /// Links that have something to do.
    busy: Vec<usize>,
    /// Links that have something to do at a moment.
    moments: BinaryHeap<Reverse<(u64, usize)>>,
    /// Links whose producers wait for the window.
    starved: Vec<usize>,
    closing: bool,
    next_tick: u64,
}

/// A link and how it is queued.
struct Slot {
    link: Link,
    /// Waits in `busy`.
    queued: bool,
    /// The earliest entry in `moments`; 0: none.
    moment: u64,
    /// Waits in `starved`.
    starved: bool,
    lost: bool,
}

impl Driver {
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new(number: usize, shared: Arc<Shared>, opener: Arc<Opener>) -> io::Result<Self> {
        let waiting = Waiting::new()?;
        let (sender, orders) = channel();
        let mailbox = Mailbox {
            orders: sender,
            waker: waiting.waker(),
        };
        lock(&shared.wakers).push(waiting.waker());
        Ok(Self {
            shared,
            opener,
            number,
            waiting,
            orders,
            mailbox,
            links: Vec::new(),
            busy: Vec::new(),
            moments: BinaryHeap::new(),
            starved: Vec::new(),
            closing: false,
            next_tick: 0,
        })
    }

    pub fn mailbox(&self) -> Mailbox {
        self.mailbox.clone()
    }

    /// Drives until it is told to close and all links are closed.
    ///
    /// # Errors
    /// If the system can't wait for sockets.
    pub fn run(mut self) -> Result<(), Failure> {
        let mut scratch = vec![0; SCRATCH];
        let mut ready = Vec::new();
        let mut round = Vec::new();
        loop {
            self.obey();
            if self.closing && self.links.iter().all(|slot| slot.lost || slot.link.closed) {
                return Ok(());
            }
            let deadline = if self.busy.is_empty() {
                bounded(self.moments.peek().map(|Reverse((moment, _))| *moment))
            } else {
                0
            };
            self.waiting
                .wait(deadline, &mut ready)
                .map_err(|error| Failure::Lost(format!("waiting for sockets: {error}")))?;
            for Ready {
                link,
                readable,
                writable,
            } in ready.drain(..)
            {
                if let Some(slot) = self.links.get_mut(link) {
                    slot.link.ready(readable, writable);
                    self.enqueue(link);
                }
            }
            let now = clock::now();
            self.due(now);
            std::mem::swap(&mut self.busy, &mut round);
            self.turn_all(&mut round, &mut scratch, now);
            if now >= self.next_tick {
                self.tick(now);
            }
        }
    }

    /// Moments that have come.
    fn due(&mut self, now: u64) {
        while let Some(Reverse((moment, link))) = self.moments.peek().copied()
            && moment <= now
        {
            self.moments.pop();
            if self.links[link].moment == moment {
                self.links[link].moment = 0;
            }
            self.enqueue(link);
        }
        if !self.starved.is_empty() && self.shared.room(true) > 0 {
            self.shared.waiting.fetch_sub(1, Relaxed);
            for link in std::mem::take(&mut self.starved) {
                self.links[link].starved = false;
                self.enqueue(link);
            }
        }
    }

    /// Gives each link of the round its turn.
    fn turn_all(&mut self, round: &mut Vec<usize>, scratch: &mut [u8], now: u64) {
        if round.is_empty() {
            return;
        }
        let shared = self.shared.clone();
        let mut recorder = lock(&shared.recorders[self.number]);
        let mut now = now;
        for (turned, link) in round.drain(..).enumerate() {
            let slot = &mut self.links[link];
            slot.queued = false;
            if slot.lost || slot.link.closed {
                continue;
            }
            if turned > 0 {
                now = clock::now();
            }
            let mut turn = Turn {
                now,
                recorder: &mut recorder,
                shared: &shared,
            };
            match slot.link.turn(scratch, &mut turn) {
                Ok(Wants::Turn) => self.enqueue(link),
                Ok(Wants::Moment(moment)) => self.at(moment, link),
                Ok(Wants::Window) => self.starve(link),
                Ok(Wants::Broker | Wants::Nothing) => {}
                Err(failure) => self.lose(link, failure),
            }
            if self.links[link].link.closed {
                self.shared.open.fetch_sub(1, Relaxed);
            }
        }
    }

    fn enqueue(&mut self, link: usize) {
        let slot = &mut self.links[link];
        if !std::mem::replace(&mut slot.queued, true) {
            self.busy.push(link);
        }
    }

    fn at(&mut self, moment: u64, link: usize) {
        let slot = &mut self.links[link];
        if slot.moment == 0 || moment < slot.moment {
            slot.moment = moment;
            self.moments.push(Reverse((moment, link)));
        }
    }

    fn starve(&mut self, link: usize) {
        if self.starved.is_empty() {
            self.shared.waiting.fetch_add(1, Relaxed);
        }
        if !std::mem::replace(&mut self.links[link].starved, true) {
            self.starved.push(link);
        }
        // Consumers on another thread may have made room before they saw that somebody waits.
        if self.shared.room(true) > 0 {
            self.enqueue(link);
        }
    }

    /// Heartbeats, timeouts.
    fn tick(&mut self, now: u64) {
        self.next_tick = now + LONGEST;
        let timeout = self.shared.plan.producing.confirm_timeout.as_nanos() as u64;
        for link in 0..self.links.len() {
            let slot = &mut self.links[link];
            if slot.lost || slot.link.closed {
                continue;
            }
            match slot.link.tick(now, timeout, &self.shared) {
                Ok(()) => self.enqueue(link),
                Err(failure) => self.lose(link, failure),
            }
        }
    }

    /// A connection is gone: it is opened again if the plan says so, else its producers and consumers are done.
    fn lose(&mut self, link: usize, failure: Failure) {
        let slot = &mut self.links[link];
        slot.lost = true;
        self.shared.open.fetch_sub(1, Relaxed);
        if self.closing {
            return;
        }
        let producers = matches!(slot.link.role, Role::Producers(_));
        if self.shared.plan.connection.recovery.is_none() {
            slot.link.give_up(&failure, &self.shared);
            return;
        }
        self.opener
            .reopen(producers, slot.link.number, link, failure, self.mailbox.clone());
    }

    fn obey(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Adopt(link) => self.adopt(*link),
                Order::Start {
                    producers,
                    number,
                    at,
                } => self.start(producers, number, at),
                Order::Reopened(reopened) => self.revive(reopened),
                Order::UpdateSecret(token) => {
                    for link in 0..self.links.len() {
                        self.links[link].link.update_secret(&token);
                        self.enqueue(link);
                    }
                }
                Order::Close => {
                    self.closing = true;
                    for link in 0..self.links.len() {
                        self.links[link].link.say_goodbye();
                        self.enqueue(link);
                    }
                }
            }
        }
    }

    fn adopt(&mut self, link: Link) {
        let at = self.links.len();
        if let Err(error) = self.waiting.watch(link.descriptor(), at) {
            let failure = Failure::Lost(format!(
                "watching a socket: {error} (see `ulimit -n` for how many may be open)"
            ));
            self.shared.fail("Error in connection", failure);
            return;
        }
        self.shared.open.fetch_add(1, Relaxed);
        self.links.push(Slot {
            link,
            queued: false,
            moment: 0,
            starved: false,
            lost: false,
        });
        self.enqueue(at);
    }

    fn start(&mut self, producers: bool, number: Option<usize>, at: u64) {
        for link in 0..self.links.len() {
            let it = &mut self.links[link].link;
            let meant = number.is_none_or(|number| number == it.number);
            if meant && matches!(it.role, Role::Producers(_)) == producers {
                it.start(at);
                self.enqueue(link);
            }
        }
    }

    fn revive(&mut self, reopened: Reopened) {
        let shared = self.shared.clone();
        let link = reopened.slot;
        {
            let mut recorder = lock(&shared.recorders[self.number]);
            let turn = Turn {
                now: clock::now(),
                recorder: &mut recorder,
                shared: &shared,
            };
            let (transport, agreed, unused) = reopened.connection;
            let it = &mut self.links[link].link;
            it.reconnected(transport, agreed, unused, reopened.queues, &turn);
        }
        if let Err(error) = self.waiting.watch(self.links[link].link.descriptor(), link) {
            self.lose(link, Failure::Lost(format!("watching a socket: {error}")));
            return;
        }
        self.links[link].lost = false;
        self.shared.open.fetch_add(1, Relaxed);
        if self.closing {
            self.links[link].link.say_goodbye();
        }
        self.enqueue(link);
    }
}
