//! Handles and sessions with a machine between them whose records are committed when the test says so.

mod world;

use super::*;
use crate::clients::outbox::{ChannelId, Outbox};
use crate::node::ends::{Ends, Outlet};
use model::{BlockBuilder, Message, Ranges, RouteBuf, Timestamp, properties::Properties};
use proptest::prelude::*;
use queue::Request;
use std::sync::Arc;
use world::{FORGOTTEN_AFTER, Kind, Step, World};

const NODES: usize = 3;

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..NODES;
    prop_oneof![
        5 => (node(), 1..4_u64).prop_map(|(node, count)| Step::Publish(node, count)),
        2 => (node(), 0..3_u32).prop_map(|(node, prefetch)| Step::Consume(node, prefetch)),
        1 => node().prop_map(Step::Cancel),
        2 => node().prop_map(Step::Get),
        4 => (node(), 0..4_usize).prop_map(|(node, which)| Step::Ack(node, which)),
        2 => (node(), 0..4_usize, any::<bool>()).prop_map(|(node, which, failed)| Step::Return(node, which, failed)),
        4 => (1..12_usize).prop_map(Step::Ticks),
        1 => (20..70_usize).prop_map(Step::Ticks),
        6 => (node(), node(), 1..4_usize).prop_map(|(from, to, count)| Step::Deliver(from, to, count)),
        1 => (node(), node()).prop_map(|(from, to)| Step::Double(from, to)),
        1 => (node(), node()).prop_map(|(from, to)| Step::Lose(from, to)),
        2 => (node(), node()).prop_map(|(one, other)| Step::Break(one, other)),
        1 => (node(), node()).prop_map(|(one, other)| Step::Cut(one, other)),
        1 => (node(), node()).prop_map(|(from, to)| Step::CutOneWay(from, to)),
        2 => Just(Step::Heal),
        5 => (1..6_usize).prop_map(Step::Commit),
        3 => Just(Step::Settle),
        2 => (node(), 0..4_usize).prop_map(|(node, records)| Step::Succeed(node, records)),
        1 => Just(Step::Learn),
        1 => node().prop_map(Step::Crash),
        1 => node().prop_map(Step::LetGo),
    ]
}

/// So many ticks a node that is not heard of keeps what its consumers hold, if nothing is said.
const KEPT_FOR: u32 = 20;

fn run(steps: &[Step], kind: Kind) {
    run_keeping(steps, kind, KEPT_FOR);
}

fn run_keeping(steps: &[Step], kind: Kind, keeps_for: u32) {
    let mut world = World::new(NODES, kind, keeps_for);
    steps.iter().for_each(|step| world.step(*step));
    world.judge();
}

proptest! {
    #[test]
    fn whoever_leads_and_whatever_links_do_nothing_is_lost_doubled_reordered_or_in_two_hands(
        steps in prop::collection::vec(step(), 1..120),
        counts_returns: bool,
        single_active: bool,
        sorted: bool,
        keeps_for in prop_oneof![3 => Just(KEPT_FOR), 1 => 0..20_u32, 3 => 21..120_u32],
    ) {
        let kind = Kind { counts_returns, single_active, sorted };
        run_keeping(&steps, kind, keeps_for);
    }
}

#[test]
fn what_a_leader_gave_in_a_session_that_it_has_given_up_comes_back_though_the_node_has_nothing_to_say() {
    let mut steps = vec![Step::Consume(1, 0), Step::Settle, Step::Ticks(15), Step::Settle];
    steps.extend([Step::Publish(0, 1), Step::Deliver(0, 0, 9), Step::Commit(9)]);
    // The delivery is lost, and whether it came is asked in vain.
    for _ in 0..50 {
        steps.extend([Step::Lose(0, 1), Step::Ticks(1)]);
    }
    run(&steps, Kind::default());
}

#[test]
fn what_a_leader_answered_in_a_session_that_it_has_given_up_is_asked_again() {
    let mut steps = vec![Step::Get(1), Step::Settle, Step::Ticks(15), Step::Settle];
    // The node asks whether its question came, and hears that before it is answered.
    steps.extend([Step::Get(1), Step::Deliver(1, 0, 9), Step::Ticks(15)]);
    steps.extend([Step::Deliver(1, 0, 9), Step::Deliver(0, 1, 9), Step::Commit(9)]);
    // The answer is lost, and whether it came is asked in vain.
    for _ in 0..50 {
        steps.extend([Step::Lose(0, 1), Step::Ticks(1)]);
    }
    run(&steps, Kind::default());
}

