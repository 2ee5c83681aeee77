//! A node with a catalog: its disk, and the process, if one runs.

use super::ledger::Ledger;
use crate::cluster::network::{Network, Said};
use crate::world::{Simulated, until_power_cut};
use broker::groups::alone::{self, Alone};
use broker::groups::catalog::{CatalogMember, Follower, Frame, OwnRequest, SharedCatalog, TIMEOUT_MS};
use broker::groups::{Hosted, Identity, Member, News};
use bytes::Bytes;
use catalog::View;
use catalog::shared::{Contents, Happened};
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};
use storage::{LogOptions, World};

/// The catalog's group.
pub const GROUP: GroupId = GroupId(1);

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(100);

/// What a node was told of the catalog: its copy.
pub struct Told {
    seen: Mutex<(u64, View)>,
    ledger: Arc<Ledger>,
}

impl Told {
    /// Its version, and what exists.
    pub fn copy(&self) -> (u64, View) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Follower for Told {
    fn happened(&self, happened: &[Happened], _: &[Option<OwnRequest>]) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for happened in happened {
            self.ledger.happened(seen.0, happened);
            *seen = (happened.version, happened.view.clone());
        }
    }

    fn resumed(&self, contents: &Contents) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.ledger.resumed(seen.0, contents);
        *seen = (contents.version(), contents.view().clone());
    }
}

/// A node.
pub struct Node {
    pub id: u32,
    /// The nodes that the group began with.
    founders: Vec<u32>,
    files: FaultyFs,
    /// How often its disk was lost.
    life: u32,
    pub running: Option<Running>,
    /// Which start of it this is.
    pub start: u64,
    pub is_paused: bool,
    /// Its clock shows this.
    clock: Duration,
    /// So fast it goes, in parts of a thousand.
    rate: u64,
}

/// A process.
pub struct Running {
    world: Arc<Simulated>,
    alone: Alone,
    pub catalog: Arc<SharedCatalog>,
    hosted: Arc<Hosted<CatalogMember>>,
    pub told: Arc<Told>,
    ticked: Duration,
    /// When it could last believe its copy, or began, by its clock.
    fresh_ms: u64,
}

impl Drop for Running {
    /// Its threads hold what holds them.
    fn drop(&mut self) {
        self.world.abandon();
    }
}

impl Node {
    pub fn new(id: u32, founders: &[u32], random: &mut Random) -> Self {
        Self {
            id,
            founders: founders.to_vec(),
            files: FaultyFs::new(),
            life: 0,
            running: None,
            start: 0,
            is_paused: false,
            clock: Duration::from_secs(random.below(10_000)),
            // Two clocks run apart by less than a tenth.
            rate: 960 + random.below(80),
        }
    }

    /// Which member of the group it is.
    pub fn me(&self) -> MemberId {
        let (node, life) = (NodeId(self.id), self.life);
        MemberId { node, life }
    }

