//! Members that lag, are new, or have lost something: they get contents and bodies of others, whatever happens meanwhile.

use super::others;
use super::trio::{Left, NODES, Trio};
use crate::groups::{CopyPhase, CopyProgress};
use cluster::Step;
use model::properties::PropertiesBuilder;
use model::{Block, BlockBuilder, Incarnation, QueueSettings, Sorting, Timestamp};
use queue::{Origin, Request};
use std::collections::BTreeSet;
use std::sync::Arc;

/// All write their contents down, so that their logs begin behind them.
pub fn checkpoint(trio: &Trio) {
    for id in NODES.into_iter().filter(|id| trio.is_up(*id)) {
        trio.checkpoint(id);
        trio.settle();
    }
}

/// The node's disk is lost, and its group has its next life as a member.
pub fn replace(trio: &mut Trio, id: u32) {
    let (before, after) = trio.wipe(id);
    let leader = trio.leader_of(&others(id));
    let steps = [Step::Remove(before), Step::Learner(after)];
    trio.groups(leader).change(super::trio::GROUP, &steps).unwrap();
    trio.start(id);
}

/// Sees to it that the node's present life is a voter: who led when that was changed may have died before it was so.
pub fn is_member(trio: &Trio, id: u32) {
    let (group, after) = (super::trio::GROUP, trio.member(id));
    for _ in 0..50 {
        let leader = trio.leader();
        let members = trio.groups(leader).status(group).unwrap().members;
        if members.voters.contains(&after) && !members.is_joint() {
            return;
        }
        let before = members
            .members()
            .filter(|it| it.node == after.node && *it != after);
        let becomes = match members.learners.contains(&after) {
            true => Step::Voter(after),
            false => Step::Learner(after),
        };
        let steps: Vec<Step> = before.map(Step::Remove).chain([becomes]).collect();
        let _ = trio.groups(leader).change(group, &steps);
        trio.ticks(5);
    }
    panic!("node {id} is no member");
}

/// Has this node lead.
pub fn lead(trio: &Trio, id: u32) {
    for _ in 0..50 {
        let leader = trio.leader();
        if leader == id {
            return;
        }
        let _ = trio.groups(leader).transfer(super::trio::GROUP, trio.member(id));
        trio.ticks(5);
    }
    panic!("node {id} does not lead");
}

/// It has all of these, and can read them.
pub fn has(trio: &Trio, id: u32, numbers: impl Iterator<Item = u64>) {
    lead(trio, id);
    assert_eq!(trio.drain(id), numbers.collect::<Vec<_>>(), "on node {id}");
}

#[test]
fn a_member_whose_disk_was_lost_comes_back_as_its_next_life_with_contents_and_bodies() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=300);
    let seq = trio.take_next(leader).unwrap();
    trio.ack(leader, seq);
    trio.settle();
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    trio.ticks(30);
    is_member(&trio, lost);
    assert_eq!(trio.messages(lost), Some(299));
    let sent = trio.bulk();
    assert!((30_000..120_000).contains(&sent), "{sent}");
    has(&trio, lost, 2..=300);
    trio.publish_each(lost, 301..=310);
    trio.tell_commits();
    assert_eq!(NODES.map(|id| trio.messages(id)), [Some(309); 3]);
}

#[test]
fn operators_see_how_far_a_copy_is_until_it_is_there() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=300);
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    let mut seen: Vec<CopyProgress> = Vec::new();
    for step in 0..4_000 {
        match step % 8 {
            0 => trio.tick_only(),
            1 | 4 | 6 => trio.step(),
            _ => drop(trio.deliver_one()),
        }
        seen.extend(trio.queue(lost).progress());
    }
    let bodies: Vec<_> = seen.iter().filter(|it| it.phase == CopyPhase::Bodies).collect();
    let first = bodies.first().unwrap();
    assert_eq!((first.total, first.left, first.bytes), (300, 300, 0));
    assert!(bodies.iter().is_sorted_by_key(|it| it.percent()));
    trio.ticks(30);
    assert_eq!(trio.queue(lost).progress(), None);
    assert_eq!(trio.messages(lost), Some(300));
}

#[test]
fn a_member_that_was_away_for_long_is_sent_only_the_bodies_that_it_lacks() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=300);
    checkpoint(&trio);
    let away = others(leader)[0];
    trio.crash(away, 3);
    trio.publish_each(leader, 301..=330);
    trio.ticks(610);
    checkpoint(&trio);
    trio.publish_each(leader, 331..=340);
    trio.start(away);
    trio.bulk();
    trio.ticks(30);
    assert_eq!(trio.messages(away), Some(340));
    let sent = trio.bulk();
    assert!(
        (3_000..12_000).contains(&sent),
        "30 messages of 100 bytes: {sent}"
    );
    has(&trio, away, 1..=340);
}