#[test]
fn what_was_lost_with_a_session_comes_before_what_the_queue_had_for_the_consumer_meanwhile() {
    let mut world = World::new(NODES, Kind::default(), KEPT_FOR);
    let steps = [
        Step::Consume(1, 0),
        Step::Settle,
        Step::Ticks(15),
        Step::Settle,
        // This comes.
        Step::Publish(0, 2),
        Step::Settle,
        // This does not.
        Step::Publish(0, 2),
        Step::Deliver(0, 0, 9),
        Step::Commit(9),
        Step::Break(0, 1),
        Step::Publish(0, 2),
        Step::Deliver(0, 0, 9),
        Step::Commit(9),
        Step::Ticks(2),
        // Nor does this wait for what is said in the next session.
        Step::Deliver(1, 0, 1),
        Step::Publish(0, 2),
        Step::Deliver(0, 0, 9),
        Step::Commit(9),
        Step::Ticks(15),
        Step::Settle,
        Step::Ticks(15),
        Step::Settle,
    ];
    steps.into_iter().for_each(|step| world.step(step));
    assert_eq!(world.delivered, [1, 2, 3, 4, 5, 6, 7, 8]);
    world.judge();
}

#[test]
fn a_client_whose_message_went_to_another_one_of_its_node_acks_it_in_vain() {
    let steps = [
        Step::Publish(0, 1),
        Step::Consume(1, 0),
        Step::Settle,
        Step::Publish(1, 3),
        Step::Consume(2, 2),
        Step::Publish(1, 1),
        Step::Cut(0, 1),
        Step::Ticks(6),
        Step::Ticks(7),
        Step::Publish(2, 3),
        Step::Settle,
        Step::Consume(1, 0),
        Step::Cut(0, 2),
        Step::Publish(2, 1),
        Step::Ticks(7),
        Step::Heal,
        Step::Ticks(3),
        Step::Settle,
        Step::Crash(2),
        Step::Settle,
        Step::Ack(1, 0),
    ];
    run(&steps, Kind::default());
}

#[test]
fn a_handle_that_gave_up_a_block_which_is_known_in_parts_is_kept_until_a_leader_has_heard_so() {
    let kind = Kind {
        sorted: true,
        ..Kind::default()
    };
    let mut steps = vec![
        Step::Ticks(1),
        Step::Publish(1, 1),
        Step::Settle,
        Step::Ticks(1),
        Step::Settle,
    ];
    // Two records, of which one is committed when the leader is gone.
    steps.extend([Step::Publish(1, 5), Step::Deliver(1, 0, 9), Step::Succeed(2, 1)]);
    steps.extend([
        Step::Cut(1, 0),
        Step::Cut(1, 2),
        Step::Ticks(60),
        Step::LetGo(1),
        Step::Heal,
    ]);
    steps.extend([
        Step::Ticks(15),
        Step::Settle,
        Step::Ticks(15),
        Step::Settle,
        Step::LetGo(1),
    ]);
    steps.extend([Step::Publish(1, 5), Step::Settle, Step::Ticks(15), Step::Settle]);
    run(&steps, kind);
}

/// What is said in the session that has begun.
fn said(handle: &mut Handle<Ends>) -> Vec<ToLeader> {
    let mut frames = Vec::new();
    handle.frames(&mut frames);
    frames.into_iter().flat_map(|(_, frame)| frame.messages).collect()
}

#[test]
fn a_consumer_that_is_named_again_before_it_is_answered_is_named_with_the_same_question() {
    let (leader, mut orders) = (NodeId(2), Orders::default());
    let mut handle = Handle::<Ends>::new(Incarnation(1), &QueueSettings::default());
    let consumer = ConsumerId(7);
    handle.adopt(OwnConsumer {
        consumer,
        outlet: Outlet {
            outbox: Arc::new(Outbox::new()),
            channel: ChannelId(1),
            no_ack: false,
        },
        settings: ConsumerSettings {
            no_ack: false,
            exclusive: true,
            prefetch: 0,
            priority: 0,
            window: 1 << 20,
            paused: false,
        },
        outstanding: 0,
    });
    handle.leads(Some(leader));
    let (mut questions, mut last) = (Vec::new(), 0);
    for _ in 0..2 {
        (last, _) = asked(&mut handle).unwrap();
        handle.receive(leader, opened(last), &mut orders);
        questions.extend(said(&mut handle).iter().filter_map(|message| match message {
            ToLeader::Consume { question, .. } => Some(*question),
            _ => None,
        }));
        if questions.len() == 1 {
            handle.lost(leader);
            handle.tick(|| KEPT_FOR, &mut orders);
        }
    }
    let [question, again] = questions[..] else {
        panic!("{questions:?}")
    };
    assert_eq!(question, again);
    let refused = Frame {
        number: 2,
        messages: vec![ToNode::Answer {
            question,
            answer: Answer::InExclusiveUse,
        }],
        ..opened(last)
    };
    handle.receive(leader, refused, &mut orders);
    let told = |effect: &Effect<Ends>| matches!(effect, Effect::CancelConsumer { consumer: it, .. } if *it == consumer);
    assert!(orders.effects.iter().any(told));
}

