//! What peers that lie or lost something can't do to a group, and what the library would do by itself.

use super::guard::BELIEVED;
use crate::frame::{FrameWriter, Gone, Item, NUMBER_LIMIT};
use crate::record::{entry, entry_record};
use crate::trial::{GROUP, Trial, m};
use crate::{
    Damage, Event, Groups, Lie, Malformed, Mark, MemberId, Membership, NodeId, Recovered, Refused, Rejected,
    Settings, Step, Turn,
};
use bytes::Bytes;
use raft::eraftpb::{Message, MessageType};

/// Node 1 with one group of these voters.
fn node(voters: &[MemberId]) -> Groups {
    let mut groups = Groups::new(NodeId(1), 1, Settings::default());
    groups.add_peer(NodeId(2));
    let new = Recovered::new_group(m(1), Membership::of(voters));
    groups.open(GROUP, new).unwrap();
    groups
}

fn message(kind: MessageType, term: u64) -> Message {
    let mut message = Message {
        from: m(2).number(),
        to: m(1).number(),
        term,
        ..Message::default()
    };
    message.set_msg_type(kind);
    message
}

/// Contents at this entry, whose members are these, offered in a term.
fn offer(term: u64, at: Mark, members: &[MemberId]) -> Message {
    let mut offer = message(MessageType::MsgSnapshot, term);
    let metadata = offer.mut_snapshot().mut_metadata();
    (metadata.index, metadata.term) = (at.index, at.term);
    metadata.set_conf_state(Membership::of(members).to_state());
    offer
}

fn tell(groups: &mut Groups, message: Message) -> Result<(), Rejected> {
    let mut frame = FrameWriter::new(1);
    frame.put(&Item::Raft(GROUP, message));
    groups.receive(NodeId(2), &frame.finish())
}

fn lie(lie: Lie) -> Result<(), Rejected> {
    Err(Rejected::Lies(vec![(GROUP, lie)]))
}

fn synced_turn(groups: &mut Groups) -> Turn {
    let turn = groups.turn();
    groups.synced(turn.number);
    turn
}

#[test]
fn a_heartbeat_to_a_member_that_lost_its_tail_is_refused() {
    let mut groups = node(&[m(1), m(2)]);
    let mut heartbeat = message(MessageType::MsgHeartbeat, 3);
    heartbeat.commit = 7;
    let lost = Lie::LostTail { last: 0, claimed: 7 };
    assert_eq!(tell(&mut groups, heartbeat), lie(lost));
}

#[test]
fn entries_behind_a_place_without_a_term_or_of_a_later_term_than_their_message_are_refused() {
    let mut groups = node(&[m(1), m(2)]);
    let mut append = message(MessageType::MsgAppend, 3);
    append.index = 100;
    assert_eq!(tell(&mut groups, append), lie(Lie::Entries));
    let mut append = message(MessageType::MsgAppend, 3);
    let later = entry(Mark { index: 1, term: 4 }, 0, Bytes::new()).unwrap();
    append.set_entries(vec![later].into());
    assert_eq!(tell(&mut groups, append), lie(Lie::Entries));
}

#[test]
fn a_message_from_another_nodes_member_or_of_an_earlier_start_is_refused() {
    let mut groups = node(&[m(1), m(2)]);
    let mut heartbeat = message(MessageType::MsgHeartbeat, 3);
    heartbeat.from = m(3).number();
    assert_eq!(tell(&mut groups, heartbeat), lie(Lie::Member));
    let frame = FrameWriter::new(9).finish();
    assert_eq!(groups.receive(NodeId(2), &frame), Ok(()));
    let old = tell(&mut groups, message(MessageType::MsgHeartbeat, 3));
    assert_eq!(old, Err(Rejected::OldIncarnation { known: 9 }));
    let cut = groups.receive(NodeId(2), &Bytes::from_static(&[1]));
    assert_eq!(cut, Err(Rejected::Malformed(Malformed::Short)));
}

