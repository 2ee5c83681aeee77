//! A group: one node's member of a replicated journal, around the library's state machine.
//!
//! Reading order: here what it is and what it takes; `guard` (what the library would stop the process for), `turn`
//! (what comes out of it, and when), `clock` (elections, sleeping), `farewell` (members that are none any more).

mod clock;
#[cfg(test)]
mod edges;
mod farewell;
mod guard;
mod turn;

pub use guard::Lie;
pub(crate) use turn::Out;
pub use turn::{Committed, Event};

use crate::identity::{GroupId, MemberId, NodeId, spread};
use crate::membership::{Membership, Step, encode_change, to_library};
use crate::record::{Mark, entry};
use crate::recovery::{Damage, Recovered};
use crate::settings::Settings;
use crate::tail::{Tail, Wanted};
use bytes::Bytes;
use raft::eraftpb::{Entry, Message, MessageType};
use raft::{Changer, Config, Progress, ProgressState, RawNode, StateRole, Storage};
use slog::{Discard, Logger, o};
use std::collections::VecDeque;
use storage::HardState;
use turn::Unsynced;

/// Why a group doesn't take what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// This node has no member of the group.
    Unknown,
    /// The member doesn't lead; this one does, as far as it knows.
    NotLeader(Option<MemberId>),
    /// The node's log failed.
    Failed,
    /// Too much is not committed yet; what is committed makes space.
    Busy,
    /// A leader of this term has committed nothing yet, so it can't know what is.
    NotYet,
    /// The last change of members isn't through.
    ChangeUnderWay,
    /// A change that leads to no possible membership.
    Impossible,
    /// Somebody would vote who lacks more than the last entries. If others fail then, nothing is committed before it has
    /// everything, and contents that it could be sent count only once they are committed. New members are learners first.
    Behind,
    /// Of those who would be left, too few can be reached: nothing would be committed any more. Others may go first.
    Unreached,
}

/// A snapshot that a member was offered: no contents, but who has them and what they are of.
struct Offer {
    message: Message,
    /// In ticks.
    age: u32,
}

pub(crate) struct Group {
    pub id: GroupId,
    pub me: MemberId,
    raw: RawNode<Tail>,
    /// Collected until the turn ends, so that they make one message to each member.
    proposed: Vec<Entry>,
    uncommitted: VecDeque<(u64, usize)>,
    uncommitted_bytes: usize,
    unsynced: VecDeque<Unsynced>,
    /// The term of which the log is known to be synced.
    synced_term: u64,
    /// What was last written of its promise.
    written: HardState,
    /// Entries of its own log that it reads for lagging members.
    reads: Vec<Wanted>,
    /// A snapshot whose contents the host is fetching.
    installing: Option<Box<Message>>,
    /// What the host was asked to fetch.
    fetching: Option<Mark>,
    /// How often it was asked.
    snapshots: u32,
    /// Snapshots that members were offered and have not answered.
    offered: Vec<Offer>,
    awake: bool,
    /// Ticks until it asks for votes, if it decided to.
    campaign_in: Option<u32>,
    attempts: u32,
    /// Its leader's node was just lost: it asks for votes in so many ticks, and not seldom as later.
    early: u32,
    /// The group is new and this member is to lead it first.
    begins: bool,
    /// Ticks in which nothing had to be done.
    quiet: u32,
    reported: (u64, u64),
    removed: bool,
    /// Its host can't apply what is committed, see [`Group::abstain`].
    abstains: bool,
    /// The log went so far when the last change of members was known to be committed.
    sealed_behind: u64,
    /// Who is no member any more, and how often they were told, which they are once it is sure that nobody needs them.
    departed: Vec<(MemberId, u32)>,
    /// The last entry at which it was told so.
    removed_at: u64,
    /// How often it was to be handed over, so that the next one is asked if one doesn't take it.
    handed: usize,
    /// Members of which their node says that they live no more, as long as this one leads.
    lost: Vec<u64>,
}

