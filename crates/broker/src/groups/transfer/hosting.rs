//! What a host does about transfers. Its machine is given up once the contents that replace it are here: until all their bodies
//! are, too, the member has none, and waits.

use super::answer::{Standing, Task};
use super::fetch::Brought;
use super::frame::{Entry, Said};
use super::next::{Contents, Next};
use super::transfers::{Order, Purpose};
use crate::groups::host::{ReplicatedHost, State};
use crate::groups::member::News;
use crate::groups::replicated::Replicated;
use crate::node::host::Host;
use bytes::Bytes;
use cluster::{Mark, Membership, NodeId};
use model::{Ranges, Timestamp};
use queue::store::{self, Place, Stored};
use std::mem;
use storage::Position;

impl<M: Replicated> ReplicatedHost<M> {
    /// Takes news that are about transfers; hands back those that aren't.
    pub(in crate::groups) fn take_transfer(&mut self, news: News) -> Option<News> {
        match news {
            // It is there already, by contents that were later than those that were offered. Once they are written down
            // the group is told.
            News::Fetch { at, .. } if self.applied().is_some_and(|applied| applied >= at.index) => {
                return Some(News::Checkpoint);
            }
            News::Fetch { from, at, members } => self.want(from.node, at, &members),
            News::Lacks(seqs) => self.lack(&seqs),
            News::Bulk(bulk) => {
                let here = self.standing();
                let (brought, task) = self.transfers.hear(&bulk, here);
                self.bring(brought);
                self.task(task);
            }
            News::Tick => self.transfers.tick(),
            News::Removed => {
                tracing::info!(
                    area = "groups",
                    "{:?}: this node is no member any more",
                    self.group()
                );
                (self.transfers.wanted, self.transfers.lacking) = (None, Ranges::new());
                self.transfers.end();
                self.abandon();
            }
            other => return Some(other),
        }
        None
    }

    /// What is to be read, stored and said now.
    pub(in crate::groups) fn take_orders(&mut self) -> Vec<Order> {
        self.go_on();
        self.transfers.heed_ticks();
        mem::take(&mut self.transfers.orders)
    }

    fn standing(&self) -> Standing {
        let checkpoint = self.checkpoint_place().map_or(0, |(_, at)| at.index);
        Standing {
            applied: self.applied(),
            checkpoint,
        }
    }

    /// Where the last checkpoint stands in the log, if there is one.
    pub(in crate::groups) fn checkpoint_position(&self) -> Option<Position> {
        self.checkpoint_place().map(|(position, _)| position)
    }

    fn checkpoint_place(&self) -> Option<(Position, Mark)> {
        let journal = match &self.state {
            State::Turned(host) => &host.journal,
            State::Replayed(journal, _) => journal,
            State::Fetching(next) => &next.journal,
            State::Stopped => return None,
        };
        let (position, head) = journal.kept().checkpoint.as_ref()?;
        Some((*position, head.at))
    }

    /// Everybody else, this one first.
    fn others(&self, members: &Membership, first: Option<NodeId>) -> Vec<NodeId> {
        let me = self.groups().me().0;
        let mut nodes: Vec<NodeId> = members.members().map(|member| member.node).collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.retain(|node| *node != me);
        nodes.sort_by_key(|node| Some(*node) != first);
        nodes
    }

    fn want(&mut self, from: NodeId, at: Mark, members: &Membership) {
        let nodes = self.others(members, Some(from));
        let before = self.transfers.wanted.replace((at.index, nodes));
        let source = before.and_then(|(_, nodes)| nodes.first().copied());
        if self.transfers.purpose == Purpose::Contents && source != Some(from) {
            // What another leader had offered, perhaps nobody has any more: others may only have what is older.
            self.transfers.end();
        }
    }

    fn lack(&mut self, seqs: &Ranges) {
        let here = seqs.without(&self.transfers.nowhere);
        if self.leads() {
            let nowhere = seqs.without(&here);
            self.give_up(nowhere);
        }
        if here.without(&self.transfers.lacking).is_empty() {
            return;
        }
        self.transfers.lacking.extend(&here);
        if self.leads() {
            // Somebody else may read them now.
            self.groups().lead_elsewhere(self.group());
        }
    }

    /// Nobody can read these: only who decides may give them up.
    fn give_up(&mut self, seqs: Ranges) {
        let (group, now) = (self.group(), self.groups().node().now());
        if let State::Turned(host) = &mut self.state
            && !seqs.is_empty()
        {
            tracing::error!(
                area = "groups",
                "{group:?}: {} messages can be read on no node, and are given up",
                seqs.count()
            );
            host.handle(now, M::give_up(seqs));
        }
    }

