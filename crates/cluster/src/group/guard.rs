//! What the library would stop the process for, or believe, is refused before it sees it.

use super::Group;
use crate::frame::NUMBER_LIMIT;
use crate::identity::MemberId;
use crate::membership::Membership;
use raft::eraftpb::{Message, MessageType};
use raft::{StateRole, Storage};

/// The highest term and index that a peer is believed. A member counts on from there, and what it then says and writes must
/// stay within what frames and logs take, or one lie would silence its node for all groups, and keep it from starting.
pub(super) const BELIEVED: u64 = NUMBER_LIMIT / 2;

/// How a message of a peer can't be true.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// It is not from a member on the node that sent it, or not for this one.
    Member,
    /// A term or an index that no group reaches.
    Number,
    /// Entries behind a place that isn't said with its term, or of a later term than the message.
    Entries,
    /// The leader believes that this member has what it hasn't: the one or the other lost its tail.
    LostTail { last: u64, claimed: u64 },
    /// An answer about entries that were never sent.
    Answer,
    /// A snapshot of nothing, or without this member.
    Snapshot,
}

impl Group {
    pub(super) fn check(&self, message: &Message) -> Result<(), Lie> {
        let known = MemberId::from_number(message.from).is_some();
        if !known || message.to != self.me.number() || message.from == message.to || message.term == 0 {
            return Err(Lie::Member);
        }
        let snapshot = message.get_snapshot().get_metadata().index;
        let last = message.entries.last().map_or(message.index, |entry| entry.index);
        if message.term.max(last).max(snapshot) > BELIEVED {
            return Err(Lie::Number);
        }
        match message.get_msg_type() {
            MessageType::MsgAppend => {
                // Behind index 0 there is nothing of a term, and behind any other there is; terms only grow along the entries.
                let last = message.entries.last().map_or(message.log_term, |e| e.term);
                let bare = (message.index == 0) != (message.log_term == 0);
                let from_zero = message.entries.first().is_some_and(|e| e.term == 0);
                if bare || from_zero || last > message.term {
                    return Err(Lie::Entries);
                }
            }
            MessageType::MsgHeartbeat => {
                let last = self.last();
                // A message of an earlier term isn't believed anyway.
                if message.term >= self.term() && message.commit > last {
                    let claimed = message.commit;
                    return Err(Lie::LostTail { last, claimed });
                }
            }
            MessageType::MsgAppendResponse => {
                let beyond = message.index > self.last() || message.reject_hint > message.index;
                if self.raw.raft.state == StateRole::Leader && message.term == self.term() && beyond {
                    return Err(Lie::Answer);
                }
            }
            MessageType::MsgSnapshot => self.check_snapshot(message)?,
            _ => {}
        }
        Ok(())
    }

    fn check_snapshot(&self, message: &Message) -> Result<(), Lie> {
        let metadata = message.get_snapshot().get_metadata();
        let membership = Membership::from_state(metadata.get_conf_state());
        let mine = membership.members().any(|member| member == self.me);
        let nothing = metadata.index == 0 || metadata.term == 0 || metadata.term > message.term;
        if nothing || !mine {
            return Err(Lie::Snapshot);
        }
        // What is committed here can't be of another term there.
        let index = metadata.index;
        let other = self
            .raw
            .store()
            .term(index)
            .is_ok_and(|term| term != metadata.term);
        if index <= self.committed() && other {
            return Err(Lie::Snapshot);
        }
        Ok(())
    }
}