impl Group {
    pub fn open(id: GroupId, recovered: Recovered, settings: &Settings) -> Result<Self, Damage> {
        let mut recovered = recovered.checked()?;
        recovered.tail.promised(recovered.promise);
        let me = recovered.me;
        let election = settings.election as usize;
        let config = Config {
            id: me.number(),
            election_tick: election,
            heartbeat_tick: settings.heartbeat as usize,
            // The library draws a random number from this range of one; who asks for votes when is decided in `clock`.
            min_election_tick: election,
            max_election_tick: election + 1,
            applied: recovered.applied,
            max_size_per_msg: settings.message_bytes,
            max_inflight_msgs: settings.in_flight,
            check_quorum: true,
            pre_vote: true,
            ..Config::default()
        };
        let written = recovered.promise;
        let possible = recovered.tail.membership().is_possible();
        // The only failure of the library here is a membership that can't be.
        let raw = possible
            .then(|| RawNode::new(&config, recovered.tail, &Logger::root(Discard, o!())).ok())
            .flatten()
            .ok_or(Damage::Record(crate::encoding::Malformed::Membership))?;
        Ok(Self {
            id,
            me,
            raw,
            proposed: Vec::new(),
            uncommitted: VecDeque::new(),
            uncommitted_bytes: 0,
            unsynced: VecDeque::new(),
            synced_term: written.term,
            written,
            reads: Vec::new(),
            installing: None,
            fetching: None,
            snapshots: 0,
            offered: Vec::new(),
            awake: false,
            campaign_in: None,
            attempts: 0,
            early: 0,
            begins: false,
            quiet: 0,
            reported: (0, 0),
            removed: false,
            abstains: false,
            sealed_behind: 0,
            departed: Vec::new(),
            removed_at: 0,
            handed: 0,
            lost: Vec::new(),
        })
    }

    /// See [`Groups::tell_commits_later`](crate::Groups::tell_commits_later).
    pub fn tell_commits_later(&mut self) {
        self.raw.skip_bcast_commit(true);
    }

    /// See [`Groups::tell_commits`](crate::Groups::tell_commits).
    pub fn tell_commits(&mut self) {
        if self.leads() {
            self.raw.raft.bcast_append();
        }
    }

    pub fn leads(&self) -> bool {
        self.raw.raft.state == StateRole::Leader
    }

    pub fn term(&self) -> u64 {
        self.raw.raft.term
    }

    pub fn leader(&self) -> Option<MemberId> {
        MemberId::from_number(self.raw.raft.leader_id)
    }

    pub fn last(&self) -> u64 {
        self.raw.raft.raft_log.last_index()
    }

    pub fn last_term(&self) -> u64 {
        self.raw.raft.raft_log.last_term()
    }

    pub fn committed(&self) -> u64 {
        self.raw.raft.raft_log.committed
    }

    pub fn applied(&self) -> u64 {
        self.raw.raft.raft_log.applied
    }

    pub fn term_at(&self, index: u64) -> Option<u64> {
        self.raw.store().term(index).ok()
    }

    pub fn base(&self) -> Mark {
        self.raw.store().base()
    }

    pub fn membership(&self) -> &Membership {
        self.raw.store().membership()
    }

    pub fn is_awake(&self) -> bool {
        self.awake
    }

    pub fn snapshots(&self) -> u32 {
        self.snapshots
    }

    pub fn is_removed(&self) -> bool {
        self.removed
    }

    pub fn held_bytes(&self) -> usize {
        self.raw.store().held_bytes()
    }

    /// Takes a record. It is an entry from the end of the turn on, with the index that is returned unless this leader
    /// leaves its term first: nothing else comes into the log between what is collected here, not even the end of a
    /// change of members.
    pub fn propose(&mut self, record: Bytes, settings: &Settings) -> Result<u64, Refused> {
        self.ready_to_lead()?;
        let full = self.uncommitted_bytes + record.len() > settings.uncommitted_bytes;
        if full && self.uncommitted_bytes > 0 {
            return Err(Refused::Busy);
        }
        self.uncommitted_bytes += record.len();
        let entry = entry(Mark::default(), 0, record).map_err(|_| Refused::Impossible)?;
        self.proposed.push(entry);
        self.wake();
        Ok(self.last() + self.proposed.len() as u64)
    }