/// The session that is asked for, and from which number on its node would send again.
fn asked(handle: &mut Handle<Ends>) -> Option<(u64, u64)> {
    let mut frames = Vec::new();
    handle.frames(&mut frames);
    let mut opens = frames.iter().filter_map(|(_, frame)| match frame.messages[..] {
        [ToLeader::Open { sent, .. }] => Some((frame.session, sent)),
        _ => None,
    });
    opens.next_back()
}

fn opened(session: u64) -> Frame<ToNode> {
    let opened = ToNode::Opened {
        below: 1,
        refused: Ranges::new(),
        resolved: 0,
        credit: 1 << 20,
    };
    Frame {
        session,
        term: 1,
        number: 1,
        seen: 1,
        asks: false,
        messages: vec![opened],
    }
}

#[test]
fn what_was_held_in_numbers_that_mean_nothing_any_more_is_claimed_in_no_later_session() {
    let (leader, mut orders) = (NodeId(2), Orders::default());
    let mut handle = Handle::<Ends>::new(Incarnation(1), &QueueSettings::default());
    handle.leads(Some(leader));
    let mut claimed = Vec::new();
    for term in [1, 2, 5] {
        let (session, _) = asked(&mut handle).unwrap();
        let opened = Frame {
            term,
            ..opened(session)
        };
        handle.receive(leader, opened, &mut orders);
        let said = said(&mut handle).into_iter().flat_map(|message| match message {
            ToLeader::Holds { held, .. } => held,
            _ => Vec::new(),
        });
        claimed.push(said.map(|held| held.seqs).collect::<Vec<_>>());
        match term {
            1 => handle.holdings.add(None, &Ranges::span(2, 4), 0),
            // The queue's node has started again. It does not come to answer what was claimed.
            _ => handle.held_is_void(),
        }
        handle.lost(leader);
        handle.tick(|| KEPT_FOR, &mut orders);
    }
    assert_eq!(claimed, [vec![], vec![Ranges::span(2, 4)], vec![]]);
    assert!(handle.has_discarded() && handle.is_idle());
}

#[test]
fn what_was_held_in_numbers_that_mean_nothing_any_more_goes_back_if_it_counts_all_the_same() {
    let (leader, mut orders) = (NodeId(2), Orders::default());
    let mut handle = Handle::<Ends>::new(Incarnation(1), &QueueSettings::default());
    handle.leads(Some(leader));
    handle.holdings.add(None, &Ranges::span(2, 5), 0);
    // Somebody is done with it, or with one of before.
    let way = Way::Settled(queue::Disposal::Accepted);
    handle.holdings.resolve(None, &Ranges::one(5), way);
    let (session, _) = asked(&mut handle).unwrap();
    handle.receive(leader, opened(session), &mut orders);
    handle.held_is_void();
    said(&mut handle);
    let frame = Frame {
        number: 2,
        messages: vec![ToNode::Answer {
            question: 0,
            answer: Answer::Discard(Ranges::one(2)),
        }],
        ..opened(session)
    };
    handle.receive(leader, frame, &mut orders);
    let resolved = said(&mut handle).into_iter().filter_map(|message| match message {
        ToLeader::Resolve { resolved, .. } => Some((resolved.seqs, resolved.way)),
        _ => None,
    });
    let returned = Way::Returned { failed: true };
    let mut back = Ranges::new();
    for (seqs, way) in resolved {
        assert_eq!(way, returned);
        back.extend(&seqs);
    }
    assert_eq!(
        back.iter().collect::<std::collections::BTreeSet<_>>(),
        [3, 4, 5].into()
    );
}

