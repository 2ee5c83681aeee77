//! The host of a machine of which several nodes have a copy: it follows, or decides.

use super::back::Back;
use super::journal::ReplicatedJournal;
use super::member::News;
use super::member_journal::{Kept, MemberJournal};
use super::node_groups::NodeGroups;
use super::replay::Replay;
use super::replicated::Replicated;
use super::transfer::{Next, Transfers, part};
use crate::node::closed::Closed;
use crate::node::host::Host;
use cluster::{Committed, GroupId, Mark, MemberId};
use model::{Index, Journaled, Mutant, Timestamp};
use queue::store::{self, LogPlace, Place};
use std::collections::{HashSet, VecDeque};
use std::mem;
use std::sync::Arc;
use storage::{JournalId, Position};

/// The time that a machine is given with what its own disk asks or answers, if it follows: nothing is due by it.
const NO_TIME: Timestamp = Timestamp(0);

/// So many bytes of records wait in memory for the next machine. What there is beyond is in the log, as what came before is.
const LATER_BYTES: usize = 16 << 20;

/// A machine of which this node has a copy.
pub struct ReplicatedHost<M: Replicated> {
    pub(super) settings: M::Settings,
    pub(super) group: GroupId,
    segments: JournalId,
    /// Whether the group is open here no more.
    closed: Closed,
    pub(super) state: State<M>,
    /// What it was told and could not take yet.
    later: VecDeque<News>,
    /// Bytes of records that it was told since it had a machine.
    heard: usize,
    leader: Option<MemberId>,
    /// How many machines there were before this one.
    pub(super) generation: u64,
    /// What bodies may take of memory, in bytes, if somebody has said so.
    pub(super) memory: Option<usize>,
    /// What is fetched from other nodes, and answered to them.
    pub(super) transfers: Transfers,
    /// It is handed back to this node's own journal.
    pub(super) back: Option<Box<Back<M>>>,
    /// Its machine has taken another one's place, and whoever follows it does not know yet.
    pub(super) resumed: bool,
    /// See [`Self::retire`].
    retired: bool,
}

pub(super) enum State<M: Replicated> {
    Turned(Host<M, ReplicatedJournal<M>>),
    /// The machine had decided what may never be, and is gone; it had these places in segments. Its successor is made of
    /// the last checkpoint and of the log, up to what was applied.
    Replayed(ReplicatedJournal<M>, Vec<Place>),
    /// The machine lagged too far behind, and is gone. Its successor is made of contents that others have.
    Fetching(Box<Next<M>>),
    /// A record can't be read, or nothing of what the next machine is made of: going on would make another machine of it than the
    /// other members have.
    Stopped,
}

impl<M: Replicated> ReplicatedHost<M> {
    /// The host of a machine that has applied everything up to `applied`, and follows.
    pub fn new(settings: M::Settings, machine: M, own: MemberJournal, applied: Mark) -> Self {
        let (group, groups, segments) = (own.group(), own.groups().clone(), own.segments());
        let closed = own.closed().clone();
        Self {
            settings,
            group,
            segments,
            closed,
            transfers: Transfers::new(group, groups),
            state: State::Turned(Host::new(machine, ReplicatedJournal::new(own, applied))),
            later: VecDeque::new(),
            heard: 0,
            leader: None,
            generation: 0,
            memory: None,
            back: None,
            resumed: false,
            retired: false,
        }
    }

    /// Whose machine it is.
    pub fn group(&self) -> GroupId {
        self.group
    }

    /// Whose name the segments bear that its bodies lie in.
    pub fn segments(&self) -> JournalId {
        self.segments
    }

    /// Whether the group is open here no more, for whoever closes it: then its member writes nothing.
    pub fn closed(&self) -> &Closed {
        &self.closed
    }

    /// The groups of the node.
    pub fn groups(&self) -> &Arc<NodeGroups> {
        self.transfers.groups()
    }

    /// Whether its machine decides.
    pub fn leads(&self) -> bool {
        self.term().is_some()
    }

    /// In which term its machine decides, if it does.
    pub fn term(&self) -> Option<u64> {
        match &self.state {
            State::Turned(host) => host.journal.term(),
            _ => None,
        }
    }

