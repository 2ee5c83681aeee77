//! Sectors that are not any more what was written. Nobody notices before somebody reads them: a start, or who needs what stood
//! there. One node at a time has such: all others have what it may have to be sent.

use super::ledger::Leadership;
use super::node::Node;
use super::nodes::Cluster;
use cluster::GroupId;
use std::fmt;
use std::path::{Path, PathBuf};
use storage::faulty::Random;

const SECTOR: usize = 512;

/// A log file begins with its header, of which there are two.
const LOG_HEADER: usize = 4096;

/// So many sectors are looked at for one in which something stands.
const TRIES: usize = 8;

/// What of a disk may have rotted, and was not found yet.
#[derive(Debug, Default)]
pub struct Rotten {
    /// Something in the log.
    pub log: bool,
    segments: Vec<PathBuf>,
}

/// What has rotted, and how it was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rot {
    pub of_logs: u64,
    pub of_segments: u64,
    /// Members that were not opened, since something was damaged that they need.
    pub found_at_start: u64,
    /// Members that went on until they read what was damaged.
    pub found_later: u64,
    /// Disks that were replaced: whose something was could not be seen.
    pub disks: u64,
}

impl Rot {
    /// Adds what was so in another seed.
    pub fn add(&mut self, other: &Self) {
        self.of_logs += other.of_logs;
        self.of_segments += other.of_segments;
        self.found_at_start += other.found_at_start;
        self.found_later += other.found_later;
        self.disks += other.disks;
    }

    /// What never was.
    pub fn unreached(&self) -> Vec<&'static str> {
        let all = [
            (self.of_logs, "a log rots"),
            (self.of_segments, "a segment rots"),
            (self.found_at_start, "a start finds it"),
            (self.found_later, "a member finds it that goes on"),
            (self.disks, "a disk is replaced"),
        ];
        let unreached = all.into_iter().filter(|(count, _)| *count == 0);
        unreached.map(|(_, what)| what).collect()
    }
}

impl fmt::Display for Rot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            of_logs,
            of_segments,
            found_at_start,
            found_later,
            disks,
        } = self;
        write!(
            f,
            "{of_logs} sectors of logs and {of_segments} of segments rotted: {found_at_start} members were given up at a start, "
        )?;
        write!(f, "{found_later} later, {disks} disks were replaced")
    }
}

impl Node {
    /// Whether something of its disk may have rotted that nobody has found.
    pub fn is_rotten(&self) -> bool {
        let files = self.files.files();
        self.rotten.log || self.rotten.segments.iter().any(|path| files.contains(path))
    }

    /// A sector of its log or of its segments, or one bit, is something else from now on. Where, if there is any.
    fn rot(&mut self, random: &mut Random) -> Option<PathBuf> {
        let files = self.files.files();
        let is_log = |path: &&PathBuf| path.starts_with("/data/log") && !is_spare(path);
        let mut logs: Vec<&PathBuf> = files.iter().filter(is_log).collect();
        // Of what is written last nobody can see whether it was ever durable: it may be torn as well.
        let is_begun = |path: &PathBuf| {
            let bytes = self.files.bytes(path);
            bytes.is_some_and(|bytes| bytes.iter().skip(LOG_HEADER).any(|byte| *byte != 0))
        };
        while logs.pop().is_some_and(|newest| !is_begun(newest)) {}
        let is_segment = |path: &&PathBuf| path.extension().is_some_and(|it| it == "segment");
        let segments: Vec<&PathBuf> = files.iter().filter(is_segment).collect();
        let of_log = segments.is_empty() || !logs.is_empty() && random.chance();
        let among = if of_log { logs } else { segments };
        let path = among
            .get(random.below(among.len().max(1) as u64) as usize)?
            .to_path_buf();
        let sector = self.some_sector(&path, random)?;
        let (bit, whole) = (random.below(SECTOR as u64 * 8) as usize, random.chance());
        self.files.corrupt(&path, |bytes| {
            let end = bytes.len().min((sector + 1) * SECTOR);
            let rotten = &mut bytes[sector * SECTOR..end];
            match whole {
                true => rotten.fill(random.bits() as u8),
                false => rotten[bit / 8 % rotten.len()] ^= 1 << (bit % 8),
            }
        });
        match of_log {
            true => self.rotten.log = true,
            false => self.rotten.segments.push(path.clone()),
        }
        Some(path)
    }

