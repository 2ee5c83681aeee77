//! Ways through a third node, for as long as two nodes have no link and a third one has links with both.
//!
//! Each node tells those it has a link with whom else it has one with. Of two nodes without a link the one with the lower number
//! opens a *detour* through a node that reaches both; it has a name, and what is sent on it bears that. The node in the middle
//! passes frames on unread, only from a link of its own to a link of its own, and keeps nothing: so nothing is passed on twice,
//! and nothing goes round.
//!
//! A detour is a link to those at its ends: it comes up, frames arrive in order or not at all, and it is lost. They say so to
//! each other: each hears of the other one every half second, or gives it up. As soon as there is a link again the detour is
//! over. The change of ways is the loss of a link to everybody above, so nothing that went the one way is taken for what goes
//! the other.
//!
//! No socket, clock or lock. What may go wrong between two steps stands in `docs/decisions/0055`.

use super::NODE_BITS;
use super::passed::{Name, Passed, Reaches, Step};
use crate::groups::NodeId;
use std::collections::{BTreeMap, BTreeSet};

/// A node is missed for so many ticks, of 100 ms each, before somebody looks for a way round. A link that blinks comes back
/// sooner.
const MISSED_FOR: u32 = 5;

/// Each end of a detour says something so often, in ticks.
const SAYS_EVERY: u32 = 5;

/// An end that has heard nothing for so many ticks gives the detour up, or the one that it has asked for.
const SILENT_FOR: u32 = 20;

/// So often a node says again whom it reaches, in ticks, if somebody seems not to know it.
const REPEATS_EVERY: u32 = 50;

/// So many detours a node has at the most. There are fewer members.
const MOST: usize = 64;

/// What is to be done, in this order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Send this over the link with a node.
    Send { to: NodeId, frame: Vec<u8> },
    /// The same for another node, whose sessions miss it if there is little room.
    PassOn { to: NodeId, frame: Vec<u8> },
    /// A node can be spoken to, by its link or by the way of [`Detours::through`]; the number is its start's.
    Up { node: NodeId, start: u64 },
    /// The way to a node is lost, and with it what was under way.
    Down { node: NodeId },
}

/// See the module.
#[derive(Debug)]
pub(super) struct Detours {
    me: NodeId,
    start: u64,
    /// The nodes that this one has a link with.
    linked: BTreeSet<NodeId>,
    /// The last start of each node that was spoken to. What an earlier one has said may be under way for as long as it takes.
    starts: BTreeMap<NodeId, u64>,
    /// Whom these have links with, as they said last.
    reach: BTreeMap<NodeId, Vec<NodeId>>,
    detours: BTreeMap<NodeId, Detour>,
    /// The nodes that others reach and this one does not, and for how many ticks.
    missed: BTreeMap<NodeId, u32>,
    /// How many detours were opened here.
    opened: u64,
    ticks: u32,
}

#[derive(Clone, Copy, Debug)]
struct Detour {
    via: NodeId,
    name: Name,
    is_open: bool,
    /// For so many ticks nothing was heard of the other end.
    silent: u32,
}

/// A node may have such a number: nobody else costs memory.
fn has_number(node: &NodeId) -> bool {
    u64::from(node.0) < 1 << NODE_BITS
}

impl Detours {
    /// None yet, on this node, in the start of this number.
    pub fn new(me: NodeId, start: u64) -> Self {
        Self {
            me,
            start,
            linked: BTreeSet::new(),
            starts: BTreeMap::new(),
            reach: BTreeMap::new(),
            detours: BTreeMap::new(),
            missed: BTreeMap::new(),
            opened: 0,
            ticks: 0,
        }
    }

    /// The nodes that are reached through others, each with the one it is reached through and the detour's name.
    pub fn through(&self) -> impl Iterator<Item = (NodeId, NodeId, Name)> {
        let open = self.detours.iter().filter(|(_, detour)| detour.is_open);
        open.map(|(node, detour)| (*node, detour.via, detour.name))
    }

    /// There is a link with a node.
    pub fn up(&mut self, node: NodeId, start: u64, orders: &mut Vec<Order>) {
        self.close(node, true, orders);
        self.missed.remove(&node);
        self.reach.remove(&node);
        self.linked.insert(node);
        self.reached(node, start, orders);
        self.tell_all(orders);
    }