#[test]
fn a_member_takes_what_the_next_leader_offers_when_what_the_one_before_had_is_gone_with_it() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    let (away, next) = (others(leader)[0], others(leader)[1]);
    trio.publish_each(leader, 1..=40);
    trio.crash(away, 3);
    trio.publish_each(leader, 41..=60);
    trio.ticks(610);
    // The next leader's contents are older than those that are offered first.
    trio.checkpoint(next);
    trio.settle();
    trio.publish_each(leader, 61..=80);
    trio.checkpoint(leader);
    trio.settle();
    trio.start(away);
    let told = |trio: &Trio| trio.groups(away).status(super::trio::GROUP).unwrap().snapshots;
    for _ in 0..50 {
        while told(&trio) == 0 && trio.deliver_one() {}
        if told(&trio) > 0 {
            break;
        }
        trio.work();
        trio.tick_only();
    }
    assert!(told(&trio) > 0 && trio.base(next) < trio.base(leader));
    trio.crash(leader, 4);
    trio.ticks(80);
    assert_eq!(trio.leader_of(&[away, next]), next);
    assert_eq!(trio.messages(away), Some(80));
    has(&trio, next, 1..=80);
}

#[test]
fn whichever_end_dies_at_whatever_moment_of_a_transfer_it_ends_with_everything() {
    for at in 0..30 {
        for source_dies in [false, true] {
            let mut trio = Trio::deep();
            let leader = trio.leader();
            trio.publish_each(leader, 1..=40);
            checkpoint(&trio);
            trio.publish_each(leader, 41..=45);
            let lost = others(leader)[0];
            replace(&mut trio, lost);
            // Small steps, so that each is the last one some time.
            for step in 0..at * 4 {
                match step % 8 {
                    0 => trio.tick_only(),
                    1 | 4 | 6 => trio.step(),
                    _ => drop(trio.deliver_one()),
                }
            }
            let dies = if source_dies { leader } else { lost };
            trio.crash(dies, at as u64);
            trio.ticks(2);
            trio.start(dies);
            is_member(&trio, lost);
            trio.ticks(120);
            assert_eq!(
                trio.messages(lost),
                Some(45),
                "at {at}, the source dies: {source_dies}"
            );
            has(&trio, lost, 1..=45);
        }
    }
}

/// Takes and acknowledges what there is, from whoever leads, until nothing is left: which numbers came.
fn consume(trio: &Trio) -> BTreeSet<u64> {
    let mut found = BTreeSet::new();
    for _ in 0..2_000 {
        let leader = trio.leader();
        trio.get(leader);
        trio.settle();
        // What comes later comes with the answers to the next ones.
        let left = trio.left(leader);
        if left.is_empty() {
            // It waits for its disk or for others, or leads no more.
            trio.ticks(2);
        }
        for left in left {
            match left {
                Left::Got(number, seq) => {
                    found.insert(number);
                    trio.ack(leader, seq);
                }
                Left::Empty if trio.messages(leader) == Some(0) => return found,
                _ => {}
            }
        }
        trio.settle();
    }
    panic!("{} came, and it has no end", found.len());
}

#[test]
fn what_one_disk_has_lost_is_healed_by_the_others_and_nothing_is_missing() {
    for each in [400, 5_000] {
        let trio = Trio::deep();
        let leader = trio.leader();
        trio.publish_each(leader, 1..=300);
        checkpoint(&trio);
        let sick = others(leader)[0];
        trio.rot(sick, each);
        lead(&trio, sick);
        assert_eq!(consume(&trio), (1..=300).collect(), "each {each} bytes");
        assert!(trio.bulk() > 0, "others were asked");
    }
}

#[test]
fn what_no_disk_has_any_more_is_given_up_and_everything_else_is_served() {
    let trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=300);
    checkpoint(&trio);
    NODES.iter().for_each(|id| trio.rot(*id, 2_000));
    let found = consume(&trio);
    assert!((100..300).contains(&found.len()), "{}", found.len());
    trio.tell_commits();
    assert_eq!(NODES.map(|id| trio.messages(id)), [Some(0); 3]);
}

/// Messages of these numbers, some more urgent than others.
fn urgent(numbers: std::ops::RangeInclusive<u64>) -> Arc<Block> {
    let mut block = BlockBuilder::new();
    for number in numbers {
        let properties = PropertiesBuilder::new().priority((number % 4) as u8).encode();
        block.push(b"", b"q", &properties, format!("{number:50}").as_bytes());
    }
    Arc::new(block.finish(true, Timestamp(1)))
}

