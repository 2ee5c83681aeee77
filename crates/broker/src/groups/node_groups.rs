//! A node's groups, turned by whoever brings them something.

use super::standing::Standing;
use crate::node::Node;
use crate::node::promise::{Batches, Promise};
use bytes::Bytes;
use cluster::{Committed, Damage, Disk, Event, GroupId, Groups, MemberId, NodeId, Record, Recovered, Status};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How many turns one thread makes in a row for others before it hands the groups on.
const TURNS: usize = 16;

/// The time between two ticks.
const TICK_MS: u128 = 100;

/// How much of a group's log is read at once for a member that lags, in bytes.
const READ_BYTES: usize = 1 << 20;

/// The way to other nodes.
pub trait Links: Send + Sync {
    /// Sends a frame to a peer, behind those before it; it may be lost. Called under the lock of the groups: it waits
    /// for nothing and brings the groups nothing.
    fn send(&self, to: NodeId, frame: Bytes);
}

/// Whose a group's member on this node is.
pub trait Member: Send + Sync {
    /// Puts this into its inbox. Called under the lock of the groups.
    fn tell(&self, news: Vec<News>);

    /// Looks into its inbox, unless somebody has it who will look afterwards. Called without a lock.
    fn turn(self: Arc<Self>);
}

/// What a member is told, in the order in which it is so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// This is committed, and synced here. Its record is empty if it is none of the host's.
    Committed(Committed),
    /// It leads, in this term, and everything that was committed before has been told.
    Leads { term: u64 },
    /// A majority had elected nobody else when this was asked with [`NodeGroups::prove`].
    Proven { term: u64 },
    /// It leads no longer. What was proposed and is not committed may never be.
    Deposed,
    /// Somebody else leads, or nobody.
    Leader(Option<MemberId>),
}

/// What is brought to the groups.
enum Mail {
    Frame(NodeId, Bytes),
    Tick(Disk),
    Synced(u64),
    Suspect(NodeId),
    Propose(GroupId, u64, Vec<Bytes>),
    Prove(GroupId, u64),
    Read(GroupId, u64, Vec<Bytes>),
}

/// A node's members of all groups. See the module.
pub struct NodeGroups {
    myself: Weak<Self>,
    node: Arc<Node>,
    links: Arc<dyn Links>,
    state: Mutex<State>,
    mailbox: Mutex<Vec<Mail>>,
    mail: AtomicBool,
}

struct State {
    groups: Groups,
    standings: BTreeMap<GroupId, Standing>,
}

