//! Exchanges that keep something, through any node: clients of three brokers publish through a deduplicating and a delayed
//! exchange, each at home on some node, to a queue that is at home on some node, and consume from it on all of them. Links
//! break and lose frames; nodes are closed, killed and cut off from their power at any write, and start again with clocks that
//! show something else. In the end everything heals, what was confirmed arrives, and the ledger judges (`kept`).
//!
//! A seed has one of three themes: links that blink; links that may be away for as long as they like; and nodes that stop, too.
//! So what is only permitted after something worse is a violation where that has not happened.

mod finish;
mod hearing;

use super::kept::{Exchanges as Keeping, Kept, Through};
use super::ledger::{Ledger, Sent};
use super::node::{self, Declared, LATER, Node, ONCE};
use super::wire::Wire;
use crate::world::until_power_cut;
use broker::groups::NodeId;
use bytes::Bytes;
use model::properties::{Properties, PropertiesBuilder};
use model::table::Table;
use model::{Message, RouteBuf, X_DEDUPLICATION_HEADER, X_DELAY};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use storage::faulty::{Fault, FaultyFs, Random};

const TICK: Duration = Duration::from_millis(100);
const NODES: usize = 3;

/// A link that blinks is away for so long at the most.
const BLINKS: Duration = Duration::from_secs(2);

/// Two nodes that have not spoken for so long may have given up what was under way: handles do so after 5 s.
const GIVEN_UP: Duration = Duration::from_secs(4);

/// The longest delay of a message, in milliseconds.
const DELAY_MS: u64 = 3_000;

/// How long keys are remembered where they are not for good, in milliseconds.
const TTL_MS: u64 = 6_000;

/// What may go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Theme {
    Blinks,
    Breaks,
    Stops,
}

/// A node, whether it runs or not.
struct Place {
    id: NodeId,
    files: FaultyFs,
    node: Option<Node>,
    starts: u64,
    /// How many messages its clients have published.
    published: u64,
    /// The power fails soon.
    fails: bool,
    /// It starts again then.
    starts_at: Duration,
}

/// A seed's run.
pub struct Exchanges {
    clock: Duration,
    random: Random,
    told: bool,
    theme: Theme,
    /// Clocks show something else when their nodes start again.
    clocks_jump: bool,
    wire: Arc<Wire>,
    places: Vec<Place>,
    /// Which two nodes have a link.
    linked: BTreeSet<(usize, usize)>,
    /// Since when two nodes have none, or have not spoken.
    silent: BTreeMap<(usize, usize), Duration>,
    ledger: Ledger,
    /// The latest key of a message.
    key: u64,
    /// A sum over everything that was heard.
    pub digest: u64,
    /// See [`COUNTED`].
    pub counts: [u64; 8],
}

/// What is counted.
pub const COUNTED: [&str; 8] = [
    "links broken",
    "ends of nodes",
    "publishes refused",
    "duplicates noticed at home",
    "publishes through another node",
    "messages with a key that came",
    "delayed messages that came",
    "messages that came twice, as they may",
];

/// The pairs of nodes.
fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..NODES).flat_map(|one| (one + 1..NODES).map(move |other| (one, other)))
}

/// Runs a seed, and says what happens in it if it is to be `told`.
///
/// # Errors
/// What was wrong.
pub fn run(seed: u64, told: bool) -> Result<Exchanges, String> {
    let mut random = Random(seed);
    let mut any_node = || NodeId(1 + random.below(NODES as u64) as u32);
    let homes = [any_node(), any_node(), any_node()];
    let theme = match seed % 4 {
        0 => Theme::Blinks,
        1 => Theme::Breaks,
        _ => Theme::Stops,
    };
    let declared = Declared {
        homes,
        ttl_ms: (random.below(4) == 0).then_some(TTL_MS),
        on_disk: random.below(4) > 0,
    };
    let place = |id| Place {
        id: NodeId(id),
        files: FaultyFs::new(),
        node: None,
        starts: 0,
        published: 0,
        fails: false,
        starts_at: Duration::ZERO,
    };
    let mut run = Exchanges {
        clock: Duration::from_secs(1),
        random,
        told,
        theme,
        // How long a key is remembered is measured by them.
        clocks_jump: declared.ttl_ms.is_none(),
        wire: Arc::default(),
        places: (1..=NODES as u32).map(place).collect(),
        linked: BTreeSet::new(),
        silent: pairs().map(|pair| (pair, Duration::ZERO)).collect(),
        ledger: Ledger::new(Keeping::new(homes, declared.ttl_ms, declared.on_disk)),
        key: 0,
        digest: 0,
        counts: [0; 8],
    };
    run.tell(|| format!("{theme:?}, {declared:?}"));
    for at in 0..NODES {
        run.start(at)?;
        let place = &run.places[at];
        if let Some(node) = &place.node {
            node.declare(place.id, declared)?;
        }
    }
    pairs().for_each(|pair| run.link(pair));
    // Nothing was under way.
    run.ledger.exchanges.begins();
    for _ in 0..150 + run.random.below(250) {
        run.act()?;
    }
    run.finish()?;
    Ok(run)
}