    /// See [`ReplicatedJournal::is_settled`].
    pub fn is_settled(&self) -> bool {
        matches!(&self.state, State::Turned(host) if host.journal.is_settled())
    }

    /// See [`ReplicatedJournal::commit_latency_us`]; 0 of a member that follows.
    pub fn commit_latency_us(&self) -> u64 {
        match &self.state {
            State::Turned(host) => host.journal.commit_latency_us(),
            _ => 0,
        }
    }

    /// Who decides, as far as this node knows.
    pub fn leader(&self) -> Option<MemberId> {
        self.leader
    }

    /// Which machine this is. What an earlier one had ordered of the disk is not answered to this one.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// Up to here the machine has what is committed; `None` while there is none.
    pub fn applied(&self) -> Option<Index> {
        match &self.state {
            State::Turned(host) => Some(host.journal.applied()),
            _ => None,
        }
    }

    /// What its contents are made of beside entries, and up to where these are known to be committed; `None` if that is not
    /// whole.
    pub(super) fn kept(&self) -> Option<(Kept, Mark)> {
        let journal = match &self.state {
            State::Turned(host) => &host.journal,
            State::Replayed(journal, _) => journal,
            State::Fetching(_) | State::Stopped => return None,
        };
        Some((journal.kept().clone(), journal.applied_mark()))
    }

    /// The machine between two turns, if there is one.
    pub fn machine(&self) -> Option<&M> {
        match &self.state {
            State::Turned(host) => Some(&host.machine),
            _ => None,
        }
    }