impl NodeGroups {
    /// The groups of a node, around what knows how they work.
    pub fn new(node: Arc<Node>, groups: Groups, links: Arc<dyn Links>) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            node,
            links,
            state: Mutex::new(State {
                groups,
                standings: BTreeMap::new(),
            }),
            mailbox: Mutex::default(),
            mail: AtomicBool::new(false),
        })
    }

    /// The node that they belong to.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// A node that groups may be shared with.
    pub fn add_peer(&self, node: NodeId) {
        self.with(|state| state.groups.add_peer(node));
    }

    /// Opens a member of a group, new or as it was found in the log. `member` is told what becomes committed behind what it has.
    ///
    /// # Errors
    /// The log of the group isn't whole.
    pub fn open(&self, group: GroupId, recovered: Recovered, member: Weak<dyn Member>) -> Result<(), Damage> {
        self.with(|state| {
            state.groups.open(group, recovered)?;
            state.standings.insert(group, Standing::new(member));
            Ok(())
        })
    }

    /// Takes a group's member out of memory; what the log has of it stays. Its host is told nothing any more.
    pub fn close(&self, group: GroupId) {
        self.with(|state| {
            state.groups.close(group);
            state.standings.remove(&group);
        });
    }

    /// What a group's member tells of itself.
    pub fn status(&self, group: GroupId) -> Option<Status> {
        self.with(|state| state.groups.status(group))
    }

    /// A frame of a peer that has proven who it is.
    pub fn receive(&self, from: NodeId, frame: Bytes) {
        self.bring(Mail::Frame(from, frame));
    }

    /// The link to a peer is down.
    pub fn suspect(&self, peer: NodeId) {
        self.bring(Mail::Suspect(peer));
    }

    /// A tick of the clock, of which there is one each 100 ms. It looks at the disk, too: what is led here is led
    /// elsewhere soon if that is sick.
    pub fn tick(&self) {
        let log = &self.node.log;
        let disk = match log.busy_for() {
            _ if log.failed() => Disk::Failed,
            Some(busy) => Disk::Hangs {
                ticks: (busy.as_millis() / TICK_MS) as u32,
            },
            None => Disk::Syncs,
        };
        self.bring(Mail::Tick(disk));
    }

    /// The node is about to close: what it leads is handed over, some of it with each tick.
    pub fn hand_over(&self) {
        self.with(|state| state.groups.hand_over());
    }

    /// Proposes these, in this order, if this node still leads the group in this term; otherwise the member is about to
    /// be told that it does not. For hosts: whoever turns them calls [`NodeGroups::turn`] afterwards.
    pub(super) fn propose(&self, group: GroupId, term: u64, records: Vec<Bytes>) {
        self.put(Mail::Propose(group, term, records));
    }

    /// Asks whether this node still leads the group in this term; [`News::Proven`] is the answer, or that it does not
    /// lead. For hosts, as [`NodeGroups::propose`] is.
    pub(super) fn prove(&self, group: GroupId, term: u64) {
        self.put(Mail::Prove(group, term));
    }

    fn bring(&self, mail: Mail) {
        self.put(mail);
        self.turn();
    }

    fn put(&self, mail: Mail) {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        mailbox.push(mail);
        self.mail.store(true, Ordering::SeqCst);
    }

    /// Does this with the groups. Who found them locked meanwhile has left something in the mailbox.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let done = act(&mut state);
        drop(state);
        self.turn();
        done
    }

    /// Turns the groups while there is something in the mailbox, unless somebody else does, and then the members that
    /// it concerns.
    pub fn turn(&self) {
        for _ in 0..TURNS {
            if !self.mail.load(Ordering::SeqCst) {
                return;
            }
            // Whoever has the lock now looks at the mail after letting go.
            let Ok(mut state) = self.state.try_lock() else {
                return;
            };
            let concerned = self.turn_once(&mut state);
            drop(state);
            concerned.into_iter().for_each(|member| member.turn());
        }
        if self.mail.load(Ordering::SeqCst)
            && let Some(groups) = self.myself.upgrade()
        {
            self.node.pager.write(move |_| groups.turn());
        }
    }

    fn turn_once(&self, state: &mut State) -> Vec<Arc<dyn Member>> {
        let mut concerned = Concerned::default();
        self.mail.store(false, Ordering::SeqCst);
        let mailbox = std::mem::take(&mut *self.mailbox.lock().unwrap_or_else(PoisonError::into_inner));
        mailbox.into_iter().for_each(|mail| state.take(mail));
        loop {
            let turn = state.groups.turn();
            self.append(turn.number, &turn.append);
            for (to, frame) in turn.send {
                self.links.send(to, frame);
            }
            let (committed, events) = (turn.committed, turn.events);
            // What is committed makes space for what waits: that is one more turn, not one more batch in this one.
            let more = state.hand_out(committed, events, &mut concerned, &mut |group, from, to| {
                self.read(group, from, to);
            });
            if !more {
                return concerned.0.into_values().collect();
            }
        }
    }

    /// One batch. Its order is that of the turns, since they are made under one lock.
    fn append(&self, number: u64, records: &[Record]) {
        if records.is_empty() {
            return;
        }
        let Some(groups) = self.myself.upgrade() else {
            return;
        };
        let promise = Promise::Batch(groups, number);
        self.node.log.append_with(std::iter::once(promise), |batch| {
            for record in records {
                batch.record(record.journal(), |out| record.encode(out));
            }
        });
    }

    /// Reads entries for members that lag, apart from this thread.
    fn read(&self, group: GroupId, from: u64, to: u64) {
        let Some(groups) = self.myself.upgrade() else {
            return;
        };
        self.node.pager.read(move |files| {
            let read = files.log.group_entries(group.0, from, to, READ_BYTES);
            let payloads = read.unwrap_or_else(|error| {
                tracing::error!(
                    area = "groups",
                    "{group:?}: entries from {from} on cannot be read: {error}"
                );
                Vec::new()
            });
            let payloads = payloads.into_iter().map(Bytes::from).collect();
            groups.bring(Mail::Read(group, from, payloads));
        });
    }
}

