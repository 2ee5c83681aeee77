//! A node's groups, turned by whoever brings them something.

use super::member::{Links, Member, News, Observer};
use super::membership::CATALOG_GROUP;
use super::rejected_frames::RejectedFrames;
use super::standing::Standing;
use super::state::{Concerned, Mail, State};
use super::transfer::Said;
use crate::node::Node;
use crate::node::promise::{Batches, Promise};
use bytes::Bytes;
use cluster::{
    Damage, Disk, Event, GroupId, Groups, MemberId, NodeId, Record, Recovered, Refused, Status, Step, trace,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use storage::{JournalId, Kind, Position, TailLimits};

/// How many turns one thread makes in a row for others before it hands the groups on.
const TURNS: usize = 16;

/// So many groups of a node fetch contents or bodies at a time.
const FETCHES: usize = 2;

/// So many turns are made before the first one of them is synced; from then on what is proposed waits for more.
const BUSY: u64 = 8;

/// So much waits at most to be proposed together: so many times, or more often as long as it is less than so many bytes.
const TOGETHER: usize = 16;
const TOGETHER_SMALL: usize = 64;
const SMALL_BYTES: usize = 64 << 10;

/// The time between two ticks.
const TICK_MS: u128 = 100;

/// Of whom nothing was heard for so many ticks, nothing is kept for: it needs a snapshot when it comes back.
const AWAY_TICKS: u32 = 600;

/// How much of a group's log is read at once for a member that lags, in bytes.
const READ_BYTES: usize = 1 << 20;

/// What was brought and is not looked at yet.
#[derive(Default)]
struct Mailbox {
    mail: Vec<Mail>,
    /// Of the records that are to be proposed.
    bytes: usize,
}

impl Mailbox {
    /// Whether what is proposed may wait here for more of its kind.
    fn has_space(&self) -> bool {
        let limit = match self.bytes < SMALL_BYTES {
            true => TOGETHER_SMALL,
            false => TOGETHER,
        };
        self.mail.len() < limit
    }

    fn put(&mut self, mail: Mail) {
        if let Mail::Propose(_, _, records) = &mail {
            self.bytes += records.iter().map(Bytes::len).sum::<usize>();
        }
        self.mail.push(mail);
    }
}

/// A node's members of all groups. See the module.
pub struct NodeGroups {
    myself: Weak<Self>,
    /// The node, and which start of it this is.
    me: (NodeId, u64),
    node: Arc<Node>,
    links: Arc<dyn Links>,
    state: Mutex<State>,
    observer: OnceLock<Weak<dyn Observer>>,
    mailbox: Mutex<Mailbox>,
    /// Whether something in it is to be looked at now.
    mail: AtomicBool,
    /// The numbers of the last turns of which a batch was appended, and synced.
    appended: AtomicU64,
    synced: AtomicU64,
    /// Groups whose members are told of ticks.
    ticking: Mutex<BTreeSet<GroupId>>,
    /// Groups whose members fetch something just now.
    fetching: Mutex<BTreeSet<GroupId>>,
    rejected: Arc<RejectedFrames>,
}

impl NodeGroups {
    /// The groups of a node, around what knows how they work.
    pub fn new(node: Arc<Node>, groups: Groups, links: Arc<dyn Links>) -> Arc<Self> {
        // What members lack that were away for a while.
        node.log
            .keep_tails_in(node.segments.clone(), TailLimits::default());
        let rejected = Arc::<RejectedFrames>::default();
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            me: (groups.node(), groups.incarnation()),
            node,
            links,
            state: Mutex::new(State {
                groups,
                standings: BTreeMap::new(),
                rejected: rejected.clone(),
            }),
            observer: OnceLock::new(),
            mailbox: Mutex::default(),
            mail: AtomicBool::new(false),
            appended: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            ticking: Mutex::default(),
            fetching: Mutex::default(),
            rejected,
        })
    }

    /// Has this one observe them from now on; the first one stays.
    pub fn observed_by(&self, observer: Weak<dyn Observer>) {
        let _ = self.observer.set(observer);
    }

    /// The node that they belong to.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    /// Where to tell of frames of peers that are of no use. Its time is that of [`NodeGroups::tick`].
    pub fn rejected(&self) -> &Arc<RejectedFrames> {
        &self.rejected
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
            // The catalog's followers answer, too.
            if group != CATALOG_GROUP {
                state.groups.tell_commits_later(group);
            }
            state.standings.insert(group, Standing::new(member));
            Ok(())
        })
    }

    /// From now on this one is told what a group's member is told, in place of the one that it was opened with.
    pub fn pass_by(&self, group: GroupId, member: Weak<dyn Member>) {
        self.with(|state| {
            if let Some(standing) = state.standings.get_mut(&group) {
                standing.member = member;
            }
        });
    }

    /// Takes a group's member out of memory; what the log has of it stays. Its host is told nothing any more, and stores nothing.
    pub fn close(&self, group: GroupId) {
        self.with(|state| {
            state.groups.close(group);
            if let Some(standing) = state.standings.remove(&group) {
                standing.close();
            }
            // What its member still had to say concerns no other one.
            let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
            mailbox.mail.retain(|mail| !mail.is_of_contents(group));
        });
    }

    /// This node's member of the group can't read what it has answered for: it votes and leads no more, and whoever observes is
    /// told.
    pub(super) fn damaged(&self, group: GroupId) {
        self.close(group);
        if let Some(observer) = self.observer.get().and_then(Weak::upgrade) {
            observer.damaged(group);
        }
    }

    /// How many turns the groups had.
    pub fn turns(&self) -> u64 {
        self.with(|state| state.groups.turns())
    }

    /// How many groups are awake.
    pub fn awake(&self) -> usize {
        self.with(|state| state.groups.awake())
    }

    /// What a group's member tells of itself.
    pub fn status(&self, group: GroupId) -> Option<Status> {
        self.with(|state| state.groups.status(group))
    }

    /// A frame of a peer that has proven who it is.
    pub fn receive(&self, from: NodeId, frame: Bytes) {
        self.bring(Mail::Frame(from, frame));
    }

    /// The same for a frame of the bulk lane.
    pub fn bulk(&self, from: NodeId, frame: Bytes) {
        self.bring(Mail::Bulk(from, frame));
    }

    /// The same as [`NodeGroups::receive`] for one of several that have come together; [`NodeGroups::turn`] follows the last one.
    pub fn hear(&self, from: NodeId, frame: Bytes) {
        self.put(Mail::Frame(from, frame));
    }

    /// Changes the members of a group that is led here.
    ///
    /// # Errors
    /// It isn't led here, another change is under way, or it can't be.
    pub fn change(&self, group: GroupId, steps: &[Step]) -> Result<(), Refused> {
        self.with(|state| state.groups.change(group, steps))
    }

    /// Hands the leadership of a group over to this member.
    ///
    /// # Errors
    /// It isn't led here, a change of members is under way, or `to` can't lead.
    pub fn transfer(&self, group: GroupId, to: MemberId) -> Result<(), Refused> {
        self.with(|state| state.groups.transfer(group, to))
    }

    /// Hands the leadership of a group over to the member on this node, if it is led here and that one keeps up. Whether that
    /// was begun.
    pub fn hand_over_to(&self, group: GroupId, to: NodeId) -> bool {
        self.with(|state| state.groups.hand_over_group_to(group, to))
    }

    /// The group is new, and this member is to lead it first, or another one.
    pub fn begin(&self, group: GroupId, is_first: bool) {
        self.with(|state| state.groups.begin(group, is_first));
    }

    /// See [`Groups::ask_after_itself`].
    pub fn ask_after_itself(&self, group: GroupId, me: MemberId, nodes: &[NodeId]) {
        self.with(|state| state.groups.ask_after_itself(group, me, nodes));
    }

    /// The link to a peer is down.
    pub fn suspect(&self, peer: NodeId) {
        self.bring(Mail::Suspect(peer));
    }

    /// A tick of the clock, of which there is one each 100 ms. It looks at the disk, too: what is led here is led
    /// elsewhere soon if that is sick.
    pub fn tick(&self) {
        self.rejected.tick();
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

    /// These nodes are in maintenance from now on, and no others: they lead nothing that another one can lead.
    pub fn drain(&self, nodes: BTreeSet<NodeId>) {
        self.with(|state| state.groups.drain(nodes));
    }

    /// How many groups are led here.
    pub fn leading(&self) -> usize {
        self.with(|state| state.groups.leading())
    }

    /// Proposes these, in this order, if this node still leads the group in this term; otherwise the member is about to
    /// be told that it does not. For hosts: whoever turns them calls [`NodeGroups::turn`] afterwards.
    pub(super) fn propose(&self, group: GroupId, term: u64, records: Vec<Bytes>) {
        trace::tell(|| trace::Step::Proposed {
            node: self.me.0,
            group,
            records: records.clone(),
        });
        self.put(Mail::Propose(group, term, records));
    }

    /// Asks whether this node still leads the group in this term; [`News::Proven`] is the answer, or that it does not
    /// lead. For hosts, as [`NodeGroups::propose`] is.
    pub(super) fn prove(&self, group: GroupId, term: u64) {
        self.put(Mail::Prove(group, term));
    }

    /// The contents that [`News::Fetch`] asked for are durable, as a checkpoint at this index or behind it. For hosts,
    /// as [`NodeGroups::propose`] is.
    pub fn installed(&self, group: GroupId, index: u64) {
        self.put(Mail::Installed(group, index));
    }

    /// The contents at this index are durable, as a checkpoint that other members can be sent; of the log members need
    /// what is behind `keep`. For hosts, as [`NodeGroups::propose`] is.
    pub fn checkpointed(&self, group: GroupId, index: u64, keep: u64) {
        self.put(Mail::Checkpointed(group, index, keep));
    }

    /// The log wants to use a file again that these journals need, which ends at `before`.
    pub fn reclaim(&self, journals: &[JournalId], before: Position) {
        let of_groups = journals
            .iter()
            .filter(|it| matches!(it.kind, Kind::GROUP | Kind::MEMBER));
        let mut groups: Vec<GroupId> = of_groups.map(|it| GroupId(it.number)).collect();
        groups.sort_unstable();
        groups.dedup();
        self.bring(Mail::Reclaim(groups, before));
    }

    /// The first entry of a group that is led here which a member lacks that was away for a moment at the most.
    pub(super) fn lacked(&self, group: GroupId) -> Option<u64> {
        self.with(|state| state.groups.lacked(group, AWAY_TICKS))
    }

    /// Whether the group's member is told of ticks. For hosts, as [`NodeGroups::propose`] is.
    pub fn ticks(&self, group: GroupId, wanted: bool) {
        let mut ticking = self.ticking.lock().unwrap_or_else(PoisonError::into_inner);
        match wanted {
            true => ticking.insert(group),
            false => ticking.remove(&group),
        };
    }

    /// Whether the group's member may fetch something now: only a few do at a time. It asks again with each tick.
    pub(super) fn may_fetch(&self, group: GroupId) -> bool {
        let mut fetching = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        let may = fetching.len() < FETCHES || fetching.contains(&group);
        if may {
            fetching.insert(group);
        }
        may
    }

    /// The group's member fetches nothing, or has to wait for others.
    pub(super) fn fetched(&self, group: GroupId) {
        let mut fetching = self.fetching.lock().unwrap_or_else(PoisonError::into_inner);
        fetching.remove(&group);
    }

    /// Says something to the group's member on another node, beside entries.
    pub(super) fn say(&self, group: GroupId, to: NodeId, said: &Said) {
        self.links.bulk(to, said.frame(self.me.1, group));
    }

    /// The node, and which start of it this is.
    pub fn me(&self) -> (NodeId, u64) {
        self.me
    }

    /// Has another member lead the group from now on, if one can. For hosts, as [`NodeGroups::propose`] is.
    pub(super) fn lead_elsewhere(&self, group: GroupId) {
        self.put(Mail::LeadElsewhere(group));
    }

    /// Has another member lead the group from now on, if any can: this node's applies nothing more. For hosts, as
    /// [`NodeGroups::propose`] is.
    pub(super) fn abstain(&self, group: GroupId) {
        self.put(Mail::Abstain(group));
    }

    /// What is committed of a group that this node leads is told its followers now, not with the next entries: none are on
    /// their way. [`NodeGroups::turn`] follows.
    pub(super) fn tell_commits(&self, group: GroupId) {
        self.put(Mail::TellCommits(group));
    }

    fn bring(&self, mail: Mail) {
        self.put(mail);
        self.turn();
    }

    fn put(&self, mail: Mail) {
        let mut mailbox = self.mailbox.lock().unwrap_or_else(PoisonError::into_inner);
        let waits = matches!(mail, Mail::Propose(..)) && mailbox.has_space() && self.is_busy();
        mailbox.put(mail);
        if !waits {
            self.mail.store(true, Ordering::SeqCst);
        }
    }

    /// Whether many turns were made since the last batch that is synced: what is proposed now waits for more of its kind,
    /// or until the next batch is. That there is one under way is certain then.
    fn is_busy(&self) -> bool {
        let synced = self.synced.load(Ordering::SeqCst);
        self.appended.load(Ordering::SeqCst).saturating_sub(synced) >= BUSY
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
        self.turn_members(&|member| member.turn());
    }

    fn turn_members(&self, turn: &dyn Fn(Arc<dyn Member>)) {
        for _ in 0..TURNS {
            if !self.mail.load(Ordering::SeqCst) {
                return;
            }
            // Whoever has the lock now looks at the mail after letting go.
            let Ok(mut state) = self.state.try_lock() else {
                return;
            };
            let Concerned { members, observed } = self.turn_once(&mut state);
            drop(state);
            members.into_values().for_each(turn);
            self.observe(observed);
        }
        if self.mail.load(Ordering::SeqCst)
            && let Some(groups) = self.myself.upgrade()
        {
            self.node.pager.write(move |_| groups.turn());
        }
    }

    fn observe(&self, events: Vec<Event>) {
        let observer = self.observer.get().and_then(Weak::upgrade);
        for event in events {
            match &event {
                Event::Suspected(node) => tracing::warn!(area = "groups", "node {} is not heard of", node.0),
                Event::Heard(node) => tracing::info!(area = "groups", "node {} is heard of", node.0),
                other => tracing::debug!(area = "groups", "{other:?}"),
            }
            if let Some(observer) = &observer {
                observer.observe(event);
            }
        }
    }

    fn turn_once(&self, state: &mut State) -> Concerned {
        let mut concerned = Concerned::default();
        self.mail.store(false, Ordering::SeqCst);
        let mailbox = std::mem::take(&mut *self.mailbox.lock().unwrap_or_else(PoisonError::into_inner));
        for mail in mailbox.mail {
            if let Mail::Tick(_) = mail {
                let ticking = self.ticking.lock().unwrap_or_else(PoisonError::into_inner);
                ticking
                    .iter()
                    .for_each(|group| concerned.tell_one(*group, &state.standings, News::Tick));
            }
            state.take(mail, &mut concerned);
        }
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
                return concerned;
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
        self.appended.store(number, Ordering::SeqCst);
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
            let payloads = read.inspect_err(|error| {
                tracing::warn!(
                    area = "groups",
                    "{group:?}: entries from {from} on cannot be read; a member that lacks them is sent contents: {error}"
                );
            });
            let payloads = payloads.map(|read| read.into_iter().map(Bytes::from).collect());
            groups.bring(Mail::Read(group, from, payloads.ok()));
        });
    }
}

impl Batches for NodeGroups {
    fn synced(self: Arc<Self>, number: u64) {
        self.synced.store(number, Ordering::SeqCst);
        self.put(Mail::Synced(number));
        self.turn_members(&|member| member.turn_shortly());
    }
}

impl fmt::Debug for NodeGroups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NodeGroups")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_records_wait_for_more_of_their_kind_than_large_ones() {
        let waiting = |length: usize| {
            let mut mailbox = Mailbox::default();
            while mailbox.has_space() {
                mailbox.put(Mail::Propose(GroupId(1), 1, vec![vec![7; length].into()]));
            }
            mailbox.mail.len()
        };
        assert_eq!([100, 1_000, 2_000, 100_000].map(waiting), [64, 64, 33, 16]);
    }
}