impl Exchanges {
    fn tell(&self, what: impl FnOnce() -> String) {
        if self.told {
            println!("{:?} {}", self.clock, what());
        }
    }

    fn note(&mut self, what: u64) {
        self.digest = self.digest.wrapping_mul(0x0100_0000_01b3) ^ what;
    }

    fn start(&mut self, at: usize) -> Result<(), String> {
        let later_ms = match self.clocks_jump {
            true => self.random.below(4_000),
            false => 0,
        };
        let seed = self.random.bits();
        let place = &mut self.places[at];
        place.starts += 1;
        let (id, start) = (place.id, place.starts);
        let wall_ms = node::wall_ms(id, later_ms);
        let time = (self.clock, wall_ms);
        place.node = Node::open((id, start), &place.files, time, seed, &self.wire)?;
        let Some(node) = &place.node else {
            return Err(format!("the power of {id:?} failed before it was there"));
        };
        let sent = &self.ledger.sent;
        let delay = |id: &_| match sent.get(id).and_then(|sent| sent.through).map(|it| it.kept) {
            Some(Kept::Delay(ms)) => ms,
            _ => 0,
        };
        self.ledger.exchanges.starts(id, node.clock_ms(), delay);
        self.tell(|| format!("{id:?} starts"));
        Ok(())
    }

    /// A node is no more: closed in good order, or killed, or without power.
    fn end(&mut self, at: usize, closes: bool) -> Result<(), String> {
        // What has arrived is of this start.
        self.hear()?;
        self.counts[1] += 1;
        let id = self.places[at].id;
        for pair in pairs().filter(|(one, other)| [one, other].contains(&&at)) {
            self.cut(pair);
            // The next start of the node counts on nobody before there is a link.
            self.silent.insert(pair, Duration::ZERO);
        }
        let closes = closes && !self.places[at].files.is_off();
        if closes && let Some(node) = &mut self.places[at].node {
            node.close();
            self.hear()?;
        }
        let (chance, seed, downtime) = (self.random.chance(), self.random.bits(), self.random.below(100));
        let place = &mut self.places[at];
        let was_closed = closes && !place.files.is_off();
        let power = !was_closed && (chance || place.files.is_off());
        place.files = match power {
            true => place.files.crash(seed),
            false => place.files.kill(),
        };
        place.node = None;
        place.fails = false;
        // Mostly it is there again before anybody gives it up.
        let ticks = downtime % if downtime < 75 { 10 } else { 100 };
        place.starts_at = self.clock + TICK * ticks as u32;
        let next = place.starts + 1;
        if id == self.ledger.exchanges.homes[2] {
            self.ledger.begins(next);
        }
        self.ledger.exchanges.stops(id, self.clock, was_closed);
        self.tell(|| format!("{id:?} ends, closed: {was_closed}, without power: {power}"));
        Ok(())
    }

    fn link(&mut self, pair: (usize, usize)) {
        let (one, other) = (&self.places[pair.0], &self.places[pair.1]);
        let (Some(first), Some(second)) = (&one.node, &other.node) else {
            return;
        };
        if !self.linked.insert(pair) {
            return;
        }
        until_power_cut(|| first.work.up(other.id, other.starts));
        until_power_cut(|| second.work.up(one.id, one.starts));
        let ids = [one.id, other.id];
        self.tell(|| format!("{ids:?} are linked"));
        self.speak(pair);
    }

    fn cut(&mut self, pair: (usize, usize)) {
        if !self.linked.remove(&pair) {
            return;
        }
        self.counts[0] += 1;
        let (one, other) = (&self.places[pair.0], &self.places[pair.1]);
        // Who had given up the other one, and has not heard of it since, does not wait for it once more.
        let since = match self.ledger.exchanges.is_broken([one.id, other.id], self.clock) {
            true => Duration::ZERO,
            false => self.clock,
        };
        self.silent.insert(pair, since);
        self.wire.cut(one.id, other.id);
        if let Some(node) = &one.node {
            until_power_cut(|| node.work.down(other.id));
        }
        if let Some(node) = &other.node {
            until_power_cut(|| node.work.down(one.id));
        }
        let ids = [one.id, other.id];
        self.tell(|| format!("{ids:?} are cut off from each other"));
    }

