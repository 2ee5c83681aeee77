//! What goes wrong, as the seed decides.

use super::network::Weather;
use super::node::Node;
use super::nodes::Cluster;
use super::theme::Trouble;
use std::time::Duration;
use storage::faulty::Fault;

/// How much goes wrong in a seed.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// One round in so many brings a fault; 0 for none.
    one_in: u64,
    /// Disks are lost; members change then only to replace those.
    loses_disks: bool,
    /// Contents are written down while clients work.
    pub checkpoints: bool,
}

impl Plan {
    /// Decides.
    pub fn choose(cluster: &mut Cluster) -> Self {
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
        let loses_disks = theme.loses_disks(&mut cluster.random);
        let checkpoints = cluster.random.chance();
        Self {
            one_in,
            loses_disks,
            checkpoints,
        }
    }

    /// Something may go wrong.
    pub fn strike(&self, cluster: &mut Cluster) {
        if self.one_in == 0 || cluster.random.below(self.one_in) > 0 {
            return;
        }
        let ids = cluster.ids();
        let one = ids[cluster.random.below(ids.len() as u64) as usize];
        let other = ids[cluster.random.below(ids.len() as u64) as usize];
        match cluster.theme.trouble(&mut cluster.random) {
            Trouble::Kill => cluster.end(one, false),
            Trouble::PowerCut => cluster.end(one, true),
            Trouble::PowerCutSoon => cluster.lose_power_soon(one),
            Trouble::PowerCutOfAll if cluster.random.below(4) == 0 => {
                ids.iter().for_each(|id| cluster.end(*id, true));
            }
            Trouble::PowerCutOfMajority => {
                let majority = ids.len() as u32 / 2 + 1;
                ids.iter()
                    .take(majority as usize)
                    .for_each(|id| cluster.end(*id, true));
            }
            Trouble::Restart => cluster.restart_leader(),
            Trouble::Rotate => cluster.rotate(one),
            Trouble::Part => cluster.part(&[one]),
            Trouble::PartTwo => cluster.part(&[one, other]),
            Trouble::CutOneWay => cluster.cut(&[(one, other)]),
            Trouble::Cut => cluster.cut(&[(one, other), (other, one)]),
            Trouble::Mend => cluster.mend(),
            Trouble::Pause => cluster.pause(one),
            Trouble::GoOn => cluster.go_on(one),
            Trouble::Jump => cluster.jump(one),
            Trouble::DiskFails => cluster.disk_fails(one),
            Trouble::Wipe if self.loses_disks => cluster.wipe(one),
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

    fn part(&mut self, some: &[u32]) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("{some:?} are cut off"));
        let ids = self.ids();
        self.network.part(some, &ids);
    }

    fn cut(&mut self, ways: &[(u32, u32)]) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("{ways:?} are cut"));
        self.network.cuts.extend(ways);
    }

    fn mend(&mut self) {
        self.all_in_trouble();
        self.ledger.tell(|| "nothing is cut".to_owned());
        self.network.cuts.clear();
    }

    /// A node that leads something ends, and is there again.
    fn restart_leader(&mut self) {
        if let Some(by) = self.some_leader() {
            let power = self.random.chance();
            self.end(by.node, power);
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
            fate => self.end(id, fate == 1),
        }
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

    fn pause(&mut self, id: u32) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("node {id} stands still"));
        let now = self.ledger.now;
        let node = self.node_mut(id);
        if node.running.is_some() {
            node.paused.get_or_insert(now);
        }
    }

    fn go_on(&mut self, id: u32) {
        self.all_in_trouble();
        self.ledger.tell(|| format!("node {id} goes on"));
        self.node_mut(id).paused = None;
    }

    fn jump(&mut self, id: u32) {
        self.all_in_trouble();
        let time = Duration::from_millis(self.random.below(4_000));
        self.ledger
            .tell(|| format!("the clock of node {id} jumps by {time:?}"));
        self.ledger.jumped += time;
        self.node_mut(id).jump(time);
    }

    /// Everything goes on, everything gets through.
    pub fn heal(&mut self) {
        self.ids().iter().for_each(|id| self.ledger.trouble(*id));
        self.network.cuts.clear();
        self.network.weather = Weather {
            delay_ms: 3,
            ..Weather::default()
        };
        for id in self.ids() {
            // A process that would lose its power soon is another one without that.
            if self.node(id).is_doomed {
                self.end(id, false);
            }
            self.go_on(id);
            self.start(id);
        }
    }
}
