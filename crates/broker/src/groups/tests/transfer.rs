//! Members that lag, are new, or have lost something: they get contents and bodies of others, whatever happens meanwhile.

use super::others;
use super::trio::{NODES, Trio};
use cluster::Step;
use model::QueueSettings;

/// Messages are larger than memory has room for.
fn deep() -> Trio {
    let settings = QueueSettings {
        durable: true,
        ..QueueSettings::default()
    };
    let mut trio = Trio::with(settings, 8 << 10, u64::MAX);
    trio.body = 100;
    trio
}

fn publish(trio: &Trio, leader: u32, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        assert!(trio.publish(leader, number..=number));
        trio.settle();
    }
}

/// All write their contents down, so that their logs begin behind them.
fn checkpoint(trio: &Trio) {
    for id in NODES.into_iter().filter(|id| trio.is_up(*id)) {
        trio.checkpoint(id);
        trio.settle();
    }
}

/// The node's disk is lost, and its group has its next life as a member.
fn replace(trio: &mut Trio, id: u32) {
    let (before, after) = trio.wipe(id);
    let leader = trio.leader_of(&others(id));
    let steps = [Step::Remove(before), Step::Voter(after)];
    trio.groups(leader).change(super::trio::GROUP, &steps).unwrap();
    trio.start(id);
}

/// Sees to it that the node's present life is a member: who led when that was changed may have died before it was so.
fn is_member(trio: &Trio, id: u32) {
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
        let steps: Vec<Step> = before.map(Step::Remove).chain([Step::Voter(after)]).collect();
        let _ = trio.groups(leader).change(group, &steps);
        trio.ticks(5);
    }
    panic!("node {id} is no member");
}

/// Has this node lead.
fn lead(trio: &Trio, id: u32) {
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
fn has(trio: &Trio, id: u32, numbers: impl Iterator<Item = u64>) {
    lead(trio, id);
    assert_eq!(trio.drain(id), numbers.collect::<Vec<_>>(), "on node {id}");
}

#[test]
fn a_member_whose_disk_was_lost_comes_back_as_its_next_life_with_contents_and_bodies() {
    let mut trio = deep();
    let leader = trio.leader();
    publish(&trio, leader, 1..=300);
    let seq = trio.take_next(leader).unwrap();
    trio.ack(leader, seq);
    trio.settle();
    checkpoint(&trio);
    let lost = others(leader)[0];
    replace(&mut trio, lost);
    trio.ticks(30);
    assert_eq!(trio.messages(lost), Some(299));
    let sent = trio.bulk();
    assert!((30_000..120_000).contains(&sent), "{sent}");
    has(&trio, lost, 2..=300);
    publish(&trio, lost, 301..=310);
    assert_eq!(NODES.map(|id| trio.messages(id)), [Some(309); 3]);
}

#[test]
fn a_member_that_was_away_for_long_is_sent_only_the_bodies_that_it_lacks() {
    let mut trio = deep();
    let leader = trio.leader();
    publish(&trio, leader, 1..=300);
    checkpoint(&trio);
    let away = others(leader)[0];
    trio.crash(away, 3);
    publish(&trio, leader, 301..=330);
    trio.ticks(610);
    checkpoint(&trio);
    publish(&trio, leader, 331..=340);
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
fn whichever_end_dies_at_whatever_moment_of_a_transfer_it_ends_with_everything() {
    for at in 0..30 {
        for source_dies in [false, true] {
            let mut trio = deep();
            let leader = trio.leader();
            publish(&trio, leader, 1..=40);
            checkpoint(&trio);
            publish(&trio, leader, 41..=45);
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
