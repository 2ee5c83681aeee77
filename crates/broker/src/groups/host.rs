//! The host of a machine of which several nodes have a copy: it follows, or decides.

use super::journal::ReplicatedJournal;
use super::node_groups::{News, NodeGroups};
use super::replay::Replay;
use crate::node::ends::Ends;
use crate::node::host::Host;
use cluster::{Committed, GroupId, MemberId};
use model::{Index, Journaled, Machine, QueueSettings, Timestamp};
use queue::store::LogPlace;
use queue::{Effect, QueueMachine, Request};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// A machine of which this node has a copy.
pub struct ReplicatedHost<M: QueueMachine<Ends>> {
    settings: QueueSettings,
    state: State<M>,
    /// What it was told and could not take yet.
    later: VecDeque<News>,
    leader: Option<MemberId>,
    /// How many machines there were before this one.
    generation: u64,
}

enum State<M: Machine> {
    Turned(Host<M, ReplicatedJournal>),
    /// The machine had decided what may never be, and is gone. Its successor is made of the log, up to here.
    Replayed(ReplicatedJournal),
    /// A record can't be read: going on would make another machine of it than the other members have.
    Stopped,
}

impl<M: QueueMachine<Ends>> ReplicatedHost<M> {
    /// The host of an empty machine, which follows.
    pub fn new(settings: QueueSettings, groups: Arc<NodeGroups>, group: GroupId) -> Self {
        let settings = QueueSettings {
            replicated: true,
            ..settings
        };
        let machine = Replay::<M>::empty(settings.clone());
        Self {
            settings,
            state: State::Turned(Host::new(machine, ReplicatedJournal::new(groups, group, 0))),
            later: VecDeque::new(),
            leader: None,
            generation: 0,
        }
    }

    /// Whether its machine decides.
    pub fn leads(&self) -> bool {
        matches!(&self.state, State::Turned(host) if host.journal.leads())
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
    pub fn handle(&mut self, now: Timestamp, request: Request<Ends>) -> Result<(), Request<Ends>> {
        match &mut self.state {
            State::Turned(host) if host.journal.leads() || matches!(request, Request::Store(_)) => {
                host.handle(now, request);
                Ok(())
            }
            _ => Err(request),
        }
    }

    /// Ends the turn: calls `act` for what may leave already. Afterwards the groups are to be turned, without the host's lock.
    pub fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) {
        if let State::Turned(host) = &mut self.state {
            host.commit(|effect, _| act(effect));
        }
    }

    /// Takes what the groups tell: calls `act` for what may leave now. What it can't take yet, it takes later.
    pub fn take(&mut self, news: Vec<News>, act: &mut dyn FnMut(Effect<Ends>)) {
        self.later.extend(news);
        while !matches!(self.state, State::Replayed(_))
            && let Some(news) = self.later.pop_front()
        {
            match news {
                News::Committed(entry) => self.committed(&entry, act),
                News::Leads { term } => self.lead(term),
                News::Proven { term } => self.proven(term, act),
                News::Deposed => self.step_down(),
                News::Leader(leader) => self.leader = leader,
                other => tracing::debug!(area = "groups", "{other:?} is not taken yet"),
            }
        }
    }

    fn committed(&mut self, entry: &Committed, act: &mut dyn FnMut(Effect<Ends>)) {
        let State::Turned(host) = &mut self.state else {
            return;
        };
        if host.journal.leads() {
            host.journal.committed(entry, &mut host.machine);
            host.let_go(|effect, _| act(effect));
        } else if follow(host, entry).is_some() {
            host.commit(|effect, _| act(effect));
        } else {
            let (group, index) = (host.journal.group(), entry.at.index);
            tracing::error!(
                area = "groups",
                "{group:?}: entry {index} can't be read by this version; this node's copy goes no further"
            );
            self.state = State::Stopped;
        }
    }

    fn lead(&mut self, term: u64) {
        if let State::Turned(host) = &mut self.state {
            host.machine.recovered(false);
            host.journal.lead(term);
        }
    }

    fn proven(&mut self, term: u64, act: &mut dyn FnMut(Effect<Ends>)) {
        if let State::Turned(host) = &mut self.state {
            host.journal.proven(term);
            host.let_go(|effect, _| act(effect));
        }
    }

    fn step_down(&mut self) {
        match mem::replace(&mut self.state, State::Stopped) {
            State::Turned(host) => {
                let mut journal = host.step_down();
                journal.deposed();
                self.generation += 1;
                self.state = State::Replayed(journal);
            }
            other => self.state = other,
        }
    }

    /// What makes its next machine, if it has none: it reads the log, so it is done elsewhere, without the host's lock.
    pub fn replay(&self) -> Option<Replay<M>> {
        let State::Replayed(journal) = &self.state else {
            return None;
        };
        let (group, applied) = (journal.group(), journal.applied());
        Some(Replay::new(self.settings.clone(), group, applied))
    }

    /// Here is the next machine; then it takes what it was told meanwhile.
    pub fn replayed(&mut self, machine: M, act: &mut dyn FnMut(Effect<Ends>)) {
        match mem::replace(&mut self.state, State::Stopped) {
            State::Replayed(journal) => {
                self.state = State::Turned(Host::new(machine, journal));
                self.take(Vec::new(), act);
            }
            other => self.state = other,
        }
    }
}

/// Has the machine take over what another one has decided; `None` if it can't be read.
fn follow<M: QueueMachine<Ends>>(host: &mut Host<M, ReplicatedJournal>, entry: &Committed) -> Option<()> {
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
    host.journal.followed(index);
    Some(())
}
