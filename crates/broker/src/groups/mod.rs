//! Replicated journals on a node: the members of all its groups, and the hosts that write to them.
//!
//! # How a record travels
//!
//! A machine's host hands a turn's records to its [`ReplicatedJournal`], which puts them into the mailbox of
//! [`NodeGroups`]. Whoever brings that something (a turn's records, a peer's frame, a batch that is synced, a tick)
//! turns it, unless somebody does: then they find it in the mailbox. A turn makes one batch of the node's log and one
//! frame for each peer. What is committed goes to the inboxes of the members whose
//! it is, who are turned when the groups' lock is free again: a follower applies it, a leader lets go of what waited for it.
//!
//! # Which lock is taken under which
//!
//! 1. A host's lock. Under it: the mailbox of the groups, the inbox of the member.
//! 2. The lock of the groups. Under it: the log, the promises, the links, the mailbox of the groups, the inbox of any member.
//!
//! Under both: whether a member is closed, under which it writes to its own journal.
//!
//! None of the two is ever waited for, and none is taken under the other: whoever finds it taken leaves what it brings
//! in a box, and the one that has the lock looks into the box after letting go. Boxes are locked for as long as
//! something is put in or taken out.
//!
//! # What leaves, and when
//!
//! Nothing that a leader's machine has decided leaves before everything that the turn can have seen is committed, and a
//! majority has answered this leader in its term what it was sent after the turn began. A turn with records has both
//! when the last one of them is committed. One without is covered by the next one with records that comes through, or
//! by a proof, of which a group has one under way. Committed is what
//! the group hands out: that is synced here as well, so there is no sync to wait for beside it.
//!
//! # What a member remembers
//!
//! A member has a journal of its own beside its group's entries: checkpoints, where its message store has moved bytes, and how
//! far it has come. Its store reads and writes segments on the pager's threads, as that of a queue of this node does.
//! A queue of this node becomes a group's, and this node's again, by `handover` and `back`; a group whose majority is lost goes
//! on as another one by `refounding`. To read: `journal` and `host`, then `member_record`, `member_journal`, `replay`, `start`,
//! `starting`.

pub mod alone;
mod back;
pub mod catalog;
pub mod handle;
pub mod handover;
mod host;
mod hosted;
mod journal;
mod member;
mod member_journal;
mod member_record;
pub mod membership;
mod node_groups;
mod refounding;
mod rejected_frames;
mod replay;
mod replicated;
mod standing;
mod start;
mod starting;
mod state;
pub mod transfer;

pub use crate::node::ends::{Ends, Outlet, Receipt, Reply};
pub use crate::node::paging::Nearby;
pub use cluster::NodeId;
pub use host::ReplicatedHost;
pub use hosted::{Act, Hosted, Turns};
pub use journal::ReplicatedJournal;
pub use member::{Links, Member, News, Observer};
pub use member_journal::{MemberJournal, member_journal};
pub use member_record::{Head, Remembered};
pub use node_groups::NodeGroups;
pub use refounding::{LastCopy, last_of};
pub use rejected_frames::RejectedFrames;
pub use replay::{Replay, block_at};
pub use replicated::Replicated;
pub use start::{Found, Identity, NotOpened};
pub use starting::{Showing, Starting, read_together};
pub use transfer::{CopyPhase, CopyProgress};

#[cfg(test)]
mod tests;