impl State {
    fn take(&mut self, mail: Mail) {
        let Self { groups, standings } = self;
        match mail {
            Mail::Frame(from, frame) => {
                if let Err(rejected) = groups.receive(from, &frame) {
                    tracing::error!(area = "groups", "a frame of node {}: {rejected:?}", from.0);
                }
            }
            Mail::Tick(disk) => {
                groups.disk(disk);
                groups.tick();
            }
            Mail::Synced(number) => groups.synced(number),
            Mail::Suspect(peer) => groups.suspect(peer),
            Mail::Propose(group, term, records) => {
                if let Some(standing) = standings.get_mut(&group) {
                    standing.propose(group, term, records, groups);
                }
            }
            Mail::Prove(group, term) => {
                if let Some(standing) = standings.get_mut(&group) {
                    standing.prove(group, term, groups);
                }
            }
            Mail::Read(group, from, payloads) => groups.fetched(group, from, &payloads),
        }
    }

    /// Tells the members what a turn brought. Whether that made the groups have something to say.
    fn hand_out(
        &mut self,
        committed: Vec<Committed>,
        events: Vec<Event>,
        concerned: &mut Concerned,
        read: &mut dyn FnMut(GroupId, u64, u64),
    ) -> bool {
        let Self { groups, standings } = self;
        let mut more = false;
        // First who leads: what is committed under another leader than the one that decided it, is not for the latter to let go.
        for event in &events {
            if let Event::Leader { group, term, leader } = event
                && let Some(standing) = standings.get_mut(group)
            {
                let here = groups.status(*group).map(|status| status.me);
                let news = standing.led(*term, *leader, here);
                concerned.tell(*group, standing, news);
            }
        }
        let mut committed = committed.into_iter().peekable();
        while let Some(group) = committed.peek().map(|first| first.group) {
            let of_group = std::iter::from_fn(|| committed.next_if(|next| next.group == group));
            match standings.get_mut(&group) {
                Some(standing) => {
                    let news = standing.committed(of_group);
                    concerned.tell(group, standing, news);
                    more |= standing.go_on(group, groups);
                }
                None => of_group.for_each(drop),
            }
        }
        for event in events {
            match event {
                Event::Read { group, from, to } => read(group, from, to),
                Event::Proven { group, question, .. } => {
                    if let Some(standing) = standings.get_mut(&group) {
                        let news = standing.proven(question);
                        concerned.tell(group, standing, news);
                    }
                }
                Event::Unproven { group, question } => {
                    if let Some(standing) = standings.get_mut(&group) {
                        more |= standing.unproven(group, question, groups);
                    }
                }
                Event::Suspected(node) => tracing::warn!(area = "groups", "node {} is not heard of", node.0),
                Event::Heard(node) => tracing::info!(area = "groups", "node {} is heard of", node.0),
                // What was not taken is dropped with the machine that decided it: its member has been told by now.
                Event::Leader { .. } | Event::Returned { .. } => {}
                // Who the members are and which groups exist is for the catalog to say; nobody asks for contents while
                // logs are whole.
                other => tracing::debug!(area = "groups", "{other:?}"),
            }
        }
        more
    }
}

/// The members that a turn concerns, each once.
#[derive(Default)]
struct Concerned(BTreeMap<GroupId, Arc<dyn Member>>);

impl Concerned {
    fn tell(&mut self, group: GroupId, standing: &Standing, news: Vec<News>) {
        if !news.is_empty()
            && let Some(member) = standing.member.upgrade()
        {
            member.tell(news);
            self.0.insert(group, member);
        }
    }
}

impl Batches for NodeGroups {
    fn synced(self: Arc<Self>, number: u64) {
        self.bring(Mail::Synced(number));
    }
}

impl fmt::Debug for NodeGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeGroups")
    }
}
