//! Three nodes with clients, links that lose what they like, and a leader that not everybody knows yet.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};

const NODES: [u32; 3] = [0, 1, 2];

/// A step of time, in milliseconds.
const STEP_MS: u64 = 500;

/// In so many steps a node learns who leads, or that a link is lost.
const LEARNS_IN: u32 = 3;

/// What clients of a node know.
#[derive(Debug, Default)]
struct Node {
    shared: SharedGroups,
    groups: Groups,
    /// The readers, each with whether it reads.
    readers: BTreeMap<ConsumerId, bool>,
    /// Those who were told to stop, and have not answered.
    stopping: Vec<ConsumerId>,
    view: (Option<u32>, Option<u64>),
    behind: u32,
}

/// What is between the nodes.
#[derive(Debug, Default)]
struct Wire {
    words: BTreeMap<(u32, u32), VecDeque<GroupWord>>,
    /// What was said since somebody asked.
    said: usize,
    cut: BTreeSet<(u32, u32)>,
    /// Who does not know that a link is cut, for how many steps.
    unaware: BTreeMap<(u32, u32), u32>,
    names: u64,
}

struct Says<'a>(u32, &'a mut Wire);

impl Others for Says<'_> {
    fn nodes(&mut self) -> Vec<u32> {
        NODES.into_iter().filter(|node| *node != self.0).collect()
    }

    fn say(&mut self, node: u32, word: GroupWord) -> bool {
        let link = (self.0, node);
        self.1.said += 1;
        match self.1.cut.contains(&link) {
            false => self.1.words.entry(link).or_default().push_back(word),
            true => return self.1.unaware.contains_key(&link),
        }
        true
    }

    fn name(&mut self) -> ConsumerId {
        self.1.names += 1;
        ConsumerId(self.1.names)
    }
}

struct World {
    nodes: [Node; 3],
    wire: Wire,
    now_ms: u64,
    leads: (u32, u64),
    partition: Option<u32>,
}

impl World {
    /// The first node leads, and all know.
    fn new(partition: Option<u32>) -> Self {
        let mut world = Self {
            nodes: Default::default(),
            wire: Wire::default(),
            now_ms: 1_000_000,
            leads: (0, 1),
            partition,
        };
        NODES.iter().for_each(|node| world.learn(*node));
        world
    }

    fn obey(&mut self, node: u32, orders: GroupOrders) {
        let it = &mut self.nodes[node as usize];
        for Update { reader, active } in &orders.updates {
            match it.readers.get_mut(reader) {
                Some(reads) if *active => *reads = true,
                Some(_) => it.stopping.push(*reader),
                None => {}
            }
        }
        it.shared.tell(&orders.updates);
        if orders.all_end {
            it.readers.clear();
        }
        it.readers.retain(|reader, _| !orders.ended.contains(reader));
    }

    fn turn(&mut self, node: u32) {
        let it = &mut self.nodes[node as usize];
        if it.shared.wakes_at_ms(&it.groups) > self.now_ms {
            return;
        }
        let mut orders = GroupOrders::default();
        let (now_ms, mut says) = (self.now_ms, Says(node, &mut self.wire));
        it.shared.settle(now_ms, &mut it.groups, &mut says, &mut orders);
        self.obey(node, orders);
        let it = &mut self.nodes[node as usize];
        it.shared.say(now_ms, &it.groups, &mut Says(node, &mut self.wire));
        assert!(
            it.shared.wakes_at_ms(&it.groups) > now_ms,
            "it would turn for ever"
        );
    }

    fn see(&mut self, node: u32, view: (Option<u32>, Option<u64>)) {
        let it = &mut self.nodes[node as usize];
        it.behind = 0;
        if it.view != view {
            it.view = view;
            it.readers.clear();
            it.shared.led(view.0, view.1, &mut it.groups, self.now_ms);
        }
        self.turn(node);
    }

    /// It hears who leads.
    fn learn(&mut self, node: u32) {
        let (leader, term) = self.leads;
        self.see(node, (Some(leader), (leader == node).then_some(term)));
    }

    fn elect(&mut self, node: u32) {
        self.leads = (node, self.leads.1 + 1);
        // Who has led before in another term sees that it is another one.
        self.learn(node);
    }

    fn join(&mut self, node: u32) -> ConsumerId {
        let reader = Says(node, &mut self.wire).name();
        let it = &mut self.nodes[node as usize];
        let (group, partition): (Arc<[u8]>, _) = (b"g"[..].into(), self.partition);
        if it.shared.leads() {
            it.readers.insert(reader, false);
            let update = it.groups.join(reader, &group, partition);
            self.update(node, update);
        } else if it.shared.leader().is_some() {
            it.readers.insert(reader, false);
            it.shared.join(reader, &group, partition, self.now_ms);
        }
        self.turn(node);
        reader
    }

