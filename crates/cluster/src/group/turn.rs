//! What comes out of a group in a turn, and what waits for the node's log.

use super::{Group, Offer};
use crate::frame::Item;
use crate::identity::{GroupId, MemberId, NodeId};
use crate::membership::{Membership, decode_change, to_library};
use crate::record::{Mark, Record, bytes_of, entry_record};
use bytes::Bytes;
use raft::Ready;
use raft::eraftpb::{Entry, EntryType, Message, MessageType};
use storage::HardState;

/// What a turn brings, over all groups of the node.
#[derive(Debug, Default)]
pub struct Out {
    /// What is to be appended to the node's log, in this order, as one batch.
    pub append: Vec<Record>,
    /// What is committed, in the order of each group.
    pub committed: Vec<Committed>,
    /// What else the host has to know.
    pub events: Vec<Event>,
    pub(crate) send: Vec<(NodeId, Item)>,
}

/// A record that a majority has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Committed {
    pub group: GroupId,
    pub at: Mark,
    /// Empty for what isn't a record: a leader's first entry, a change of members.
    pub record: Bytes,
}

/// What the host of a group has to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Who leads has changed, as far as the member knows.
    Leader {
        group: GroupId,
        term: u64,
        leader: Option<MemberId>,
    },
    /// These are the members from this entry on.
    Members {
        group: GroupId,
        index: u64,
        members: Membership,
    },
    /// The member was removed: it campaigns no more, unless it is added again. Once the host has thrown its log away it
    /// may come back as another member only.
    Removed(GroupId),
    /// A peer says that the group was deleted. Whether it was, the host has to know elsewhere; until it is closed here, it rests.
    Gone { group: GroupId, by: NodeId },
    /// A peer speaks of a group that isn't open here. If it was deleted, the host says so by `delete`. If it speaks to a member
    /// of this node, its group has that one by now, and no earlier one of this node.
    Unknown {
        group: GroupId,
        node: NodeId,
        to: Option<MemberId>,
    },
    /// The member lives no more: its node lost its disk and is another member. It has to be removed.
    Lost { group: GroupId, member: MemberId },
    /// Entries from `from` on, up to `to` and without it, are to be read from the node's log and brought to `fetched`.
    Read { group: GroupId, from: u64, to: u64 },
    /// A member needs contents, and can't use those of the last checkpoint: another one is to be taken.
    Checkpoint(GroupId),
    /// The contents of a leader's checkpoint are to be fetched; once they are durable, as a checkpoint of these members
    /// with the log's beginning, `installed` is called.
    Fetch {
        group: GroupId,
        from: MemberId,
        at: Mark,
        members: Membership,
    },
    /// Records that were proposed and never became entries, because the leadership had gone.
    Returned { group: GroupId, records: Vec<Bytes> },
    /// Everything up to this entry is committed, and at the time of asking no other leader was.
    Proven {
        group: GroupId,
        question: u64,
        index: u64,
    },
    /// The proof did not come: no majority answered in time, or another leads.
    Unproven { group: GroupId, question: u64 },
    /// Nothing was heard of the peer for too long.
    Suspected(NodeId),
    /// The peer is heard of, anew or again.
    Heard(NodeId),
}

impl Event {
    /// The group that it is about, if it is about one.
    pub fn group(&self) -> Option<GroupId> {
        match self {
            Self::Leader { group, .. }
            | Self::Members { group, .. }
            | Self::Removed(group)
            | Self::Gone { group, .. }
            | Self::Unknown { group, .. }
            | Self::Lost { group, .. }
            | Self::Read { group, .. }
            | Self::Checkpoint(group)
            | Self::Fetch { group, .. }
            | Self::Returned { group, .. }
            | Self::Proven { group, .. }
            | Self::Unproven { group, .. } => Some(*group),
            Self::Suspected(_) | Self::Heard(_) => None,
        }
    }
}

/// What waits until a turn is synced.
pub(super) struct Unsynced {
    turn: u64,
    ready: u64,
    /// The term that is synced then.
    term: u64,
    pub(super) entries: bool,
    /// The index of a snapshot that was restored.
    snapshot: u64,
    messages: Vec<Message>,
}

impl Group {
    /// Collects everything that is due. `turn` is the number under which the node says later that it is synced. Of what is
    /// applied up to `kept` bytes stay in memory.
    pub fn collect(&mut self, turn: u64, kept: usize, out: &mut Out) {
        self.propose_collected();
        while self.raw.has_ready() {
            let ready = self.raw.ready();
            self.collect_ready(turn, ready, out);
            // Membership may have changed, and with it what was to be proposed.
            self.propose_collected();
        }
        self.report(out);
        for wanted in self.raw.mut_store().take_wanted() {
            let (group, from, to) = (self.id, wanted.from, wanted.to);
            // Several members may want the same: it is read once, and who asks later asks again.
            if self.reads.iter().all(|read| read.from != from) {
                out.events.push(Event::Read { group, from, to });
                self.reads.push(wanted);
            }
        }
        if self.raw.store().take_outdated() {
            out.events.push(Event::Checkpoint(self.id));
        }
        self.release(kept);
    }