    /// It is lost, and with it the detours that led through that node.
    pub fn down(&mut self, node: NodeId, orders: &mut Vec<Order>) {
        if !self.linked.remove(&node) {
            return;
        }
        self.reach.remove(&node);
        orders.push(Order::Down { node });
        let through = self.detours.iter().filter(|(_, detour)| detour.via == node);
        let lost: Vec<NodeId> = through.map(|(node, _)| *node).collect();
        for lost in lost {
            self.close(lost, false, orders);
        }
        self.tell_all(orders);
    }

    /// The node at the other end of a link says whom it has links with. If it has said something else before and lacks a way to
    /// somebody, it is told again whom this node reaches: what it was told while it began, nobody there took.
    pub fn hears(&mut self, link: NodeId, said: Reaches, orders: &mut Vec<Order>) {
        if !self.linked.contains(&link) {
            return;
        }
        let mut nodes = said.nodes;
        nodes.retain(has_number);
        let is_news = self.reach.get(&link) != Some(&nodes);
        self.reach.insert(link, nodes);
        if is_news && self.reaches_more(link) {
            orders.push(self.tell(link));
        }
    }

    /// What is said on a detour, as it came over a link, with all its bytes, of which a frame may stand `before` it. Returns this
    /// if it is for this node.
    pub fn receive(
        &mut self,
        link: NodeId,
        passed: &Passed,
        (mut bytes, before): (Vec<u8>, usize),
        orders: &mut Vec<Order>,
    ) -> Option<Vec<u8>> {
        if passed.to != self.me {
            self.pass_on(link, passed, bytes, orders);
            return None;
        }
        // What a node says itself comes by its link.
        let node = passed.from;
        if node == link || node == self.me || !self.linked.contains(&link) {
            return None;
        }
        match passed.step {
            Step::Open => self.is_asked(node, link, passed.name, orders),
            Step::Opened { start } => {
                let is_late = self.is_earlier(node, start);
                let known = self.detour_mut(node, link, passed.name).filter(|it| !it.is_open);
                if let Some(detour) = known.filter(|_| !is_late) {
                    (detour.is_open, detour.silent) = (true, 0);
                    self.reached(node, start, orders);
                }
            }
            Step::Lives => match self.detour_mut(node, link, passed.name) {
                // Who has not heard yet that it is open asks anew in a while.
                Some(detour) if !detour.is_open => {}
                Some(detour) => detour.silent = 0,
                None => orders.push(self.say(link, node, passed.name, Step::Closed)),
            },
            Step::Closed => {
                if self.detour_mut(node, link, passed.name).is_some() {
                    self.close(node, false, orders);
                }
            }
            Step::Frame => {
                let detour = self.detour_mut(node, link, passed.name).filter(|it| it.is_open)?;
                detour.silent = 0;
                bytes.truncate(before);
                return Some(bytes);
            }
        }
        None
    }

    /// A tick of the clock, of which there is one each 100 ms.
    pub fn tick(&mut self, orders: &mut Vec<Order>) {
        self.ticks = self.ticks.wrapping_add(1);
        let mut silent = Vec::new();
        for (node, detour) in &mut self.detours {
            detour.silent += 1;
            if detour.silent >= SILENT_FOR {
                silent.push(*node);
            }
        }
        silent.into_iter().for_each(|node| self.close(node, true, orders));
        if self.ticks.is_multiple_of(SAYS_EVERY) {
            let open: Vec<_> = self.through().collect();
            let lives = open
                .into_iter()
                .map(|(node, via, name)| self.say(via, node, name, Step::Lives));
            orders.extend(lives);
        }
        if self.ticks.is_multiple_of(REPEATS_EVERY) {
            self.repeat(orders);
        }
        self.look_for_ways(orders);
    }

    /// Between two nodes that this one has links with, a frame goes on as it is.
    fn pass_on(&self, link: NodeId, passed: &Passed, frame: Vec<u8>, orders: &mut Vec<Order>) {
        if passed.from != link || !self.linked.contains(&link) {
            return;
        }
        if self.linked.contains(&passed.to) {
            let to = passed.to;
            orders.push(match passed.step {
                Step::Frame => Order::PassOn { to, frame },
                _ => Order::Send { to, frame },
            });
        } else if passed.step != Step::Closed {
            // In the other one's name, which has lost it.
            let closed = Passed {
                to: passed.from,
                from: passed.to,
                name: passed.name,
                step: Step::Closed,
            };
            orders.push(Order::Send {
                to: link,
                frame: closed.encode(),
            });
        }
    }