#[test]
fn what_a_member_makes_of_the_highest_numbers_that_it_believes_others_can_read_and_so_can_it_after_a_start() {
    let mut groups = node(&[m(1), m(2)]);
    for (term, index) in [(BELIEVED + 1, 0), (1, BELIEVED + 1), (NUMBER_LIMIT, NUMBER_LIMIT)] {
        let mut append = message(MessageType::MsgAppend, term);
        (append.index, append.log_term) = (index, u64::from(index > 0));
        assert_eq!(tell(&mut groups, append), lie(Lie::Number));
        let at = Mark { index, term };
        assert_eq!(
            tell(&mut groups, offer(term, at, &[m(1), m(2)])),
            lie(Lie::Number)
        );
    }
    let at = Mark {
        index: BELIEVED,
        term: BELIEVED,
    };
    tell(&mut groups, offer(BELIEVED, at, &[m(1), m(2)])).unwrap();
    assert!(groups.installed(GROUP, BELIEVED));
    synced_turn(&mut groups);
    // It asks for votes in the next term.
    tell(&mut groups, message(MessageType::MsgTimeoutNow, BELIEVED)).unwrap();
    let turn = synced_turn(&mut groups);
    assert_eq!(groups.status(GROUP).unwrap().term, BELIEVED + 1);
    assert!(!turn.send.is_empty() && !turn.append.is_empty());
    assert!(
        turn.send
            .iter()
            .all(|(_, frame)| crate::frame::read(frame).is_ok())
    );
    let mut again = Recovered::at(m(1), at, at.index, Membership::of(&[m(1), m(2)]));
    for record in turn.append {
        again.promise(&record.payload()).unwrap();
    }
    assert!(again.checked().is_ok());
}

#[test]
fn a_snapshot_without_this_member_is_refused_and_one_with_it_waits_for_its_contents() {
    let mut groups = node(&[m(1), m(2)]);
    let at = Mark { index: 5, term: 2 };
    assert_eq!(tell(&mut groups, offer(3, at, &[m(2)])), lie(Lie::Snapshot));
    assert_eq!(tell(&mut groups, offer(3, at, &[m(1), m(2)])), Ok(()));
    let events = synced_turn(&mut groups).events;
    let fetch = |event: &Event| {
        matches!(
            event,
            Event::Fetch {
                at: Mark { index: 5, term: 2 },
                ..
            }
        )
    };
    assert!(events.iter().any(fetch), "{events:?}");
    assert_eq!(groups.status(GROUP).unwrap().committed, 0);
    assert!(!groups.installed(GROUP, 4), "that is not what was offered");
    assert!(groups.installed(GROUP, 7), "later contents have it all");
    synced_turn(&mut groups);
    let status = groups.status(GROUP).unwrap();
    assert_eq!((status.base, status.committed), (Mark { index: 5, term: 2 }, 5));
}

#[test]
fn a_member_that_waits_for_contents_does_not_believe_who_lags_behind_them_that_it_is_none() {
    let mut groups = node(&[m(1), m(2)]);
    let at = Mark { index: 5, term: 2 };
    tell(&mut groups, offer(3, at, &[m(1), m(2)])).unwrap();
    synced_turn(&mut groups);
    for (index, removed) in [(4, false), (6, true), (6, false), (7, true)] {
        let gone = Gone::Told(Mark { index, term: 2 });
        let (group, to) = (GROUP, m(1).number());
        let mut frame = FrameWriter::new(1);
        frame.put(&Item::Gone { group, to, gone });
        groups.receive(NodeId(2), &frame.finish()).unwrap();
        let events = synced_turn(&mut groups).events;
        assert_eq!(
            events.contains(&Event::Removed(GROUP)),
            removed,
            "{index}: {events:?}"
        );
    }
}

#[test]
fn contents_of_before_a_member_was_removed_do_not_make_it_one_again() {
    for (index, is_removed) in [(6, true), (4, false)] {
        let mut groups = node(&[m(1), m(2)]);
        let at = Mark { index: 5, term: 2 };
        let told = Gone::Told(Mark { index, term: 2 });
        // Whoever lags behind them says it before they are offered.
        let says_so = |groups: &mut Groups| {
            let (group, to, gone) = (GROUP, m(1).number(), told);
            let mut frame = FrameWriter::new(1);
            frame.put(&Item::Gone { group, to, gone });
            groups.receive(NodeId(2), &frame.finish()).unwrap();
        };
        says_so(&mut groups);
        assert!(groups.status(GROUP).unwrap().is_removed);
        tell(&mut groups, offer(3, at, &[m(1), m(2)])).unwrap();
        synced_turn(&mut groups);
        assert!(groups.installed(GROUP, 5));
        synced_turn(&mut groups);
        let status = groups.status(GROUP).unwrap();
        assert_eq!((status.base, status.is_removed), (at, is_removed), "{index}");
    }
}

