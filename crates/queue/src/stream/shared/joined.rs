//! What a node that does not lead knows of its readers in groups.

use super::{AGAIN_MS, ANSWERED_WITHIN_MS, READERS_MOST, SAID_AGAIN_MS};
use crate::stream::asked::GroupWord;
use crate::stream::groups::Update;
use model::ConsumerId;
use model::chunk::REFERENCE_BYTES;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Joined {
    groups: BTreeMap<Arc<[u8]>, Group>,
    /// The group of each reader.
    of: BTreeMap<ConsumerId, Arc<[u8]>>,
    /// That of the last change. It rises over restarts, too, unless the clock falls.
    number: u64,
    /// When something is to be looked at; 0 for now.
    wakes_at_ms: u64,
}

#[derive(Debug)]
struct Group {
    partition: Option<u32>,
    /// Without any it stays until the leader has heard that.
    readers: BTreeMap<ConsumerId, Standing>,
    /// That of its last change.
    number: u64,
    /// That of the leader's last word.
    heard: u64,
    is_heard: bool,
    says_at_ms: u64,
    /// When it was said first of what was not answered.
    said_ms: Option<u64>,
    /// Its readers are ended then.
    ends_at_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Waits,
    /// It was told that it is active.
    Reads,
    /// It was told that it is so no more, and has not said that it heard that.
    StepsDown,
}

impl Group {
    fn change(&mut self, number: u64) {
        (self.number, self.is_heard, self.says_at_ms) = (number, false, 0);
    }
}

impl Joined {
    fn next(&mut self, now_ms: u64) -> u64 {
        self.wakes_at_ms = 0;
        self.number = now_ms.max(self.number + 1);
        self.number
    }

    /// A reader joins; it is in one group. One with a longer name than references have stays without.
    pub fn join(&mut self, reader: ConsumerId, name: &Arc<[u8]>, partition: Option<u32>, now_ms: u64) {
        if name.len() > REFERENCE_BYTES || self.of.contains_key(&reader) {
            return;
        }
        let number = self.next(now_ms);
        self.of.insert(reader, name.clone());
        let group = self.group(name, partition, now_ms);
        group.readers.insert(reader, Standing::Waits);
        group.change(number);
    }

    fn group(&mut self, name: &Arc<[u8]>, partition: Option<u32>, now_ms: u64) -> &mut Group {
        let group = self.groups.entry(name.clone());
        let group = group.or_insert_with(|| Group {
            partition,
            readers: BTreeMap::new(),
            number: 0,
            heard: 0,
            is_heard: false,
            says_at_ms: 0,
            said_ms: None,
            ends_at_ms: 0,
        });
        if group.readers.is_empty() {
            (group.partition, group.ends_at_ms) = (partition, now_ms + ANSWERED_WITHIN_MS);
        }
        group
    }

    /// A reader reads no more.
    pub fn leave(&mut self, reader: ConsumerId, now_ms: u64) {
        let Some(name) = self.of.remove(&reader) else {
            return;
        };
        let number = self.next(now_ms);
        if let Some(group) = self.groups.get_mut(&name) {
            group.readers.remove(&reader);
            group.change(number);
        }
    }

    /// It has heard that it is active no more. Whoever says so without having been told changes nothing.
    pub fn stepped_down(&mut self, reader: ConsumerId, now_ms: u64) {
        let number = self.next(now_ms);
        let group = self.of.get(&reader).and_then(|name| self.groups.get_mut(name));
        if let Some(group) = group
            && let Some(standing @ Standing::StepsDown) = group.readers.get_mut(&reader)
        {
            *standing = Standing::Waits;
            group.change(number);
        }
    }