#[test]
fn what_is_given_up_while_a_session_is_asked_for_gets_its_numbers_said_in_another_one() {
    let (leader, mut orders) = (NodeId(2), Orders::default());
    let mut handle = Handle::<Ends>::new(Incarnation(1), &QueueSettings::default());
    handle.leads(Some(leader));
    let (first, sent) = asked(&mut handle).unwrap();
    assert_eq!(sent, 1);
    handle.receive(leader, opened(first), &mut orders);
    let mut block = BlockBuilder::default();
    let route = RouteBuf::new(b"", b"q");
    for _ in 0..3 {
        block.push_message(&Message::new(route.as_route(), Properties::amqp091(b""), b"body"));
    }
    let (block, receipt) = (Arc::new(block.finish(true, Timestamp(1))), None);
    assert!(
        handle
            .request(Request::Enqueue { block, receipt }, &mut orders)
            .is_ok()
    );
    assert_eq!(asked(&mut handle), None);
    handle.lost(leader);
    let mut last = None;
    while !handle.given_up {
        handle.tick(|| KEPT_FOR, &mut orders);
        last = match handle.given_up {
            true => last,
            false => asked(&mut handle).or(last),
        };
    }
    let (before, sent) = last.unwrap();
    assert_eq!(sent, 1, "until then all of it is to be sent again");
    handle.receive(leader, opened(before), &mut orders);
    assert!(
        !handle.is_open(),
        "who answers keeps the numbers for what is given up"
    );
    handle.tick(|| KEPT_FOR, &mut orders);
    let (after, sent) = asked(&mut handle).unwrap();
    assert!(after > before && sent == 4, "{after} {sent}");
}

#[test]
fn what_was_lent_in_a_session_is_given_back_with_it() {
    let (leader, mut orders) = (NodeId(2), Orders::default());
    let mut handle = Handle::<Ends>::new(Incarnation(1), &QueueSettings::default());
    handle.leads(Some(leader));
    let (session, _) = asked(&mut handle).unwrap();
    handle.receive(leader, opened(session), &mut orders);
    assert_eq!(handle.credit(), 1 << 20);
    handle.lost(leader);
    assert_eq!(handle.credit(), FIRST_CREDIT);
}

#[test]
fn who_may_send_nothing_may_again_when_the_session_is_over() {
    let (leader, mut orders) = (NodeId(2), Orders::default());
    let mut handle = Handle::<Ends>::new(Incarnation(1), &QueueSettings::default());
    handle.leads(Some(leader));
    let (session, _) = asked(&mut handle).unwrap();
    handle.receive(leader, opened(session), &mut orders);
    let held = Frame {
        number: 2,
        messages: vec![ToNode::Credit { bytes: 0 }],
        ..opened(session)
    };
    handle.receive(leader, held, &mut orders);
    assert!(handle.is_full());
    handle.lost(leader);
    assert!(!handle.is_full());
}

/// Which session is opened by which answer, if there is another one before the first answer comes.
fn opened_by(sent: [u64; 2], answers: [u64; 2]) -> Vec<(u64, u64)> {
    let (node, budget) = (Incarnation(3), Budget::new(1 << 20));
    let mut requests = Requests::new();
    let mut sessions = Sessions::new(1, &[], budget, &mut requests);
    for (session, sent) in (1..).zip(sent) {
        let mut frames = Vec::new();
        End::new(session, 0).send(vec![ToLeader::Open { node, sent }], &mut frames);
        sessions.receive(node, frames.remove(0), &mut requests);
    }
    let replies = requests.into_iter().filter_map(|request| match request {
        Request::Recall { reply, .. } => Some(reply),
        _ => None,
    });
    let mut opened = Vec::new();
    for (reply, below) in replies.zip(answers) {
        let refused = Ranges::new();
        let answered = reply.answered(Some(Answer::Recalled { below, refused }));
        reply.outbox.push(answered);
        let (mut requests, mut frames) = (Requests::new(), Vec::new());
        sessions.frames(&mut requests, &mut frames);
        opened.extend(frames.iter().flat_map(|(_, frame)| match frame.messages[..] {
            [ToNode::Opened { below, .. }] => Some((frame.session, below)),
            _ => None,
        }));
    }
    opened
}

#[test]
fn what_was_asked_before_another_session_opens_that_one_if_the_node_has_given_up_nothing_since() {
    assert_eq!(opened_by([7, 45], [7, 11]), [(2, 11)]);
    assert_eq!(opened_by([7, 7], [9, 11]), [(2, 9)]);
}

#[test]
fn a_node_that_counted_as_down_and_heard_the_leader_all_the_time_consumes_once_it_is_heard_again() {
    let mut world = World::new(NODES, Kind::default(), KEPT_FOR);
    let steps = [
        Step::Consume(1, 0),
        Step::Settle,
        Step::Ticks(15),
        Step::Settle,
        Step::CutOneWay(1, 0),
        Step::Ticks(25),
        Step::Settle,
        Step::Heal,
        Step::Ticks(10),
        Step::Settle,
        Step::Publish(0, 1),
        Step::Settle,
    ];
    steps.into_iter().for_each(|step| world.step(step));
    assert_eq!(world.delivered, [1]);
    world.judge();
}

