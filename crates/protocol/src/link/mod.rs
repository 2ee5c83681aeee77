//! What two nodes say to each other before and beneath everything else: who they are, that they know the same secret, and
//! frames. What the frames bring is others' matter: they are handed over as bytes, with a limit on their length.
//!
//! A *link* is one connection that carries one [`Lane`]. Either node dials. In reading order:
//!
//! 1. [`greeting`]: [`Greeting`], all that is decoded of a peer that has proven nothing.
//! 2. [`secret`]: [`Secret`], what the nodes of a cluster share, and how one proves to know it.
//! 3. [`refusal`]: [`Refusal`], why there is no link, or none any more, with a text for the operator.
//! 4. [`handshake`]: [`Handshake`], from the first byte to the first frame, on both sides.
//! 5. [`choice`]: [`choose`] and [`settle`], which link stays when two nodes have dialled each other.
//! 6. [`frame`]: [`put_head`] and [`FrameReader`].
//!
//! Nothing here has a socket, a clock or randomness: time and challenges are handed in. What may go wrong between two
//! steps, and what checks it, stands in decision note 44.

pub mod choice;
pub mod frame;
pub mod greeting;
pub mod handshake;
pub mod refusal;
pub mod secret;

pub use choice::{Choice, Present, choose, settle};
pub use frame::{Fault, FrameReader, Received, Small, put_head, put_small};
pub use greeting::{ClusterId, Dialled, Greeting, LinkNumber, Versions};
pub use handshake::{Handshake, Progress, Refused};
pub use refusal::Refusal;
pub use secret::Secret;

/// What a link is for. Each lane of a pair of nodes has a connection of its own, so that what is large in one delays nothing
/// in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// What groups agree by. A frame may be lost: it is said again.
    Consensus,
    /// What clients of one node want of queues and of the catalog on another one.
    Work,
    /// Contents and bodies for members that lag.
    Bulk,
}

impl Lane {
    /// All of them, by their numbers.
    pub const ALL: [Self; 3] = [Self::Consensus, Self::Work, Self::Bulk];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Consensus => "consensus",
            Self::Work => "work",
            Self::Bulk => "bulk",
        }
    }

    /// Its number in greetings.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The lane of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.number() == number)
    }
}
