//! Which lane a message goes to.

use super::LaneId;
use model::properties::Properties;
use model::table::raw::{Entries, RawValue};
use model::{Block, BlockBuilder, Mutant, Sorting, fnv};
use std::cmp::Reverse;
use std::sync::Arc;

/// The level of messages that have no priority.
const USUAL: u8 = 4;
/// The highest level.
const HIGHEST: u8 = 31;

/// Where a lane stands among those of a queue that is sorted like this: higher ones go first. Messages of the usual level are in
/// the lane that every queue begins with, so that a queue that has no others need not be sorted.
pub(super) fn rank(by: &Sorting, lane: LaneId) -> LaneId {
    match (by, lane) {
        (Sorting::Levels, 0) => USUAL.into(),
        (Sorting::Levels, lane) => lane - 1,
        (_, lane) => lane,
    }
}

/// True if a message of the block has another level than the usual one.
#[inline]
pub(super) fn has_levels(block: &Block) -> bool {
    let mut priorities = (0..block.len()).map(|at| block.message(at).properties.priority());
    priorities.any(|priority| priority.is_some_and(|it| it != USUAL))
}

/// The block's messages by lane, each lane's in their order; the highest lane first. `lanes` says which lane each goes to.
pub(super) fn sort(by: &Sorting, lanes: &[LaneId], block: &Arc<Block>) -> Vec<(LaneId, Arc<Block>)> {
    let mut kinds = lanes.to_vec();
    kinds.sort_unstable_by_key(|lane| Reverse(rank(by, *lane)));
    kinds.dedup();
    if kinds.is_empty() {
        return Vec::new();
    }
    if let [only] = *kinds {
        return vec![(only, block.clone())];
    }
    let part = |kind: LaneId| {
        let mut builder = BlockBuilder::new();
        for (at, _) in lanes.iter().enumerate().filter(|(_, lane)| **lane == kind) {
            builder.push_message(&block.message(at));
        }
        let part = builder.finish(block.persistent(), block.received());
        (kind, Arc::new(part))
    };
    kinds.into_iter().map(part).collect()
}

/// Which lane each of the block's messages goes to.
pub(super) fn lanes_of(by: &Sorting, block: &Block) -> Vec<LaneId> {
    (0..block.len())
        .map(|at| lane(by, block.message(at).properties))
        .collect()
}

fn lane(by: &Sorting, properties: Properties<'_>) -> LaneId {
    match by {
        Sorting::Arrival => 0,
        Sorting::Levels => match properties.priority() {
            None | Some(USUAL) => 0,
            Some(_) if Mutant::IgnoresLevels.is_on() => 0,
            Some(level) => LaneId::from(level.min(HIGHEST)) + 1,
        },
        Sorting::Priority(highest) => properties.priority().unwrap_or(0).min(*highest).into(),
        Sorting::FairKey(name) => properties.headers().map_or(0, |headers| {
            Entries::new(&headers).find(name.as_bytes()).map_or(0, group)
        }),
    }
}

/// A group's lane. It must be the same after a restart, with nothing remembered of the groups there were, so it is a hash: two
/// groups in 65,535 that have the same one share their turns. Whoever has no group is one of its own, 0.
fn group(value: RawValue<'_>) -> LaneId {
    let hash = match value {
        RawValue::LongStr(bytes) | RawValue::Binary(bytes) => fnv(bytes),
        RawValue::Bool(it) => fnv(&[u8::from(it)]),
        RawValue::Byte(it) => number(it.into()),
        RawValue::UnsignedByte(it) => number(it.into()),
        RawValue::Short(it) => number(it.into()),
        RawValue::UnsignedShort(it) => number(it.into()),
        RawValue::SignedInt(it) => number(it.into()),
        RawValue::UnsignedInt(it) => number(it.into()),
        RawValue::Long(it) => number(it),
        _ => return 0,
    };
    (hash % u64::from(LaneId::MAX)) as LaneId + 1
}

/// Clients choose the width of an integer as they like; the group is the same.
fn number(number: i64) -> u64 {
    fnv(&number.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timestamp;
    use model::properties::PropertiesBuilder;
    use model::table::Table;

    fn block(properties: &[Vec<u8>]) -> Arc<Block> {
        let mut builder = BlockBuilder::new();
        for (at, properties) in properties.iter().enumerate() {
            builder.push(b"", b"q", properties, &[at as u8]);
        }
        Arc::new(builder.finish(true, Timestamp(7)))
    }

    fn bodies(sorting: &Sorting, properties: &[Vec<u8>]) -> Vec<(LaneId, Vec<u8>)> {
        let block = block(properties);
        let parts = sort(sorting, &lanes_of(sorting, &block), &block);
        parts
            .into_iter()
            .map(|(lane, part)| (lane, (0..part.len()).map(|at| part.message(at).body[0]).collect()))
            .collect()
    }

    #[test]
    fn priorities_above_the_highest_are_the_highest() {
        let priority = |it: u8| PropertiesBuilder::new().priority(it).encode();
        let none = PropertiesBuilder::new().encode();
        let sent = [priority(1), none, priority(9), priority(3), priority(1)];
        let sorted = bodies(&Sorting::Priority(3), &sent);
        assert_eq!(sorted, [(3, vec![2, 3]), (1, vec![0, 4]), (0, vec![1])]);
    }

    #[test]
    fn a_message_without_a_priority_is_of_the_fifth_of_32_levels() {
        let priority = |it: u8| PropertiesBuilder::new().priority(it).encode();
        let none = PropertiesBuilder::new().encode();
        let sent = [
            priority(3),
            none,
            priority(5),
            priority(200),
            priority(4),
            priority(31),
        ];
        let sorted = bodies(&Sorting::Levels, &sent);
        let ranks = |(lane, bodies): &(LaneId, Vec<u8>)| (rank(&Sorting::Levels, *lane), bodies.clone());
        let expected = [(31, vec![3, 5]), (5, vec![2]), (4, vec![1, 4]), (3, vec![0])];
        assert_eq!(sorted.iter().map(ranks).collect::<Vec<_>>(), expected);
        assert!(has_levels(&block(&sent)) && !has_levels(&block(&[priority(4)])));
    }

    #[test]
    fn a_group_is_the_same_whatever_the_width_of_its_number() {
        let with = |table: Table| PropertiesBuilder::new().headers(&table).encode();
        let fair = Sorting::FairKey("tenant".into());
        let sent = [
            with(Table::new().with("tenant", 5_i32)),
            with(Table::new().with("tenant", 5_i64)),
            with(Table::new().with("other", "x")),
        ];
        let sorted = bodies(&fair, &sent);
        assert_eq!(
            sorted
                .iter()
                .map(|(_, bodies)| bodies.clone())
                .collect::<Vec<_>>(),
            [vec![0, 1], vec![2]]
        );
        assert_eq!(sorted[1].0, 0);
    }

    #[test]
    fn a_block_of_one_kind_is_not_copied() {
        let block = block(&[vec![0, 0], vec![0, 0]]);
        let nine = Sorting::Priority(9);
        let sorted = sort(&nine, &lanes_of(&nine, &block), &block);
        assert!(Arc::ptr_eq(&sorted[0].1, &block));
    }
}
