//! Groups of readers of which one at a time is active (`single-active-consumer`).
//!
//! The first one that joined is the active one. In a super stream it is the one at the place of the partition among those that
//! joined, so that the active readers of its partitions are spread; then another one may have to become it when one joins or
//! leaves. The one that was is told first, and nobody is active until it has heard it or is gone.
//!
//! Like those who read (`reading`), they are no part of the machine: nothing of it is on record.

use model::ConsumerId;
use model::chunk::REFERENCE_BYTES;
use std::collections::BTreeMap;

/// Tell the reader that it is its group's active one, or is it no longer; the latter is answered by [`Groups::stepped_down`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Update {
    pub reader: ConsumerId,
    pub active: bool,
}

/// The groups of a stream's readers.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<Vec<u8>, Group>,
    /// The group of each reader that has one.
    of: BTreeMap<ConsumerId, Vec<u8>>,
    /// Nobody becomes active.
    is_held: bool,
}

#[derive(Debug)]
struct Group {
    partition: Option<u32>,
    /// In the order in which they joined.
    members: Vec<ConsumerId>,
    active: Active,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Active {
    Nobody,
    Is(ConsumerId),
    /// It was told that it is not.
    StepsDown(ConsumerId),
}

impl Groups {
    /// Groups of which no reader becomes active until [`Groups::let_go`]: readers that nobody here knows may be.
    pub fn held() -> Self {
        Self {
            is_held: true,
            ..Self::default()
        }
    }

    /// True if there are readers, and none becomes active yet.
    pub fn waits(&self) -> bool {
        self.is_held && !self.groups.is_empty()
    }

    /// From now on one of each group is active.
    pub fn let_go(&mut self) -> Vec<Update> {
        self.is_held = false;
        self.groups.values_mut().filter_map(Group::choose).collect()
    }

    /// The active reader of a group, unless it was told that it is so no more.
    pub fn active(&self, name: &[u8]) -> Option<ConsumerId> {
        match self.groups.get(name)?.active {
            Active::Is(reader) => Some(reader),
            Active::Nobody | Active::StepsDown(_) => None,
        }
    }

    fn choose(&mut self, name: &[u8]) -> Option<Update> {
        match self.is_held {
            true => None,
            false => self.groups.get_mut(name)?.choose(),
        }
    }

    /// Adds a reader. Names are as long as references at most; one with a longer name stays without a group, inactive. A reader
    /// is in one group. `partition` is the stream's place among those of a super stream, over which the active ones are spread.
    pub fn join(&mut self, reader: ConsumerId, name: &[u8], partition: Option<u32>) -> Option<Update> {
        if name.len() > REFERENCE_BYTES || self.of.contains_key(&reader) {
            return None;
        }
        self.of.insert(reader, name.to_vec());
        let group = self.groups.entry(name.to_vec()).or_insert_with(|| Group {
            partition,
            members: Vec::new(),
            active: Active::Nobody,
        });
        group.members.push(reader);
        self.choose(name)
    }

    /// It reads no more.
    pub fn leave(&mut self, reader: ConsumerId) -> Option<Update> {
        let name = self.of.remove(&reader)?;
        let group = self.groups.get_mut(&name)?;
        group.members.retain(|member| *member != reader);
        if matches!(group.active, Active::Is(it) | Active::StepsDown(it) if it == reader) {
            group.active = Active::Nobody;
        }
        if group.members.is_empty() {
            self.groups.remove(&name);
        }
        self.choose(&name)
    }

