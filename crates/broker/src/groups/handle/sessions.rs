//! The leader's side: the sessions of all nodes with one queue, in one term.

use super::credit::Budget;
use super::message::{Frame, ToLeader, ToNode};
use super::peer::{Numbers, Peer, Phase, Requests};
use super::session::ASKS_AFTER;
use crate::node::Node;
use model::{ConsumerId, Incarnation, Mutant};
use queue::{NodeConsumer, Request};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;

/// A node that is not heard of for so many ticks, of 100 ms each, counts as down, unless the queue says another time. So it does
/// in any case if it has not said in this term what its consumers have: until it is known, nothing at all is delivered.
const DOWN_AFTER: u32 = 20;

/// A tick, in milliseconds.
const TICK_MS: u64 = 100;

/// For how many ticks the consumers of a node that is not heard of keep what they hold of a queue that says this time, in
/// milliseconds, or none.
pub fn keeps_for(ms: Option<u64>) -> u32 {
    let ticks = |ms: u64| u32::try_from(ms.div_ceil(TICK_MS)).unwrap_or(u32::MAX);
    ms.map_or(DOWN_AFTER, ticks)
}

/// So does one that is heard of and does not say in so many ticks what its consumers have.
const SPEAKS_WITHIN: u32 = 100;

/// A node that is to speak.
#[derive(Clone, Copy, Debug, Default)]
struct Asked {
    /// For so many ticks.
    ticks: u32,
    /// Its sessions of this term are over up to this one; 0 if it had none. It may not know that.
    over: u64,
}

/// All nodes that speak to the leader of a queue. Made when it begins to lead, dropped when it leads no more: what it has
/// requested is for the machine of this term only.
pub struct Sessions {
    term: u64,
    peers: BTreeMap<Incarnation, Peer>,
    /// Nodes of which it is not known what they hold, and since how many ticks they are asked.
    awaited: BTreeMap<Incarnation, u32>,
    /// Nodes that are not heard of, and for how many ticks.
    silent: BTreeMap<Incarnation, u32>,
    /// Nodes that are to open a session, or to say that they have nothing.
    asked: BTreeMap<Incarnation, Asked>,
    /// Nodes that are gone, and the question behind whose answer nothing more comes for them.
    ended: Vec<(Peer, u64)>,
    numbers: Numbers,
    budget: Arc<Budget>,
    /// Frames outside of sessions.
    asides: Vec<(Incarnation, Frame<ToNode>)>,
    /// Woken when there is something for a node.
    waker: Waker,
    /// Nodes may not send more for now.
    holds: bool,
}

impl Sessions {
    /// This node begins to lead, in this term; the cluster has these nodes, which may hold what others have delivered. What
    /// they send beyond a first credit is lent from the budget.
    pub fn new(term: u64, nodes: &[Incarnation], budget: Arc<Budget>, requests: &mut Requests) -> Self {
        let awaited = nodes.iter().filter(|_| !Mutant::AwaitsNobody.is_on());
        requests.push(Request::AwaitNodes {
            nodes: awaited.copied().collect(),
        });
        let mut sessions = Self {
            term,
            peers: BTreeMap::new(),
            awaited: nodes.iter().map(|node| (*node, 0)).collect(),
            silent: nodes.iter().map(|node| (*node, 0)).collect(),
            asked: BTreeMap::new(),
            ended: Vec::new(),
            numbers: Numbers::Own(0),
            budget,
            asides: Vec::new(),
            waker: Waker::noop().clone(),
            holds: false,
        };
        nodes.iter().for_each(|node| sessions.ask(*node, 0));
        sessions
    }

    /// Has this woken whenever the machine has something for a node: then [`Sessions::turn`] is due. Before anybody has spoken.
    #[must_use]
    pub fn woken_by(self, waker: Waker) -> Self {
        Self { waker, ..self }
    }

    /// Has consumers of other nodes numbered as this node's own are, which ask the queue directly. Before anybody has spoken.
    #[must_use]
    pub fn beside_clients_of(self, node: Arc<Node>) -> Self {
        let numbers = Numbers::Shared(node);
        Self { numbers, ..self }
    }

    /// Asks a node to speak, whose sessions are over up to this one; once a second until it does, since a frame may be lost.
    fn ask(&mut self, node: Incarnation, over: u64) {
        let asked = self.asked.entry(node).or_default();
        asked.over = asked.over.max(over);
        let speak = Frame::aside(asked.over, self.term, ToNode::Speak);
        self.asides.push((node, speak));
    }