    /// Another node opens a detour, through the one at this link. Its earlier one is over by that.
    fn is_asked(&mut self, node: NodeId, via: NodeId, name: Name, orders: &mut Vec<Order>) {
        let known = self.detour_mut(node, via, name).is_some();
        let is_member = has_number(&node) && node < self.me && !self.linked.contains(&node);
        let is_due = is_member && !self.is_earlier(node, name.start);
        if !is_due || self.detours.len() >= MOST && !known {
            return orders.push(self.say(via, node, name, Step::Closed));
        }
        if !known {
            self.close(node, false, orders);
        }
        // Before anything that is said because the node is there: behind this it counts.
        orders.push(self.say(via, node, name, Step::Opened { start: self.start }));
        if !known {
            let detour = Detour {
                via,
                name,
                is_open: true,
                silent: 0,
            };
            self.detours.insert(node, detour);
            self.reached(node, name.start, orders);
        }
    }

    fn reached(&mut self, node: NodeId, start: u64, orders: &mut Vec<Order>) {
        self.starts.insert(node, start);
        orders.push(Order::Up { node, start });
    }

    /// A later start of the node was spoken to.
    fn is_earlier(&self, node: NodeId, start: u64) -> bool {
        self.starts.get(&node).is_some_and(|known| start < *known)
    }

    fn detour_mut(&mut self, node: NodeId, via: NodeId, name: Name) -> Option<&mut Detour> {
        let known = self.detours.get_mut(&node);
        known.filter(|detour| (detour.via, detour.name) == (via, name))
    }

    fn say(&self, via: NodeId, to: NodeId, name: Name, step: Step) -> Order {
        let from = self.me;
        let passed = Passed { to, from, name, step };
        Order::Send {
            to: via,
            frame: passed.encode(),
        }
    }

    /// A detour is over, if there is one; `says` it to the other end.
    fn close(&mut self, node: NodeId, says: bool, orders: &mut Vec<Order>) {
        let Some(Detour {
            via, name, is_open, ..
        }) = self.detours.remove(&node)
        else {
            return;
        };
        if is_open {
            orders.push(Order::Down { node });
        }
        if says {
            orders.push(self.say(via, node, name, Step::Closed));
        }
    }

    /// Opens detours to nodes that have been missed for long enough.
    fn look_for_ways(&mut self, orders: &mut Vec<Order>) {
        let is_missed = |node: &NodeId| {
            *node != self.me && !self.linked.contains(node) && !self.detours.contains_key(node)
        };
        let mut missed: BTreeMap<NodeId, u32> = BTreeMap::new();
        for node in self.reach.values().flatten().filter(|node| is_missed(node)) {
            let since = self.missed.get(node).copied().unwrap_or(0);
            missed.insert(*node, since.saturating_add(1));
        }
        self.missed = missed;
        let due = self.missed.iter().filter(|(_, ticks)| **ticks >= MISSED_FOR);
        let due: Vec<NodeId> = due.map(|(node, _)| *node).collect();
        for node in due.into_iter().filter(|node| self.me < *node) {
            let reached = self.reach.iter().filter(|(_, nodes)| nodes.contains(&node));
            let ways: Vec<NodeId> = reached.map(|(via, _)| *via).collect();
            if ways.is_empty() || self.detours.len() >= MOST {
                continue;
            }
            self.opened += 1;
            // Another one each time, if there are several.
            let via = ways[self.opened as usize % ways.len()];
            let name = Name {
                start: self.start,
                number: self.opened,
            };
            let detour = Detour {
                via,
                name,
                is_open: false,
                silent: 0,
            };
            self.detours.insert(node, detour);
            self.missed.remove(&node);
            orders.push(self.say(via, node, name, Step::Open));
        }
    }

    fn tell_all(&self, orders: &mut Vec<Order>) {
        orders.extend(self.linked.iter().map(|peer| self.tell(*peer)));
    }