    fn task(&mut self, task: Task) {
        match task {
            Task::Nothing => {}
            Task::Say(to, said) => self.transfers.orders.push(Order::Say(to, said)),
            Task::ReadContents(to) => match self.checkpoint_place() {
                Some((position, _)) => self.transfers.orders.push(Order::ReadContents(to, position)),
                None => self.read_contents(to, None),
            },
            Task::ReadBodies(to, seqs) => match self.machine() {
                Some(machine) => {
                    let found = machine.find(&seqs, super::frame::PIECE_BYTES as u64);
                    self.transfers.orders.push(Order::ReadBodies(to, found));
                }
                None => self.read_bodies(to, Vec::new(), Ranges::new(), Ranges::new()),
            },
        }
    }

    /// A checkpoint was read for a peer.
    pub(in crate::groups) fn read_contents(&mut self, to: NodeId, read: Option<(Mark, Bytes)>) {
        let answer = self.transfers.answers.contents(to, read);
        self.say(to, answer);
    }

    /// Bodies were read for a peer.
    pub(in crate::groups) fn read_bodies(
        &mut self,
        to: NodeId,
        entries: Vec<Entry>,
        gone: Ranges,
        lost: Ranges,
    ) {
        let answer = self.transfers.answers.bodies(to, entries, gone, lost);
        self.say(to, answer);
    }

    fn say(&mut self, to: NodeId, said: Option<Said>) {
        self.transfers
            .orders
            .extend(said.map(|said| Order::Say(to, said)));
    }

    fn bring(&mut self, brought: Brought) {
        match brought {
            Brought::Nothing => {}
            Brought::Bodies(entries) => self.transfers.arrived.extend(entries),
            Brought::Contents { at, bytes } => self.begin_next(at, &bytes),
        }
    }

    /// Contents are here: their machine takes over what this one has of their bodies.
    fn begin_next(&mut self, at: Mark, said: &[u8]) {
        let newer = self.applied().is_some_and(|applied| applied < at.index);
        if !newer || self.leads() {
            return self.transfers.end();
        }
        let Some(contents) = Contents::<M>::read(self.settings.clone(), self.memory, at, said) else {
            let group = self.group();
            tracing::error!(
                area = "groups",
                "{group:?}: contents that were fetched can't be read"
            );
            return self.transfers.begin_anew();
        };
        match mem::replace(&mut self.state, State::Stopped) {
            State::Turned(host) => {
                // Who follows has promised nothing that anybody waits for.
                let (machine, journal, places) = part(host, &mut |_| {});
                self.generation += 1;
                let next = Next::new(contents, machine, places, journal);
                let (group, missing) = (self.group(), next.missing().count());
                tracing::info!(
                    area = "groups",
                    "{group:?}: contents at {} are here; the bodies of {missing} messages are fetched",
                    at.index
                );
                self.transfers.purpose = Purpose::Copies;
                self.state = State::Fetching(Box::new(next));
            }
            other => self.state = other,
        }
    }

    /// What a store or a copy has become; of another machine's it is handed back: it is not needed.
    pub(in crate::groups) fn stored(&mut self, pieces: Vec<Stored>, failed: &Ranges) -> Vec<Stored> {
        self.transfers.storing = self.transfers.storing.saturating_sub(1);
        self.transfers.fetch.want_again(failed);
        if pieces.is_empty() && !failed.is_empty() {
            self.transfers.pause();
        }
        match (&mut self.state, self.transfers.purpose) {
            (_, _) if pieces.is_empty() => {}
            (State::Fetching(next), _) => next.stored(pieces),
            (State::Turned(host), Purpose::Lacking) => {
                self.transfers.lacking = self.transfers.lacking.without(&Stored::seqs(&pieces));
                host.handle(Timestamp(0), M::ask_store(store::Request::Found { pieces }));
            }
            _ => return pieces,
        }
        Vec::new()
    }

    /// Begins, goes on with, or ends what is fetched.
    fn go_on(&mut self) {
        match &mut self.state {
            State::Turned(_) => self.begin(),
            // First what is here anyway, then what others have.
            State::Fetching(next)
                if self.transfers.purpose == Purpose::Copies && self.transfers.storing == 0 =>
            {
                match next.copy() {
                    Some(pieces) => {
                        self.transfers.storing += 1;
                        self.transfers.orders.push(Order::Copy(pieces));
                    }
                    None => self.fetch_bodies(),
                }
            }
            State::Fetching(_) | State::Replayed(..) | State::Stopped => {}
        }
        self.transfers.store();
        self.transfers.ask();
        if self.transfers.is_stored()
            && let Some(ended) = self.transfers.fetch.ended()
        {
            match self.transfers.purpose {
                Purpose::Lacking => self.end_lacking(&ended.missing, ended.sure),
                Purpose::Bodies => self.install(ended.missing.count()),
                Purpose::Nothing | Purpose::Contents | Purpose::Copies => {}
            }
        }
    }