    fn collect_ready(&mut self, turn: u64, mut ready: Ready, out: &mut Out) {
        let number = ready.number();
        let snapshot = self.take_snapshot(&ready, out);
        let (entries, before) = (ready.take_entries(), self.raw.store().last());
        let promised = self.promise(entries.first(), out);
        for entry in &entries {
            self.promise_members(entry.index, out);
            out.append.push(entry_record(self.id, entry));
            self.raw.mut_store().append(entry);
        }
        // A leader's messages go before its own sync, except in a term that isn't synced itself: a lone voter that loses it leads
        // once more in the same term, with other entries, and its learners would keep the first ones.
        let mut held = ready.take_persisted_messages();
        let messages = ready.take_messages();
        if self.term() == self.synced_term {
            self.send(messages, out);
        } else {
            held.extend(messages);
        }
        let committed = ready.take_committed_entries();
        self.raw.advance_append_async(ready);
        #[cfg(any(test, feature = "mutants"))]
        if crate::mutant::Mutant::UnsyncedLeader.is_on() && self.leads() {
            self.raw.on_persist_ready(number);
        }
        if !entries.is_empty() || promised || !self.unsynced.is_empty() {
            let entries = !entries.is_empty();
            // Without something of its own to write, it waits for the last that has.
            let turn = match entries || promised {
                true => turn,
                false => self.unsynced.back().map_or(turn, |last| last.turn),
            };
            let (ready, term) = (number, self.term());
            self.unsynced.push_back(Unsynced {
                turn,
                ready,
                term,
                entries,
                snapshot,
                messages: held,
            });
        } else {
            self.persisted(number, snapshot);
            self.send(held, out);
        }
        self.hand_out(committed, before, out);
    }

    /// Up to and including this turn the node's log is synced.
    pub fn synced(&mut self, turn: u64, out: &mut Out) {
        while self.unsynced.front().is_some_and(|waiting| waiting.turn <= turn) {
            let Some(waiting) = self.unsynced.pop_front() else {
                break;
            };
            self.synced_term = self.synced_term.max(waiting.term);
            self.persisted(waiting.ready, waiting.snapshot);
            self.send(waiting.messages, out);
        }
    }

    fn persisted(&mut self, ready: u64, snapshot: u64) {
        self.raw.on_persist_ready(ready);
        // The library reads from what is applied on when it asks for votes, and before the snapshot there is nothing to read.
        if snapshot > self.applied() {
            self.raw.advance_apply_to(snapshot);
        }
    }

    /// Writes term and vote where they changed, before the entries that follow. The commit index goes with what is
    /// written anyway: it is known again from any leader.
    fn promise(&mut self, first: Option<&Entry>, out: &mut Out) -> bool {
        let raft = &self.raw.raft;
        let changed = (raft.term, raft.vote) != (self.written.term, self.written.vote);
        if changed {
            // What isn't in the log yet isn't said to be committed: after a crash it may not be there.
            let before = first.map_or(u64::MAX, |entry| entry.index - 1);
            self.write_promise(self.committed().min(before), out);
        }
        changed
    }

    /// Whoever has an entry behind a change of members in its log knows that the change is committed, after a crash, too.
    /// With a second change it would otherwise ask for votes under the members before both, whose majority needn't know
    /// anything of a leader under the members after both. And without it, it would need members that have left: see `farewell`.
    fn promise_members(&mut self, index: u64, out: &mut Out) {
        let commit = self.committed().min(index - 1);
        #[cfg(any(test, feature = "mutants"))]
        if crate::mutant::Mutant::ChangeBeforeCommit.is_on() {
            return;
        }
        if self.raw.store().changes_within(self.written.commit, commit) {
            self.write_promise(commit, out);
        }
    }

    pub(super) fn write_promise(&mut self, commit: u64, out: &mut Out) {
        let raft = &self.raw.raft;
        self.written = HardState {
            term: raft.term,
            vote: raft.vote,
            commit: commit.max(self.written.commit),
        };
        let (group, promise) = (self.id, self.written);
        out.append.push(Record::Promise { group, promise });
    }

    /// The index of the snapshot that was restored, 0 if there was none.
    fn take_snapshot(&mut self, ready: &Ready, out: &mut Out) -> u64 {
        let metadata = ready.snapshot().get_metadata();
        if metadata.index == 0 {
            return 0;
        }
        let members = Membership::from_state(metadata.get_conf_state());
        let (index, term) = (metadata.index, metadata.term);
        let group = self.id;
        self.raw
            .mut_store()
            .restore(Mark { index, term }, members.clone());
        // A snapshot without this member is refused; one of before it was removed does not undo that.
        self.removed &= index < self.removed_at;
        out.events.push(Event::Members {
            group,
            index,
            members,
        });
        index
    }