#[test]
fn lanes_marks_of_senders_and_what_was_handed_out_come_with_the_contents() {
    let settings = QueueSettings {
        durable: true,
        sorting: Sorting::Priority(3),
        ..QueueSettings::default()
    };
    let mut trio = Trio::with(settings, 8 << 10, u64::MAX);
    let leader = trio.leader();
    let sent = |first| Request::EnqueueFrom {
        origin: Box::new(Origin {
            sender: Incarnation(9),
            first,
        }),
        block: urgent(first..=first + 99),
        receipt: None,
    };
    let submit = |trio: &Trio, to, request| {
        assert!(trio.queue(to).submit(Timestamp(1), request).is_ok());
        trio.settle();
    };
    submit(&trio, leader, sent(1));
    submit(&trio, leader, sent(101));
    for _ in 0..3 {
        let seq = trio.take_next(leader).unwrap();
        trio.ack(leader, seq);
    }
    // It holds this one, and nobody is told whether it was delivered.
    trio.take_next(leader).unwrap();
    trio.settle();
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    is_member(&trio, lost);
    trio.ticks(30);
    assert_eq!(trio.messages(lost), Some(197));
    lead(&trio, lost);
    submit(&trio, lost, sent(101));
    assert_eq!(trio.messages(lost), Some(197), "that was taken before");
    let mut expected: Vec<u64> = (1..=200).collect();
    expected.sort_by_key(|number| (3 - number % 4, *number));
    assert_eq!(trio.drain(lost), expected[3..]);
}

#[test]
fn a_deep_queue_whose_log_is_reused_all_the_time_is_transferred_while_messages_come_and_go() {
    let settings = QueueSettings {
        durable: true,
        ..QueueSettings::default()
    };
    let mut trio = Trio::with(settings, 256 << 10, 1 << 20);
    trio.body = 20;
    let leader = trio.leader();
    let mut next = 1;
    let mut more = |trio: &Trio, leader, blocks: u64| {
        for _ in 0..blocks {
            assert!(trio.publish(leader, next..=next + 499));
            next += 500;
            trio.settle();
        }
        next - 1
    };
    more(&trio, leader, 100);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    is_member(&trio, lost);
    for _ in 0..20 {
        let leader = trio.leader();
        more(&trio, leader, 1);
        for _ in 0..5 {
            let seq = trio.take_next(leader).unwrap();
            trio.ack(leader, seq);
        }
        trio.tick();
    }
    trio.ticks(150);
    assert_eq!(NODES.map(|id| trio.messages(id)), [Some(60_000 - 100); 3]);
    let sent = trio.bulk();
    assert!(sent > 50_000 * 30, "{sent}");
    lead(&trio, lost);
    let seq = trio.take_next(lost);
    assert_eq!(seq, Some(101));
}

#[test]
fn what_arrives_while_the_disk_stands_still_is_bounded_and_fetched_again_after_a_crash() {
    for disk_goes_on in [false, true] {
        let mut trio = Trio::deep();
        trio.body = 60_000;
        let leader = trio.leader();
        trio.publish_each(leader, 1..=300);
        checkpoint(&trio);
        let lost = others(leader)[0];
        replace(&mut trio, lost);
        let mut arrived = 0;
        for _ in 0..100_000 {
            if !trio.deliver_one() {
                trio.work();
                trio.tick_only();
            }
            arrived += trio.bulk();
            if arrived > 1 << 20 {
                break;
            }
        }
        // Its contents are there, and an answer has come; nothing more is on its disk from now on.
        trio.hung.insert(lost);
        trio.ticks(40);
        arrived += trio.bulk();
        assert!((6 << 20..11 << 20).contains(&arrived), "{arrived}");
        assert_eq!(trio.messages(lost), None, "what is not synced does not count");
        if disk_goes_on {
            trio.hung.clear();
            trio.ticks(5);
            let all = arrived + trio.bulk();
            assert!(
                (17 << 20..19 << 20).contains(&all),
                "nothing is fetched twice: {all}"
            );
        } else {
            trio.crash(lost, 1);
            trio.start(lost);
            trio.ticks(30);
            let again = trio.bulk();
            assert!(again > 17 << 20, "all is fetched again: {again}");
        }
        is_member(&trio, lost);
        assert_eq!(trio.messages(lost), Some(300));
        has(&trio, lost, 1..=300);
    }
}

#[test]
fn bodies_for_which_a_full_disk_has_no_space_are_fetched_again() {
    let mut trio = Trio::deep();
    let leader = trio.leader();
    trio.publish_each(leader, 1..=60);
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    trio.bulk();
    while trio.bulk() == 0 {
        if !trio.deliver_one() {
            trio.work();
            trio.tick_only();
        }
    }
    trio.fill_disk(lost, 2);
    trio.ticks(60);
    is_member(&trio, lost);
    has(&trio, lost, 1..=60);
}