    /// Changes who the members are. It counts once it is committed.
    pub fn change(&mut self, steps: &[Step], reachable: &dyn Fn(NodeId) -> bool) -> Result<(), Refused> {
        self.ready_to_lead()?;
        // The library would take it and make an entry of it that does nothing.
        let under_way = self.is_changing();
        #[cfg(any(test, feature = "mutants"))]
        let under_way = self.forget_change(under_way);
        let raft = &self.raw.raft;
        if under_way || raft.lead_transferee.is_some() {
            return Err(Refused::ChangeUnderWay);
        }
        let change = to_library(steps);
        let mut changer = Changer::new(raft.prs());
        let outcome = match steps {
            [] => return Err(Refused::Impossible),
            [_] => changer.simple(change.get_changes()),
            _ => changer.enter_joint(true, change.get_changes()),
        };
        outcome.map_err(|_| Refused::Impossible)?;
        if steps
            .iter()
            .any(|step| matches!(step, Step::Voter(member) if !self.keeps_up(*member)))
        {
            return Err(Refused::Behind);
        }
        let leaves =
            |step: &Step| matches!(step, Step::Remove(member) if self.membership().voters.contains(member));
        if steps.iter().any(leaves) && !self.has_majority_after(steps, reachable) {
            return Err(Refused::Unreached);
        }
        self.propose_collected();
        self.wake();
        let proposed = self.raw.propose_conf_change(encode_change(steps), change);
        proposed.map_err(|_| Refused::ChangeUnderWay)
    }

    /// Whether it leads, and a change of members is under way.
    pub fn is_changing(&self) -> bool {
        self.raw.raft.has_pending_conf() || self.membership().is_joint()
    }

    /// Whether of those who vote then a majority can be reached, and has taken entries: else the change would be the last one
    /// that is committed. A node that can be reached may have no member open yet, or have it gone before that has begun.
    fn has_majority_after(&self, steps: &[Step], reachable: &dyn Fn(NodeId) -> bool) -> bool {
        let mut voters = self.membership().voters.clone();
        for step in steps {
            match step {
                Step::Voter(member) if !voters.contains(member) => voters.push(*member),
                Step::Voter(_) => {}
                Step::Learner(member) | Step::Remove(member) => voters.retain(|it| it != member),
            }
        }
        let progress = |it: &MemberId| self.raw.raft.prs().get(it.number());
        let follows = |it: &MemberId| progress(it).is_some_and(|it| it.matched > 0);
        let is_there = |it: &&MemberId| **it == self.me || reachable(it.node) && follows(it);
        2 * voters.iter().filter(is_there).count() > voters.len()
    }

    /// Whether a member votes already, or is sent entries and has taken some.
    fn keeps_up(&self, member: MemberId) -> bool {
        let progress = self.raw.raft.prs().get(member.number());
        let least = self.base().index.max(1);
        let follows = |of: &Progress| of.state != ProgressState::Snapshot && of.matched >= least;
        self.membership().voters.contains(&member) || progress.is_some_and(follows)
    }

    #[cfg(any(test, feature = "mutants"))]
    fn forget_change(&mut self, under_way: bool) -> bool {
        let forgotten = crate::mutant::Mutant::TwoChanges.is_on() && !self.membership().is_joint();
        if forgotten {
            self.raw.raft.pending_conf_index = 0;
        }
        under_way && !forgotten
    }

    /// The term and the commit index that a proof is asked for.
    pub fn ask(&self) -> Result<(u64, u64), Refused> {
        self.ready_to_lead()?;
        match self.raw.raft.commit_to_current_term() {
            true => Ok((self.term(), self.committed())),
            false => Err(Refused::NotYet),
        }
    }

    fn ready_to_lead(&self) -> Result<(), Refused> {
        match self.leads() {
            true => Ok(()),
            false => Err(Refused::NotLeader(self.leader())),
        }
    }

    /// Makes entries of what was proposed. In a transfer of leadership the library would drop them: they wait for its end.
    fn propose_collected(&mut self) {
        let held = self.raw.raft.lead_transferee.is_some();
        #[cfg(any(test, feature = "mutants"))]
        let held = held && !crate::mutant::Mutant::TransferDrops.is_on();
        if self.proposed.is_empty() || !self.leads() || held {
            return;
        }
        let entries = std::mem::take(&mut self.proposed);
        let sizes: Vec<_> = entries.iter().map(|e| e.data.len()).collect();
        let mut message = Message::default();
        message.set_msg_type(MessageType::MsgPropose);
        message.from = self.me.number();
        message.set_entries(entries.into());
        let first = self.last() + 1;
        if self.raw.raft.step(message).is_ok() {
            self.uncommitted.extend((first..).zip(sizes));
        }
    }