    /// Lets the machine decide one request. A follower decides nothing, and hands it back; what this node's disk
    /// answers is taken by all.
    ///
    /// # Errors
    /// Somebody else decides.
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and sends it elsewhere"
    )]
    pub fn handle(&mut self, now: Timestamp, request: M::Request) -> Result<(), M::Request> {
        let of_this_node = M::is_of_this_node(&request);
        if self.back.is_some() && !M::ends_something(&request) {
            return Err(request);
        }
        if let Some(store::Request::Shrink { memory }) = M::of_store(&request) {
            self.memory = Some(*memory);
        }
        match &mut self.state {
            State::Turned(host) if host.journal.leads() || of_this_node => {
                let now = if host.journal.leads() { now } else { NO_TIME };
                host.handle(now, request);
                Ok(())
            }
            _ => Err(request),
        }
    }

    /// Ends the turn: calls `act` for what may leave already. Afterwards the groups are to be turned, without the host's lock.
    pub fn commit(&mut self, act: &mut dyn FnMut(M::Effect)) {
        if let State::Turned(host) = &mut self.state {
            if mem::take(&mut self.resumed)
                && let Some(told) = host.machine.resumed()
            {
                act(told);
            }
            if host.journal.leads()
                && let Some(request) = host.machine.ends_turn()
            {
                let now = host.journal.groups().node().now();
                host.handle(now, request);
            }
            host.commit(|effect, journal| sort(effect, journal, act));
            self.go_back(act);
        }
    }

    /// Hears what the groups tell, which is [taken](Self::take) next. Contents that were fetched may take the machine's place
    /// here, so what is ordered afterwards is of another [generation](Self::generation).
    pub fn hear(&mut self, news: Vec<News>) {
        for news in news {
            if let News::Committed(entry) = &news {
                self.heard += entry.record.len();
            }
            // Who leads is so whether there is a machine or not, and clients look for it meanwhile.
            if let News::Leader(leader) = news {
                self.leader = leader;
                continue;
            }
            let news = self.take_transfer(news);
            self.later.extend(news);
        }
        self.leave_to_replay();
    }

    /// Bytes of records that wait to be taken.
    #[cfg(test)]
    pub fn waiting_bytes(&self) -> usize {
        let bytes = |news: &News| match news {
            News::Committed(entry) => entry.record.len(),
            _ => 0,
        };
        self.later.iter().map(bytes).sum()
    }

    /// If much waits for the next machine, it is to be made with that.
    fn leave_to_replay(&mut self) {
        let State::Replayed(journal, _) = &mut self.state else {
            return;
        };
        if self.heard < LATER_BYTES {
            return;
        }
        self.heard = 0;
        while let Some(news) = self.later.pop_front() {
            match news {
                News::Committed(entry) => journal.followed(&entry),
                News::Members { index, members } => journal.joined(index, members),
                // Whoever wants one asks again.
                News::Checkpoint | News::Reclaim(_) | News::Tick => {}
                other => return self.later.push_front(other),
            }
        }
    }

    /// Takes what it has heard: calls `act` for what may leave now, which this generation has ordered. What it can't take yet, it
    /// takes later.
    pub fn take(&mut self, act: &mut dyn FnMut(M::Effect)) {
        while !matches!(self.state, State::Replayed(..))
            && let Some(news) = self.later.pop_front()
        {
            if matches!(self.state, State::Fetching(_)) {
                self.pass(news);
                continue;
            }
            match news {
                News::Committed(entry) => self.committed(&entry, act),
                News::Leads { term } => self.lead(term),
                News::Proven { term } => self.proven(term, act),
                News::Deposed => self.step_down(act),
                News::Members { index, members } => {
                    if let State::Turned(host) = &mut self.state {
                        host.journal.joined(index, members);
                    }
                }
                News::Checkpoint if self.is_letting_go() => {}
                News::Checkpoint => self.checkpoint(LogPlace(0), act),
                News::Reclaim(before) => self.reclaim(before, act),
                News::Leader(_)
                | News::Fetch { .. }
                | News::Lacks(_)
                | News::Bulk(_)
                | News::Tick
                | News::Removed => {}
            }
        }
    }

    /// What is told to a member without a machine, of which contents are fetched: what they contain, it need not be told.
    fn pass(&mut self, news: News) {
        let State::Fetching(next) = &mut self.state else {
            return;
        };
        match news {
            News::Committed(entry)
                if entry.at.index <= next.at().index || Mutant::InstallsWithoutTail.is_on() =>
            {
                next.journal.followed(&entry)
            }
            News::Members { index, members } => next.journal.joined(index, members),
            News::Committed(_) | News::Leads { .. } => {
                self.later.push_front(news);
                self.abandon();
            }
            _ => {}
        }
    }

    /// Whether a checkpoint is written, and the group has not heard of it: who needs one asks again if that is not late enough.
    fn is_letting_go(&self) -> bool {
        matches!(&self.state, State::Turned(host) if host.journal.is_letting_go())
    }

    /// Has the machine's store move what it needs of the log before this entry, and then the contents written down.
    fn checkpoint(&mut self, before: LogPlace, act: &mut dyn FnMut(M::Effect)) {
        if let State::Turned(host) = &mut self.state {
            host.handle(NO_TIME, M::ask_store(store::Request::Checkpoint { before }));
            self.commit(act);
        }
    }

    /// The log is asked again for what isn't done now: once it has grown.
    fn reclaim(&mut self, before: Position, act: &mut dyn FnMut(M::Effect)) {
        if let State::Turned(host) = &mut self.state {
            host.journal.reclaim(before);
            let log = &host.journal.groups().node().log;
            let index = log.group_index_from(self.group.0, before);
            self.checkpoint(LogPlace(index.unwrap_or(0)), act);
        }
    }

    fn committed(&mut self, entry: &Committed, act: &mut dyn FnMut(M::Effect)) {
        let State::Turned(host) = &mut self.state else {
            return;
        };
        // Contents that were fetched may be ahead of what the group has told.
        if entry.at.index <= host.journal.applied() {
            return;
        }
        if host.journal.leads() {
            host.journal.committed(entry, &mut host.machine);
            host.let_go(|effect, journal| sort(effect, journal, act));
        } else if follow(host, entry).is_some() {
            host.commit(|effect, journal| sort(effect, journal, act));
        } else {
            let (group, index) = (self.group, entry.at.index);
            tracing::error!(
                area = "groups",
                "{group:?}: entry {index} can't be read by this version; this node's copy goes no further"
            );
            host.journal.groups().abstain(group);
            self.state = State::Stopped;
            return;
        }
        if host.journal.take_due() {
            self.checkpoint(LogPlace(0), act);
        }
    }

    fn lead(&mut self, term: u64) {
        if let State::Turned(host) = &mut self.state {
            host.machine.recovered(false);
            host.journal.lead(term);
        }
    }

    fn proven(&mut self, term: u64, act: &mut dyn FnMut(M::Effect)) {
        if let State::Turned(host) = &mut self.state {
            host.journal.proven(term);
            host.let_go(|effect, journal| sort(effect, journal, act));
        }
    }

    fn step_down(&mut self, act: &mut dyn FnMut(M::Effect)) {
        match mem::replace(&mut self.state, State::Stopped) {
            State::Turned(mut host) if Mutant::KeepsWhatWasUndecided.is_on() => {
                host.journal.deposed();
                self.state = State::Turned(host);
            }
            State::Turned(host) => {
                let (_, journal, places) = part(host, act);
                self.generation += 1;
                self.heard = 0;
                self.state = State::Replayed(journal, places);
                // What was under way is not answered to the next machine: it begins anew.
                self.transfers.end();
            }
            other => self.state = other,
        }
    }

    /// What it is a machine of is deleted, or this node has no member of it any more, and the group is closed here next: calls
    /// `act` for what is done in the place of what was held.
    pub fn retire(&mut self, act: &mut dyn FnMut(M::Effect)) {
        self.retired = true;
        if let State::Turned(host) = &mut self.state {
            host.drop_held().filter_map(M::given_up).for_each(act);
        }
    }

    /// See [`Self::retire`].
    pub fn is_retired(&self) -> bool {
        self.retired
    }

    /// Its next machine can't be made: it has none from now on, and is told no more who leads.
    pub fn stop(&mut self) {
        if let State::Replayed(..) = self.state {
            self.state = State::Stopped;
            self.leader = None;
            self.transfers.end();
        }
    }

    /// What makes its next machine, if it has none: it reads the log, so it is done elsewhere, without the host's lock.
    pub fn replay(&self) -> Option<Replay<M>> {
        let State::Replayed(journal, _) = &self.state else {
            return None;
        };
        let kept = journal.kept().clone();
        let replay = Replay::new(self.settings.clone(), self.group, kept, journal.applied());
        Some(replay.within(self.memory))
    }

    /// Here is the next machine, made up to an entry; then it takes what it was told meanwhile. What its predecessor had in
    /// segments and it has not, is needed no more. If it is to have more by now, another one is made.
    pub fn replayed(&mut self, machine: M, to: Index, act: &mut dyn FnMut(M::Effect)) {
        match mem::replace(&mut self.state, State::Stopped) {
            State::Replayed(mut journal, mut places) if journal.applied() == to => {
                let needed: HashSet<Place> = machine.places().into_iter().collect();
                places.retain(|place| !needed.contains(place));
                if !places.is_empty() {
                    journal.release(places);
                }
                self.state = State::Turned(Host::new(machine, journal));
                self.resumed = true;
                self.commit(act);
                self.take(act);
            }
            other => self.state = other,
        }
    }
}

/// What the message store lets go of is freed once that is remembered; everything else is carried out elsewhere.
pub(super) fn sort<M: Replicated>(
    effect: M::Effect,
    journal: &mut ReplicatedJournal<M>,
    act: &mut dyn FnMut(M::Effect),
) {
    match M::ordered_by_store(&effect) {
        Some(store::Effect::Release { .. }) => {
            if let Ok(store::Effect::Release { places }) = M::into_store(effect) {
                journal.release(places);
            }
        }
        _ => act(effect),
    }
}

/// Has the machine take over what another one has decided; `None` if it can't be read.
fn follow<M: Replicated>(host: &mut Host<M, ReplicatedJournal<M>>, entry: &Committed) -> Option<()> {
    let index = entry.at.index;
    // What has no bytes, the group put there.
    if !entry.record.is_empty() {
        let record = M::Record::decode(&entry.record)?;
        let first = M::brings(&record).map(|(first, _)| first);
        host.apply(index, record);
        if let Some(first) = first {
            host.machine.appended(first, LogPlace(index));
        }
    }
    host.journal.followed(entry);
    Some(())
}