    fn update(&mut self, node: u32, update: Option<Update>) {
        let updates = update.into_iter().collect();
        let orders = GroupOrders {
            updates,
            ..GroupOrders::default()
        };
        self.obey(node, orders);
    }

    fn leave(&mut self, node: u32, nth: usize) {
        let it = &mut self.nodes[node as usize];
        let Some(reader) = it.readers.keys().nth(nth).copied() else {
            return;
        };
        it.readers.remove(&reader);
        it.shared.leave(reader, self.now_ms);
        let update = it.groups.leave(reader);
        self.update(node, update);
        self.turn(node);
    }

    /// Clients of a node answer.
    fn answer(&mut self, node: u32) {
        for reader in std::mem::take(&mut self.nodes[node as usize].stopping) {
            let it = &mut self.nodes[node as usize];
            let Some(reads) = it.readers.get_mut(&reader) else {
                continue;
            };
            *reads = false;
            match it.shared.leads() {
                true => {
                    let update = it.groups.stepped_down(reader);
                    self.update(node, update);
                }
                false => it.shared.stepped_down(reader, self.now_ms),
            }
        }
        self.turn(node);
    }

    fn hear(&mut self, node: u32, from: u32, word: GroupWord) {
        let it = &mut self.nodes[node as usize];
        let mut orders = GroupOrders::default();
        let mut says = Says(node, &mut self.wire);
        it.shared
            .hear(from, word, self.now_ms, &mut it.groups, &mut says, &mut orders);
        self.obey(node, orders);
        self.turn(node);
    }

    fn deliver(&mut self, from: u32, to: u32) -> bool {
        let words = self.wire.words.get_mut(&(from, to));
        let word = words.and_then(|words| words.pop_front());
        let is_some = word.is_some();
        word.into_iter().for_each(|word| self.hear(to, from, word));
        is_some
    }

    fn lose(&mut self, from: u32, to: u32) {
        self.wire.words.entry((from, to)).or_default().pop_front();
    }

    fn cut(&mut self, one: u32, other: u32) {
        for link in [(one, other), (other, one)] {
            self.wire.words.remove(&link);
            if self.wire.cut.insert(link) {
                self.wire.unaware.insert(link, 0);
            }
        }
    }

    fn heal(&mut self, one: u32, other: u32) {
        for link in [(one, other), (other, one)] {
            self.notice(link);
            self.wire.cut.remove(&link);
        }
    }

    /// A node sees that its link with another one is lost.
    fn notice(&mut self, link: (u32, u32)) {
        if self.wire.unaware.remove(&link).is_some() {
            self.hear(link.0, link.1, GroupWord::Lost);
        }
    }

    fn pass(&mut self) {
        self.now_ms += STEP_MS;
        for node in NODES {
            self.nodes[node as usize].behind += 1;
            if self.nodes[node as usize].behind >= LEARNS_IN {
                self.learn(node);
            }
        }
        let unaware = self.wire.unaware.iter_mut();
        let noticed: Vec<(u32, u32)> = unaware
            .filter_map(|(link, steps)| {
                *steps += 1;
                (*steps >= LEARNS_IN).then_some(*link)
            })
            .collect();
        noticed.into_iter().for_each(|link| self.notice(link));
        NODES.iter().for_each(|node| self.turn(*node));
    }

    /// Everything that is under way arrives, and clients answer.
    fn arrive(&mut self) {
        let links = NODES.into_iter().flat_map(|from| NODES.map(|to| (from, to)));
        let links: Vec<(u32, u32)> = links.collect();
        while links.iter().any(|(from, to)| self.deliver(*from, *to)) || self.answers() {}
    }

    fn answers(&mut self) -> bool {
        let stopping = |node: &u32| !self.nodes[*node as usize].stopping.is_empty();
        let answering: Vec<u32> = NODES.into_iter().filter(stopping).collect();
        answering.iter().for_each(|node| self.answer(*node));
        !answering.is_empty()
    }

    fn reading(&self) -> Vec<ConsumerId> {
        let readers = self.nodes.iter().flat_map(|node| &node.readers);
        readers
            .filter(|(_, reads)| **reads)
            .map(|(reader, _)| *reader)
            .collect()
    }
}

#[test]
fn readers_of_all_nodes_are_one_group_and_the_next_one_follows_whoever_leaves() {
    let mut world = World::new(None);
    let [one, other, third] = [1, 2, 0].map(|node| {
        let reader = world.join(node);
        world.arrive();
        reader
    });
    assert_eq!(world.reading(), [one]);
    world.leave(1, 0);
    world.arrive();
    assert_eq!(world.reading(), [other]);
    // Its node is lost, and counts as down in two seconds.
    world.cut(0, 2);
    world.notice((0, 2));
    (0..3).for_each(|_| world.pass());
    assert_eq!(world.reading(), [], "its node has seen it, too");
    world.pass();
    assert_eq!(world.reading(), [third]);
}

