//! What goes wrong, as the seed decides.

use super::aim::Aim;
use super::coverage::{Cell, Fault as Struck};
use super::network::Weather;
use super::node::Node;
use super::nodes::Cluster;
use super::theme::{Theme, Trouble};
use std::time::Duration;
use storage::faulty::Fault;

/// How much goes wrong in a seed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// One round in so many brings a fault; 0 for none.
    one_in: u64,
    /// Disks are lost; members change then only to replace those.
    pub loses_disks: bool,
    /// Contents are written down while clients work.
    pub checkpoints: bool,
}

impl Plan {
    /// Decides.
    pub fn choose(cluster: &mut Cluster, cell: Option<Cell>) -> Self {
        let (theme, random) = (cluster.theme, &mut cluster.random);
        let one_in = theme.one_in(random);
        let weather = match random.below(4) {
            0 => Weather::default(),
            kind => Weather {
                loses_one_in: [0, 0, 60, 12][kind as usize],
                doubles_one_in: [0, 0, 40, 20][kind as usize],
                delay_ms: [0, 5, 30, 120][kind as usize],
            },
        };
        cluster.network.weather = weather;
        cluster
            .ledger
            .tell(|| format!("{theme:?}: one round in {one_in} brings a fault, {weather:?}"));
        let loses_disks = match cell {
            Some((_, _, fault)) => fault == Struck::DiskLost,
            None => theme.loses_disks(&mut cluster.random),
        };
        cluster.loses_disks = loses_disks;
        let is_aimed = theme == Theme::Aimed;
        let checkpoints = is_aimed || cluster.random.chance();
        cluster.aim = match cell {
            Some(cell) => Some(Aim::at(cell, loses_disks)),
            None => is_aimed.then(|| Aim::choose(&mut cluster.random, loses_disks)),
        };
        Self {
            one_in,
            loses_disks,
            checkpoints,
        }
    }

    /// Something may go wrong.
    pub fn strike(&self, cluster: &mut Cluster) {
        cluster.restart_failed();
        cluster.strike_aimed();
        cluster.aim();
        cluster.rot();
        if self.one_in == 0 || cluster.random.below(self.one_in) > 0 {
            return;
        }
        let ids = cluster.ids();
        let one = ids[cluster.random.below(ids.len() as u64) as usize];
        let other = ids[cluster.random.below(ids.len() as u64) as usize];
        match cluster.theme.trouble(&mut cluster.random) {
            Trouble::Kill => cluster.strike_down(Struck::Killed, &[one]),
            Trouble::PowerCut => cluster.strike_down(Struck::PowerCut, &[one]),
            Trouble::PowerCutSoon => cluster.lose_power_soon(one),
            Trouble::PowerCutOfAll if cluster.random.below(4) == 0 => {
                cluster.strike_down(Struck::Blackout, &ids);
            }
            Trouble::PowerCutOfMajority => cluster.strike_down(Struck::Blackout, &ids[..=ids.len() / 2]),
            Trouble::Restart => cluster.restart_leader(),
            Trouble::Rotate => cluster.rotate(one),
            Trouble::Part => cluster.part(&[one]),
            Trouble::PartTwo => cluster.part(&[one, other]),
            Trouble::CutOneWay => cluster.cut(&[(one, other)]),
            Trouble::Cut => cluster.cut(&[(one, other), (other, one)]),
            Trouble::HalfPart => cluster.half_part(one),
            Trouble::Bridge => cluster.bridge(one, other),
            Trouble::Mend => cluster.mend(),
            Trouble::Pause => cluster.pause(one),
            Trouble::GoOn => cluster.go_on(one),
            Trouble::Jump => cluster.jump(one),
            Trouble::DiskFails => cluster.disk_fails(one),
            Trouble::DiskHangs => cluster.disk_hangs(one),
            Trouble::DiskFull => cluster.disk_is_full(one),
            Trouble::Wipe if self.loses_disks => drop(cluster.wipe(one)),
            Trouble::Rot => cluster.rots = true,
            Trouble::Wipe | Trouble::Change => cluster.change_some(),
            Trouble::Transfer => cluster.transfer_some(),
            Trouble::Start | Trouble::PowerCutOfAll => ids.iter().for_each(|id| cluster.start(*id)),
        }
    }
}

impl Cluster {
    /// All nodes may be unable to do what they promise.
    fn all_in_trouble(&mut self) {
        self.ids().iter().for_each(|id| self.ledger.trouble(*id));
    }