    fn tell(&self, peer: NodeId) -> Order {
        let nodes = self.linked.iter().copied().filter(|node| *node != peer);
        let frame = Reaches {
            nodes: nodes.collect(),
        }
        .encode();
        Order::Send { to: peer, frame }
    }

    /// Says again whom this node reaches to those who don't reach all of these: they may not have heard of it.
    fn repeat(&self, orders: &mut Vec<Order>) {
        let lacking = self.linked.iter().filter(|peer| self.reaches_more(**peer));
        orders.extend(lacking.map(|peer| self.tell(*peer)));
    }

    /// True if this node has a link with somebody whom the node at the other end of a link is not known to have one with.
    fn reaches_more(&self, peer: NodeId) -> bool {
        let known = self.reach.get(&peer);
        let mut others = self.linked.iter().filter(|node| **node != peer);
        others.any(|node| known.is_none_or(|known| !known.contains(node)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::passed::OfDetours;
    use super::*;
    use std::collections::VecDeque;
    use storage::faulty::Random;

    const NODES: u32 = 4;

    /// A node, its start, whom it thinks that it can speak to, and the last number that it has of each.
    struct Node {
        detours: Detours,
        start: u64,
        up: BTreeMap<NodeId, u64>,
        last: BTreeMap<NodeId, u64>,
    }

    /// Nodes, and what is under way on the links between them, in order.
    struct Net {
        nodes: Vec<Node>,
        links: BTreeMap<(NodeId, NodeId), VecDeque<Vec<u8>>>,
        sent: u64,
        taken: u64,
        passed: u64,
    }

    impl Node {
        fn new(number: u32, start: u64) -> Self {
            Self {
                detours: Detours::new(NodeId(number), start),
                start,
                up: BTreeMap::new(),
                last: BTreeMap::new(),
            }
        }
    }

    impl Net {
        fn new() -> Self {
            Self {
                nodes: (0..NODES).map(|number| Node::new(number, 1)).collect(),
                links: BTreeMap::new(),
                sent: 0,
                taken: 0,
                passed: 0,
            }
        }

        fn at(&mut self, node: NodeId) -> &mut Node {
            &mut self.nodes[node.0 as usize]
        }

        fn change(&mut self, node: NodeId, act: impl FnOnce(&mut Detours, &mut Vec<Order>)) {
            let mut orders = Vec::new();
            act(&mut self.at(node).detours, &mut orders);
            for order in orders {
                match order {
                    Order::Send { to, frame } | Order::PassOn { to, frame } => {
                        self.links
                            .entry((node, to))
                            .and_modify(|link| link.push_back(frame));
                    }
                    Order::Up { node: other, start } => {
                        assert_eq!(self.at(node).up.insert(other, start), None, "{other:?} was there");
                        // What is said because of it is said at once.
                        self.say(node, other);
                    }
                    Order::Down { node: other } => {
                        assert!(
                            self.at(node).up.remove(&other).is_some(),
                            "{other:?} was not there"
                        );
                    }
                }
            }
        }

        fn link(&mut self, one: NodeId, other: NodeId) {
            if one == other || self.links.contains_key(&(one, other)) {
                return;
            }
            for (from, to) in [(one, other), (other, one)] {
                self.links.insert((from, to), VecDeque::new());
            }
            for (from, to) in [(one, other), (other, one)] {
                let start = self.at(to).start;
                self.change(from, |detours, orders| detours.up(to, start, orders));
            }
        }

        fn restart(&mut self, node: NodeId) {
            (0..NODES).for_each(|other| self.cut(node, NodeId(other)));
            let start = self.at(node).start + 1;
            *self.at(node) = Node::new(node.0, start);
        }

        fn cut(&mut self, one: NodeId, other: NodeId) {
            for (from, to) in [(one, other), (other, one)] {
                if self.links.remove(&(from, to)).is_some() {
                    self.change(from, |detours, orders| detours.down(to, orders));
                }
            }
        }

        /// A number from one node to another one, on whatever way the first one thinks that there is.
        fn say(&mut self, from: NodeId, to: NodeId) {
            if !self.at(from).up.contains_key(&to) {
                return;
            }
            self.sent += 1;
            let number = self.sent.to_be_bytes();
            let way = self.at(from).detours.through().find(|(node, ..)| *node == to);
            let (via, frame) = match way {
                Some((_, via, name)) => {
                    self.passed += 1;
                    let step = Step::Frame;
                    let said = Passed { to, from, name, step }.encode();
                    (via, [&number[..], &said].concat())
                }
                None => (to, number.to_vec()),
            };
            self.links
                .entry((from, via))
                .and_modify(|link| link.push_back(frame));
        }

        fn arrive(&mut self, link: (NodeId, NodeId)) -> bool {
            let Some(frame) = self.links.get_mut(&link).and_then(VecDeque::pop_front) else {
                return false;
            };
            let (from, to) = link;
            match OfDetours::decode(&frame) {
                None => self.takes(to, from, &frame),
                Some((OfDetours::Reaches(said), _)) => {
                    self.change(to, |detours, orders| detours.hears(from, said, orders));
                }
                Some((OfDetours::Passed(passed), before)) => {
                    let mut found = None;
                    self.change(to, |detours, orders| {
                        found = detours.receive(from, &passed, (frame, before), orders);
                    });
                    if let Some(number) = found {
                        self.takes(to, passed.from, &number);
                    }
                }
            }
            true
        }

        fn takes(&mut self, node: NodeId, from: NodeId, number: &[u8]) {
            let number = u64::from_be_bytes(number.try_into().unwrap());
            self.taken += 1;
            let node = self.at(node);
            assert!(
                node.up.contains_key(&from),
                "somebody speaks that nobody knows to be there"
            );
            let last = node.last.insert(from, number);
            assert!(last < Some(number), "{number} comes after {last:?}");
        }

        fn tick(&mut self) {
            (0..NODES).for_each(|node| self.change(NodeId(node), Detours::tick));
        }

        fn arrive_all(&mut self) {
            let all: Vec<_> = self.links.keys().copied().collect();
            while all.iter().any(|link| self.arrive(*link)) {}
        }

        fn settle(&mut self) {
            for _ in 0..100 {
                self.tick();
                self.arrive_all();
            }
        }

        /// Who has no link has a detour if somebody has links with both, and nobody else has one.
        fn judge(&self) {
            let linked = |one, other| self.links.contains_key(&(NodeId(one), NodeId(other)));
            for one in 0..NODES {
                for other in (0..NODES).filter(|other| *other != one) {
                    let between = (0..NODES).any(|it| linked(one, it) && linked(it, other));
                    let way = |from: u32, to: u32| {
                        let mut ways = self.nodes[from as usize].detours.through();
                        ways.find(|(node, ..)| *node == NodeId(to))
                            .map(|(_, via, name)| (via, name))
                    };
                    assert_eq!(way(one, other), way(other, one), "of {one} and {other}");
                    assert_eq!(
                        way(one, other).is_some(),
                        between && !linked(one, other),
                        "of {one} and {other}"
                    );
                    let start = self.nodes[other as usize].start;
                    let up = self.nodes[one as usize].up.get(&NodeId(other));
                    assert_eq!(up.copied(), (between || linked(one, other)).then_some(start));
                }
            }
        }
    }

    #[test]
    fn two_nodes_without_a_link_speak_through_a_third_one_in_order_and_know_when_they_do() {
        let (mut taken, mut passed) = (0, 0);
        for seed in 0..200 {
            let (mut net, mut random) = (Net::new(), Random(seed));
            let node = |random: &mut Random| NodeId(random.below(u64::from(NODES)) as u32);
            for _ in 0..800 {
                let (one, other) = (node(&mut random), node(&mut random));
                match random.below(40) {
                    0 if random.below(8) == 0 => net.restart(one),
                    0 => net.cut(one, other),
                    1 => net.link(one, other),
                    2..=9 => net.tick(),
                    10..=22 if one != other => net.say(one, other),
                    _ => drop(net.arrive((one, other))),
                }
            }
            net.settle();
            net.judge();
            (taken, passed) = (taken + net.taken, passed + net.passed);
        }
        assert!(taken > 5_000 && passed > 250, "{taken} {passed}");
    }

    /// A node at the end of a detour that another one, in this start, asks for; with what it orders.
    fn asked(end: &mut Detours, start: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        let passed = Passed {
            to: NodeId(3),
            from: NodeId(1),
            name: Name { start, number: 1 },
            step: Step::Open,
        };
        let found = end.receive(NodeId(2), &passed, (passed.encode(), 0), &mut orders);
        assert_eq!(found, None);
        orders
    }

    fn said(order: &Order) -> Option<Step> {
        let Order::Send { to: NodeId(2), frame } = order else {
            return None;
        };
        match OfDetours::decode(frame) {
            Some((OfDetours::Passed(passed), _)) => Some(passed.step),
            _ => None,
        }
    }

    #[test]
    fn a_node_that_was_told_nothing_while_it_began_finds_a_way_as_soon_as_any_other() {
        let mut net = Net::new();
        let (middle, late, other) = (NodeId(0), NodeId(1), NodeId(2));
        net.link(middle, late);
        net.link(middle, other);
        net.link(late, other);
        // Nobody was there to take it.
        net.links.entry((middle, late)).and_modify(VecDeque::clear);
        net.arrive_all();
        net.cut(late, other);
        for _ in 0..=MISSED_FOR {
            net.arrive_all();
            net.tick();
        }
        net.arrive_all();
        net.judge();
    }

    #[test]
    fn who_agrees_says_so_before_anything_else() {
        let mut end = Detours::new(NodeId(3), 7);
        end.up(NodeId(2), 1, &mut Vec::new());
        let orders = asked(&mut end, 5);
        assert_eq!(said(&orders[0]), Some(Step::Opened { start: 7 }));
        let (node, start) = (NodeId(1), 5);
        assert_eq!(orders[1..], [Order::Up { node, start }]);
        let again = asked(&mut end, 5);
        assert_eq!(again, orders[..1], "the answer was lost");
    }

    #[test]
    fn what_an_earlier_start_of_a_node_asks_for_comes_too_late() {
        let mut end = Detours::new(NodeId(3), 1);
        end.up(NodeId(2), 1, &mut Vec::new());
        end.up(NodeId(1), 5, &mut Vec::new());
        end.down(NodeId(1), &mut Vec::new());
        let orders = asked(&mut end, 4);
        assert_eq!((orders.len(), said(&orders[0])), (1, Some(Step::Closed)));
        assert_eq!(asked(&mut end, 5).len(), 2);
    }

    #[test]
    fn a_link_that_was_never_there_is_not_lost() {
        let mut end = Detours::new(NodeId(3), 1);
        end.up(NodeId(2), 1, &mut Vec::new());
        asked(&mut end, 5);
        let mut orders = Vec::new();
        end.down(NodeId(1), &mut orders);
        assert_eq!((orders, end.through().count()), (vec![], 1));
    }

    #[test]
    fn whoever_passes_on_does_so_once_and_only_for_the_node_at_the_other_end_of_the_link() {
        let mut orders = Vec::new();
        let mut middle = Detours::new(NodeId(2), 1);
        middle.up(NodeId(1), 1, &mut orders);
        middle.up(NodeId(3), 1, &mut orders);
        let name = Name { start: 1, number: 1 };
        let mut says = |link: u32, from: u32, to: u32| {
            let passed = Passed {
                to: NodeId(to),
                from: NodeId(from),
                name,
                step: Step::Frame,
            };
            let bytes = [&b"x"[..], &passed.encode()].concat();
            let mut orders = Vec::new();
            let found = middle.receive(NodeId(link), &passed, (bytes.clone(), 1), &mut orders);
            assert_eq!(found, None);
            (orders, bytes)
        };
        let (orders, frame) = says(1, 1, 3);
        assert_eq!(orders, [Order::PassOn { to: NodeId(3), frame }]);
        assert!(says(1, 4, 3).0.is_empty(), "it was passed on before");
        assert!(says(4, 4, 3).0.is_empty(), "there is no link with that one");
        let (orders, _) = says(1, 1, 4);
        let [Order::Send { to: NodeId(1), frame }] = &orders[..] else {
            panic!("{orders:?}")
        };
        let closed = OfDetours::decode(frame);
        let (to, from, step) = (NodeId(1), NodeId(4), Step::Closed);
        assert_eq!(
            closed,
            Some((OfDetours::Passed(Passed { to, from, name, step }), 0))
        );
    }
}