#[test]
fn a_member_that_was_sent_as_entries_what_a_snapshot_has_waits_for_its_contents_no_more_and_sleeps() {
    let mut groups = node(&[m(1), m(2)]);
    let at = Mark { index: 2, term: 1 };
    tell(&mut groups, offer(1, at, &[m(1), m(2)])).unwrap();
    synced_turn(&mut groups);
    let mut append = message(MessageType::MsgAppend, 1);
    let entries = [1, 2].map(|index| entry(Mark { index, term: 1 }, 0, Bytes::new()).unwrap());
    (append.entries, append.commit) = (entries.to_vec().into(), 2);
    tell(&mut groups, append).unwrap();
    synced_turn(&mut groups);
    synced_turn(&mut groups);
    let mut sleep = message(MessageType::MsgHeartbeat, 1);
    (sleep.index, sleep.commit) = (2, 2);
    let mut frame = FrameWriter::new(1);
    frame.put(&Item::Sleep(GROUP, sleep));
    groups.receive(NodeId(2), &frame.finish()).unwrap();
    assert!(!groups.status(GROUP).unwrap().awake);
    assert!(
        !groups.installed(GROUP, 2),
        "nothing is installed over what it has"
    );
}

/// It does not know after a start that its entry is committed; its leader does, from before, and finds everything at rest. The
/// member stood still, so that what follows comes in one turn.
#[test]
fn a_member_that_may_sleep_before_it_has_applied_what_is_committed_hands_the_record_out() {
    let mut groups = node(&[m(1), m(2)]);
    let mut append = message(MessageType::MsgAppend, 1);
    let record = Bytes::from_static(b"record");
    let of_leader = entry(Mark { index: 1, term: 1 }, 0, record.clone()).unwrap();
    append.set_entries(vec![of_leader].into());
    tell(&mut groups, append).unwrap();
    synced_turn(&mut groups);
    synced_turn(&mut groups);
    let mut heartbeat = message(MessageType::MsgHeartbeat, 1);
    heartbeat.commit = 1;
    tell(&mut groups, heartbeat).unwrap();
    let mut sleep = message(MessageType::MsgHeartbeat, 1);
    (sleep.index, sleep.commit) = (1, 1);
    let mut frame = FrameWriter::new(1);
    frame.put(&Item::Sleep(GROUP, sleep));
    let frame = frame.finish();
    groups.receive(NodeId(2), &frame).unwrap();
    let committed = synced_turn(&mut groups).committed;
    assert_eq!(committed.iter().map(|c| &c.record).collect::<Vec<_>>(), [&record]);
    groups.receive(NodeId(2), &frame).unwrap();
    assert!(!groups.status(GROUP).unwrap().awake);
}

/// A lone voter, ticked until it leads.
fn lone() -> Groups {
    let mut groups = node(&[m(1)]);
    for _ in 0..40 {
        groups.tick();
        synced_turn(&mut groups);
    }
    let status = groups.status(GROUP).unwrap();
    assert_eq!(status.leader, Some(m(1)));
    groups
}

#[test]
fn a_lone_voters_entry_is_committed_when_it_is_synced_and_not_before() {
    let mut groups = lone();
    groups.propose(GROUP, Bytes::from_static(b"record")).unwrap();
    let turn = groups.turn();
    assert_eq!((turn.append.len(), turn.committed.len()), (1, 0));
    assert!(groups.turn().committed.is_empty());
    groups.synced(turn.number);
    let committed = groups.turn().committed;
    assert_eq!(&committed[0].record[..], b"record");
}

