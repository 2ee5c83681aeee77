//! All nodes with their network and their clients, and how time passes for them.

use super::access::Access;
use super::aim::Aim;
use super::clients::Clients;
use super::coverage::{Cell, Fault, Ways};
use super::exercised::Deed;
use super::history::Id;
use super::invariants::{agreed, contents, deliveries, deposed, hangs, leaders, limits};
use super::ledger::{Leadership, Ledger};
use super::letters::UnderWay;
use super::mutant::Mutant;
use super::network::{Network, Said};
use super::node::Node;
use super::policies::Opening;
use super::terms::{DEAD, Terms};
use super::theme::Theme;
use broker::groups::handle::deliver;
use broker::groups::{Ends, News};
use cluster::GroupId;
use model::{Incarnation, Machine, Seq};
use queue::{Answer, Effect, Request};
use std::collections::BTreeMap;
use std::time::Duration;
use storage::faulty::Random;

/// What is taken out of a queue at the end.
pub struct Drained {
    /// Who takes it.
    pub consumer: Option<u64>,
    pub taken: Vec<(Seq, Id)>,
}

/// Everything.
pub struct Cluster {
    pub nodes: Vec<Node>,
    pub network: Network,
    pub ledger: Ledger,
    pub theme: Theme,
    pub random: Random,
    pub clients: Clients,
    pub letters: UnderWay,
    /// The ways of nodes that run to all queues.
    pub accesses: BTreeMap<(u32, GroupId), Access>,
    /// Incarnations of nodes that are over.
    pub over: Vec<Incarnation>,
    pub drained: Option<Drained>,
    /// All clients have left: what is given to them all the same goes back.
    pub clients_are_gone: bool,
    /// Nothing goes wrong any more and nobody wants anything: time passes quickly.
    pub is_calm: bool,
    pub terms: BTreeMap<GroupId, Terms>,
    /// Which of a queue's policies each node knows to be in force.
    pub known_policies: BTreeMap<(u32, GroupId), usize>,
    pub ways: Ways,
    /// What a fault waits for.
    pub aim: Option<Aim>,
    /// Something is to rot, as soon as everybody has everything.
    pub rots: bool,
    /// Disks are lost; members change then only to replace those.
    pub loses_disks: bool,
    incarnations: u64,
}

impl Cluster {
    /// Some nodes with some queues, as the seed says, or for a seed that is aimed at something.
    pub fn new(seed: u64, cell: Option<Cell>, story: bool) -> Self {
        let mut random = Random(seed);
        let theme = Theme::choose(&mut random);
        let theme = cell.map_or(theme, |_| Theme::Aimed);
        let count = theme.nodes(&mut random);
        let ids: Vec<u32> = (1..=count).collect();
        let mut terms = BTreeMap::from([(
            DEAD,
            Terms::of_the_dead(some_nodes(&ids, &mut random), &mut random),
        )]);
        for group in 2..=2 + random.below(2) {
            let nodes = some_nodes(&ids, &mut random);
            terms.insert(GroupId(group), Terms::choose(nodes, theme, &mut random));
        }
        let mut ledger = Ledger {
            story: story.then(Vec::new),
            now: Duration::from_secs(1),
            ..Ledger::default()
        };
        for (group, terms) in &terms {
            ledger.tell(|| format!("{group:?}: {terms:?}"));
            ledger.open(*group, terms.clone());
            if let Some(why) = &terms.refused {
                ledger.violated("declarations are taken", format!("{why}: {:?}", terms.declared));
            }
        }
        let mut cluster = Self {
            nodes: ids.iter().map(|id| Node::new(*id)).collect(),
            network: Network::default(),
            ledger,
            theme,
            random,
            clients: Clients::default(),
            letters: UnderWay::default(),
            accesses: BTreeMap::new(),
            over: Vec::new(),
            drained: None,
            clients_are_gone: false,
            is_calm: false,
            terms,
            known_policies: BTreeMap::new(),
            ways: Ways::begin(),
            aim: None,
            rots: false,
            loses_disks: false,
            incarnations: 0,
        };
        for (group, terms) in &cluster.terms {
            for id in &terms.nodes {
                cluster.nodes[*id as usize - 1].groups.insert(*group);
            }
        }
        ids.iter().for_each(|id| cluster.start(*id));
        cluster
    }

    pub fn node(&self, id: u32) -> &Node {
        &self.nodes[id as usize - 1]
    }