    /// Hands the leadership over to a voter that has everything, or as soon as it has.
    pub fn transfer(&mut self, to: MemberId) -> Result<(), Refused> {
        self.ready_to_lead()?;
        if to == self.me || !self.membership().voters.contains(&to) {
            return Err(Refused::Impossible);
        }
        // While proposals are held for the transfer no entry may come before them, and a change under way would end with one.
        if self.raw.raft.has_pending_conf() || self.membership().is_joint() {
            return Err(Refused::ChangeUnderWay);
        }
        self.propose_collected();
        self.wake();
        self.raw.transfer_leader(to.number());
        Ok(())
    }

    /// Hands the leadership to a voter that keeps up on a node that fits, if `electors` can elect it. Whether it was begun.
    pub fn hand_over(
        &mut self,
        reachable: &dyn Fn(NodeId) -> bool,
        electors: &dyn Fn(NodeId) -> bool,
        fits: &dyn Fn(NodeId) -> bool,
    ) -> bool {
        let enough = self.membership().has_majority(|m| electors(m.node));
        if !enough || self.raw.raft.lead_transferee.is_some() {
            return false;
        }
        let (committed, progress) = (self.committed(), self.raw.raft.prs());
        let matched = |m: &MemberId| progress.get(m.number()).map_or(0, |p| p.matched);
        let able =
            |m: &&MemberId| **m != self.me && reachable(m.node) && fits(m.node) && matched(m) >= committed;
        let mut heirs: Vec<_> = self.membership().voters.iter().filter(able).copied().collect();
        heirs.sort_unstable_by_key(|m| std::cmp::Reverse(matched(m)));
        let Some(to) = heirs.get(self.handed % heirs.len().max(1)).copied() else {
            return false;
        };
        self.handed += 1;
        self.transfer(to).is_ok()
    }

    /// Nobody would be served by its host: it leads only where nobody else can be elected, because it alone has what they
    /// lack, and hands over as soon as one of them has it. It votes and takes entries as before, for these rest on its
    /// log, of which nothing is wrong.
    pub fn abstain(&mut self) {
        self.abstains = true;
        self.wake();
    }

    /// The node's log failed: whatever it was, it leads and follows no more.
    pub fn end_office(&mut self, out: &mut Out) {
        let term = self.term();
        self.raw.raft.become_follower(term, 0);
        self.rest();
        self.report(out);
    }

    /// A message of a peer.
    pub fn step(&mut self, message: Message, settings: &Settings) -> Result<(), Lie> {
        #[cfg(any(test, feature = "mutants"))]
        if !crate::mutant::Mutant::NoGuard.is_on() {
            self.check(&message)?;
        }
        #[cfg(not(any(test, feature = "mutants")))]
        self.check(&message)?;
        self.wake();
        let kind = message.get_msg_type();
        match kind {
            MessageType::MsgSnapshot => {
                self.offered_snapshot(message);
                return Ok(());
            }
            MessageType::MsgRequestVoteResponse | MessageType::MsgRequestPreVoteResponse
                if self.is_unsynced() =>
            {
                // No vote can have been asked for yet; winning now would stop the process.
                return Ok(());
            }
            // As if it were lost: the leader sends it again once the log goes on.
            MessageType::MsgAppend
                if self.is_unsynced()
                    && self.held_bytes() >= settings.unsynced_bytes
                    && !message.entries.is_empty() =>
            {
                return Ok(());
            }
            MessageType::MsgTimeoutNow if self.abstains => return Ok(()),
            MessageType::MsgTimeoutNow if self.is_unsynced() => {
                self.campaign_in = Some(0);
                return Ok(());
            }
            _ => {}
        }
        // Errors are: a member that isn't one any more, and proposals without a leader, which don't come from peers.
        let asked = matches!(kind, MessageType::MsgRequestVote | MessageType::MsgRequestPreVote);
        let stands = (message.log_term, message.index);
        let led = self.leads();
        let _ = self.raw.step(message);
        if kind == MessageType::MsgTimeoutNow {
            self.campaign_in = None;
        }
        let is_ahead = asked && stands < (self.raw.store().last_term(), self.last());
        if self.leader().is_none() && (is_ahead || led) {
            self.hasten();
        }
        Ok(())
    }

