//! One thread of a load: it turns its links as they are ready, and its producers as their moments come.

use super::link::{Link, Parties, Party, State};
use super::opener::{self, Ready};
use super::producer::{Turn, Wants};
use super::shared::{Shared, lock};
use crate::clock;
use crate::engine::waiting::{LONGEST, Ready as Event, Waiting, bounded};
use crate::failure::Failure;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// What a thread is told to do.
pub enum Order {
    /// Producers publish from this moment on.
    Start { at: u64 },
    /// A lost connection is back.
    Reopened { link: usize, ready: Box<Ready> },
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
    number: usize,
    waiting: Waiting,
    orders: Receiver<Order>,
    mailbox: Mailbox,
    links: Vec<Link>,
    parties: Parties,
    /// Whose moments come.
    moments: BinaryHeap<Reverse<(u64, Party)>>,
    /// The earliest moment of each producer and each consumer that is in `moments`; 0: none.
    earliest: (Vec<u64>, Vec<u64>),
    /// Producers that wait for their connections to take what was written.
    crowded: Vec<usize>,
    closing: bool,
    next_tick: u64,
}

impl Driver {
    /// # Errors
    /// If the system has no more descriptors.
    pub fn new(number: usize, shared: Arc<Shared>, links: Vec<Link>, parties: Parties) -> io::Result<Self> {
        let waiting = Waiting::new()?;
        for (at, link) in links.iter().enumerate() {
            if let Some(descriptor) = link.descriptor() {
                waiting.watch(descriptor, at)?;
            }
        }
        let (sender, orders) = channel();
        let mailbox = Mailbox {
            orders: sender,
            waker: waiting.waker(),
        };
        Ok(Self {
            shared,
            number,
            waiting,
            orders,
            mailbox,
            links,
            earliest: (vec![0; parties.producers.len()], vec![0; parties.consumers.len()]),
            parties,
            moments: BinaryHeap::new(),
            crowded: Vec::new(),
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
        let mut scratch = Vec::new();
        let mut ready: Vec<Event> = Vec::new();
        // Links that may have something to read or to write.
        let mut busy: Vec<usize> = (0..self.links.len()).collect();
        loop {
            self.obey(&mut busy);
            if self.closing
                && self
                    .links
                    .iter()
                    .all(|link| matches!(link.state, State::Closed | State::Lost))
            {
                return Ok(());
            }
            let is_idle = busy.is_empty() && self.parties.woken.is_empty();
            let deadline = if is_idle {
                bounded(self.moments.peek().map(|Reverse((at, _))| *at))
            } else {
                0
            };
            self.waiting
                .wait(deadline, &mut ready)
                .map_err(|error| Failure::Lost(format!("waiting for sockets: {error}")))?;
            for event in ready.drain(..) {
                if let Some(link) = self.links.get_mut(event.link) {
                    link.readable |= event.readable;
                    link.writable |= event.writable;
                    busy.push(event.link);
                }
            }
            self.round(&mut busy, &mut scratch);
        }
    }

    /// Reads, publishes, writes.
    fn round(&mut self, busy: &mut Vec<usize>, scratch: &mut Vec<u8>) {
        let shared = self.shared.clone();
        let mut counted = lock(&shared.counted[self.number]);
        let mut turn = Turn {
            now: clock::now(),
            counted: &mut counted,
            shared: &shared,
        };
        busy.sort_unstable();
        busy.dedup();
        for link in busy.drain(..) {
            let it = &mut self.links[link];
            if it.readable
                && let Err(failure) = it.receive(scratch, &mut self.parties, &mut turn)
            {
                self.lose(link, &failure, &mut turn);
            }
        }
        turn.now = clock::now();
        self.due(turn.now);
        self.parties.woken.sort_unstable();
        self.parties.woken.dedup();
        for party in std::mem::take(&mut self.parties.woken) {
            match party {
                Party::Producer(at) => self.produce(at, &mut turn),
                Party::Consumer(at) => self.consume(at, &mut turn),
            }
        }
        let ticks = turn.now >= self.next_tick;
        for link in 0..self.links.len() {
            let it = &mut self.links[link];
            if ticks && let Err(failure) = it.tick(turn.now) {
                self.lose(link, &failure, &mut turn);
                continue;
            }
            if matches!(it.state, State::Open | State::Closing)
                && let Err(failure) = it.flush(&mut turn)
            {
                self.lose(link, &failure, &mut turn);
                continue;
            }
            if self.links[link].readable {
                busy.push(link);
            }
        }
        if ticks {
            self.next_tick = turn.now + LONGEST;
        }
        let crowded = std::mem::take(&mut self.crowded);
        for at in crowded {
            let open = |link: usize| {
                self.links
                    .get(link)
                    .is_some_and(|link| link.writable && link.backlog() == 0)
            };
            match self.parties.producers[at]
                .routes
                .iter()
                .all(|route| route.open && open(route.link))
            {
                true => self.parties.woken.push(Party::Producer(at)),
                false => self.crowded.push(at),
            }
        }
    }

    /// Moments that have come.
    fn due(&mut self, now: u64) {
        while let Some(Reverse((moment, party))) = self.moments.peek().copied()
            && moment <= now
        {
            self.moments.pop();
            let earliest = self.earliest(party);
            if *earliest == moment {
                *earliest = 0;
                self.parties.woken.push(party);
            }
        }
    }

    fn earliest(&mut self, party: Party) -> &mut u64 {
        match party {
            Party::Producer(at) => &mut self.earliest.0[at],
            Party::Consumer(at) => &mut self.earliest.1[at],
        }
    }

    fn at(&mut self, moment: u64, party: Party) {
        let earliest = self.earliest(party);
        if *earliest == 0 || moment < *earliest {
            *earliest = moment;
            self.moments.push(Reverse((moment, party)));
        }
    }

    fn produce(&mut self, at: usize, turn: &mut Turn<'_>) {
        match self.parties.producers[at].turn(&mut self.links, turn) {
            Ok(Wants::Turn) => self.parties.woken.push(Party::Producer(at)),
            Ok(Wants::Moment(moment)) => self.at(moment, Party::Producer(at)),
            Ok(Wants::Room) => self.crowded.push(at),
            Ok(Wants::Confirms | Wants::Nothing) => {}
            Err(failure) => turn.shared.fail(failure),
        }
    }

    /// A slow consumer takes what is due; others have taken everything when it came.
    fn consume(&mut self, at: usize, turn: &mut Turn<'_>) {
        while let Some(moment) = self.parties.consumers[at].next_due(turn.now) {
            if moment > turn.now {
                self.at(moment, Party::Consumer(at));
                return;
            }
            self.parties.consumers[at].take_due(&mut self.links, turn);
        }
    }

    /// A connection is gone: it is opened again.
    fn lose(&mut self, link: usize, failure: &Failure, turn: &mut Turn<'_>) {
        let it = &mut self.links[link];
        let over = self.closing || it.state == State::Closing;
        let moved = it.moved;
        let group = it.give_up(&mut self.parties, turn);
        if !over {
            turn.shared.tell(format!("{failure}. It will be opened again."));
            opener::reopen(&self.shared, link, group, moved, self.mailbox.clone());
        }
    }

    fn obey(&mut self, busy: &mut Vec<usize>) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Start { at } => {
                    for (number, producer) in self.parties.producers.iter_mut().enumerate() {
                        producer.start(at);
                        self.parties.woken.push(Party::Producer(number));
                    }
                }
                Order::Reopened { link, ready } => {
                    self.links[link].revive(*ready, &mut self.parties, clock::now());
                    busy.push(link);
                    let watched = self.links[link]
                        .descriptor()
                        .map_or(Ok(()), |it| self.waiting.watch(it, link));
                    if let Err(error) = watched {
                        self.shared
                            .fail(Failure::Lost(format!("watching a socket: {error}")));
                    }
                    self.shared
                        .recovering
                        .fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
                    if self.closing {
                        self.links[link].say_goodbye();
                    }
                }
                Order::Close => {
                    self.closing = true;
                    self.links.iter_mut().for_each(Link::say_goodbye);
                    busy.extend(0..self.links.len());
                }
            }
        }
    }
}