    fn begin(&mut self) {
        let State::Turned(host) = &mut self.state else {
            return;
        };
        let (applied, leads) = (host.journal.applied(), host.journal.leads());
        if let Some((least, nodes)) = &self.transfers.wanted {
            if applied >= *least || leads {
                host.journal.drop_spares();
                self.transfers.wanted = None;
                if self.transfers.purpose == Purpose::Contents {
                    self.transfers.end();
                }
            } else if self.transfers.purpose == Purpose::Nothing {
                let (least, nodes) = (*least, nodes.clone());
                if self.transfers.may_begin() {
                    self.transfers.purpose = Purpose::Contents;
                    self.transfers.fetch.want_contents(nodes, least);
                }
            }
            return;
        }
        if !self.transfers.lacking.is_empty()
            && self.transfers.purpose == Purpose::Nothing
            && self.transfers.may_begin()
        {
            let members = host.journal.members();
            let nodes = self.others(&members, None);
            let lacking = self.transfers.lacking.clone();
            self.transfers.purpose = Purpose::Lacking;
            self.transfers.fetch.want_bodies(nodes, applied, &lacking);
        }
    }

    fn fetch_bodies(&mut self) {
        let State::Fetching(next) = &self.state else {
            return;
        };
        let (at, missing) = (next.at().index, next.missing());
        let nodes = self.transfers.wanted.as_ref().map(|(_, nodes)| nodes.clone());
        self.transfers.purpose = Purpose::Bodies;
        self.transfers
            .fetch
            .want_bodies(nodes.unwrap_or_default(), at, &missing);
    }

    fn install(&mut self, missing: u64) {
        match mem::replace(&mut self.state, State::Stopped) {
            State::Fetching(next) => {
                let (group, at) = (self.group(), next.at());
                if missing > 0 {
                    tracing::warn!(
                        area = "groups",
                        "{group:?}: the bodies of {missing} messages were nowhere to be had; they are asked for when they are needed"
                    );
                }
                let (machine, journal) = next.install();
                self.state = State::Turned(Host::new(machine, journal));
                self.resumed = true;
                tracing::info!(
                    area = "groups",
                    "{group:?}: contents at {} are installed",
                    at.index
                );
                self.transfers.end();
                self.begin();
            }
            other => self.state = other,
        }
    }

    /// The log goes on beyond the contents, or the member does: they are not needed, and a machine is made of the log.
    pub(in crate::groups) fn abandon(&mut self) {
        match mem::replace(&mut self.state, State::Stopped) {
            State::Fetching(next) => {
                let (journal, places) = next.abandon();
                self.generation += 1;
                self.state = State::Replayed(journal, places);
                self.transfers.end();
            }
            other => self.state = other,
        }
    }

    /// What was lacking has come, or could not be had. It is given up only if each of the others said that it can't read it
    /// either, and then by whoever decides and wants it.
    fn end_lacking(&mut self, missing: &Ranges, sure: bool) {
        // What was settled elsewhere meanwhile is settled here soon; whatever else is wanted is asked for again then.
        self.transfers.lacking = if sure { Ranges::new() } else { missing.clone() };
        if missing.is_empty() {
            return self.transfers.end();
        }
        if sure {
            self.transfers.nowhere.extend(missing);
            self.transfers.end();
            if self.leads() {
                self.give_up(missing.clone());
            }
            return;
        }
        tracing::warn!(
            area = "groups",
            "{:?}: {} messages can't be read here, and nobody could send them; they are asked for again",
            self.group(),
            missing.count()
        );
        self.transfers.rest();
    }
}

/// What a host is made of, and the places in segments that its machine had or was about to give back. Calls `act` for what is
/// done in the place of what was held.
pub(in crate::groups) fn part<M: Replicated>(
    host: Host<M, crate::groups::journal::ReplicatedJournal<M>>,
    act: &mut dyn FnMut(M::Effect),
) -> (M, crate::groups::journal::ReplicatedJournal<M>, Vec<Place>) {
    let (machine, mut journal, held) = host.step_down();
    journal.deposed();
    let mut places = machine.places();
    for effect in held {
        match M::into_store(effect) {
            Ok(store::Effect::Release { places: released }) => places.extend(released),
            Ok(_) => {}
            Err(effect) => M::given_up(effect).into_iter().for_each(&mut *act),
        }
    }
    (machine, journal, places)
}
