//! Who uses links: whom frames are handed to, and what becomes of those that are sent.

use super::question::Reply;
use broker::groups::NodeId;
use bytes::Bytes;
use protocol::link::Lane;

/// Takes what comes over links.
///
/// What it is told of one lane of one peer comes in order: that the link is up, frames, that it is down. What a link that was
/// lost or replaced had still under way is never told. Called on the threads of links and without a lock that sending takes, so
/// it may send; it must not wait for anything.
pub trait Receiver: Send + Sync {
    /// The lane works from now on. `incarnation` is the peer's.
    fn up(&self, peer: NodeId, lane: Lane, incarnation: u64);

    /// A frame, as long as the lane allows. Nothing of it was decoded.
    fn frame(&self, from: NodeId, lane: Lane, frame: Bytes);

    /// All frames were handed over that have come together: what is done once for all of them may be done now.
    fn settled(&self, _from: NodeId, _lane: Lane) {}

    /// The lane's link is lost, and with it everything that was sent and has not arrived. `replaced` says that [`Receiver::up`]
    /// comes next: the peer lives.
    fn down(&self, peer: NodeId, lane: Lane, replaced: bool);

    /// A node that has proven to know the secret, and has no link, asks something. Nothing of it was decoded. Without a reply
    /// it is refused as a stranger; so it is where nobody answers such questions.
    fn asked(&self, _name: &str, _question: Bytes, _reply: Reply) {}

    /// A lane that had refused a frame with [`Sent::Full`] takes frames again.
    fn room(&self, peer: NodeId, lane: Lane);
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// It is on its way, behind those before it; it arrives unless the link is lost.
    Queued,
    /// It was dropped, since too many bytes wait already: [`Receiver::room`] says when there is room again.
    Full,
    /// It was dropped, since there is no link.
    NoLink,
    /// It was dropped, since it is longer than any frame of the lane may be.
    TooLong,
}