    /// Two nodes speak with each other. If they have given up what was under way, it takes them a while to begin anew.
    fn speak(&mut self, pair: (usize, usize)) {
        let since = self.silent.remove(&pair);
        if since.is_some_and(|since| self.clock - since >= GIVEN_UP) {
            let ids = [self.places[pair.0].id, self.places[pair.1].id];
            self.ledger.exchanges.breaks(ids, self.clock + GIVEN_UP);
        }
    }

    /// Nodes that have not spoken for long have given up what was under way.
    fn look_at_silence(&mut self) {
        for (pair, since) in &self.silent {
            if self.clock - *since >= GIVEN_UP {
                let ids = [self.places[pair.0].id, self.places[pair.1].id];
                self.ledger.exchanges.breaks(ids, self.clock);
            }
        }
    }

    fn act(&mut self) -> Result<(), String> {
        let at = self.random.below(NODES as u64) as usize;
        let chosen = self.random.below(NODES as u64) as usize;
        let pair = pairs().nth(chosen).unwrap_or((0, 1));
        let (breaks, stops) = (self.theme != Theme::Blinks, self.theme == Theme::Stops);
        match self.random.below(64) {
            0..=15 => self.publish(at, true)?,
            16..=23 => self.publish(at, false)?,
            24..=27 => self.consume(at),
            28 => self.places[at].node.iter_mut().for_each(Node::cancel),
            29..=33 => self.places[at].node.iter_mut().for_each(Node::get),
            34..=44 => self.settle(at),
            45..=47 => self.cut(pair),
            48..=55 => self.link(pair),
            56 if stops && self.places[at].node.is_some() => {
                let call = 1 + self.random.below(60);
                self.places[at].files.fail_at(call, Fault::PowerCut);
                self.places[at].fails = true;
            }
            57 if stops && self.places[at].node.is_some() => self.end(at, false)?,
            58 if stops && self.places[at].node.is_some() => self.end(at, true)?,
            // For so long that somebody gives up.
            59 if breaks && self.random.chance() => self.stand_still()?,
            _ => {}
        }
        let frames = self.random.below(16) as usize;
        self.turn(frames)
    }

    /// No frame arrives for a while.
    fn stand_still(&mut self) -> Result<(), String> {
        for pair in pairs() {
            self.silent.entry(pair).or_insert(self.clock);
        }
        (0..60).try_for_each(|_| self.turn(0))?;
        for pair in self.linked.clone() {
            self.speak(pair);
        }
        Ok(())
    }

    /// A client publishes some messages through an exchange.
    fn publish(&mut self, at: usize, once: bool) -> Result<(), String> {
        let count = 1 + self.random.below(4);
        for _ in 0..count {
            self.publish_one(at, once)?;
        }
        self.places[at].node.iter_mut().for_each(Node::flush);
        Ok(())
    }

    fn publish_one(&mut self, at: usize, once: bool) -> Result<(), String> {
        // Keys come again for a while, and then others do.
        self.key += u64::from(self.random.below(3) == 0);
        let key = 8 + self.key - self.random.below(8);
        let delay_ms = 1 + self.random.below(DELAY_MS);
        let (size, chance) = (self.random.below(600) as usize, self.random.below(4) > 0);
        let (now, place) = (self.clock, &mut self.places[at]);
        let Some(node) = &mut place.node else {
            return Ok(());
        };
        place.published += 1;
        let (number, own) = (place.published, place.id);
        let exchanges = &mut self.ledger.exchanges;
        let home = exchanges.homes[usize::from(!once)];
        let through = Through {
            kept: if once {
                Kept::Key(key)
            } else {
                Kept::Delay(delay_ms)
            },
            at: now,
            direct: once && own == home && home == exchanges.homes[2],
            home_ms: exchanges.clocks_ms[usize::from(!once)],
        };
        // What has the same key is as lasting.
        let persistent = if once { !key.is_multiple_of(4) } else { chance };
        let id = (own.0, number);
        exchanges.takes(id, &through);
        let sent = Sent {
            persistent,
            through: Some(through),
        };
        self.ledger.sent.insert(id, sent);
        self.counts[4] += u64::from(own != home);
        let headers = match through.kept {
            Kept::Key(key) => Table::new().with(X_DEDUPLICATION_HEADER, key as i64),
            Kept::Delay(ms) => Table::new().with(X_DELAY, ms as i64),
        };
        let properties = PropertiesBuilder::new()
            .delivery_mode(1 + u8::from(persistent))
            .headers(&headers)
            .encode();
        let route = RouteBuf::new(if once { ONCE } else { LATER }.as_bytes(), b"");
        let body = format!("{} {number} {}", own.0, "x".repeat(size));
        let message = Message::new(
            route.as_route(),
            Properties::amqp091(&properties),
            body.as_bytes(),
        );
        node.open.insert(number);
        let taken = node.publish(&message, number)?;
        if taken == Some(0) {
            // Nobody has to answer for it, so it is confirmed at once.
            node.open.remove(&number);
            if !once || own != home {
                return Err(format!("{id:?} goes nowhere"));
            }
            self.ledger.exchanges.duplicates.insert(id);
            self.ledger.confirmed.insert(id);
            self.counts[3] += 1;
        }
        self.tell(|| format!("{id:?} is published, persistent: {persistent}, for {taken:?}: {through:?}"));
        Ok(())
    }