    pub fn node_mut(&mut self, id: u32) -> &mut Node {
        &mut self.nodes[id as usize - 1]
    }

    pub fn ids(&self) -> Vec<u32> {
        self.nodes.iter().map(|node| node.id).collect()
    }

    /// Something goes wrong with these nodes, as far as they run.
    pub fn struck(&mut self, fault: Fault, nodes: &[u32]) {
        let (books, coverage) = (&self.ledger.books, &mut self.ledger.counts.coverage);
        let agreed = |group: GroupId| books.get(&group).map_or(0, |book| book.history.last());
        for node in nodes.iter().map(|id| &self.nodes[*id as usize - 1]) {
            if node.running.is_some() {
                self.ways.struck(fault, node, agreed, coverage);
            }
        }
    }

    /// Starts a node that does not run.
    pub fn start(&mut self, id: u32) {
        if self.node(id).running.is_some() {
            return;
        }
        self.incarnations += 1;
        let before = self.node(id).incarnation;
        let incarnation = match Mutant::OldIncarnation.is_on() && before > 0 {
            true => before,
            false => self.incarnations,
        };
        let ids = self.ids();
        self.ledger.trouble(id);
        let groups: Vec<GroupId> = self.terms.keys().copied().collect();
        let openings = groups.iter().map(|group| (*group, self.opening(id, *group)));
        let openings: BTreeMap<GroupId, Opening> = openings.collect();
        let node = &mut self.nodes[id as usize - 1];
        let (before, is_full) = (node.incarnation, node.files.is_full());
        self.over.extend((before > 0).then_some(Incarnation(before)));
        let started = node.start(incarnation, &openings, &ids, &self.network, &mut self.random);
        let lacks_power = node.files.is_off();
        self.ledger.tell(|| format!("node {id} starts: {started:?}"));
        if started.is_ok() {
            for (group, (settings, _)) in &openings {
                let access = Access::new(Incarnation(incarnation), settings);
                self.accesses.insert((id, *group), access);
            }
        }
        match started {
            Ok(given_up) => self.ledger.counts.rot.found_at_start += given_up.len() as u64,
            Err(_) if lacks_power || is_full => {}
            Err(what) if self.node(id).is_rotten() => self.replace_disk(id, &what),
            Err(what) => {
                let what = format!("node {id}: {what}");
                self.ledger.violated("a node starts on what it has", what);
            }
        }
    }

    /// A node's process ends; with `power` without its unsynced writes.
    pub fn end(&mut self, id: u32, power: bool) {
        if self.node(id).running.is_none() {
            return;
        }
        self.look();
        self.ledger
            .tell(|| format!("node {id} ends, without power: {power}"));
        let led: Vec<Leadership> = self.led_by(id);
        self.nodes[id as usize - 1].end(power, &mut self.random);
        self.network.ended(id);
        self.ways.ended(id);
        self.ledger.trouble(id);
        self.accesses.retain(|(node, _), _| *node != id);
        self.clients.forget(id);
        self.terms
            .keys()
            .for_each(|group| self.ledger.drop_hands(*group, id));
        led.into_iter().for_each(|by| self.letters.forget(by));
    }

    fn led_by(&self, node: u32) -> Vec<Leadership> {
        let groups = self.terms.keys().copied();
        let led = groups.filter_map(|group| {
            let term = self.node(node).leads(group)?;
            Some(Leadership { group, node, term })
        });
        led.collect()
    }

    /// What is led, by whoever believes that it leads and goes on.
    pub fn leaderships(&self) -> Vec<Leadership> {
        let nodes = self.nodes.iter().filter(|node| node.goes_on());
        nodes.flat_map(|node| self.led_by(node.id)).collect()
    }

    /// Who leads this queue, if one node does.
    pub fn leadership_of(&self, group: GroupId) -> Option<Leadership> {
        self.leaderships().into_iter().find(|by| by.group == group)
    }

    /// Asks a leader for something, unless it is one no more.
    pub fn submit(&mut self, by: Leadership, request: Request<Ends>) {
        if self.node(by.node).leads(by.group) == Some(by.term) {
            self.node(by.node).submit(by.group, request);
        }
    }

