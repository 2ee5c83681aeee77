//! What nodes do for their clients: each has a handle of each queue, and sessions with all nodes for each queue that it
//! leads. What links would tell them is told here: who is heard of, who leads, which nodes have started anew.

use super::invariants::{answers, deposed};
use super::ledger::Leadership;
use super::network::Said;
use super::nodes::Cluster;
use broker::groups::Ends;
use broker::groups::handle::{
    Budget, Frame, Handle, Orders, Requests, Sessions, ToLeader, ToNode, deliver, keeps_for,
};
use broker::{ChannelId, Event, Outbox};
use cluster::{GroupId, NodeId};
use model::{Incarnation, QueueSettings};
use queue::Request;
use std::sync::Arc;
use std::time::Duration;

/// The channel of whoever publishes dead letters; clients have another one.
pub const LETTERS: ChannelId = ChannelId(2);

/// A node without a leader for so many ticks forgets what its clients have, unless the queue gives them more time.
const GIVES_UP_AFTER: u32 = 50;

/// What nodes may borrow to send more to a queue, in bytes.
const CREDIT: u64 = 1 << 20;

/// A node's part of a queue, whether it has a copy or not.
pub struct Access {
    me: Incarnation,
    handle: Handle<Ends>,
    /// Where clients of the queue hear.
    pub outbox: Arc<Outbox>,
    sessions: Option<Led>,
    /// Ticks without a session with who leads.
    away: u32,
    /// The first of what came since clients looked was sent then.
    came: Option<Duration>,
}

/// The sessions of a leader.
struct Led {
    sessions: Sessions,
    /// What nodes borrow from.
    budget: Arc<Budget>,
    /// So many incarnations that are over were told of.
    told: usize,
}

impl Access {
    /// That of a node that has just started.
    pub fn new(me: Incarnation, settings: &QueueSettings) -> Self {
        Self {
            me,
            handle: Handle::new(me, settings),
            outbox: Arc::new(Outbox::new()),
            sessions: None,
            away: 0,
            came: None,
        }
    }

    /// Whether who leads the queue takes what clients ask.
    pub fn is_open(&self) -> bool {
        self.handle.is_open()
    }

    /// Whether no client waits for anything or has anything.
    pub fn is_idle(&self) -> bool {
        self.handle.is_idle()
    }

    /// What the node may send without an answer, in bytes.
    pub fn credit(&self) -> u64 {
        self.handle.credit()
    }

    /// What nodes have borrowed of who leads here, in bytes.
    pub fn lent(&self) -> u64 {
        let left = self.sessions.as_ref().map_or(CREDIT, |led| led.budget.left());
        CREDIT - left
    }

    /// The term in which it leads and has begun to serve.
    pub fn leads_in(&self) -> Option<u64> {
        self.sessions.as_ref().map(|led| led.sessions.term())
    }

    /// Whether publishers have to wait.
    pub fn is_full(&self) -> bool {
        self.handle.is_full()
    }
}

impl Cluster {
    /// A client of a node asks something of a queue.
    pub fn ask(&mut self, node: u32, group: GroupId, request: Request<Ends>) {
        let mut orders = Orders::default();
        let Some(access) = self.accesses.get_mut(&(node, group)) else {
            return;
        };
        if access.handle.request(request, &mut orders).is_err() {
            let what = format!("{group:?} on {node}");
            self.ledger.violated("clients ask what they may", what);
        }
        self.obey(node, group, orders, true);
    }

    /// Carries out what a handle orders. It gives up if that does not come from who leads.
    fn obey(&mut self, node: u32, group: GroupId, orders: Orders<Ends>, gives_up: bool) {
        for receipt in orders.unreached {
            if gives_up && receipt.channel != LETTERS {
                self.ledger
                    .tell(|| format!("node {node} gives {:?} up", receipt.numbers));
                answers::given_up(&mut self.ledger, group, &receipt.numbers);
                continue;
            }
            let (outbox, event) = receipt.into_unreached();
            outbox.push(event);
        }
        orders
            .effects
            .into_iter()
            .for_each(|effect| drop(deliver(effect)));
        for reply in orders.declined {
            reply.outbox.push(reply.answered(None));
        }
    }

