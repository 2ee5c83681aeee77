//! Duplicates within one block.

use crate::mixed::properties;
use crate::world::{Event, World, body, consume, keyed_block, number};
use model::{BlockBuilder, Timestamp};
use proptest::prelude::*;
use queue::fifo::{QueueSettings, Request, Sorting};
use std::sync::Arc;

proptest! {
    #[test]
    fn a_block_with_duplicates_is_the_same_as_its_messages_one_by_one(
        keys in prop::collection::vec(prop::option::of(0u8..4), 1..30),
        split in 1usize..30,
        (no_ack, sorted) in (any::<bool>(), any::<bool>()),
    ) {
        let settings = QueueSettings {
            durable: true,
            deduplicates: true,
            sorting: if sorted { Sorting::FairKey("group".into()) } else { Sorting::Arrival },
            ..QueueSettings::default()
        };
        let run = |size: usize| {
            let mut world = World::new(settings.clone());
            world.sorted = true;
            let mut came: Vec<u64> = Vec::new();
            if no_ack {
                world.handle(consume(1, no_ack, 0, 0));
            }
            let messages: Vec<(u64, Option<u8>)> = (1..).zip(keys.iter().copied()).collect();
            for part in messages.chunks(size) {
                let mut builder = BlockBuilder::new();
                for (number, key) in part {
                    builder.push(b"", b"q", &properties(*number as u8 % 2, *key), &body(*number, 20));
                }
                let block = Arc::new(builder.finish(true, Timestamp(1)));
                for event in world.handle(Request::Enqueue { block, receipt: None }) {
                    if let Event::Delivered(_, delivery) = event {
                        came.extend(delivery.seqs.iter().map(|seq| {
                            number(delivery.block.message((seq - delivery.base) as usize))
                        }));
                    }
                }
            }
            came.extend(world.drain_numbers());
            came.sort_unstable();
            came
        };
        prop_assert_eq!(run(split), run(1));
    }
}

#[test]
fn a_key_is_known_however_many_have_come_and_gone() {
    for sorting in [Sorting::Arrival, Sorting::Priority(9)] {
        let mut world = World::new(QueueSettings {
            deduplicates: true,
            sorting,
            ..QueueSettings::default()
        });
        for at in 1..=200 {
            let key = format!("key {at}");
            for number in [at, 1000 + at] {
                let block = keyed_block(number, &[10], false, &[&key]);
                let receipt = None;
                world.handle(Request::Enqueue { block, receipt });
            }
            assert_eq!(world.drain_numbers(), [at]);
        }
    }
}