    /// Some milliseconds pass, and what is due happens.
    pub fn round(&mut self) {
        let most = if self.is_calm { 100 } else { 20 };
        let time = Duration::from_millis(1 + self.random.below(most));
        self.ledger.now += time;
        let now = self.ledger.now;
        if !self.network.cuts.is_empty() || self.nodes.iter().any(|node| node.paused.is_some()) {
            self.ids().iter().for_each(|id| self.ledger.trouble(*id));
        }
        // Whose log has failed says nothing more to its peers: they count it as down.
        let failed = self.nodes.iter().filter(|node| node.log_failed());
        failed.for_each(|node| self.ledger.trouble(node.id));
        self.ways.look();
        let ticking = self
            .nodes
            .iter_mut()
            .filter_map(|node| node.advance(time).then_some(node.id));
        let ticking: Vec<u32> = ticking.collect();
        ticking.into_iter().for_each(|id| self.access_ticks(id));
        self.network.collect(now, &mut self.random);
        loop {
            let nodes = &self.nodes;
            let takes = |id: u32| nodes[id as usize - 1].paused.is_none();
            let Some(frame) = self.network.arrived(now, takes) else {
                break;
            };
            let (from, to, sent) = (frame.from, frame.to, frame.sent);
            match frame.said {
                Said::Entries(bytes) => self.node(to).receive(from, bytes, false),
                Said::Bulk(bytes) => self.node(to).receive(from, bytes, true),
                // Nodes of queues have no catalog.
                Said::Catalog(_) => {}
                Said::Up(group, node, frame) => self.hear_up(from, to, group, node, frame),
                Said::Down(group, node, frame) => {
                    self.hear_down(from, to, group, node, frame);
                    self.came_since(to, group, sent);
                }
            }
        }
        self.strike_aimed();
        let first = self.random.below(self.nodes.len() as u64) as usize;
        for at in 0..self.nodes.len() {
            // What is aimed at are moments between two steps: they last longer where threads are slow.
            let most = if self.aim.is_some() { 5 } else { 12 };
            let steps = self.random.below(most);
            let at = (first + at) % self.nodes.len();
            let (hung, failed) = (self.nodes[at].hang.is_none(), self.nodes[at].log_failed());
            self.nodes[at].work(steps);
            if !hung && self.nodes[at].hang.is_none() {
                self.struck(Fault::DiskHangs, &[at as u32 + 1]);
            }
            if !failed && self.nodes[at].log_failed() {
                self.struck(Fault::DiskFails, &[at as u32 + 1]);
            }
        }
        self.network.collect(now, &mut self.random);
        self.look();
        self.hear_policies();
        self.look_at_limits();
        self.wake();
        self.letters_go();
        let is_calm = self.network.cuts.is_empty() && self.network.weather.loses_one_in == 0;
        hangs::lead_nothing(&mut self.ledger, &self.nodes, is_calm);
        self.end_without_power();
    }

    /// Who lost its power in the middle of something is found without.
    fn end_without_power(&mut self) {
        let off = self.nodes.iter().filter(|node| node.is_off());
        let off: Vec<u32> = off.map(|node| node.id).collect();
        self.struck(Fault::PowerCut, &off);
        off.into_iter().for_each(|id| self.end(id, true));
    }

    /// Now and then, whether those who lead keep to the limits of their queues.
    fn look_at_limits(&mut self) {
        if self.random.below(6) > 0 {
            return;
        }
        for by in self.leaderships() {
            // Before that it has not been given the settings that are in force.
            let access = self.accesses.get(&(by.node, by.group));
            let Some(copy) = self.node(by.node).copy(by.group) else {
                continue;
            };
            if access.is_none_or(|access| access.leads_in() != Some(by.term)) {
                continue;
            }
            let status = copy.queue().inspect(|machine| machine.status());
            let settings = self.known_settings(by.node, by.group);
            if let Some(status) = status.filter(|_| self.node(by.node).term(by.group) == Some(by.term)) {
                limits::kept(&mut self.ledger, by.group, by.node, &settings, &status);
            }
        }
    }

    /// Some copy of some queue may be written down.
    pub fn checkpoint_some(&mut self) {
        if self.random.below(12) == 0 {
            let node = self.random.below(self.nodes.len() as u64) as usize;
            let group = GroupId(1 + self.random.below(self.terms.len() as u64));
            self.nodes[node].checkpoint(group);
        }
    }

