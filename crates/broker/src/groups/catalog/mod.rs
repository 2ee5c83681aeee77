//! The catalog of several nodes, as one of them has it: its requests, its lease, and what it does when it leads.
//!
//! A request goes to whoever leads, which may be this node; the answer comes with the record that the group commits. It is given
//! once every node that may believe its copy has applied that record. See `docs/decisions/0045`.
//!
//! # Which lock is taken under which
//!
//! The host's lock, and under it that of its own state, for as long as something is put in or taken out. Who follows is told,
//! answers are given and frames are sent without either.
//!
//! # Who does what is to be done
//!
//! Whoever brings something that was decided: mostly a thread of links, which has just turned the groups. What anybody else
//! leaves, and what becomes due by itself, the catalog's own thread does (`looking`).

mod frame;
mod leases;
mod looking;
mod member;
mod requests;

pub use frame::{FRAME_LIMIT, Frame};
pub use leases::{DRIFT_MS, LEASE_MS};
pub use member::{CatalogMember, Checkpoint, Effect, Question, Request};
pub use requests::{Look, Reply, TIMEOUT_MS, nobody_knows, timeout_ms};

use super::hosted::{Act, Hosted};
use super::membership::peers;
use super::node_groups::NodeGroups;
use bytes::Bytes;
use catalog::shared::{Contents, Happened, Numbered, Sender};
use cluster::NodeId;
use leases::{Grants, Holder};
use model::Mutant;
use requests::{Requests, framed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::{io, mem};
use storage::Thread;

/// Who follows what is decided on this node. Called in the order of the decisions, by one thread at a time, without a lock that
/// anybody needs who asks the catalog.
pub trait Follower: Send + Sync {
    /// These requests were decided; in the same order, which of them were this node's.
    fn happened(&self, happened: &[Happened], own: &[Option<OwnRequest>]);

    /// This exists now, and is not older than what was told before: some of what led to it was not told.
    fn resumed(&self, contents: &Contents);
}

/// A request of this node: one of its nodes tells what happens, and that is the one that asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRequest {
    /// Which user asked, if one did.
    pub actor: Option<Arc<str>>,
}

/// The way to the other nodes' catalogs.
pub trait CatalogLinks: Send + Sync {
    /// Sends a frame of at most [`FRAME_LIMIT`] bytes; it may be lost. Called without a lock.
    fn send(&self, to: NodeId, frame: Bytes);
}

/// See the module.
pub struct SharedCatalog {
    myself: Weak<Self>,
    me: NodeId,
    groups: Arc<NodeGroups>,
    links: Arc<dyn CatalogLinks>,
    follower: Arc<dyn Follower>,
    hosted: OnceLock<Arc<Hosted<CatalogMember>>>,
    state: Mutex<State>,
    /// Somebody tells who follows.
    telling: Mutex<()>,
    /// Something has come that is to be looked at.
    called: AtomicBool,
    /// So many threads turn the member just now, and look here next.
    attending: AtomicUsize,
    /// The catalog's own.
    thread: OnceLock<Arc<dyn Thread>>,
    /// That one is to end.
    stopped: AtomicBool,
    /// Until when the node may believe its copy, in milliseconds of its clock.
    fresh_until: AtomicU64,
    /// Since when it may not be believed at the earliest: until when the last lease that counted lasts, or when this began. A
    /// lease counts from a version on, so there may be none in between.
    stale_since: AtomicU64,
}

/// A node without a tick for longer than this did not run, as after SIGSTOP or while its virtual machine moved: that it has no
/// lease says nothing of whom it can reach.
const STOOD_STILL_MS: u64 = 1_000;

/// So many requests wait at the most until those before them are committed; who asked for more asks again.
const MOST_GATHERED: usize = 8_192;

struct State {
    requests: Requests,
    /// What this node is to decide together, if it leads, once what it decided before is committed: a commit costs each node a
    /// sync and several wakings, whatever is in it. By sender and number, which is the order in which they are decided.
    gathered: BTreeMap<(Sender, u64), Numbered>,
    holder: Holder,
    /// What is committed and was not told to who follows.
    inbox: Vec<Told>,
    /// What this node knows to be committed.
    committed: u64,
    /// What this node has applied: it was told to who follows.
    version: u64,
    /// What of it the leader was told.
    told: u64,
    leader: Option<NodeId>,
    /// If it is this one.
    grants: Option<Grants>,
    /// All nodes that may have leases.
    peers: BTreeSet<NodeId>,
    out: Vec<(NodeId, Frame)>,
    /// When the catalog's thread looks next by itself, in microseconds.
    looks_at: u64,
    /// The last tick, in milliseconds.
    ticked: u64,
}