    /// In which term they are.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// Takes a frame of a node: what the machine is to be asked is added to `requests`.
    pub fn receive(&mut self, from: Incarnation, frame: Frame<ToLeader>, requests: &mut Requests) {
        self.heard(from);
        match frame.messages[..] {
            [ToLeader::Open { node, sent }] if node == from => {
                self.asked.remove(&node);
                let new = || Peer::new(node, self.budget.clone(), self.waker.clone());
                let peer = self.peers.entry(node).or_insert_with(new);
                peer.hold(self.holds);
                peer.open(&frame, sent, self.term, requests, &mut self.numbers);
            }
            [ToLeader::Nothing { node }] if node == from => {
                if frame.term == self.term {
                    self.has_nothing(node, requests);
                }
            }
            _ => {
                let session = frame.session;
                let peer = self.peers.get_mut(&from);
                let known = peer.filter(|peer| peer.end.as_ref().is_some_and(|end| end.session == session));
                let lives = known.is_some_and(|peer| {
                    let lives = peer.receive(frame, requests, &mut self.numbers);
                    if !lives {
                        peer.close();
                    }
                    if peer.spoken {
                        self.awaited.remove(&from);
                    }
                    lives
                });
                if !lives {
                    let closed = Frame::aside(session, self.term, ToNode::Closed);
                    self.asides.push((from, closed));
                }
            }
        }
    }

    /// A node has no handle of the queue: so it holds nothing of it.
    fn has_nothing(&mut self, node: Incarnation, requests: &mut Requests) {
        let is_awaited = self.awaited.contains_key(&node);
        match self.peers.get(&node).map(|peer| peer.phase) {
            // It has opened a session since.
            Some(phase) if phase > Phase::Closed => return,
            // What it was sent last was lost on its way, and its handle, which knew nothing of that, was let go of.
            Some(_) => self.end(node, requests),
            None => {}
        }
        self.asked.remove(&node);
        requests.push(Request::HoldsNothing { node });
        if is_awaited {
            self.awaited.remove(&node);
            // Nobody waits for the answer: there is nothing to discard.
            let mut nobody = Peer::new(node, self.budget.clone(), self.waker.clone());
            nobody.hear(Vec::new(), false, requests, &mut self.numbers);
            requests.push(Request::Knows { node });
        }
    }

    /// What a node that does not lead says to this frame.
    pub fn decline(frame: &Frame<ToLeader>) -> Option<Frame<ToNode>> {
        let asks = frame.session > 0 && !frame.messages.is_empty();
        asks.then(|| Frame::aside(frame.session, frame.term, ToNode::Closed))
    }

    /// What a node says that is asked to speak and has no handle of the queue.
    pub fn nothing(me: Incarnation, asked: &Frame<ToNode>) -> Frame<ToLeader> {
        Frame::aside(0, asked.term, ToLeader::Nothing { node: me })
    }

    /// The link to a node is broken, or it is not heard of.
    pub fn lost(&mut self, node: Incarnation) {
        self.silent.entry(node).or_insert(0);
        if let Some(peer) = self.peers.get_mut(&node) {
            peer.close();
        }
    }

    /// A node is heard of.
    pub fn heard(&mut self, node: Incarnation) {
        self.silent.remove(&node);
    }

    /// A node sends nothing more as the one it was.
    pub fn ended(&mut self, incarnation: Incarnation, requests: &mut Requests) {
        self.end(incarnation, requests);
        self.asked.remove(&incarnation);
        requests.push(Request::IncarnationEnded { incarnation });
    }

    /// The node is about to close in good order: what nodes hold goes back, as seen, for the next start goes by what is on
    /// record.
    pub fn close(&mut self, requests: &mut Requests) {
        let nodes: Vec<Incarnation> = self.peers.keys().copied().collect();
        for node in nodes {
            self.end(node, requests);
            requests.push(Request::CountAsDown { node });
        }
        self.asked.clear();
    }

    /// This node leads no more in this term: those who have a session are told that it is over. They would wait for answers that
    /// nobody gives, if nobody else leads whom they know.
    pub fn end_all(&mut self, frames: &mut Vec<(Incarnation, Frame<ToNode>)>) {
        for (node, peer) in self.peers.iter_mut().filter(|(_, peer)| peer.end.is_some()) {
            frames.push((*node, Frame::aside(peer.session, self.term, ToNode::Closed)));
            peer.close();
        }
    }

    /// A tick of the clock, of which there is one each 100 ms. Consumers of nodes that are not heard of keep what they hold for
    /// as many ticks as `keeps_for` says.
    pub fn tick(&mut self, keeps_for: impl FnOnce() -> u32, requests: &mut Requests) {
        let counted = self.silent.values_mut().chain(self.awaited.values_mut());
        for ticks in counted.chain(self.asked.values_mut().map(|asked| &mut asked.ticks)) {
            *ticks = ticks.saturating_add(1);
        }
        for (node, peer) in &mut self.peers {
            if !peer.tick() {
                peer.close();
            }
            if peer.is_missed() && !self.silent.contains_key(node) {
                let closed = Frame::aside(peer.session, self.term, ToNode::Closed);
                self.asides.push((*node, closed));
            }
        }
        let asked = self
            .asked
            .iter()
            .filter(|(_, asked)| asked.ticks.is_multiple_of(ASKS_AFTER));
        let due = asked
            .map(|(node, _)| *node)
            .filter(|node| !self.silent.contains_key(node));
        let due: Vec<Incarnation> = due.collect();
        due.into_iter().for_each(|node| self.ask(node, 0));
        let late = self.awaited.iter().filter(|(_, ticks)| **ticks >= SPEAKS_WITHIN);
        let late: Vec<Incarnation> = late.map(|(node, _)| *node).collect();
        let down = self.silent_too_long(keeps_for, requests);
        for node in down.into_iter().chain(late) {
            if self.peers.contains_key(&node) || self.awaited.contains_key(&node) {
                let silent = self.silent.get(&node).copied();
                let session = self.peers.get(&node).map_or(0, |peer| peer.session);
                self.end(node, requests);
                // Nobody who is not heard of is asked.
                self.silent.extend(silent.map(|ticks| (node, ticks)));
                // Behind what goes back of it: what it had claimed in part comes back by that.
                requests.push(Request::CountAsDown { node });
                self.ask(node, session);
            }
        }
    }