    /// Has queues do what is due.
    fn wake(&mut self) {
        for by in self.leaderships() {
            let node = self.node(by.node);
            let due = node.copy(by.group).and_then(|copy| copy.wakes_at());
            if due.is_some_and(|due| due <= node.now()) {
                self.submit(by, Request::Wake);
            }
        }
    }

    /// What the clock shows that is most ahead.
    pub fn latest(&self) -> Duration {
        let clocks = self.nodes.iter().map(Node::clock);
        clocks.max().unwrap_or_default()
    }

    /// Looks at what nodes have told and what has left them.
    pub fn look(&mut self) {
        self.ledger.latest = self.latest();
        for id in self.ids() {
            let groups: Vec<GroupId> = self.terms.keys().copied().collect();
            let mut ended = Vec::new();
            let mut acting = BTreeMap::new();
            for group in groups {
                let before = self.node(id).leads(group);
                self.hear(id, group, &mut ended);
                let now = self.node(id).leads(group);
                acting.insert(group, before.or(now));
            }
            let Some(running) = &self.nodes[id as usize - 1].running else {
                continue;
            };
            for (group, copy) in &running.copies {
                contents::sampled(&mut self.ledger, *group, id, copy);
            }
            for (group, effect) in running.take_left() {
                self.left(id, group, acting[&group], effect);
            }
            ended.extend(self.give_up_damaged(id));
            ended.into_iter().for_each(|by| self.letters.forget(by));
            if self.node(id).goes_on() {
                self.access_turns(id);
                self.clients_are_told(id);
            }
        }
    }

    /// Something leaves a node's copy.
    fn left(&mut self, node: u32, group: GroupId, term: Option<u64>, effect: Effect<Ends>) {
        let told = self.node(node).copy(group).map_or(0, |copy| copy.told);
        let Some(term) = term else {
            if !matches!(effect, Effect::Store(_)) {
                let what = format!("{group:?} on {node}: {effect:?}");
                self.ledger.violated("who follows serves nobody", what);
            }
            return;
        };
        let by = Leadership { group, node, term };
        if let Effect::Deliver { delivery, .. } | Effect::Reply(_, Answer::Got { delivery, .. }) = &effect {
            deliveries::leaves(&mut self.ledger, by, told, delivery);
        }
        deposed::leaves(&mut self.ledger, by, &effect);
        match deliver(effect) {
            Err(Effect::DeadLetter {
                ticket, to, pieces, ..
            }) => self.die((by, ticket), to.at_least_once, &pieces),
            Err(Effect::DeleteQueue) => self.ends_unused(by),
            _ => {}
        }
    }

    fn hear(&mut self, node: u32, group: GroupId, ended: &mut Vec<Leadership>) {
        let Some(copy) = self.node(node).copy(group) else {
            return;
        };
        for news in copy.take_news() {
            let member = self.node(node).me(group);
            let Some(copy) = self.nodes[node as usize - 1].copy_mut(group) else {
                return;
            };
            match news {
                News::Committed(entry) => {
                    copy.told = entry.at.index;
                    agreed::committed(&mut self.ledger, node, &entry);
                }
                News::Leads { term } => {
                    copy.leads = Some(term);
                    self.ledger.counts.leaderships += 1;
                    self.ledger
                        .tell(|| format!("{node} leads {group:?} in term {term}"));
                    leaders::leads(&mut self.ledger, group, term, member);
                }
                News::Deposed => {
                    let term = copy.leads.take();
                    self.ledger.tell(|| format!("{node} leads {group:?} no more"));
                    ended.extend(term.map(|term| Leadership { group, node, term }));
                }
                News::Members { index, members } => self.members_changed(group, index, members),
                News::Removed if self.is_removed(group, node) => {
                    let term = self.node(node).leads(group);
                    ended.extend(term.map(|term| Leadership { group, node, term }));
                    self.ledger
                        .tell(|| format!("{node} is no member of {group:?} any more"));
                    self.ledger.exercised(Deed::Removed);
                    return self.nodes[node as usize - 1].leave(group);
                }
                _ => {}
            }
        }
    }
}

/// Three nodes or five of those that there are.
fn some_nodes(ids: &[u32], random: &mut Random) -> Vec<u32> {
    let mut nodes = ids.to_vec();
    let wanted = if ids.len() == 5 && random.chance() { 5 } else { 3 };
    while nodes.len() > wanted {
        nodes.remove(random.below(nodes.len() as u64) as usize);
    }
    nodes
}