#[test]
fn nobody_is_removed_where_those_who_are_left_cannot_be_reached() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.cut(1, 3);
    trial.cut(2, 3);
    trial.ticks(Settings::default().suspect_after + 1);
    let remove = |trial: &mut Trial, member| trial.node(1).change(GROUP, &[Step::Remove(m(member))]);
    assert_eq!(remove(&mut trial, 2), Err(Refused::Unreached));
    for gone in [3, 2] {
        remove(&mut trial, gone).unwrap();
        trial.ticks(3);
    }
    assert_eq!(trial.status(1).members, Membership::of(&[m(1)]));
}

#[test]
fn nobody_is_removed_where_those_who_are_left_can_be_reached_and_have_taken_nothing() {
    let mut trial = Trial::new(3, 3);
    // Its node runs, and has not opened it.
    assert!(trial.node(3).close(GROUP));
    trial.ticks_until(60, |trial| trial.leader().is_some());
    let leader = trial.leader().unwrap();
    trial.ticks(3);
    let remove = |trial: &mut Trial, member| trial.node(leader).change(GROUP, &[Step::Remove(m(member))]);
    assert_eq!(remove(&mut trial, 3 - leader), Err(Refused::Unreached));
    for gone in [3, 3 - leader] {
        assert!(!trial.status(leader).is_changing);
        remove(&mut trial, gone).unwrap();
        assert!(trial.status(leader).is_changing, "it is not applied yet");
        trial.ticks(3);
    }
    assert_eq!(trial.status(leader).members, Membership::of(&[m(leader)]));
}

#[test]
fn a_change_that_cannot_be_is_refused_instead_of_becoming_an_entry_that_does_nothing() {
    let mut groups = lone();
    let last = groups.status(GROUP).unwrap().last;
    assert_eq!(
        groups.change(GROUP, &[Step::Remove(m(1))]),
        Err(Refused::Impossible)
    );
    assert_eq!(groups.change(GROUP, &[]), Err(Refused::Impossible));
    synced_turn(&mut groups);
    assert_eq!(groups.status(GROUP).unwrap().last, last);
    assert_eq!(groups.change(GROUP, &[Step::Learner(m(2))]), Ok(()));
    let again = groups.change(GROUP, &[Step::Learner(m(3))]);
    assert_eq!(again, Err(Refused::ChangeUnderWay));
}

#[test]
fn one_of_two_never_leads_and_does_not_stay_awake_for_the_other() {
    let mut groups = node(&[m(1), m(2)]);
    for _ in 0..100 {
        groups.tick();
        synced_turn(&mut groups);
    }
    assert_eq!((groups.status(GROUP).unwrap().leader, groups.awake()), (None, 0));
    let refused = groups.propose(GROUP, Bytes::new());
    assert_eq!(refused, Err(Refused::NotLeader(None)));
}

#[test]
fn what_is_uncommitted_is_bounded() {
    let mut groups = lone();
    let big = Bytes::from(vec![0; 5 << 20]);
    assert_eq!(groups.propose(GROUP, big.clone()), Ok(2));
    assert_eq!(groups.propose(GROUP, big.clone()), Err(Refused::Busy));
    synced_turn(&mut groups);
    synced_turn(&mut groups);
    assert_eq!(groups.propose(GROUP, big), Ok(3));
}

#[test]
fn a_proposal_is_told_its_index_also_among_others_of_the_turn_and_behind_a_change_of_members() {
    let mut groups = lone();
    let text = |n: u64| Bytes::from(format!("record {n}"));
    let indices = [2, 3].map(|n| groups.propose(GROUP, text(n)));
    assert_eq!(indices, [Ok(2), Ok(3)]);
    groups.change(GROUP, &[Step::Learner(m(2))]).unwrap();
    assert_eq!(groups.propose(GROUP, text(5)), Ok(5));
    let mut committed = Vec::new();
    for _ in 0..4 {
        committed.extend(synced_turn(&mut groups).committed);
    }
    let records = committed.iter().filter(|c| !c.record.is_empty());
    let told: Vec<_> = records.map(|c| (c.at.index, c.record.clone())).collect();
    assert_eq!(told, [2, 3, 5].map(|n| (n, text(n))));
}

