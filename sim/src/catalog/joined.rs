//! A broker that was alone shares its catalog while a client is connected, another node joins, and decides for both.

use super::ledger::Ledger;
use super::node::{GROUP, Node};
use crate::cluster::network::{Network, Said};
use crate::options;
use crate::world::Simulated;
use broker::groups::catalog::SharedCatalog;
use broker::groups::{Identity, NodeGroups};
use broker::{Binding, Broker, ChannelId, DeclareQueue, Event, Outbox, Refusal, Session, Sharing, User};
use cluster::{Groups, MemberId, Membership, NodeId, Settings, Step};
use model::properties::Properties;
use model::table::Table;
use model::{Message, RouteBuf};
use std::sync::Arc;
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};

const CHANNEL: ChannelId = ChannelId(1);
const ME: NodeId = NodeId(1);
/// The time between two ticks.
const TICK_MS: u64 = 100;
/// After so many rounds of a millisecond it is clear that something never comes.
const ENDLESS: u64 = 20_000;

/// The two nodes.
pub struct Pair {
    world: Arc<Simulated>,
    broker: Arc<Broker>,
    session: Arc<Session>,
    outbox: Arc<Outbox>,
    shared: Option<(Arc<NodeGroups>, Arc<SharedCatalog>)>,
    other: Node,
    network: Network,
    random: Random,
    now: Duration,
    ledger: Arc<Ledger>,
}

impl Pair {
    /// A broker with a client, and a node that is down.
    ///
    /// # Errors
    /// It does not open.
    pub fn new(seed: u64) -> Result<Self, String> {
        let mut random = Random(seed | 1);
        let world = Simulated::new(FaultyFs::new(), Duration::from_secs(5), random.bits());
        let broker = Broker::open(options(&world)).map_err(|error| format!("{error:?}"))?;
        let outbox = Arc::new(Outbox::new());
        let session = broker
            .connect(User::named("guest"), "/", outbox.clone())
            .map_err(|refusal| format!("{refusal:?}"))?;
        Ok(Self {
            world,
            broker,
            session,
            outbox,
            shared: None,
            other: Node::new(2, &[1], &mut random),
            network: Network::default(),
            random,
            now: Duration::ZERO,
            ledger: Arc::default(),
        })
    }

    /// The broker's catalog becomes what a group has that it is alone in.
    pub fn share(&mut self) {
        let wire = self.network.wire(ME.0);
        let settings = Settings::default();
        let groups = self.broker.replicate(Groups::new(ME, 1, settings), wire.clone());
        groups.add_peer(ME);
        groups.add_peer(NodeId(self.other.id));
        let me = MemberId::first(ME);
        let sharing = Sharing {
            groups: groups.clone(),
            links: wire,
            identity: Identity {
                group: GROUP,
                me,
                members: Membership::of(&[me]),
            },
            peers: vec![NodeId(self.other.id)],
        };
        let shared = self.broker.share_catalog(sharing);
        self.shared = Some((groups, shared));
    }

    /// The other node joins: it is added without a vote, and votes once it has caught up.
    ///
    /// # Errors
    /// It does not start, or does not become a voter.
    pub fn join(&mut self) -> Result<(), String> {
        let ids = [ME.0, self.other.id];
        let (network, ledger) = (&self.network, &self.ledger);
        self.other.start(1, &ids, network, ledger, &mut self.random)?;
        for step in [Step::Learner(self.other.me()), Step::Voter(self.other.me())] {
            let is_done = |pair: &mut Self| {
                let Some((groups, _)) = &pair.shared else {
                    return true;
                };
                groups.change(GROUP, std::slice::from_ref(&step)).is_ok()
            };
            self.until("a member is added", is_done)?;
            self.until("both have the same", |pair| pair.is_equal())?;
        }
        Ok(())
    }

    /// The other one decides from now on, or the broker does again.
    ///
    /// # Errors
    /// It does not.
    pub fn hand_over(&mut self) -> Result<(), String> {
        let to = self.other.me();
        let mut handed = false;
        self.until("the other node leads", |pair| {
            if let Some((groups, _)) = &pair.shared {
                handed |= groups.transfer(GROUP, to).is_ok();
            }
            pair.other.leads()
        })
    }

    /// The other node is cut off from the broker, or is no more.
    pub fn cut(&mut self, is_cut: bool) {
        let (mine, other) = (ME.0, self.other.id);
        match is_cut {
            true => self.network.cuts.extend([(mine, other), (other, mine)]),
            false => self.network.cuts.clear(),
        }
    }