    /// A tick of a node's clock.
    pub fn access_ticks(&mut self, node: u32) {
        let groups: Vec<GroupId> = self.ledger.books.keys().copied().collect();
        for group in groups {
            let leader = self.leader_for(node, group);
            let peers = self.peers(node);
            let keeps = keeps_for(self.known_settings(node, group).consumer_disconnected_ms);
            let Some(access) = self.accesses.get_mut(&(node, group)) else {
                return;
            };
            let (mut orders, mut requests) = (Orders::default(), Requests::new());
            access.handle.leads(leader.map(NodeId));
            let unheard = peers.iter().filter(|(_, _, hears)| !hears);
            unheard.for_each(|(peer, _, _)| access.handle.lost(NodeId(*peer)));
            access.handle.tick(|| keeps, &mut orders);
            access.away = match access.handle.is_open() {
                true => 0,
                false => access.away + 1,
            };
            let forgets = access.away == GIVES_UP_AFTER.max(keeps);
            if let Some(led) = &mut access.sessions {
                for (_, peer, hears) in peers {
                    match hears {
                        true => led.sessions.heard(peer),
                        false => led.sessions.lost(peer),
                    }
                }
                led.sessions.tick(|| keeps, &mut requests);
            }
            self.obey(node, group, orders, true);
            if forgets {
                self.ledger.drop_hands(group, node);
            }
            self.turn_sessions(node, group, requests);
        }
    }

    /// All nodes as they are known, and whether this one hears of them.
    fn peers(&self, node: u32) -> Vec<(u32, Incarnation, bool)> {
        let known = self.nodes.iter().filter(|peer| peer.incarnation > 0);
        let hears = |peer: u32| self.network.hears(node, peer, self.ledger.now);
        known
            .map(|peer| (peer.id, Incarnation(peer.incarnation), hears(peer.id)))
            .collect()
    }

    /// Whom a node takes for the leader of a queue: by its own copy, or by what others say.
    fn leader_for(&self, node: u32, group: GroupId) -> Option<u32> {
        let of = |id: u32| self.node(id).copy(group)?.queue().leader();
        let now = self.ledger.now;
        let heard = |id: &u32| self.node(*id).goes_on() && self.network.hears(node, *id, now);
        let known = match self.node(node).copy(group) {
            Some(_) => of(node),
            None => self.ids().into_iter().filter(heard).find_map(of),
        };
        known.map(|member| member.node.0)
    }

    /// Begins sessions where a node has begun to lead, ends them where it does no more, and carries on those that there are.
    pub fn access_turns(&mut self, node: u32) {
        let groups: Vec<GroupId> = self.ledger.books.keys().copied().collect();
        for group in groups {
            let term = self.node(node).term(group);
            let access = self.accesses.get(&(node, group));
            if let Some(term) = term.filter(|term| access.is_some_and(|it| it.leads_in() != Some(*term))) {
                self.set_before_all(node, group, term);
            }
            let known: Vec<Incarnation> = self.peers(node).into_iter().map(|(_, peer, _)| peer).collect();
            let Some(access) = self.accesses.get_mut(&(node, group)) else {
                return;
            };
            let mut requests = Requests::new();
            if access.sessions.as_ref().map(|led| led.sessions.term()) != term {
                access.sessions = term.map(|term| {
                    let (budget, told) = (Budget::new(CREDIT), 0);
                    let sessions = Sessions::new(term, &known, budget.clone(), &mut requests);
                    Led {
                        sessions,
                        budget,
                        told,
                    }
                });
            }
            if let Some(led) = &mut access.sessions {
                let over = &self.over[led.told..];
                over.iter()
                    .for_each(|over| led.sessions.ended(*over, &mut requests));
                led.told = self.over.len();
            }
            self.turn_sessions(node, group, requests);
            self.speak(node, group);
        }
    }