    fn hand_out(&mut self, committed: Vec<Entry>, before: u64, out: &mut Out) {
        let Some(last) = committed.last().map(|e| e.index) else {
            return;
        };
        for mut entry in committed {
            let (index, term) = (entry.index, entry.term);
            let mut record = Bytes::new();
            match entry.get_entry_type() {
                EntryType::EntryNormal => record = entry.take_data(),
                _ => self.apply_change(Mark { index, term }, bytes_of(&entry), before, out),
            }
            while self.uncommitted.front().is_some_and(|(of, _)| *of <= index) {
                let (_, size) = self.uncommitted.pop_front().unwrap_or_default();
                self.uncommitted_bytes = self.uncommitted_bytes.saturating_sub(size);
            }
            let group = self.id;
            let at = Mark { index, term };
            out.committed.push(Committed { group, at, record });
        }
        self.raw.advance_apply_to(last);
        self.say_farewell(out);
    }

    /// `before` is the last entry that was here before the turn.
    fn apply_change(&mut self, at: Mark, bytes: &Bytes, before: u64, out: &mut Out) {
        let index = at.index;
        // Each member comes to the same answer; one that is refused was never a change.
        let Ok(steps) = decode_change(bytes) else { return };
        let Ok(state) = self.raw.apply_conf_change(&to_library(&steps)) else {
            return;
        };
        let (group, members) = (self.id, Membership::from_state(&state));
        self.departs(&members);
        // What came with the word that the change is committed was sent by somebody who knew that.
        self.sealed_behind = if self.leads() { self.last() } else { before };
        self.raw.mut_store().joined(index, members.clone());
        if self.leads() && !members.voters.contains(&self.me) && !members.outgoing.contains(&self.me) {
            // Whoever votes no more leads no more: the library would go on, and stop the process at its next own entry.
            // The others are told first that the change is committed.
            self.raw.raft.bcast_append();
            self.say_closed(out);
            let term = self.term();
            self.raw.raft.become_follower(term, 0);
        }
        // Who was removed may be added again later. What was committed before says nothing of that, though it may be heard of
        // only now, as by a node that has just started.
        if index > self.removed_at {
            self.removed &= members.members().all(|member| member != self.me);
        }
        out.events.push(Event::Members {
            group,
            index,
            members,
        });
    }

    /// Tells what is different from what was told last.
    pub(super) fn report(&mut self, out: &mut Out) {
        let (group, term, leader) = (self.id, self.term(), self.raw.raft.leader_id);
        if self.reported != (term, leader) {
            self.reported = (term, leader);
            let leader = MemberId::from_number(leader);
            if leader.is_some() {
                (self.campaign_in, self.attempts, self.begins) = (None, 0, false);
            }
            if !self.leads() {
                self.lost = Vec::new();
            }
            out.events.push(Event::Leader { group, term, leader });
        }
        if !self.leads() && (!self.proposed.is_empty() || !self.uncommitted.is_empty()) {
            let records = self.proposed.drain(..).map(|mut e| e.take_data());
            // What is empty is the group's own.
            let records: Vec<_> = records.filter(|record| !record.is_empty()).collect();
            self.uncommitted = Default::default();
            self.uncommitted_bytes = 0;
            if !records.is_empty() {
                out.events.push(Event::Returned { group, records });
            }
        }
        // What came as entries meanwhile is not waited for: nobody would say that it is there.
        let of_no_use = |offer: &Message| offer.term < term || self.has(offer);
        if self.installing.as_deref().is_some_and(of_no_use) {
            self.installing = None;
        }
        let wanted = self.wanted_snapshot();
        let at = wanted.as_ref().map(|(_, at, _)| *at);
        if let Some((from, at, members)) = wanted
            && self.fetching != Some(at)
        {
            self.snapshots += 1;
            out.events.push(Event::Fetch {
                group,
                from,
                at,
                members,
            });
        }
        self.fetching = at;
    }

    fn send(&mut self, messages: Vec<Message>, out: &mut Out) {
        for message in messages {
            let Some(to) = MemberId::from_number(message.to) else {
                continue;
            };
            if message.get_msg_type() == MessageType::MsgSnapshot {
                self.offered.retain(|offer| offer.message.to != message.to);
                self.offered.push(Offer {
                    message: message.clone(),
                    age: 0,
                });
            }
            out.send.push((to.node, Item::Raft(self.id, message)));
        }
    }

    /// Gives up bodies that nobody is about to need.
    fn release(&mut self, kept: usize) {
        let log = &self.raw.raft.raft_log;
        let done = log.applied.min(log.persisted);
        let all = match self.leads() {
            true => {
                let members = self.raw.raft.prs().iter();
                members
                    .map(|(_, progress)| progress.matched)
                    .min()
                    .unwrap_or(done)
            }
            false => done,
        };
        let store = self.raw.mut_store();
        store.release(done.min(all), 0);
        store.release(done, kept);
    }
}
