//! What a member remembers of its group's contents: what is paged out, written down, let go of, and found again.

use super::trio::{NODES, Trio};
use super::{others, world::ByHand};
use crate::groups::alone::{self, Alone};
use crate::groups::{Act, Hosted, Identity, Links};
use crate::node::ends::Ends;
use bytes::Bytes;
use cluster::{GroupId, MemberId, Membership, NodeId, Settings};
use model::{QueueSettings, Seq, Timestamp};
use queue::Request;
use queue::fifo::Classic;
use queue::store::{self, LogPlace};
use std::path::Path;
use std::sync::Arc;
use storage::LogOptions;
use storage::faulty::FaultyFs;

fn durable() -> QueueSettings {
    QueueSettings {
        durable: true,
        ..QueueSettings::default()
    }
}

#[test]
fn a_deep_queue_is_paged_out_on_every_node_and_read_back_in_order_by_whoever_leads() {
    let mut trio = Trio::deep();
    let mut first = 1;
    for _ in 0..3 {
        let leader = trio.leader();
        trio.publish_each(leader, first..=first + 299);
        NODES
            .iter()
            .for_each(|id| assert!(trio.paged(*id) > 200, "node {id}"));
        let drained = trio.drain(leader);
        assert_eq!(drained, (first..first + 300).collect::<Vec<_>>());
        first += 300;
        // What it holds goes to whoever leads next, with its clients.
        trio.crash(leader, 1);
        let next = trio.leader_of(&others(leader));
        assert_eq!(trio.drain(next), drained);
        for seq in 1..first {
            trio.ack(next, seq);
        }
        trio.settle();
        trio.start(leader);
        trio.ticks(10);
        assert_eq!(NODES.map(|id| trio.messages(id)), [Some(0); 3]);
    }
    let needed = NODES.map(|id| trio.segment_bytes(id).0);
    assert_eq!(needed, [0; 3], "what is consumed is freed on all nodes");
}

#[test]
fn a_member_starts_from_its_last_checkpoint_and_its_log_is_let_go_of() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=200);
    trio.tell_commits();
    NODES.iter().for_each(|id| trio.checkpoint(*id));
    trio.settle();
    for id in NODES {
        let (first, last) = trio.span(id).unwrap_or((u64::MAX, u64::MAX));
        assert!(first >= 200, "node {id} has {first} to {last}");
    }
    trio.publish_each(leader, 201..=250);
    NODES.iter().for_each(|id| drop(trio.crash(*id, 7)));
    NODES.iter().for_each(|id| trio.start(*id));
    let leader = trio.leader();
    assert_eq!(trio.drain(leader), (1..=250).collect::<Vec<_>>());
    assert_eq!(NODES.map(|id| trio.messages(id)), [Some(250); 3]);
}