    /// The leader says this: the number of its word, that of the last word that it has heard of this node, and who of this node
    /// is active.
    pub fn hear(
        &mut self,
        name: &Arc<[u8]>,
        (number, heard, reader): (u64, u64, Option<ConsumerId>),
        now_ms: u64,
        updates: &mut Vec<Update>,
    ) {
        if !self.groups.contains_key(name) {
            // It counts on one that is gone, and hears so.
            if reader.is_some() {
                let next = self.next(now_ms);
                self.group(name, None, now_ms).change(next);
            }
            return;
        }
        let next = self.next(now_ms);
        let Some(group) = self.groups.get_mut(name).filter(|group| group.heard <= number) else {
            return;
        };
        group.heard = number;
        let mut changed = false;
        for (id, standing) in &mut group.readers {
            let active = reader == Some(*id);
            *standing = match (*standing, active) {
                (Standing::Waits, true) => Standing::Reads,
                (Standing::Reads, false) => Standing::StepsDown,
                _ => continue,
            };
            changed = true;
            updates.push(Update { reader: *id, active });
        }
        if heard == group.number {
            group.is_heard = true;
            group.says_at_ms = now_ms + SAID_AGAIN_MS;
            if let Some(said_ms) = group.said_ms.take() {
                group.ends_at_ms = said_ms + ANSWERED_WITHIN_MS;
            }
        }
        if changed {
            group.change(next);
        } else if group.is_heard && group.readers.is_empty() {
            self.groups.remove(name);
        }
    }

    /// Another leader is followed, which knows nobody.
    pub fn begin(&mut self) {
        self.wakes_at_ms = 0;
        for group in self.groups.values_mut() {
            (group.heard, group.is_heard, group.says_at_ms) = (0, false, 0);
        }
    }

    /// This node leads: nobody is told anything.
    pub fn forget(&mut self) {
        *self = Self {
            number: self.number,
            ..Self::default()
        };
    }

    /// Those are ended that read. Here they are.
    pub fn end_reading(&mut self, now_ms: u64) -> BTreeSet<ConsumerId> {
        let number = self.next(now_ms);
        let mut ended = BTreeSet::new();
        for group in self.groups.values_mut() {
            let reading = group.readers.extract_if(.., |_, it| *it != Standing::Waits);
            ended.extend(reading.map(|(reader, _)| reader));
            group.change(number);
        }
        self.of.retain(|reader, _| !ended.contains(reader));
        ended
    }

    /// All readers are ended. Here they are.
    pub fn end_all(&mut self, now_ms: u64) -> BTreeSet<ConsumerId> {
        let number = self.next(now_ms);
        for group in self.groups.values_mut() {
            group.readers.clear();
            group.heard = 0;
            group.change(number);
        }
        std::mem::take(&mut self.of).into_keys().collect()
    }

    /// Those of groups of which the leader says nothing. They are ended.
    pub fn take_unanswered(&mut self, now_ms: u64) -> BTreeSet<ConsumerId> {
        let mut ended = BTreeSet::new();
        if now_ms < self.wakes_at_ms {
            return ended;
        }
        let number = self.number + 1;
        for group in self.groups.values_mut() {
            if !group.readers.is_empty() && group.ends_at_ms <= now_ms {
                ended.extend(std::mem::take(&mut group.readers).into_keys());
                group.change(number);
                self.number = number;
            }
        }
        self.of.retain(|reader, _| !ended.contains(reader));
        ended
    }

    /// Says what is due, to the leader that this node follows in this term.
    pub fn say(&mut self, term: u64, now_ms: u64, say: &mut dyn FnMut(GroupWord)) {
        if now_ms < self.wakes_at_ms {
            return;
        }
        self.wakes_at_ms = u64::MAX;
        for (name, group) in &mut self.groups {
            if group.says_at_ms <= now_ms {
                if group.is_heard {
                    // So its answer is none to what was said before.
                    self.number = now_ms.max(self.number + 1);
                    group.change(self.number);
                }
                group.says_at_ms = now_ms + AGAIN_MS;
                group.said_ms.get_or_insert(now_ms);
                let readers = group.readers.iter().take(READERS_MOST);
                say(GroupWord::Members {
                    term,
                    group: name.clone(),
                    partition: group.partition,
                    number: group.number,
                    heard: group.heard,
                    readers: readers.map(|(id, it)| (*id, *it != Standing::Waits)).collect(),
                });
            }
            let next = match group.readers.is_empty() {
                true => group.says_at_ms,
                false => group.says_at_ms.min(group.ends_at_ms),
            };
            self.wakes_at_ms = self.wakes_at_ms.min(next);
        }
    }

    /// When something is due, `u64::MAX` for never.
    pub fn wakes_at_ms(&self) -> u64 {
        match self.groups.is_empty() {
            true => u64::MAX,
            false => self.wakes_at_ms,
        }
    }
}