#[test]
fn nobody_has_anything_to_do_for_a_stream_without_groups_and_little_for_one_that_has_some() {
    let mut world = World::new(None);
    for _ in 0..100 {
        world.pass();
        world.arrive();
    }
    assert_eq!(world.wire.said, 0);
    for node in NODES {
        world.join(node);
        world.arrive();
    }
    world.wire.said = 0;
    for _ in 0..100 {
        world.pass();
        world.arrive();
    }
    assert_eq!(world.wire.said, 2 * 2 * 10, "in 50 seconds, with the answers");
}

#[test]
fn whatever_word_is_lost_is_made_up_for() {
    // Of each word that is said while one joins, becomes active and leaves, and another one follows it.
    for nth in 0..24 {
        let mut world = World::new(Some(1));
        let mut left = nth;
        let mut arrive = |world: &mut World| {
            for _ in 0..12 {
                for (from, to) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
                    let is_word = world.wire.words.get(&(from, to)).is_some_and(|it| !it.is_empty());
                    if is_word && left == 0 {
                        world.lose(from, to);
                    }
                    left -= i32::from(is_word);
                    world.deliver(from, to);
                }
                world.answers();
            }
        };
        world.join(1);
        arrive(&mut world);
        let other = world.join(2);
        arrive(&mut world);
        for _ in 0..10 {
            world.pass();
            arrive(&mut world);
        }
        assert_eq!(world.reading().len(), 1, "without word {nth}");
        let node = u32::from(world.reading() == [other]) + 1;
        world.leave(node, 0);
        arrive(&mut world);
        for _ in 0..10 {
            world.pass();
            arrive(&mut world);
        }
        assert_eq!(world.reading().len(), 1, "without word {nth}");
    }
}

#[test]
fn a_node_that_does_not_hear_of_the_leader_for_a_moment_leaves_nobody_behind() {
    let mut world = World::new(None);
    world.join(1);
    world.arrive();
    world.see(1, (None, None));
    assert_eq!(world.reading(), [], "they are told to look again");
    world.learn(1);
    let again = world.join(1);
    world.arrive();
    assert_eq!(world.reading(), [again]);
    // So does one whose readers do not come again.
    world.see(1, (None, None));
    world.learn(1);
    let other = world.join(2);
    world.arrive();
    assert_eq!(world.reading(), [other]);
}

#[test]
fn a_leader_that_leads_again_in_another_term_waits_for_nodes_that_have_not_noticed() {
    let mut world = World::new(None);
    let one = world.join(1);
    world.arrive();
    world.elect(0);
    let own = world.join(0);
    assert_eq!(world.reading(), [one], "its node has heard nothing");
    // It is asked, and ends it before it answers.
    world.deliver(0, 1);
    assert_eq!(world.reading(), []);
    world.arrive();
    assert_eq!(world.reading(), [own]);
    // What it says of the term before is nobody's.
    let other = world.join(1);
    world.leave(0, 0);
    world.arrive();
    assert_eq!(world.reading(), [other]);
}

#[test]
fn a_new_leader_waits_for_all_nodes_or_until_they_count_as_down() {
    let mut world = World::new(None);
    world.join(0);
    let cut_off = world.join(2);
    world.arrive();
    assert_eq!(world.reading().len(), 1);
    world.leave(0, 0);
    world.arrive();
    assert_eq!(world.reading(), [cut_off]);
    world.cut(1, 2);
    world.notice((1, 2));
    world.elect(1);
    let own = world.join(1);
    world.arrive();
    assert_eq!(
        world.reading(),
        [cut_off],
        "it may be active for all that is known"
    );
    (0..3).for_each(|_| world.pass());
    assert_eq!(world.reading(), []);
    world.pass();
    assert_eq!(world.reading(), [own]);
}

#[test]
fn a_node_that_can_be_spoken_to_and_does_not_answer_is_waited_for_until_it_has_ended_its_readers() {
    let mut world = World::new(None);
    let one = world.join(1);
    world.arrive();
    world.elect(0);
    let own = world.join(0);
    let mut steps = 0;
    while world.reading() != [own] {
        assert!(world.reading().is_empty() || world.reading() == [one]);
        world.pass();
        world.wire.words.clear();
        world.arrive();
        steps += 1;
    }
    assert_eq!(steps * STEP_MS, SILENT_MS);
}

#[test]
fn a_node_that_hears_of_the_next_leader_leads_no_more() {
    let mut world = World::new(None);
    let own = world.join(0);
    world.arrive();
    assert_eq!(world.reading(), [own]);
    world.elect(2);
    let next = world.join(2);
    world.arrive();
    assert_eq!(
        (world.reading(), world.nodes[0].shared.leads()),
        (vec![next], false)
    );
    // Its member does not know yet; who joins there is one of the others.
    world.join(0);
    world.leave(2, 0);
    world.arrive();
    assert_eq!(world.reading().len(), 1);
}