#[test]
fn whatever_a_power_cut_leaves_of_a_checkpoint_the_contents_are_the_same() {
    for seed in 0..60 {
        let mut trio = Trio::deep();
        let leader = trio.leader();
        trio.publish_each(leader, 1..=40);
        trio.checkpoint(leader);
        trio.settle();
        trio.publish_each(leader, 41..=60);
        // Steps of the disks that the checkpoint is made of, as far as the seed says.
        trio.checkpoint(leader);
        trio.checkpoint(others(leader)[0]);
        (0..seed % 8).for_each(|_| trio.step());
        NODES.iter().for_each(|id| drop(trio.crash(*id, seed)));
        NODES.iter().for_each(|id| trio.start(*id));
        let leader = trio.leader();
        assert_eq!(trio.drain(leader), (1..=60).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn a_checkpoint_of_what_is_never_committed_never_counts() {
    let mut trio = Trio::deep();
    let old = trio.leader();
    trio.publish_each(old, 1..=10);
    trio.isolate(old);
    assert!(trio.publish(old, 11..=15));
    trio.checkpoint(old);
    trio.settle();
    assert_eq!(trio.base(old), 0, "nothing is let go of");
    let new = trio.leader_of(&others(old));
    trio.publish_each(new, 21..=25);
    trio.heal();
    trio.ticks(10);
    assert_eq!(trio.messages(old), Some(15));
    trio.crash(old, 3);
    trio.start(old);
    trio.ticks(10);
    assert_eq!(trio.messages(old), Some(15));
    let leader = trio.leader();
    let expected: Vec<u64> = (1..=10).chain(21..=25).collect();
    assert_eq!(trio.drain(leader), expected);
}

#[test]
fn a_leader_under_load_writes_its_contents_down_once_they_are_committed() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.left(leader);
    trio.publish_each(leader, 1..=50);
    trio.hung.extend(others(leader));
    for number in 51..=60 {
        assert!(trio.publish(leader, number..=number));
    }
    trio.checkpoint(leader);
    trio.work();
    assert_eq!(trio.base(leader), 0, "what is not committed is in it");
    trio.hung.clear();
    trio.settle();
    assert!(trio.base(leader) > 50, "it counts by now");
    trio.crash(leader, 5);
    trio.start(leader);
    let leader = trio.leader();
    assert_eq!(trio.drain(leader), (1..=60).collect::<Vec<_>>());
}

#[test]
fn a_deposed_leader_is_made_anew_of_its_checkpoint_and_loses_no_place() {
    let mut trio = Trio::deep();
    let old = trio.leader();
    trio.publish_each(old, 1..=100);
    trio.checkpoint(old);
    trio.settle();
    trio.publish_each(old, 101..=200);
    // It hands out and is done with messages, of which nobody hears.
    let taken: Vec<Seq> = (0..30).filter_map(|_| trio.take_next(old)).collect();
    trio.isolate(old);
    taken.iter().for_each(|seq| assert!(trio.ack(old, *seq)));
    trio.settle();
    let new = trio.leader_of(&others(old));
    trio.heal();
    trio.ticks(10);
    assert!(!trio.queue(old).leads());
    assert_eq!(trio.messages(old), Some(200));
    // It is asked for everything as the next leader.
    trio.isolate(new);
    let next = trio.leader_of(&others(new));
    assert_eq!(trio.drain(next).len(), 200);
    trio.heal();
    trio.ticks(5);
    let leader = trio.leader();
    (1..=200).for_each(|seq| assert!(trio.ack(leader, seq)));
    trio.ticks(5);
    assert_eq!(NODES.map(|id| trio.segment_bytes(id).0), [0; 3]);
}

#[test]
fn log_files_are_used_again_while_messages_come_go_and_stay() {
    let mut trio = Trio::with(durable(), 8 << 10, 256 << 10);
    trio.body = 500;
    let leader = trio.leader();
    trio.ticks(1);
    for first in (1..6_000_u64).step_by(8) {
        assert!(trio.publish(leader, first..=first + 7));
        for _ in 0..8 {
            let seq = trio.take_next(leader).unwrap();
            // One of ten stays.
            if !seq.is_multiple_of(10) {
                assert!(trio.ack(leader, seq));
            }
        }
    }
    trio.settle();
    for id in NODES {
        let size = trio.node(id).log.size();
        assert!(
            size < 1 << 20,
            "node {id} has {size} bytes of log, of 3 MB that were written"
        );
    }
    NODES.iter().for_each(|id| drop(trio.crash(*id, 11)));
    NODES.iter().for_each(|id| trio.start(*id));
    let leader = trio.leader();
    let stayed: Vec<u64> = (1..=6_000).filter(|number| number % 10 == 0).collect();
    assert!(trio.drain(leader) == stayed);
}

#[test]
fn a_follower_that_was_away_for_a_moment_finds_what_the_log_has_given_up_in_the_tail() {
    let mut trio = Trio::with(durable(), 8 << 10, 256 << 10);
    trio.body = 500;
    let leader = trio.leader();
    trio.publish_each(leader, 1..=10);
    let away = others(leader)[0];
    trio.isolate(away);
    trio.ticks(20);
    let leader = trio.leader_of(&others(away));
    for number in 11..=2_000 {
        assert!(trio.publish(leader, number..=number));
        if number % 8 == 0 {
            trio.settle();
        }
    }
    trio.settle();
    assert!(trio.span(leader).unwrap().0 > 1_000, "{:?}", trio.span(leader));
    trio.heal();
    trio.ticks(30);
    assert_eq!(trio.messages(away), Some(2_000));
    trio.checkpoint(leader);
    trio.settle();
    assert_eq!(trio.node(leader).log.tail_bytes(), 0, "nobody lacks it any more");
}

struct Nowhere;

impl Links for Nowhere {
    fn send(&self, _: NodeId, _: Bytes) {}

    fn bulk(&self, _: NodeId, _: Bytes) {}
}

type Queues = Vec<Arc<Hosted<Classic<Ends>>>>;

/// A node with so many groups, each of which has one member.
fn many(disk: FaultyFs, count: u64) -> (Arc<ByHand>, Alone, Queues) {
    let (world, me) = (ByHand::new(disk), MemberId::first(NodeId(1)));
    let options = LogOptions {
        file_bytes: 256 << 10,
        make_ahead: false,
        ..LogOptions::default()
    };
    let dir = Path::new("/data");
    let (node, settings) = (NodeId(1), Settings::default());
    let mut alone = alone::open(world.clone(), dir, options, node, 1, settings, Arc::new(Nowhere)).unwrap();
    let members = (1..=count).map(|group| {
        let members = Membership::of(&[me]);
        let group = GroupId(group);
        let act: Act = Box::new(|_| {});
        (Identity { group, me, members }, durable(), act)
    });
    let queues = alone.members(members.collect());
    let queues = queues.into_iter().map(Result::unwrap).collect();
    alone.sweep().unwrap();
    for _ in 0..40 {
        alone.groups.tick();
        world.work();
    }
    (world, alone, queues)
}

#[test]
fn three_hundred_groups_are_found_again_in_one_pass_some_with_checkpoints_and_some_without() {
    use model::Machine as _;
    let disk = FaultyFs::new();
    let (world, alone, queues) = many(disk.clone(), 300);
    let block = |number: usize| super::trio::block(number as u64..=number as u64, 200);
    for round in 0..4 {
        for (at, queue) in queues.iter().enumerate() {
            let block = Arc::new(block(at + 1));
            let request = Request::Enqueue { block, receipt: None };
            assert!(queue.submit(Timestamp(1), request).is_ok());
            if at % 3 == round {
                let before = LogPlace(u64::MAX);
                let request = Request::Store(store::Request::Checkpoint { before });
                assert!(queue.submit(Timestamp(1), request).is_ok());
            }
        }
        world.work();
    }
    drop((queues, alone));
    world.abandon();
    let (_world, _alone, queues) = many(disk.crash(3), 300);
    for (at, queue) in queues.iter().enumerate() {
        let messages = queue.inspect(|machine| machine.status().persistent);
        assert_eq!(messages, Some(4), "group {}", at + 1);
    }
}

#[test]
fn a_member_whose_log_is_damaged_is_not_opened_and_says_why() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=50);
    trio.crash(leader, 0);
    let refused: Vec<String> = (0..50)
        .filter_map(|at| trio.refuses_after_rot(leader, 1_000 + 97 * at))
        .collect();
    assert!(
        refused.iter().any(|why| why.contains("Unreadable")),
        "{refused:?}"
    );
    trio.start(leader);
    trio.ticks(10);
    assert_eq!(trio.messages(leader), Some(50), "the disk itself is whole");
}