/// Node 1 leads, node 2 learns from it and has everything, and both sleep.
fn with_learner() -> Trial {
    let mut trial = Trial::new(2, 1);
    trial.led_by(1);
    let new = Recovered::new_group(m(2), Membership::of(&[m(1)]));
    trial.node(2).open(GROUP, new).unwrap();
    trial.node(1).change(GROUP, &[Step::Learner(m(2))]).unwrap();
    trial.ticks_until(60, |t| t.status(2).last == t.status(1).last && t.is_asleep());
    trial
}

#[test]
fn a_learner_that_its_leader_alone_did_not_hear_for_a_while_catches_up_though_both_sleep() {
    let mut trial = with_learner();
    trial.cuts.insert((2, 1));
    trial.ticks_until(60, |t| t.has(&Event::Suspected(NodeId(2))));
    let x = trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.ticks_until(60, Trial::is_asleep);
    assert!(trial.status(2).last < x, "its leader takes it for gone");
    trial.cuts.clear();
    trial.ticks_until(60, |t| t.status(2).committed == x && t.is_asleep());
}

#[test]
fn a_leader_that_was_deposed_by_one_that_cannot_be_elected_leads_again_soon() {
    let mut trial = Trial::new(2, 2);
    trial.led_by(1);
    trial.cut(1, 2);
    let x = trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.settle();
    trial.cuts.clear();
    // The other one knows of no leader, and is a term ahead.
    trial.node(2).suspect(NodeId(1));
    let mut later = message(MessageType::MsgAppendResponse, trial.status(1).term + 1);
    (later.reject, later.index) = (true, x);
    let mut frame = FrameWriter::new(1);
    frame.put(&Item::Raft(GROUP, later));
    trial.deliver([(NodeId(2), NodeId(1), frame.finish())].into_iter());
    assert_eq!(trial.status(1).leader, None);
    trial.ticks_until(8, |t| t.leader() == Some(1) && t.status(2).committed > x);
}

#[test]
fn a_learner_that_a_late_message_has_woken_finds_its_leader_again_though_that_one_sleeps() {
    let mut trial = with_learner();
    let is_heartbeat = |item: &&Item| matches!(item, Item::Raft(_, message) if message.get_msg_type() == MessageType::MsgHeartbeat);
    let mut said = trial
        .said
        .iter()
        .filter(|(_, to, _)| *to == 2)
        .map(|(_, _, item)| item);
    let late = said.rfind(is_heartbeat).unwrap().clone();
    let mut frame = FrameWriter::new(1);
    frame.put(&late);
    // What it answers would wake its leader, and is lost.
    trial.cuts.insert((2, 1));
    trial.deliver([(NodeId(1), NodeId(2), frame.finish())].into_iter());
    trial.cuts.clear();
    assert_eq!((trial.nodes[&1].awake(), trial.nodes[&2].awake()), (0, 1));
    trial.ticks_until(15, |t| t.status(2).leader.is_none());
    trial.ticks_until(60, |t| t.status(2).leader == Some(m(1)) && t.is_asleep());
    let said = trial.said.len();
    trial.ticks(60);
    let groups = |said: &&(u32, u32, Item)| said.2.group() == Some(GROUP);
    assert_eq!(trial.said[said..].iter().filter(groups).count(), 0, "both sleep");
}

#[test]
fn a_member_that_was_removed_before_it_had_anything_learns_it_though_nobody_could_tell_it_then() {
    let mut trial = Trial::new(3, 2);
    trial.led_by(1);
    let new = Recovered::new_group(m(3), Membership::of(&[m(1), m(2)]));
    trial.node(3).open(GROUP, new).unwrap();
    trial.ticks_until(40, |t| t.events.contains(&(3, Event::Removed(GROUP))));
    trial.ticks_until(40, Trial::is_asleep);
    let said = trial.said.len();
    trial.ticks(40);
    let groups = |said: &&(u32, u32, Item)| said.2.group() == Some(GROUP);
    assert_eq!(
        trial.said[said..].iter().filter(groups).count(),
        0,
        "it asks no more"
    );
}

