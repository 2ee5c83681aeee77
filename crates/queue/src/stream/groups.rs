//! Groups of readers of which one at a time is active (`single-active-consumer`).
//!
//! The first one that joined is the active one. In a super stream it is the one at the place of the partition among those that
//! joined, so that the active readers of its partitions are spread; then another one may have to become it when one joins or
//! leaves. The one that was is told first, and nobody is active until it has heard it or is gone.

use super::Effect;
use crate::ends::Ends;
use model::ConsumerId;
use model::chunk::REFERENCE_BYTES;
use std::collections::BTreeMap;

#[derive(Default)]
pub(super) struct Groups {
    groups: BTreeMap<Vec<u8>, Group>,
    /// The group of each reader that has one.
    of: BTreeMap<ConsumerId, Vec<u8>>,
}

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
    /// Adds a reader. Names are as long as references at most; one with a longer name stays without a group, inactive. A reader
    /// is in one group.
    pub(super) fn join<E: Ends>(
        &mut self,
        reader: ConsumerId,
        name: &[u8],
        partition: Option<u32>,
        effects: &mut Vec<Effect<E>>,
    ) {
        if name.len() > REFERENCE_BYTES || self.of.contains_key(&reader) {
            return;
        }
        self.of.insert(reader, name.to_vec());
        let group = self.groups.entry(name.to_vec()).or_insert_with(|| Group {
            partition,
            members: Vec::new(),
            active: Active::Nobody,
        });
        group.members.push(reader);
        group.choose(effects);
    }

    pub(super) fn leave<E: Ends>(&mut self, reader: ConsumerId, effects: &mut Vec<Effect<E>>) {
        let Some(name) = self.of.remove(&reader) else {
            return;
        };
        let Some(group) = self.groups.get_mut(&name) else {
            return;
        };
        group.members.retain(|member| *member != reader);
        if matches!(group.active, Active::Is(it) | Active::StepsDown(it) if it == reader) {
            group.active = Active::Nobody;
        }
        group.choose(effects);
        if group.members.is_empty() {
            self.groups.remove(&name);
        }
    }

    pub(super) fn stepped_down<E: Ends>(&mut self, reader: ConsumerId, effects: &mut Vec<Effect<E>>) {
        let name = self.of.get(&reader);
        if let Some(group) = name.and_then(|name| self.groups.get_mut(name))
            && group.active == Active::StepsDown(reader)
        {
            group.active = Active::Nobody;
            group.choose(effects);
        }
    }
}

impl Group {
    fn choose<E: Ends>(&mut self, effects: &mut Vec<Effect<E>>) {
        let place = match self.partition {
            Some(partition) if !self.members.is_empty() => partition as usize % self.members.len(),
            _ => 0,
        };
        let Some(wanted) = self.members.get(place).copied() else {
            return;
        };
        match self.active {
            Active::Nobody => {
                self.active = Active::Is(wanted);
                effects.push(Effect::Update {
                    reader: wanted,
                    active: true,
                });
            }
            Active::Is(reader) if reader != wanted => {
                self.active = Active::StepsDown(reader);
                effects.push(Effect::Update {
                    reader,
                    active: false,
                });
            }
            Active::Is(_) | Active::StepsDown(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Ranges;
    use proptest::prelude::*;

    #[derive(Debug, PartialEq)]
    struct Plain;

    impl Ends for Plain {
        type Receipt = ();
        type Reply = ();
        type Outlet = ();

        fn split((): &mut (), _: &Ranges, _: usize) {}
    }

    fn names(partition: Option<u32>, steps: &[(u8, u64)]) -> Vec<(u64, bool)> {
        let mut groups = Groups::default();
        let mut effects: Vec<Effect<Plain>> = Vec::new();
        for (step, reader) in steps {
            let reader = ConsumerId(*reader);
            match step {
                b'+' => groups.join(reader, b"g", partition, &mut effects),
                b'-' => groups.leave(reader, &mut effects),
                _ => groups.stepped_down(reader, &mut effects),
            }
        }
        let updates = effects.into_iter().map(|effect| match effect {
            Effect::Update { reader, active } => (reader.0, active),
            other => panic!("{other:?}"),
        });
        updates.collect()
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

    proptest! {
        #[test]
        fn never_two_are_active_and_always_one_will_be(
            partition in prop::option::of(0_u32..4),
            steps in prop::collection::vec((0_u8..3, 0_u64..5), 0..60),
        ) {
            let mut groups = Groups::default();
            let mut effects: Vec<Effect<Plain>> = Vec::new();
            // The naive model: who joined, in order; who believes to be active; who was told to step down.
            let (mut members, mut active, mut told) = (Vec::new(), None, None);
            for (step, reader) in steps {
                let id = ConsumerId(reader);
                match step {
                    0 => {
                        groups.join(id, b"g", partition, &mut effects);
                        if !members.contains(&reader) {
                            members.push(reader);
                        }
                    }
                    1 => {
                        groups.leave(id, &mut effects);
                        members.retain(|member| *member != reader);
                        active = active.filter(|it| *it != reader);
                        told = told.filter(|it| *it != reader);
                    }
                    _ => {
                        groups.stepped_down(id, &mut effects);
                        if told == Some(reader) {
                            (active, told) = (None, None);
                        }
                    }
                }
                for effect in effects.drain(..) {
                    match effect {
                        Effect::Update { reader, active: true } => {
                            prop_assert_eq!((active, told), (None, None), "there is one still");
                            active = Some(reader.0);
                        }
                        Effect::Update { reader, .. } => {
                            prop_assert_eq!((active, told), (Some(reader.0), None));
                            told = active;
                        }
                        other => panic!("{other:?}"),
                    }
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