    pub fn part(&mut self, some: &[u32]) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("{some:?} are cut off"));
        let ids = self.ids();
        self.struck(Struck::Cut, &ids);
        self.network.part(some, &ids);
    }

    fn cut(&mut self, ways: &[(u32, u32)]) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("{ways:?} are cut"));
        self.struck(Struck::Cut, &self.ids());
        self.network
            .cuts
            .extend(ways.iter().filter(|(from, to)| from != to));
    }

    /// What one node says reaches nobody, or what it is told.
    fn half_part(&mut self, one: u32) {
        let ids = self.ids();
        let ways: Vec<(u32, u32)> = match self.random.chance() {
            true => ids.iter().map(|id| (one, *id)).collect(),
            false => ids.iter().map(|id| (*id, one)).collect(),
        };
        self.cut(&ways);
    }

    /// Two parts have one node in common, which hears both.
    fn bridge(&mut self, one: u32, other: u32) {
        let others = self.ids().into_iter().filter(|id| *id != one);
        let (low, high): (Vec<u32>, Vec<u32>) = others.partition(|id| *id < other);
        let ways = low
            .iter()
            .flat_map(|low| high.iter().flat_map(|high| [(*low, *high), (*high, *low)]));
        self.cut(&ways.collect::<Vec<_>>());
    }

    pub fn mend(&mut self) {
        self.all_in_trouble();
        self.ledger.tell(|| "nothing is cut".to_owned());
        self.network.cuts.clear();
    }

    /// A node that leads something ends, and is there again.
    fn restart_leader(&mut self) {
        if let Some(by) = self.some_leader() {
            let power = [Struck::Killed, Struck::PowerCut][self.random.below(2) as usize];
            self.strike_down(power, &[by.node]);
            self.start(by.node);
        }
    }

    /// This node is out now, or one that leads something, and no other one.
    fn rotate(&mut self, id: u32) {
        self.mend();
        for id in self.ids() {
            self.go_on(id);
            self.start(id);
        }
        let leader = self.some_leader().filter(|_| self.random.chance());
        let id = leader.map_or(id, |by| by.node);
        match self.random.below(3) {
            0 => self.part(&[id]),
            1 => self.strike_down(Struck::PowerCut, &[id]),
            _ => self.strike_down(Struck::Killed, &[id]),
        }
    }

    /// These nodes end at once.
    pub fn strike_down(&mut self, by: Struck, nodes: &[u32]) {
        self.struck(by, nodes);
        nodes.iter().for_each(|id| self.end(*id, by != Struck::Killed));
    }

    fn lose_power_soon(&mut self, id: u32) {
        let call = 1 + self.random.below(40);
        // Where contents are just being fetched, most is at stake.
        let fetches = |node: &&Node| node.is_made_anew() && node.goes_on();
        let id = self.nodes.iter().find(fetches).map_or(id, |node| node.id);
        if self.node(id).running.is_none() {
            return;
        }
        self.ledger
            .tell(|| format!("node {id} loses its power with call {call} of its files"));
        let node = self.node_mut(id);
        node.is_doomed = true;
        node.files.fail_at(call, Fault::PowerCut);
    }

    fn disk_fails(&mut self, id: u32) {
        if self.node(id).running.is_none() {
            return;
        }
        let call = 1 + self.random.below(60);
        let fault = match self.random.below(4) {
            0 => Fault::Io,
            1 => Fault::Full,
            2 => Fault::ShortThenFull,
            _ => Fault::Short,
        };
        self.ledger
            .tell(|| format!("call {call} of the files of node {id} is {fault:?}"));
        let node = self.node_mut(id);
        node.is_doomed = true;
        node.files.fail_at(call, fault);
    }

    /// The next call of a node's files fails.
    pub fn disk_fails_now(&mut self, id: u32) {
        self.ledger
            .tell(|| format!("the next call of the files of node {id} fails"));
        let node = self.node_mut(id);
        node.is_doomed = true;
        node.files.fail_at(1, Fault::Io);
    }

    /// The disk of a node answers nobody for a while, up to half a minute, from its next sync on.
    pub fn disk_hangs(&mut self, id: u32) {
        let most = [1_500, 6_000, 30_000][self.random.below(3) as usize];
        self.disk_hangs_for(id, most);
    }

    /// The same, for so many milliseconds at the most, and a tenth of a second.
    pub fn disk_hangs_for(&mut self, id: u32, most: u64) {
        let time = Duration::from_millis(100 + self.random.below(most));
        self.ledger
            .tell(|| format!("the next sync of node {id} takes {time:?}"));
        self.node_mut(id).hang = Some(time);
    }

    /// The disk of a node has no space left, until so often none was found.
    pub fn disk_is_full(&mut self, id: u32) {
        let refusals = 1 + self.random.below(12);
        self.ledger
            .tell(|| format!("the disk of node {id} is full for {refusals} calls"));
        self.struck(Struck::DiskFull, &[id]);
        self.node(id).files.set_full(refusals);
    }

    /// Somebody restarts nodes whose logs have failed: they can do nothing about it.
    fn restart_failed(&mut self) {
        for id in self.ids() {
            if self.node(id).log_failed() && self.random.below(30) == 0 {
                self.ledger.tell(|| format!("the log of node {id} has failed"));
                self.end(id, false);
                self.start(id);
            }
        }
    }

    pub fn pause(&mut self, id: u32) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("node {id} stands still"));
        self.struck(Struck::Paused, &[id]);
        let now = self.ledger.now;
        let node = self.node_mut(id);
        if node.running.is_some() {
            node.paused.get_or_insert(now);
        }
    }

    pub fn go_on(&mut self, id: u32) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("node {id} goes on"));
        self.node_mut(id).paused = None;
    }

    pub fn jump(&mut self, id: u32) {
        self.all_in_trouble();
        let time = Duration::from_millis(self.random.below(4_000));
        self.ledger
            .tell(|| format!("the clock of node {id} jumps by {time:?}"));
        self.struck(Struck::ClockJump, &[id]);
        self.node_mut(id).jump(time);
    }

    /// Everything goes on, everything gets through, and all clocks show the same: what is due by the clock of one of them
    /// would be waited for by another one for as long as they differ.
    pub fn heal(&mut self) {
        (self.aim, self.rots) = (None, false);
        let latest = self.latest();
        for node in &mut self.nodes {
            node.jump(latest.saturating_sub(node.clock()));
        }
        self.ids().iter().for_each(|id| self.ledger.trouble(*id));
        self.network.cuts.clear();
        self.network.weather = Weather {
            delay_ms: 3,
            ..Weather::default()
        };
        for id in self.ids() {
            self.node(id).files.set_full(0);
            self.go_on(id);
            self.node_mut(id).answers();
            // A process that would lose its power soon is another one without that; and what has rotted is looked for.
            if self.node(id).is_doomed || self.node(id).log_failed() || self.node(id).rotten.log {
                self.end(id, false);
            }
            self.start(id);
        }
        self.know_all_policies();
    }
}