    /// Nodes that are not heard of for so long that they count as down. Those that keep what they hold for longer get nothing
    /// more meanwhile.
    fn silent_too_long(
        &mut self,
        keeps_for: impl FnOnce() -> u32,
        requests: &mut Requests,
    ) -> Vec<Incarnation> {
        let is_concerned =
            |node: &Incarnation| self.peers.contains_key(node) || self.awaited.contains_key(node);
        let silent = self.silent.iter().filter(|(node, _)| is_concerned(node));
        let silent: Vec<(Incarnation, u32)> = silent.map(|(node, ticks)| (*node, *ticks)).collect();
        if silent.is_empty() {
            return Vec::new();
        }
        let keeps_for = keeps_for();
        let mut down = Vec::new();
        for (node, ticks) in silent {
            let limit = match self.awaited.contains_key(&node) {
                true => DOWN_AFTER,
                false => keeps_for,
            };
            if ticks >= limit {
                down.push(node);
            } else if ticks >= DOWN_AFTER
                && let Some(peer) = self.peers.get_mut(&node)
            {
                peer.is_away(requests);
            }
        }
        down
    }

    fn end(&mut self, node: Incarnation, requests: &mut Requests) {
        self.silent.remove(&node);
        self.awaited.remove(&node);
        if let Some(mut peer) = self.peers.remove(&node) {
            let last = peer.end(requests, &mut self.numbers);
            self.ended.push((peer, last));
        }
    }

    /// Whether nodes are to send nothing more for now than what they have sent already.
    pub fn hold(&mut self, holds: bool) {
        if self.holds != holds {
            self.holds = holds;
            self.peers.values_mut().for_each(|peer| peer.hold(holds));
        }
    }

    /// Forgets nodes that have nothing, wait for nothing, and have said nothing for so many ticks. Their handles are let go of
    /// by then; one that is not opens another session. That those have nothing who only send goes on record, too.
    pub fn forget_the_quiet(&mut self, ticks: u32, requests: &mut Requests) {
        self.peers.retain(|node, peer| {
            let stays = peer.quiet < ticks || !peer.is_idle();
            if !stays || peer.has_become_a_sender(ticks) {
                requests.push(Request::HoldsNothing { node: *node });
            }
            stays
        });
    }

    /// True if no node has anything to do with the queue.
    pub fn are_over(&self) -> bool {
        // A node that is not heard of asks by itself once it is.
        let asks_nobody = self.asked.keys().all(|node| self.silent.contains_key(node));
        self.peers.is_empty() && self.ended.is_empty() && self.awaited.is_empty() && asks_nobody
    }

    /// Whose consumer it is that the queue's machine knows by this name.
    pub fn consumer(&self, id: ConsumerId) -> Option<NodeConsumer> {
        let mut peers = self.peers.iter();
        peers.find_map(|(node, peer)| {
            let (node, consumer) = (*node, *peer.names.get(&id)?);
            Some(NodeConsumer { node, consumer })
        })
    }

    /// What is to be sent, and to whom. Called after each turn of the machine, until it has nothing more to ask of it.
    pub fn frames(&mut self, requests: &mut Requests, frames: &mut Vec<(Incarnation, Frame<ToNode>)>) {
        frames.append(&mut self.asides);
        self.ended
            .retain_mut(|(peer, last)| !peer.drain_the_ended(*last, requests));
        for (node, peer) in &mut self.peers {
            peer.drain(requests, &mut self.numbers);
            if let Some(end) = &mut peer.end {
                let mut own = Vec::new();
                end.send(std::mem::take(&mut peer.said), &mut own);
                peer.has_said();
                frames.extend(own.into_iter().map(|frame| (*node, frame)));
            }
        }
    }

    /// Has the machine decide what is asked (`submit` says whether it leads in this term), and collects what is to be said;
    /// until neither brings anything new. False if it does not lead any more: then these sessions are over.
    pub fn turn(
        &mut self,
        mut submit: impl FnMut(u64, Requests) -> bool,
        requests: &mut Requests,
        frames: &mut Vec<(Incarnation, Frame<ToNode>)>,
    ) -> bool {
        loop {
            if !requests.is_empty() && !submit(self.term, std::mem::take(requests)) {
                return false;
            }
            self.frames(requests, frames);
            if requests.is_empty() {
                return true;
            }
        }
    }
}