#[test]
fn readers_of_a_group_of_which_the_leader_says_nothing_are_ended() {
    let mut world = World::new(None);
    world.join(1);
    world.arrive();
    let mut steps = 0;
    while !world.nodes[1].readers.is_empty() {
        world.lose(0, 1);
        world.deliver(1, 0);
        world.pass();
        world.lose(0, 1);
        steps += 1;
        assert!(steps < 40);
    }
    assert!(steps as u64 * STEP_MS >= ANSWERED_WITHIN_MS);
    let again = world.join(1);
    world.arrive();
    assert_eq!(world.reading(), [again]);
}

#[test]
fn a_node_without_a_copy_has_no_readers() {
    let mut world = World::new(None);
    world.join(1);
    let other = world.join(2);
    world.arrive();
    let it = &mut world.nodes[1];
    it.readers.clear();
    it.shared.retire(&mut Says(1, &mut world.wire), world.now_ms);
    world.arrive();
    assert_eq!(world.reading(), [other]);
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Join(u32),
    Leave(u32, usize),
    Deliver(u32, u32),
    Lose(u32, u32),
    Answer(u32),
    Elect(u32),
    Learn(u32),
    Blink(u32),
    Cut(u32, u32),
    Heal(u32, u32),
    Notice(u32, u32),
    Pass,
    Arrive,
}

fn step() -> impl Strategy<Value = Step> {
    let node = || 0..3_u32;
    let link = || (node(), 1..3_u32).prop_map(|(from, by)| (from, (from + by) % 3));
    prop_oneof![
        4 => node().prop_map(Step::Join),
        2 => (node(), 0..3_usize).prop_map(|(node, nth)| Step::Leave(node, nth)),
        20 => link().prop_map(|(from, to)| Step::Deliver(from, to)),
        2 => link().prop_map(|(from, to)| Step::Lose(from, to)),
        4 => node().prop_map(Step::Answer),
        1 => node().prop_map(Step::Elect),
        2 => node().prop_map(Step::Learn),
        1 => node().prop_map(Step::Blink),
        1 => link().prop_map(|(from, to)| Step::Cut(from, to)),
        1 => link().prop_map(|(from, to)| Step::Heal(from, to)),
        1 => link().prop_map(|(from, to)| Step::Notice(from, to)),
        6 => Just(Step::Pass),
        1 => Just(Step::Arrive),
    ]
}

impl World {
    fn act(&mut self, step: Step) {
        match step {
            Step::Join(node) => _ = self.join(node),
            Step::Leave(node, nth) => self.leave(node, nth),
            Step::Deliver(from, to) => _ = self.deliver(from, to),
            Step::Lose(from, to) => self.lose(from, to),
            Step::Answer(node) => self.answer(node),
            Step::Elect(node) => self.elect(node),
            Step::Learn(node) => self.learn(node),
            Step::Blink(node) if node == self.leads.0 => {}
            Step::Blink(node) => self.see(node, (None, None)),
            Step::Cut(one, other) => self.cut(one, other),
            Step::Heal(one, other) => self.heal(one, other),
            Step::Notice(one, other) => self.notice((one, other)),
            Step::Pass => self.pass(),
            Step::Arrive => self.arrive(),
        }
    }
}

proptest! {
    #[test]
    fn never_two_read_and_in_the_end_one_does(
        partition in prop::option::of(0_u32..4),
        steps in prop::collection::vec(step(), 0..150),
    ) {
        let mut world = World::new(partition);
        for step in steps {
            world.act(step);
            prop_assert!(world.reading().len() <= 1, "{:?} after {step:?}", world.reading());
        }
        for (one, other) in [(0, 1), (1, 2), (2, 0)] {
            world.heal(one, other);
        }
        NODES.iter().for_each(|node| world.learn(*node));
        for node in NODES.into_iter().cycle().take(60) {
            // Clients that were told to look again do.
            if world.nodes[node as usize].readers.is_empty() {
                world.join(node);
            }
            world.arrive();
            world.pass();
            prop_assert!(world.reading().len() <= 1);
        }
        let readers: usize = world.nodes.iter().map(|node| node.readers.len()).sum();
        prop_assert!(readers >= 3);
        prop_assert_eq!(world.reading().len(), 1);
        // All of one node's go: one of the others'.
        let left = world.reading()[0];
        for node in NODES {
            while world.nodes[node as usize].readers.contains_key(&left) {
                world.leave(node, 0);
            }
        }
        world.arrive();
        prop_assert_eq!(world.reading().len(), 1);
    }
}