    /// It has heard that it is active no more. Whoever says so without having been told changes nothing.
    pub fn stepped_down(&mut self, reader: ConsumerId) -> Option<Update> {
        let name = self.of.get(&reader)?.clone();
        let group = self.groups.get_mut(&name)?;
        if group.active != Active::StepsDown(reader) {
            return None;
        }
        group.active = Active::Nobody;
        self.choose(&name)
    }
}

impl Group {
    fn choose(&mut self) -> Option<Update> {
        let place = match self.partition {
            Some(partition) if !self.members.is_empty() => partition as usize % self.members.len(),
            _ => 0,
        };
        let wanted = self.members.get(place).copied()?;
        let (reader, active) = match self.active {
            Active::Nobody => {
                self.active = Active::Is(wanted);
                (wanted, true)
            }
            Active::Is(reader) if reader != wanted => {
                self.active = Active::StepsDown(reader);
                (reader, false)
            }
            Active::Is(_) | Active::StepsDown(_) => return None,
        };
        Some(Update { reader, active })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(partition: Option<u32>, steps: &[(u8, u64)]) -> Vec<(u64, bool)> {
        let mut groups = Groups::default();
        let updates = steps.iter().filter_map(|(step, reader)| {
            let reader = ConsumerId(*reader);
            match step {
                b'+' => groups.join(reader, b"g", partition),
                b'-' => groups.leave(reader),
                _ => groups.stepped_down(reader),
            }
        });
        updates.map(|update| (update.reader.0, update.active)).collect()
    }

    #[test]
    fn the_first_is_active_and_the_next_one_follows_it() {
        let steps = [(b'+', 1), (b'+', 2), (b'+', 3), (b'-', 2), (b'-', 1)];
        assert_eq!(names(None, &steps), [(1, true), (3, true)]);
    }

    #[test]
    fn in_a_super_stream_the_place_of_the_partition_decides() {
        // One steps down before the other one begins; whoever says so without having been asked changes nothing.
        let steps = [(b'+', 1), (b'+', 2), (b's', 2), (b's', 1), (b's', 1)];
        assert_eq!(names(Some(1), &steps), [(1, true), (1, false), (2, true)]);
        // Or is gone.
        let steps = [(b'+', 1), (b'+', 2), (b'-', 1)];
        assert_eq!(names(Some(1), &steps), [(1, true), (1, false), (2, true)]);
    }

    #[test]
    fn while_groups_are_held_nobody_becomes_active_and_then_one_of_each() {
        let mut groups = Groups::held();
        let [one, other, third] = [1, 2, 3].map(ConsumerId);
        assert!(!groups.waits(), "for nobody");
        for (reader, name) in [(one, b"g"), (other, b"g"), (third, b"h")] {
            assert_eq!(groups.join(reader, name, None), None);
        }
        assert_eq!((groups.leave(one), groups.active(b"g")), (None, None));
        assert!(groups.waits());
        let told = groups.let_go();
        assert_eq!(told, [other, third].map(|reader| Update { reader, active: true }));
        assert_eq!((groups.active(b"g"), groups.waits()), (Some(other), false));
        assert_eq!(groups.leave(other), None);
        let active = true;
        assert_eq!(groups.join(one, b"g", None), Some(Update { reader: one, active }));
    }

    proptest! {
        #[test]
        fn never_two_are_active_and_always_one_will_be(
            partition in prop::option::of(0_u32..4),
            steps in prop::collection::vec((0_u8..3, 0_u64..5), 0..60),
        ) {
            let mut groups = Groups::default();
            // The naive model: who joined, in order; who believes to be active; who was told to step down.
            let (mut members, mut active, mut told) = (Vec::new(), None, None);
            for (step, reader) in steps {
                let id = ConsumerId(reader);
                let update = match step {
                    0 => {
                        if !members.contains(&reader) {
                            members.push(reader);
                        }
                        groups.join(id, b"g", partition)
                    }
                    1 => {
                        members.retain(|member| *member != reader);
                        active = active.filter(|it| *it != reader);
                        told = told.filter(|it| *it != reader);
                        groups.leave(id)
                    }
                    _ => {
                        if told == Some(reader) {
                            (active, told) = (None, None);
                        }
                        groups.stepped_down(id)
                    }
                };
                match update {
                    Some(Update { reader, active: true }) => {
                        prop_assert_eq!((active, told), (None, None), "there is one still");
                        active = Some(reader.0);
                    }
                    Some(Update { reader, .. }) => {
                        prop_assert_eq!((active, told), (Some(reader.0), None));
                        told = active;
                    }
                    None => {}
                }
                let place = partition.map_or(0, |partition| partition as usize % members.len().max(1));
                let wanted = members.get(place).copied();
                prop_assert!(active == wanted || told.is_some());
                prop_assert_eq!(groups.of.len(), members.len());
                prop_assert_eq!(groups.groups.is_empty(), members.is_empty());
            }
        }
    }
}