    /// The broker knows that it may not know what exists, or does again what exists.
    ///
    /// # Errors
    /// That takes too long.
    pub fn becomes(&mut self, stale: bool) -> Result<(), String> {
        self.until("it is stale, or is not", |pair| pair.broker.is_stale() == stale)
    }

    /// Whether both nodes' copies are the same.
    pub fn is_equal(&self) -> bool {
        let Some((_, shared)) = &self.shared else {
            return false;
        };
        let Some(running) = self.other.goes_on() else {
            return false;
        };
        let (version, view) = running.told.copy();
        let mine = self.broker.view();
        version == shared.version() && mine.generation() == view.generation() && mine.facts().eq(view.facts())
    }

    /// A client of the broker declares a queue and binds it, and it is there with both nodes when that is answered.
    ///
    /// # Errors
    /// It is refused, or something is missing.
    pub fn declare(&mut self, name: &str) -> Result<(), String> {
        let queue = DeclareQueue {
            name: name.into(),
            durable: true,
            ..DeclareQueue::default()
        };
        self.step(|session| session.declare_queue(CHANNEL, queue.clone()).map(drop))?;
        let binding = Binding {
            source: "amq.direct",
            destination: name,
            routing_key: b"key",
            arguments: Table::new(),
        };
        self.step(|session| session.bind_queue(CHANNEL, binding.clone()).map(drop))?;
        self.has(name)
    }

    /// Whether the queue is there with both nodes, and turned by the broker.
    ///
    /// # Errors
    /// Something is missing.
    pub fn has(&self, name: &str) -> Result<(), String> {
        if self.broker.view().queue("/", name).is_none() {
            return Err(format!("the broker does not know {name}"));
        }
        let session = &self.session;
        let mut publisher = session.publisher(CHANNEL, 1);
        let (route, properties) = (RouteBuf::new(b"", name.as_bytes()), Properties::amqp091(b""));
        let message = Message::new(route.as_route(), properties, b"body");
        let taken = publisher.publish(&message, None).ok();
        publisher.flush();
        if taken.is_none_or(|taken| taken.queues != 1) {
            return Err(format!("{name} takes no message"));
        }
        match self.other.goes_on() {
            Some(running) if running.told.copy().1.queue("/", name).is_none() => {
                Err(format!("the other node does not know {name}"))
            }
            _ => Ok(()),
        }
    }

    /// A step of the client, which is taken again as long as the catalog has not decided.
    fn step(&mut self, step: impl Fn(&Session) -> Result<(), Refusal>) -> Result<(), String> {
        for _ in 0..3 {
            match step(&self.session) {
                Ok(()) => return Ok(()),
                Err(Refusal::Undecided) if self.session.must_ask() => {}
                Err(refusal) => return Err(refusal.to_string()),
            }
            self.until("the catalog decides", |pair| {
                let mut events = Vec::new();
                pair.outbox.take_now(&mut events);
                events.iter().any(|event| matches!(event, Event::Permitted))
            })?;
        }
        Err("a step does not come to its end".to_owned())
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) -> Result<(), String> {
        for _ in 0..ENDLESS {
            if is_so(self) {
                return Ok(());
            }
            self.round();
        }
        Err(format!("this never comes: {what}"))
    }

    fn round(&mut self) {
        let time = Duration::from_millis(1);
        self.now += time;
        self.world.advance(time);
        self.other.advance(time);
        if let Some((groups, shared)) = &self.shared
            && (self.now.as_millis() as u64).is_multiple_of(TICK_MS)
        {
            groups.tick();
            shared.tick();
        }
        while self.world.step() {}
        self.other.work(20);
        self.network.collect(self.now, &mut self.random);
        while let Some(frame) = self.network.arrived(self.now, |_| true) {
            match (&self.shared, frame.to == ME.0) {
                (_, false) => self.other.receive(frame.from, frame.said),
                (None, true) => {}
                (Some((groups, shared)), true) => match frame.said {
                    Said::Entries(bytes) => groups.receive(NodeId(frame.from), bytes),
                    Said::Bulk(bytes) => groups.bulk(NodeId(frame.from), bytes),
                    Said::Catalog(bytes) => shared.receive(NodeId(frame.from), &bytes),
                    Said::Up(..) | Said::Down(..) => {}
                },
            }
        }
    }

    /// What the ledger of the other node says.
    pub fn violation(&self) -> Option<String> {
        self.ledger.violation()
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.world.abandon();
    }
}