#[test]
fn a_snapshot_whose_offer_the_network_lost_is_offered_once_more_before_anybody_is_suspected() {
    let mut trial = Trial::new(2, 1);
    trial.led_by(1);
    trial.node(1).change(GROUP, &[Step::Learner(m(2))]).unwrap();
    trial.ticks(2);
    let x = trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.ticks(2);
    assert!(trial.status(1).committed >= x);
    trial.node(1).checkpointed(GROUP, x, x);
    let new = Recovered::new_group(m(2), Membership::of(&[m(1)]));
    trial.node(2).open(GROUP, new).unwrap();
    let is_offer: fn(&Item) -> bool = |item| {
        let kind = |message: &Message| message.get_msg_type();
        matches!(item, Item::Raft(_, it) if kind(it) == MessageType::MsgSnapshot)
    };
    let offers = |trial: &Trial| trial.said.iter().filter(|(_, _, item)| is_offer(item)).count();
    trial.loses = Some(is_offer);
    trial.ticks_until(30, |t| t.loses.is_none());
    let fetches = |t: &Trial| {
        t.events
            .iter()
            .any(|(_, event)| matches!(event, Event::Fetch { .. }))
    };
    assert!(!fetches(&trial), "it was lost");
    trial.ticks_until(15, fetches);
    assert!(!trial.has(&Event::Suspected(NodeId(2))));
    assert!(trial.node(2).installed(GROUP, x));
    trial.ticks_until(20, |t| t.status(2).committed >= x && t.is_asleep());
    trial.ticks(30);
    assert_eq!(offers(&trial), 2, "what was answered is not offered any more");
}

#[test]
fn a_transfer_waits_until_the_next_leader_has_everything_and_what_was_committed_goes_on() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.cut(1, 3);
    let x = trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.ticks(2);
    assert_eq!((trial.status(1).committed, trial.status(3).last), (x, x - 1));
    trial.cuts.clear();
    trial.node(1).transfer(GROUP, m(3)).unwrap();
    let twice = trial.node(1).transfer(GROUP, m(1));
    assert_eq!(twice, Err(Refused::Impossible));
    trial.ticks_until(9, |t| t.leader() == Some(3));
    assert!(trial.status(3).committed >= x);
    let no_voter = trial.node(3).transfer(GROUP, m(7));
    assert_eq!(no_voter, Err(Refused::Impossible));
}

#[test]
fn proposals_during_a_transfer_are_held_and_have_their_indices_if_it_comes_to_nothing() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.cut(1, 3);
    trial.node(1).transfer(GROUP, m(3)).unwrap();
    let x = trial.node(1).propose(GROUP, "x".into()).unwrap();
    let y = trial.node(1).propose(GROUP, "y".into()).unwrap();
    let change = trial.node(1).change(GROUP, &[Step::Remove(m(3))]);
    assert_eq!(change, Err(Refused::ChangeUnderWay));
    trial.ticks(3);
    assert_eq!(trial.status(1).last, x - 1);
    trial.ticks_until(20, |t| t.status(2).committed == y);
    let told = trial
        .committed
        .iter()
        .filter(|(node, c)| *node == 2 && !c.record.is_empty());
    let told: Vec<_> = told.map(|(_, c)| (c.at.index, c.record.clone())).collect();
    assert_eq!(told, [(x, "x".into()), (y, "y".into())]);
}

#[test]
fn proposals_during_a_transfer_come_back_if_the_leadership_is_gone() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.node(1).transfer(GROUP, m(3)).unwrap();
    trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.ticks_until(9, |t| t.leader() == Some(3));
    trial.ticks(3);
    let (group, records) = (GROUP, vec!["x".into()]);
    assert!(trial.events.contains(&(1, Event::Returned { group, records })));
}

#[test]
fn a_transfer_and_a_change_of_members_exclude_each_other() {
    let mut trial = Trial::new(4, 3);
    trial.led_by(1);
    let steps = [Step::Remove(m(3)), Step::Learner(m(4))];
    trial.node(1).change(GROUP, &steps).unwrap();
    let transfer = trial.node(1).transfer(GROUP, m(2));
    assert_eq!(transfer, Err(Refused::ChangeUnderWay));
}