/// What became of the catalog.
enum Told {
    Happened(Box<Happened>),
    Resumed(Box<Contents>),
}

/// What is to be done without a lock.
struct Work {
    frames: Vec<(NodeId, Bytes)>,
    looks: Vec<(u64, Look)>,
    answers: Vec<(Reply, catalog::shared::Said)>,
}

impl SharedCatalog {
    /// The groups of the node.
    pub fn groups(&self) -> &Arc<NodeGroups> {
        &self.groups
    }

    /// The catalog of the node that these groups belong to, among these nodes. Next, its member is opened with
    /// [`SharedCatalog::act`], and handed over with [`SharedCatalog::opened`].
    pub fn new(
        groups: Arc<NodeGroups>,
        links: Arc<dyn CatalogLinks>,
        follower: Arc<dyn Follower>,
        peers: impl IntoIterator<Item = NodeId>,
    ) -> Arc<Self> {
        let (me, start) = groups.me();
        let sender = Sender {
            node: me.0.into(),
            start,
        };
        let mut peers: BTreeSet<NodeId> = peers.into_iter().collect();
        peers.insert(me);
        let began = groups.node().world.elapsed().as_millis() as u64;
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            me,
            groups,
            links,
            follower,
            hosted: OnceLock::new(),
            state: Mutex::new(State {
                requests: Requests::new(sender),
                gathered: BTreeMap::new(),
                holder: Holder::default(),
                inbox: Vec::new(),
                committed: 0,
                version: 0,
                told: 0,
                leader: None,
                grants: None,
                peers,
                out: Vec::new(),
                looks_at: u64::MAX,
                ticked: began,
            }),
            telling: Mutex::default(),
            called: AtomicBool::new(false),
            attending: AtomicUsize::new(0),
            thread: OnceLock::new(),
            stopped: AtomicBool::new(false),
            fresh_until: AtomicU64::new(0),
            stale_since: AtomicU64::new(began),
        })
    }

    /// What carries out what the machine orders.
    pub fn act(&self) -> Act<Effect> {
        let myself = self.myself.clone();
        Box::new(move |effect| {
            if let Some(shared) = myself.upgrade() {
                shared.carry_out(effect);
            }
        })
    }

    /// Here is the member. Once, before the groups are turned.
    ///
    /// # Errors
    /// The catalog's thread cannot be started.
    pub fn opened(&self, hosted: Arc<Hosted<CatalogMember>>) -> io::Result<()> {
        hosted.inspect(|machine| self.resume(Box::new(machine.shared().contents())));
        let group = hosted.group();
        let _ = self.hosted.set(hosted);
        self.start()?;
        self.groups.pass_by(group, self.myself.clone());
        self.turn();
        Ok(())
    }

    /// The member, once it is there.
    pub fn member(&self) -> Option<&Arc<Hosted<CatalogMember>>> {
        self.hosted.get()
    }

    /// A node more may have leases, or be asked for them.
    pub fn add_peer(&self, node: NodeId) {
        self.state().peers.insert(node);
    }

    /// Has a request decided, behind those that were asked before. The reply comes once, on whatever thread: the answer, or a
    /// refusal if none is known after [`timeout_ms`]. That says nothing about what becomes of it.
    pub fn ask(&self, request: catalog::Request, reply: Reply) {
        self.ask_for(None, request, reply);
    }

    /// The same for a user, if there is one.
    pub fn ask_for(&self, actor: Option<Arc<str>>, request: catalog::Request, reply: Reply) {
        let now = self.now_us();
        self.state().requests.ask(request, actor, reply, now);
        self.turn();
    }

    /// Has somebody look at this node's copy, once it may be believed. The reply comes once, on whatever thread: what was
    /// seen, when nobody who asks afterwards sees less on any node; or a refusal if that takes longer than [`TIMEOUT_MS`].
    pub fn read(&self, look: Look, reply: Reply) {
        let now = self.now();
        self.state().requests.read(look, reply, now);
        if self.is_fresh() {
            self.turn();
        }
    }

    /// Whether this node's copy may be believed: everything was applied here that anybody was told is done. Asked before the copy
    /// is looked at. One load and a look at the clock.
    pub fn is_fresh(&self) -> bool {
        self.now() < self.fresh_until.load(Ordering::Acquire)
    }

    /// Whether that has not been so for [`TIMEOUT_MS`] in which the node ran: this is no election, nobody who decides can be
    /// reached.
    pub fn is_cut_off(&self) -> bool {
        self.now() >= self.stale_since.load(Ordering::Acquire) + TIMEOUT_MS
    }

    /// What this node has applied: the number of requests that were decided.
    pub fn version(&self) -> u64 {
        self.state().version
    }

    /// How much of what is decided this node knows to be committed, and has applied.
    pub fn versions(&self) -> (u64, u64) {
        let state = self.state();
        (state.committed, state.version)
    }

    /// How many requests have no answer.
    pub fn waiting(&self) -> usize {
        self.state().requests.waiting()
    }

    /// A tick of the clock, of which there is one each 100 ms.
    pub fn tick(&self) {
        let (now, start) = (self.now(), self.groups.me().1);
        let mut state = self.state();
        let before = std::mem::replace(&mut state.ticked, now);
        if now.saturating_sub(before) > STOOD_STILL_MS {
            self.stale_since.fetch_max(now, Ordering::AcqRel);
        }
        if let Some(leader) = state.leader {
            let round = state.holder.ask(now);
            let applied = state.version;
            let lease = Frame::Lease {
                start,
                round,
                applied,
            };
            drop(state);
            match leader == self.me {
                true => self.heard(self.me, lease),
                false => self.links.send(leader, lease.encode()),
            }
        } else {
            drop(state);
        }
        self.turn();
    }

    /// A frame of a peer that has proven who it is.
    pub fn receive(&self, from: NodeId, frame: &Bytes) {
        self.hear(from, frame);
        self.turn();
    }

    /// The same for one of several that have come together; [`SharedCatalog::look`] follows the last one.
    pub fn hear(&self, from: NodeId, frame: &Bytes) {
        match Frame::decode(frame) {
            Some(frame) => self.heard(from, frame),
            None => self.groups.rejected().tell(
                from,
                "catalog",
                format_args!("what it says about the catalog can't be read"),
            ),
        }
        self.called.store(true, Ordering::SeqCst);
    }

    /// Does what there is to do since something was heard.
    pub fn look(&self) {
        if self.called.load(Ordering::SeqCst) {
            self.turn();
        }
    }

    fn heard(&self, from: NodeId, frame: Frame) {
        let Some(hosted) = self.hosted.get() else { return };
        match frame {
            Frame::Ask {
                start,
                number,
                below,
                request,
            } => {
                let node = from.0.into();
                let sender = Sender { node, start };
                match catalog::Request::decode(&request) {
                    Some(request) => self.state().gather(Numbered {
                        sender,
                        number,
                        below,
                        request,
                    }),
                    None => self.groups.rejected().tell(
                        from,
                        "catalog",
                        format_args!("what it asks the catalog for can't be read"),
                    ),
                }
            }
            Frame::Lease {
                start,
                round,
                applied,
            } => {
                if let Some(grants) = &mut self.state().grants {
                    grants.heard(from, start, applied);
                }
                if let Some(term) = hosted.term().filter(|_| round > 0) {
                    let node = from;
                    let question = Question {
                        term,
                        node,
                        start,
                        round,
                    };
                    match Mutant::LeaseUnproven.is_on() {
                        true => self.grant(question),
                        false => self.submit(term, vec![Request::Prove(question)]),
                    }
                }
            }
            Frame::Granted {
                start,
                round,
                least,
                everywhere,
            } if start == self.groups.me().1 => {
                let (now, mut state) = (self.now(), self.state());
                state.holder.granted(round, least, now);
                state.requests.everywhere(everywhere);
            }
            Frame::Granted { .. } => {}
            Frame::Reached { everywhere } => self.state().requests.everywhere(everywhere),
        }
    }

    /// Has this decided if this node leads in this term; otherwise nothing comes of it, and whoever asked asks again.
    fn submit(&self, term: u64, requests: Vec<Request>) {
        if let Some(hosted) = self.hosted.get() {
            hosted.submit_in(term, self.groups.node().now(), requests);
        }
    }

    /// Decides what was gathered, unless something that was decided before is not committed: then whatever tells of that
    /// commit looks here again.
    fn decide_gathered(&self, hosted: &Hosted<CatalogMember>, term: Option<u64>) {
        let Some(term) = term else {
            self.state().gathered.clear();
            return;
        };
        let decided = hosted.inspect(|machine| machine.shared().version());
        let mut state = self.state();
        if decided.is_none_or(|decided| decided > state.committed) {
            return;
        }
        let gathered = mem::take(&mut state.gathered);
        drop(state);
        if !gathered.is_empty() {
            self.submit(term, gathered.into_values().map(Request::Decide).collect());
        }
    }

    /// Called under the host's lock.
    fn carry_out(&self, effect: Effect) {
        match effect {
            Effect::Happened(happened) => {
                let mut state = self.state();
                state.committed = happened.version;
                state.inbox.push(Told::Happened(happened));
            }
            Effect::Resumed(contents) => self.resume(contents),
            Effect::Proven(question) => self.grant(question),
            // The journal has taken it.
            Effect::Store(_) => {}
        }
        self.call();
    }

    fn resume(&self, contents: Box<Contents>) {
        let mut state = self.state();
        state.committed = contents.version();
        state.inbox.push(Told::Resumed(contents));
    }

    /// Tells who follows what is committed, unless somebody does, who goes on with what has come meanwhile.
    fn tell(&self) {
        while !self.state().inbox.is_empty() {
            let _telling = match self.telling.try_lock() {
                Ok(telling) => telling,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            let told = mem::take(&mut self.state().inbox);
            let mut happened = Vec::new();
            for told in told {
                match told {
                    Told::Happened(next) => happened.push(*next),
                    Told::Resumed(contents) => {
                        self.tell_happened(&mut happened);
                        self.tell_resumed(&contents);
                    }
                }
            }
            self.tell_happened(&mut happened);
        }
    }

    fn tell_happened(&self, happened: &mut Vec<Happened>) {
        if happened.is_empty() {
            return;
        }
        let own = self.state().own(happened);
        self.follower.happened(happened, &own);
        let mut state = self.state();
        for happened in happened.drain(..) {
            state.happened(happened);
        }
    }

    fn tell_resumed(&self, contents: &Contents) {
        self.follower.resumed(contents);
        let (version, mut state) = (contents.version(), self.state());
        state.version = version;
        for (number, said) in contents.kept(state.requests.sender()) {
            state.requests.decided(*number, said.clone(), version);
        }
    }

    fn grant(&self, question: Question) {
        let (now, mut state) = (self.now(), self.state());
        let committed = state.committed;
        let Question {
            term,
            node,
            start,
            round,
        } = question;
        let grants = state.grants.as_mut().filter(|grants| grants.term() == term);
        let Some((least, everywhere)) =
            grants.and_then(|grants| Some((grants.grant(node, start, committed, now)?, grants.everywhere())))
        else {
            return;
        };
        if node == self.me {
            state.holder.granted(round, least, now);
            state.requests.everywhere(everywhere);
        } else {
            let granted = Frame::Granted {
                start,
                round,
                least,
                everywhere,
            };
            state.out.push((node, granted));
        }
    }

    /// Does what there is to do: sends, grants, answers.
    fn turn(&self) {
        let Some(hosted) = self.hosted.get() else { return };
        loop {
            self.called.store(false, Ordering::SeqCst);
            self.tell();
            let (term, leader) = (hosted.term(), hosted.leader().map(|member| member.node));
            let joined = self.joined(hosted, term);
            let now = self.now();
            let mut state = self.state();
            state.peers.extend(joined);
            state.led(term, leader, now);
            let reached = state.reached(now);
            drop(state);
            // What was found counts for the term in which it was looked for.
            if hosted.term() != term {
                continue;
            }
            let mut state = self.state();
            // Whoever asked meanwhile asks what is so by now, and the lease may have run out before.
            let now_us = self.now_us();
            let work = state.work(reached.zip(term), self.me, now_us);
            let fresh_until = state.holder.fresh_until(state.version);
            self.fresh_until.store(fresh_until, Ordering::Release);
            self.stale_since.fetch_max(fresh_until, Ordering::AcqRel);
            let is_early = state.is_early(now_us);
            drop(state);
            if is_early {
                self.wake();
            }
            self.carry(work);
            self.decide_gathered(hosted, term);
            if !self.called.load(Ordering::SeqCst) {
                return;
            }
        }
    }

    /// The nodes that the contents know of which this node begins to lead in this term: one that has just joined may have a lease
    /// from whoever led before, though nobody has told of it here.
    fn joined(&self, hosted: &Hosted<CatalogMember>, term: Option<u64>) -> Vec<NodeId> {
        let known = self.state().grants.as_ref().map(Grants::term);
        if term.is_none() || term == known {
            return Vec::new();
        }
        let joined = hosted.inspect(|machine| {
            let known = peers(&machine.shared().view());
            known.into_iter().map(|peer| peer.node).collect()
        });
        joined.unwrap_or_default()
    }

    fn carry(&self, work: Work) {
        for (to, frame) in work.frames {
            self.links.send(to, frame);
        }
        for (reply, said) in work.answers {
            reply(said);
        }
        for (number, look) in work.looks {
            let said = look();
            let mut state = self.state();
            // It may have seen what somebody tells just now.
            let version = state.committed;
            state.requests.seen(number, said, version);
            self.called.store(true, Ordering::SeqCst);
        }
    }

    fn now(&self) -> u64 {
        self.now_us() / 1_000
    }

    fn now_us(&self) -> u64 {
        self.groups.node().world.elapsed().as_micros() as u64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// This is to be decided, if this node leads.
    fn gather(&mut self, asked: Numbered) {
        if self.gathered.len() < MOST_GATHERED {
            self.gathered.insert((asked.sender, asked.number), asked);
        }
    }

    /// Which of these requests were this node's.
    fn own(&self, happened: &[Happened]) -> Vec<Option<OwnRequest>> {
        let (requests, me) = (&self.requests, self.requests.sender());
        let own = |it: &Happened| OwnRequest {
            actor: requests.actor(it.number),
        };
        let asked = happened.iter().map(|it| (it.sender == me).then(|| own(it)));
        asked.collect()
    }

    /// Who follows was told this.
    fn happened(&mut self, happened: Happened) {
        let Happened {
            version,
            sender,
            number,
            said,
            ..
        } = happened;
        self.version = version;
        if sender == self.requests.sender() {
            self.requests.decided(number, said, version);
        }
        if let (Some(grants), Ok(node)) = (&mut self.grants, sender.node.try_into()) {
            grants.wait(NodeId(node), version);
        }
    }

    /// Who leads, as far as is known; `term` if it is this node.
    fn led(&mut self, term: Option<u64>, leader: Option<NodeId>, now: u64) {
        if leader != self.leader {
            self.leader = leader;
            self.told = 0;
            self.requests.begin_anew();
        }
        match term {
            None => self.grants = None,
            Some(term) if self.grants.as_ref().is_none_or(|grants| grants.term() != term) => {
                let peers = self.peers.iter().copied();
                self.grants = Some(Grants::new(term, self.committed, peers, now));
                self.requests.begin_anew();
            }
            Some(_) => {}
        }
    }

    /// What is everywhere, if this node leads.
    fn reached(&mut self, now: u64) -> Option<u64> {
        let (start, version) = (self.requests.sender().start, self.version);
        let me = u32::try_from(self.requests.sender().node).ok().map(NodeId)?;
        let grants = self.grants.as_mut()?;
        grants.heard(me, start, version);
        Some(grants.reaches(version, now))
    }

    /// `reached` is what was found to be everywhere, by the leader of this term.
    fn work(&mut self, reached: Option<(u64, u64)>, me: NodeId, now_us: u64) -> Work {
        let now = now_us / 1_000;
        if let (Some((found, term)), Some(grants)) = (reached, &mut self.grants)
            && grants.term() == term
        {
            // A node that was given a lease since then counts, too: what its lease asks for is no more than was everywhere then.
            let everywhere = grants.reaches(found, now);
            for node in grants.advance(everywhere) {
                match node == me {
                    true => self.requests.everywhere(everywhere),
                    false => self.out.push((node, Frame::Reached { everywhere })),
                }
            }
        }
        let mut frames: Vec<(NodeId, Bytes)> = Vec::new();
        if let Some(leader) = self.leader {
            let asked = self.requests.send(now_us);
            match leader == me {
                true => asked.into_iter().for_each(|asked| self.gather(asked)),
                false => frames.extend(asked.iter().filter_map(framed).map(|frame| (leader, frame))),
            }
            if leader != me && self.version > self.told {
                self.told = self.version;
                let applied = Frame::Lease {
                    start: self.requests.sender().start,
                    round: 0,
                    applied: self.version,
                };
                frames.push((leader, applied.encode()));
            }
        }
        frames.extend(self.out.drain(..).map(|(to, frame)| (to, frame.encode())));
        let is_fresh = now < self.holder.fresh_until(self.version);
        let looks = match is_fresh {
            true => self.requests.looks(),
            false => Vec::new(),
        };
        let answers = self.requests.answers(now_us);
        Work {
            frames,
            looks,
            answers,
        }
    }
}