    /// Has the machine decide what the sessions ask, and sends what they say.
    fn turn_sessions(&mut self, node: u32, group: GroupId, mut requests: Requests) {
        let Some(access) = self.accesses.get_mut(&(node, group)) else {
            return;
        };
        let Some(led) = &mut access.sessions else { return };
        let of_node = &self.nodes[node as usize - 1];
        let mut frames = Vec::new();
        let ledger = &mut self.ledger;
        let submit = |term, requests: Requests| {
            deposed::asked(ledger, Leadership { group, node, term }, &requests);
            of_node.submit_in(group, term, requests)
        };
        let leads = led.sessions.turn(submit, &mut requests, &mut frames);
        if !leads {
            access.sessions = None;
        }
        let wire = self.network.wire(node);
        for (to, frame) in frames {
            if let Some(peer) = self.nodes.iter().find(|peer| peer.incarnation == to.0) {
                wire.put(peer.id, Said::Down(group, to, frame));
            }
        }
    }

    fn speak(&mut self, node: u32, group: GroupId) {
        let Some(access) = self.accesses.get_mut(&(node, group)) else {
            return;
        };
        let (me, mut frames) = (access.me, Vec::new());
        access.handle.frames(&mut frames);
        let wire = self.network.wire(node);
        for (to, frame) in frames {
            wire.put(to.0, Said::Up(group, me, frame));
        }
    }

    /// A node's handle says something to the leader of a queue.
    pub fn hear_up(&mut self, from: u32, to: u32, group: GroupId, node: Incarnation, frame: Frame<ToLeader>) {
        // The links to a node that has started again are others: nothing comes from its earlier ones.
        if self.over.contains(&node) {
            return;
        }
        for said in frame
            .messages
            .iter()
            .filter(|said| matches!(said, ToLeader::Holds { .. }))
        {
            self.ledger
                .tell(|| format!("{group:?}: node {from} says to {to}: {said:?}"));
        }
        let Some(access) = self.accesses.get_mut(&(to, group)) else {
            return;
        };
        match &mut access.sessions {
            Some(led) => {
                let mut requests = Requests::new();
                led.sessions.receive(node, frame, &mut requests);
                self.turn_sessions(to, group, requests);
            }
            None => {
                if let Some(declined) = Sessions::decline(&frame) {
                    self.network.wire(to).put(from, Said::Down(group, node, declined));
                }
            }
        }
    }

    /// The leader of a queue says something to a node's handle.
    pub fn hear_down(&mut self, from: u32, to: u32, group: GroupId, node: Incarnation, frame: Frame<ToNode>) {
        let mut orders = Orders::default();
        let access = self.accesses.get_mut(&(to, group));
        let Some(access) = access.filter(|access| access.me == node) else {
            return;
        };
        for said in frame
            .messages
            .iter()
            .filter(|said| matches!(said, ToNode::Answer { .. }))
        {
            self.ledger
                .tell(|| format!("{group:?}: node {from} says to {to}: {said:?}"));
        }
        access.handle.receive(NodeId(from), frame, &mut orders);
        self.obey(to, group, orders, false);
    }

    /// Something came for a node that was sent then.
    pub fn came_since(&mut self, node: u32, group: GroupId, sent: Duration) {
        if let Some(access) = self.accesses.get_mut(&(node, group)) {
            access.came.get_or_insert(sent);
        }
    }

    /// What has come for clients of a node, and since when it was under way at the most.
    pub fn take_events(&mut self, node: u32) -> Vec<(GroupId, Duration, Event)> {
        let mut all = Vec::new();
        let now = self.ledger.now;
        let of_node = self.accesses.iter_mut().filter(|((of, _), _)| *of == node);
        for ((_, group), access) in of_node {
            let mut events = Vec::new();
            access.outbox.take(&mut events, std::task::Waker::noop());
            let since = access.came.take().unwrap_or(now);
            all.extend(events.into_iter().map(|event| (*group, since, event)));
        }
        all
    }
}