    /// A sector in which something stands, if one is found soon.
    fn some_sector(&self, path: &Path, random: &mut Random) -> Option<usize> {
        let bytes = self.files.bytes(path)?;
        let count = bytes.len().div_ceil(SECTOR).max(1) as u64;
        let some = std::iter::repeat_with(|| random.below(count) as usize).take(TRIES);
        let stands = |sector: &usize| {
            let sector = bytes.chunks(SECTOR).nth(*sector);
            sector.is_some_and(|sector| sector.iter().any(|byte| *byte != 0))
        };
        some.into_iter().find(stands)
    }
}

/// Whether this file waits to be used again.
fn is_spare(path: &Path) -> bool {
    let name = path
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default();
    !name.ends_with(".wal") || name.starts_with("spare")
}

impl Cluster {
    /// Something of a node's disk rots if something is to, where the others have everything. Sometimes the node starts anew right
    /// then, or hands over what it leads and has to read it again.
    pub fn rot(&mut self) {
        if !self.rots {
            return;
        }
        let id = 1 + self.random.below(self.nodes.len() as u64) as u32;
        if !self.is_whole_without(id) {
            return;
        }
        let node = &mut self.nodes[id as usize - 1];
        let Some(path) = node.rot(&mut self.random) else {
            return;
        };
        self.rots = false;
        let of_log = path.starts_with("/data/log");
        self.ledger
            .tell(|| format!("something in {} of node {id} rots", path.display()));
        let rot = &mut self.ledger.counts.rot;
        *(if of_log {
            &mut rot.of_logs
        } else {
            &mut rot.of_segments
        }) += 1;
        match self.random.below(4) {
            0 => {
                self.end(id, false);
                self.start(id);
            }
            1 => {}
            _ => {
                let groups: Vec<GroupId> = self.terms.keys().copied().collect();
                let led = |group: &GroupId| self.node(id).leads(*group).is_some();
                let led: Vec<GroupId> = groups.into_iter().filter(led).collect();
                for group in led {
                    self.transfer_on(id, group);
                }
            }
        }
    }

    /// A node does not start, since nobody can say whose it is what has rotted: its operator gives it another disk.
    pub fn replace_disk(&mut self, id: u32, why: &str) {
        self.ledger.tell(|| format!("node {id} gets another disk: {why}"));
        self.ledger.counts.rot.disks += 1;
        self.node_mut(id).wipe();
        self.start(id);
    }

    /// What of this node's members has turned out to be damaged is given up. What they had led.
    pub fn give_up_damaged(&mut self, id: u32) -> Vec<Leadership> {
        let node = self.node(id);
        let copies = node.running.iter().flat_map(|running| &running.copies);
        let damaged = copies.filter(|(_, copy)| copy.queue().is_damaged());
        let damaged: Vec<(GroupId, Option<u64>)> =
            damaged.map(|(group, copy)| (*group, copy.leads)).collect();
        let mut led = Vec::new();
        for (group, term) in damaged {
            if !self.node(id).is_rotten() {
                let what = format!("{group:?} on {id} is damaged");
                self.ledger.violated("what does not rot stays whole", what);
            }
            self.ledger
                .tell(|| format!("{id} gives its member of {group:?} up, which is damaged"));
            self.ledger.counts.rot.found_later += 1;
            self.node_mut(id).renounce(group);
            let node = id;
            led.extend(term.map(|term| Leadership { group, node, term }));
        }
        led
    }
}