    fn consume(&mut self, at: usize) {
        let prefetch = self.random.below(6) as u32;
        let node = self.places[at].node.iter_mut();
        node.filter(|it| it.consumers.len() < 2)
            .for_each(|it| it.consume(prefetch));
    }

    /// A client is done with one of its deliveries, or gives it back.
    fn settle(&mut self, at: usize) {
        let (chosen, gives_back) = (self.random.bits() as usize, self.random.below(4) == 0);
        let Some(node) = self.places[at].node.as_mut().filter(|it| !it.held.is_empty()) else {
            return;
        };
        let held = node.held.remove(chosen % node.held.len());
        node.settle(&held, gives_back);
        if !gives_back {
            self.ledger.accepted.insert(held.id);
        }
        let id = held.id;
        self.tell(|| format!("{id:?} is settled, given back: {gives_back}"));
    }

    /// Time passes, and so many frames arrive. A node that has lost its power starts again.
    fn turn(&mut self, frames: usize) -> Result<(), String> {
        self.clock += TICK;
        for at in 0..NODES {
            let steps = self.random.below(60);
            if let Some(node) = &self.places[at].node {
                node.world.advance(TICK);
                until_power_cut(|| node.work.tick());
                for _ in 0..steps {
                    if until_power_cut(|| node.world.step()) != Some(true) {
                        break;
                    }
                }
            }
            self.look_at_clock(at);
        }
        for _ in 0..frames {
            self.arrive()?;
        }
        for at in 0..NODES {
            if self.places[at].node.is_some() && self.places[at].files.is_off() {
                self.end(at, false)?;
            }
            if self.places[at].node.is_none() && self.places[at].starts_at <= self.clock {
                // What has arrived is of an earlier start.
                self.hear()?;
                self.start(at)?;
            }
        }
        self.look_at_silence();
        if self.theme == Theme::Blinks {
            let away = |(_, since): &(&(usize, usize), &Duration)| **since + BLINKS <= self.clock;
            let long: Vec<_> = self.silent.iter().filter(away).map(|(pair, _)| *pair).collect();
            long.into_iter().for_each(|pair| self.link(pair));
        }
        self.hear()
    }

    fn look_at_clock(&mut self, at: usize) {
        let place = &self.places[at];
        let Some(node) = &place.node else { return };
        let exchanges = &mut self.ledger.exchanges;
        for home in 0..2 {
            if exchanges.homes[home] == place.id {
                exchanges.clocks_ms[home] = node.clock_ms();
            }
        }
    }

    /// One frame arrives, or is lost.
    fn arrive(&mut self) -> Result<(), String> {
        let Some((from, to, bytes)) = self.wire.lock().pop_front() else {
            return Ok(());
        };
        match self.random.below(200) == 0 {
            true => Ok(()),
            false => self.deliver(from, to, &bytes),
        }
    }

    fn deliver(&mut self, from: NodeId, to: NodeId, bytes: &Bytes) -> Result<(), String> {
        let (one, other) = (from.0 as usize - 1, to.0 as usize - 1);
        if !self.linked.contains(&(one.min(other), one.max(other))) {
            return Ok(());
        }
        let before = self.heard_start(other);
        if let Some(node) = &self.places[other].node {
            until_power_cut(|| node.work.receive(from, bytes.to_vec()));
        }
        // Whatever this has made known, the client has heard of the start that said so.
        self.look_at_clock(other);
        self.hear_at(other, before)
    }
}