    /// Starts a process on what is on its disk.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(
        &mut self,
        start: u64,
        nodes: &[u32],
        network: &Network,
        ledger: &Arc<Ledger>,
        random: &mut Random,
    ) -> Result<(), String> {
        self.start = start;
        let world = Simulated::new(self.files.clone(), self.clock, random.bits());
        let options = LogOptions {
            file_bytes: 8 << 10,
            size_limit: [24 << 10, 64 << 20][random.below(2) as usize],
            make_ahead: false,
            retry_ms: 20,
            ..LogOptions::default()
        };
        let settings = Settings {
            kept_bytes: random.below(4_000) as usize,
            ..Settings::default()
        };
        let (dir, node, wire) = (Path::new("/data"), NodeId(self.id), network.wire(self.id));
        let opened =
            until_power_cut(|| alone::open(world.clone(), dir, options, node, start, settings, wire.clone()));
        let mut alone = opened
            .ok_or("the power was cut")?
            .map_err(|error| format!("{error:?}"))?;
        nodes.iter().for_each(|peer| alone.groups.add_peer(NodeId(*peer)));
        let told = Arc::new(Told {
            seen: Mutex::default(),
            ledger: ledger.clone(),
        });
        let peers = nodes.iter().map(|id| NodeId(*id));
        let catalog = SharedCatalog::new(alone.groups.clone(), wire, told.clone(), peers);
        let founders = self.founders.iter();
        let members: Vec<MemberId> = founders.map(|id| MemberId::first(NodeId(*id))).collect();
        let identity = Identity {
            group: GROUP,
            me: self.me(),
            members: Membership::of(&members),
        };
        let act = catalog.act();
        let opened = until_power_cut(|| alone.member::<CatalogMember>(identity, (), act));
        let hosted = opened
            .ok_or("the power was cut")?
            .map_err(|why| format!("{why:?}"))?;
        catalog
            .opened(hosted.clone())
            .map_err(|error| error.to_string())?;
        alone.sweep().map_err(|error| format!("{error:?}"))?;
        self.running = Some(Running {
            world,
            alone,
            catalog,
            hosted,
            told,
            ticked: self.clock,
            fresh_ms: self.clock.as_millis() as u64,
        });
        Ok(())
    }

    /// The process, unless it stands still: a thread of it that waits for another one, which sleeps, does so until that goes on.
    pub fn goes_on(&self) -> Option<&Running> {
        let is_ahead = |running: &&Running| running.world.elapsed() > self.clock;
        let running = self.running.as_ref().filter(|_| !self.is_paused);
        running.filter(|running| !is_ahead(running))
    }

    /// Time passes, also for one that stands still.
    pub fn advance(&mut self, time: Duration) {
        self.clock += time * self.rate as u32 / 1_000;
        if self.goes_on().is_none() {
            return;
        }
        let Some(running) = &mut self.running else { return };
        let behind = self.clock.saturating_sub(running.world.elapsed());
        running.world.advance(behind);
        if self.clock >= running.ticked + TICK {
            running.ticked = self.clock;
            until_power_cut(|| {
                running.alone.groups.tick();
                running.catalog.tick();
            });
        }
    }

    /// Its threads make some steps.
    pub fn work(&self, steps: u64) {
        if let Some(running) = self.goes_on() {
            for _ in 0..steps {
                if until_power_cut(|| running.world.step()) != Some(true) {
                    return;
                }
            }
        }
    }

    /// Has it write down what it has.
    pub fn checkpoint(&self) {
        if let Some(running) = self.goes_on() {
            until_power_cut(|| {
                running.hosted.tell(vec![News::Checkpoint]);
                running.hosted.clone().turn();
            });
        }
    }

    /// The process is gone. With the power goes what was not synced.
    pub fn end(&mut self, power: bool, random: &mut Random) {
        if let Some(running) = self.running.take() {
            self.files = match power {
                true => self.files.crash(random.bits()),
                false => self.files.kill(),
            };
            drop(running);
        }
        self.is_paused = false;
    }

    /// Everything that it ever had is lost: it comes back as another member.
    pub fn wipe(&mut self) {
        self.files = FaultyFs::new();
        self.life += 1;
    }

    /// Of another node something arrives.
    pub fn receive(&self, from: u32, said: Said) {
        let Some(running) = self.goes_on() else { return };
        let (groups, from) = (&running.alone.groups, NodeId(from));
        until_power_cut(|| match said {
            Said::Entries(bytes) => groups.receive(from, bytes),
            Said::Bulk(bytes) => groups.bulk(from, bytes),
            Said::Catalog(bytes) => running.catalog.receive(from, &bytes),
            Said::Up(..) | Said::Down(..) => {}
        });
    }

    /// Rubbish arrives. What happens to be said well is none: nodes believe each other (decision 50).
    pub fn hear_rubbish(&self, from: u32, bytes: &Bytes) {
        let is_said_well = matches!(Frame::decode(bytes), Some(frame) if !matches!(frame, Frame::Ask { .. }));
        if let Some(running) = self.goes_on().filter(|_| !is_said_well) {
            running.catalog.receive(NodeId(from), bytes);
        }
    }

    /// Has the members changed, if it leads.
    pub fn change(&self, steps: &[cluster::Step]) -> bool {
        let running = self.goes_on();
        running.is_some_and(|it| it.alone.groups.change(GROUP, steps).is_ok())
    }

    /// How it stands, in words.
    pub fn describe(&self) -> String {
        let Some(running) = &self.running else {
            return format!("{} is down", self.me());
        };
        let catalog = &running.catalog;
        format!(
            "{} has version {}, is fresh: {}, {} wait; it stands still: {}; {:?}",
            self.me(),
            catalog.version(),
            catalog.is_fresh(),
            catalog.waiting(),
            self.goes_on().is_none(),
            running.alone.groups.status(GROUP)
        )
    }

    /// Whether it leads.
    pub fn leads(&self) -> bool {
        self.goes_on().is_some_and(|running| running.hosted.leads())
    }

    /// Hands over to this member, if it leads.
    pub fn transfer(&self, to: MemberId) -> bool {
        let running = self.goes_on();
        running.is_some_and(|it| it.alone.groups.transfer(GROUP, to).is_ok())
    }

    /// Who the members are, as far as it knows.
    pub fn members(&self) -> Membership {
        let status = self
            .goes_on()
            .and_then(|running| running.alone.groups.status(GROUP));
        status.map(|status| status.members).unwrap_or_default()
    }

    /// Whether it says that it is cut off from those who decide though it was not a moment ago: it refuses what has to wait.
    pub fn gives_up_early(&mut self) -> bool {
        let clock = self.clock_ms();
        let Some(running) = self.running.as_mut().filter(|_| !self.is_paused) else {
            return false;
        };
        if running.catalog.is_fresh() {
            running.fresh_ms = clock;
        }
        running.catalog.is_cut_off() && clock < running.fresh_ms + TIMEOUT_MS
    }

    /// What its process's clock shows, in milliseconds.
    pub fn clock_ms(&self) -> u64 {
        let shows = self.running.as_ref().map(|running| running.world.elapsed());
        shows.unwrap_or_default().as_millis() as u64
    }
}