#[test]
fn survivors_of_a_suspected_leader_vote_at_once_though_its_lease_has_not_run_out() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.cut(1, 2);
    trial.cut(1, 3);
    let ticks = trial.ticks_until(30, |t| t.leader().is_some_and(|leader| leader != 1));
    let settings = Settings::default();
    // Four for suspicion; the lease alone would be ten more, without ticks for ever.
    assert!(ticks <= settings.suspect_after + 5, "{ticks}");
    trial.ticks(2 * settings.election);
    assert_eq!(trial.status(1).leader, None);
}

#[test]
fn a_leader_whose_links_break_is_followed_by_another_before_the_next_tick() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.nodes.remove(&1);
    trial.node(2).suspect(NodeId(1));
    trial.node(3).suspect(NodeId(1));
    trial.settle();
    assert!(trial.leader().is_some());
}

#[test]
fn who_has_not_noticed_that_the_leader_is_lost_is_asked_again_in_the_next_ticks() {
    for first in [2, 3] {
        let mut trial = Trial::new(3, 3);
        trial.led_by(1);
        trial.nodes.remove(&1);
        trial.node(first).suspect(NodeId(1));
        trial.settle();
        assert_eq!(trial.leader(), None);
        trial.node(5 - first).suspect(NodeId(1));
        trial.settle();
        trial.ticks_until(2, |t| t.leader().is_some());
    }
}

#[test]
fn voters_that_have_asked_in_vain_for_long_ask_again_once_they_hear_each_other() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    // It has lost its disk: it is heard of, and has no vote.
    trial.start(1, 3, 2);
    trial.cut(2, 3);
    trial.ticks(400);
    trial.cuts.clear();
    let ticks = trial.ticks_until(300, |t| t.leader().is_some());
    assert!(ticks <= 3 * Settings::default().election, "{ticks}");
}

#[test]
fn a_peer_that_misses_the_leader_alone_gets_no_vote_from_those_who_follow_it() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    let term = trial.status(1).term;
    trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.settle();
    trial.node(3).suspect(NodeId(1));
    trial.ticks(1);
    assert_eq!((trial.leader(), trial.status(2).term), (Some(1), term));
}

#[test]
fn windows_of_what_is_under_way_are_freed_in_sleep() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.node(1).propose(GROUP, "x".into()).unwrap();
    trial.settle();
    let windows = |t: &Trial| t.nodes[&1].group(GROUP).unwrap().raw.raft.inflight_buffers_size();
    assert!(windows(&trial) > 0);
    trial.ticks_until(30, Trial::is_asleep);
    assert_eq!(windows(&trial), 0);
}

#[test]
fn a_joint_membership_is_left_by_the_next_leader() {
    let mut trial = Trial::new(5, 3);
    trial.led_by(1);
    let steps = [Step::Remove(m(3)), Step::Voter(m(4)), Step::Learner(m(5))];
    for node in [4, 5] {
        let new = Recovered::new_group(m(node), Membership::of(&[m(1), m(2), m(3)]));
        trial.node(node).open(GROUP, new).unwrap();
    }
    trial.learns(&[Step::Learner(m(4))]);
    trial.node(1).change(GROUP, &steps).unwrap();
    // The first leader is gone as soon as another one knows that the membership is joint.
    let joint = |s: crate::Status| s.members.is_joint();
    while !joint(trial.status(2)) {
        trial.step();
    }
    trial.nodes.remove(&1);
    trial.ticks_until(100, |t| {
        t.leader().is_some() && !joint(t.status(t.leader().unwrap()))
    });
    let leader = trial.leader().unwrap();
    let left = Membership {
        learners: vec![m(5)],
        ..Membership::of(&[m(1), m(2), m(4)])
    };
    let now = trial.status(leader).members;
    assert_eq!((now.voters.len(), &now.learners), (3, &left.learners));
    assert!(left.voters.iter().all(|voter| now.voters.contains(voter)));
}