    /// Whether the log has entries or a snapshot that aren't synced.
    fn is_unsynced(&self) -> bool {
        let log = &self.raw.raft.raft_log;
        log.persisted < log.last_index() || self.unsynced.iter().any(|turn| turn.entries)
    }

    fn offered_snapshot(&mut self, message: Message) {
        if self.has(&message) {
            // The library answers that it has that, and needs no contents.
            let _ = self.raw.step(message);
            return;
        }
        let index = message.get_snapshot().get_metadata().index;
        let newer = self.installing.as_ref().is_none_or(|now| {
            let offered = now.get_snapshot().get_metadata().index;
            offered < index || now.term < message.term
        });
        if newer && message.term >= self.term() {
            self.installing = Some(Box::new(message));
        }
    }

    /// Whether the log has what the snapshot has, so that its contents come out of the log.
    fn has(&self, message: &Message) -> bool {
        let metadata = message.get_snapshot().get_metadata();
        metadata.index <= self.committed() || self.term_at(metadata.index) == Some(metadata.term)
    }

    /// The snapshot whose contents are to be fetched, from whom, and who the members are in it.
    pub fn wanted_snapshot(&self) -> Option<(MemberId, Mark, Membership)> {
        let message = self.installing.as_ref()?;
        let metadata = message.get_snapshot().get_metadata();
        let (index, term) = (metadata.index, metadata.term);
        let members = Membership::from_state(metadata.get_conf_state());
        Some((
            MemberId::from_number(message.from)?,
            Mark { index, term },
            members,
        ))
    }

    /// The contents at `index` are durable here, and with them those of every snapshot up to there. Whether the member
    /// goes on from the one that was offered.
    pub fn installed(&mut self, index: u64) -> bool {
        let offered = |message: &Message| message.get_snapshot().get_metadata().index;
        let Some(message) = self.installing.take_if(|message| offered(message) <= index) else {
            return false;
        };
        if message.term < self.term() || self.has(&message) {
            return false;
        }
        self.wake();
        let _ = self.raw.step(*message);
        true
    }

    /// The contents at `index` are durable; the log may begin behind `keep`.
    pub fn checkpointed(&mut self, index: u64, keep: u64) {
        if index <= self.applied() {
            self.raw.mut_store().checkpointed(index, keep);
        }
    }

    /// See [`crate::Groups::lacked`]; the nodes are those that count.
    pub fn lacked(&self, counts: impl Fn(NodeId) -> bool) -> Option<u64> {
        let progress = self.raw.raft.prs();
        let others = self.membership().members();
        let others = others.filter(|m| self.leads() && *m != self.me && counts(m.node));
        let has = |of: MemberId| {
            let progress = progress.get(of.number())?;
            Some(match progress.state {
                ProgressState::Snapshot => progress.pending_snapshot.max(progress.matched),
                _ => progress.matched,
            })
        };
        let least = others.filter_map(has).min()?;
        (least < self.last()).then_some(least + 1)
    }

    /// Entries that were wanted, as they were read from the node's log.
    pub fn fetched(&mut self, from: u64, entries: Vec<Entry>) {
        let found = self.reads.iter().position(|wanted| wanted.from == from);
        let Some(at) = found else { return };
        let wanted = self.reads.swap_remove(at);
        let as_known = entries.iter().zip(from..).all(|(entry, index)| {
            entry.index == index && self.raw.store().term(index).is_ok_and(|term| term == entry.term)
        });
        if as_known && !entries.is_empty() {
            let context = self.raw.mut_store().fetched(wanted, entries);
            self.raw.on_entries_fetched(context);
            self.raw.mut_store().forget_fetched();
        }
    }

    /// A number that spreads groups, the same on each node.
    fn spread(&self, salt: u32) -> u64 {
        spread(self.id.0, u64::from(salt))
    }
}