#[test]
fn a_node_goes_by_no_credit_that_was_lent_in_a_session_which_the_leader_has_given_up() {
    let mut world = World::new(NODES, Kind::default(), KEPT_FOR);
    // So much that more is lent, and all of it is answered.
    let steps = [
        Step::Settle,
        Step::Publish(1, 2_000),
        Step::Publish(1, 2_000),
        Step::Settle,
    ];
    steps.into_iter().for_each(|step| world.step(step));
    let (credit, lent) = world.credit(1);
    assert!(credit > FIRST_CREDIT && credit == FIRST_CREDIT + lent);
    // The leader knows that all of that came. Then it does not hear the node for a moment, which has nothing to say.
    let steps = [
        Step::Ticks(15),
        Step::Settle,
        Step::CutOneWay(1, 0),
        Step::Heal,
        Step::Ticks(15),
        Step::Settle,
    ];
    steps.into_iter().for_each(|step| world.step(step));
    assert_eq!(world.credit(1), (FIRST_CREDIT, 0));
    world.judge();
}

#[test]
fn a_node_that_goes_on_publishing_holds_nothing_some_time_after_its_last_consumer() {
    let mut world = World::new(NODES, Kind::default(), KEPT_FOR);
    let steps = [Step::Consume(1, 0), Step::Settle, Step::Ticks(15), Step::Settle];
    steps.into_iter().for_each(|step| world.step(step));
    for _ in 0..FORGOTTEN_AFTER + 20 {
        [
            Step::Publish(1, 1),
            Step::Settle,
            Step::Ack(1, 0),
            Step::Settle,
            Step::Ticks(1),
        ]
        .into_iter()
        .for_each(|step| world.step(step));
    }
    assert!(world.may_hold(1), "it has a consumer");
    world.step(Step::Cancel(1));
    for _ in 0..FORGOTTEN_AFTER + 20 {
        [Step::Publish(1, 1), Step::Settle, Step::Ticks(1)]
            .into_iter()
            .for_each(|step| world.step(step));
    }
    assert!(!world.may_hold(1));
    // It asks for messages again, and does so on record.
    [Step::Get(1), Step::Settle]
        .into_iter()
        .for_each(|step| world.step(step));
    assert!(world.may_hold(1));
    world.judge();
}

/// A consumer of node 1 has a message, and the leader hears that node no more. Then two more are published, and there is a
/// consumer on node 2.
fn away(keeps_for: u32) -> World {
    let mut world = World::new(
        NODES,
        Kind {
            counts_returns: true,
            ..Kind::default()
        },
        keeps_for,
    );
    let steps = [
        Step::Consume(1, 0),
        Step::Settle,
        Step::Ticks(15),
        Step::Publish(0, 1),
        Step::Settle,
        Step::Cut(0, 1),
        Step::Publish(0, 2),
        Step::Settle,
        Step::Consume(2, 0),
        Step::Settle,
    ];
    steps.into_iter().for_each(|step| world.step(step));
    assert_eq!(world.delivered, [1]);
    world
}

fn wait(world: &mut World, ticks: usize) {
    for _ in 0..ticks {
        [Step::Ticks(1), Step::Settle]
            .into_iter()
            .for_each(|step| world.step(step));
    }
}

#[test]
fn what_a_node_has_that_is_not_heard_of_goes_to_others_after_the_time_that_the_queue_says() {
    for keeps_for in [0, 7, 20, 45] {
        let mut world = away(keeps_for);
        wait(&mut world, keeps_for.saturating_sub(1) as usize);
        assert!(
            world.delivered[1..].iter().all(|number| *number > 1),
            "{keeps_for}"
        );
        wait(&mut world, 3);
        let mut delivered = world.delivered.clone();
        delivered.sort_unstable();
        assert_eq!(delivered, [1, 1, 2, 3], "{keeps_for}");
        world.judge();
    }
}

#[test]
fn a_node_that_comes_back_in_that_time_goes_on_with_what_it_has_and_others_had_the_rest_meanwhile() {
    let mut world = away(90);
    wait(&mut world, 75);
    assert_eq!(world.delivered, [1, 2, 3], "nobody waits for what was never sent");
    [Step::Heal, Step::Settle]
        .into_iter()
        .for_each(|step| world.step(step));
    wait(&mut world, 15);
    world.step(Step::Ack(1, 0));
    wait(&mut world, 15);
    assert_eq!(world.delivered, [1, 2, 3]);
    world.judge();
}