#[test]
fn a_checkpoint_above_the_commit_index_that_was_written_opens_and_one_above_the_log_does_not() {
    let member = |entries: u64| {
        let me = Membership::of(&[m(1)]);
        let mut member = Recovered::at(m(1), Mark::default(), 5, me);
        let mut promise = Vec::new();
        let (term, vote, commit) = (1, m(1).number(), 2);
        storage::HardState { term, vote, commit }.encode(&mut promise);
        member.promise(&promise).unwrap();
        for index in 1..=entries {
            let entry = entry(Mark { index, term: 1 }, 0, Bytes::new()).unwrap();
            member.entry(&entry_record(GROUP, &entry).payload()).unwrap();
        }
        member
    };
    let mut groups = Groups::new(NodeId(1), 1, Settings::default());
    let lost = Damage::LostTail { last: 4, needed: 5 };
    assert_eq!(groups.open(GROUP, member(4)), Err(lost));
    assert_eq!(groups.open(GROUP, member(6)), Ok(()));
    let status = groups.status(GROUP).unwrap();
    assert_eq!((status.committed, status.last), (5, 6));
}

#[test]
fn a_group_of_one_votes_for_itself_only_when_its_log_is_synced() {
    let mut groups = node(&[m(1)]);
    let mut written = 0;
    for _ in 0..60 {
        groups.tick();
        let turn = groups.turn();
        written += turn.append.len();
    }
    // It asked for votes, and nothing of that is synced.
    assert!(written > 0);
    assert!(groups.turn().committed.is_empty());
    assert_eq!(groups.status(GROUP).unwrap().committed, 0);
}

#[test]
fn a_member_that_is_a_little_behind_is_sent_what_memory_has_and_nothing_is_read_for_it() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    trial.cut(1, 3);
    for _ in 0..20 {
        trial.node(1).propose(GROUP, vec![0; 64 << 10].into()).unwrap();
        trial.settle();
    }
    trial.cuts.clear();
    trial.ticks_until(60, Trial::is_asleep);
    assert_eq!(trial.status(3).committed, trial.status(1).committed);
    let reads = |e: &&(u32, Event)| matches!(e.1, Event::Read { .. });
    assert_eq!(trial.events.iter().find(reads), None);
}

#[test]
fn an_entry_alone_takes_one_sync_and_two_turns_of_each_member_until_its_leader_tells_of_it() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    (trial.turns, trial.syncs) = Default::default();
    let index = trial.node(1).propose(GROUP, "x".into()).unwrap();
    let told = |trial: &Trial| {
        trial
            .committed
            .iter()
            .any(|(node, entry)| (*node, entry.at.index) == (1, index))
    };
    while !told(&trial) {
        assert!(trial.step());
    }
    assert!(trial.turns.values().all(|turns| *turns <= 2), "{:?}", trial.turns);
    assert!(trial.syncs.values().all(|syncs| *syncs <= 1), "{:?}", trial.syncs);
    assert_eq!((trial.turns[&1], trial.syncs[&1]), (2, 1));
}

/// It has asked in vain for so long that it would not ask again for many seconds, and nobody else can be elected.
#[test]
fn whoever_alone_can_be_elected_asks_soon_once_somebody_asks_it_in_vain() {
    for silence in 300..320 {
        let mut trial = Trial::new(3, 3);
        trial.led_by(3);
        trial.cut(3, 2);
        trial.node(3).propose(GROUP, Bytes::from_static(b"more")).unwrap();
        trial.settle();
        trial.nodes.remove(&3);
        trial.cuts = [(1, 2)].into();
        trial.ticks(silence);
        assert_eq!(trial.leader(), None);
        trial.cuts.clear();
        trial.ticks_until(30, |t| t.leader() == Some(1));
    }
}

#[test]
fn a_member_whose_log_does_not_sync_takes_only_so_much_into_memory_and_has_the_rest_once_it_does() {
    let mut trial = Trial::new(3, 3);
    trial.led_by(1);
    let from = trial.status(1).committed;
    trial.hanging.insert(3);
    let record = Bytes::from(vec![7; 4 << 20]);
    for _ in 0..12 {
        trial.node(1).propose(GROUP, record.clone()).unwrap();
        trial.settle();
    }
    assert_eq!(trial.status(1).committed, from + 12);
    let held = trial.status(3).held_bytes;
    assert!((32 << 20..=36 << 20).contains(&held), "{held}");
    trial.hanging.clear();
    trial.ticks_until(60, |t| t.status(3).committed == from + 12);
}
