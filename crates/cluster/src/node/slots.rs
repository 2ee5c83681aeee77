//! Where a node's members are: slots that are used again, and which of them are awake or have something to say.

use crate::group::Group;
use crate::identity::GroupId;
use std::collections::BTreeMap;

/// The lists name slots, not groups: what is in a list when its group goes is the next group's, which is then turned
/// once for nothing.
#[derive(Default)]
struct Slot {
    group: Option<Box<Group>>,
    /// Whether it is in the list of those that have something to say.
    dirty: bool,
    /// Whether it is in the list of those that are awake.
    listed: bool,
}

#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<usize>,
    index: BTreeMap<GroupId, usize>,
    dirty: Vec<usize>,
    awake: Vec<usize>,
}

impl Slots {
    pub fn insert(&mut self, group: Group) -> usize {
        let id = group.id;
        let slot = self.free.pop().unwrap_or(self.slots.len());
        if slot == self.slots.len() {
            self.slots.push(Slot::default());
        }
        self.slots[slot].group = Some(Box::new(group));
        self.index.insert(id, slot);
        slot
    }

    /// What it held in memory is given back.
    pub fn remove(&mut self, group: GroupId) {
        if let Some(slot) = self.index.remove(&group) {
            self.slots[slot].group = None;
            self.free.push(slot);
        }
    }

    pub fn find(&self, group: GroupId) -> Option<usize> {
        self.index.get(&group).copied()
    }

    pub fn get(&self, group: GroupId) -> Option<&Group> {
        self.at(self.find(group)?)
    }

    pub fn get_mut(&mut self, group: GroupId) -> Option<&mut Group> {
        self.at_mut(self.find(group)?)
    }

    pub fn at(&self, slot: usize) -> Option<&Group> {
        self.slots.get(slot)?.group.as_deref()
    }

    pub fn at_mut(&mut self, slot: usize) -> Option<&mut Group> {
        self.slots.get_mut(slot)?.group.as_deref_mut()
    }

    /// How many slots there are, free ones included.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn groups(&self) -> impl Iterator<Item = &Group> {
        self.slots.iter().filter_map(|slot| slot.group.as_deref())
    }

    pub fn awake(&self) -> usize {
        let awake = |slot: &&usize| self.at(**slot).is_some_and(Group::is_awake);
        self.awake.iter().filter(awake).count()
    }

    /// How many groups are awake, or were a while ago.
    pub fn listed(&self) -> usize {
        self.awake.len()
    }

    /// What was done with a group may have woken it, and made it have something to say.
    pub fn touch(&mut self, at: usize) {
        let slot = &mut self.slots[at];
        let awake = slot.group.as_ref().is_some_and(|group| group.is_awake());
        if awake && !std::mem::replace(&mut slot.listed, true) {
            self.awake.push(at);
        }
        if !std::mem::replace(&mut slot.dirty, true) {
            self.dirty.push(at);
        }
    }

    /// What was done may have woken it and can't have made it say anything otherwise.
    pub fn touch_if_awake(&mut self, slot: usize) {
        if self.at(slot).is_some_and(Group::is_awake) {
            self.touch(slot);
        }
    }

    /// Visits the groups that are awake; those that have fallen asleep, or do so over it, leave the list. All that were
    /// visited may have something to say then.
    pub fn each_awake(&mut self, mut visit: impl FnMut(&mut Group)) {
        let mut awake = std::mem::take(&mut self.awake);
        awake.retain(|&at| {
            let slot = &mut self.slots[at];
            slot.listed = false;
            let Some(group) = slot.group.as_deref_mut().filter(|group| group.is_awake()) else {
                return false;
            };
            visit(group);
            slot.listed = group.is_awake();
            if !std::mem::replace(&mut slot.dirty, true) {
                self.dirty.push(at);
            }
            slot.listed
        });
        self.awake = awake;
    }

    /// Visits the groups that may have something to say.
    pub fn each_dirty(&mut self, mut visit: impl FnMut(usize, &mut Group)) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for &at in &dirty {
            let slot = &mut self.slots[at];
            slot.dirty = false;
            if let Some(group) = slot.group.as_deref_mut() {
                visit(at, group);
            }
        }
        dirty.clear();
        self.dirty = dirty;
    }
}
