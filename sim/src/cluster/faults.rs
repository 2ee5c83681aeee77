//! What goes wrong, as the seed decides.

use super::network::Weather;
use super::nodes::Cluster;
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
        let random = &mut cluster.random;
        let one_in = [0, 80, 40, 15][random.below(4) as usize];
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
            .tell(|| format!("one round in {one_in} brings a fault, {weather:?}"));
        let loses_disks = cluster.random.below(3) == 0;
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
        let kind = cluster.random.below(24);
        if (7..=15).contains(&kind) {
            ids.iter().for_each(|id| cluster.ledger.trouble(*id));
        }
        match kind {
            0 | 1 => cluster.end(one, false),
            2 | 3 => cluster.end(one, true),
            4 => cluster.lose_power_soon(one),
            5 if cluster.random.below(4) == 0 => ids.iter().for_each(|id| cluster.end(*id, true)),
            6 => {
                let majority = ids.len() as u32 / 2 + 1;
                ids.iter()
                    .take(majority as usize)
                    .for_each(|id| cluster.end(*id, true));
            }
            7 => cluster.network.part(&[one], &ids),
            8 => cluster.network.part(&[one, other], &ids),
            9 => drop(cluster.network.cuts.insert((one, other))),
            10 => cluster.network.cuts.extend([(one, other), (other, one)]),
            11 | 12 => cluster.network.cuts.clear(),
            13 => cluster.pause(one),
            14 => cluster.go_on(one),
            15 => cluster.jump(one),
            16 => cluster.disk_fails(one),
            17 | 18 if self.loses_disks => cluster.wipe(one),
            17 | 18 => cluster.change_some(),
            19 | 20 => cluster.transfer_some(),
            _ => ids.iter().for_each(|id| cluster.start(*id)),
        }
    }
}

impl Cluster {
    fn lose_power_soon(&mut self, id: u32) {
        let call = 1 + self.random.below(40);
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
        self.ledger.tell(|| format!("node {id} stands still"));
        let now = self.ledger.now;
        let node = self.node_mut(id);
        if node.running.is_some() {
            node.paused.get_or_insert(now);
        }
    }

    fn go_on(&mut self, id: u32) {
        self.ledger.tell(|| format!("node {id} goes on"));
        self.node_mut(id).paused = None;
    }

    fn jump(&mut self, id: u32) {
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
