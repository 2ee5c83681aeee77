//! Why two nodes have no link, or have it no longer.

use std::fmt;

/// A reason. On the wire it is a number; each node words it for its own log, so that no text of a peer gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Refusal {
    /// What came is not the protocol of links.
    Rubbish = 1,
    /// A greeting or a frame is longer than it may be.
    TooLong = 2,
    /// Who is told speaks only versions that are too old.
    TooOld = 3,
    /// Who is told speaks only versions that are too new.
    TooNew = 4,
    /// Who is told did not prove to know the secret.
    Secret = 5,
    /// It is of another cluster.
    Cluster = 6,
    /// It has the name of the node that it speaks to.
    SameName = 7,
    /// It is not the node that was dialled.
    OtherName = 8,
    /// Its clock shows another hour.
    Clock = 9,
    /// It is no member of this cluster.
    Stranger = 10,
    /// It is of an earlier start of the node, or an earlier link than there is.
    Stale = 11,
    /// The link that the other node has dialled is used.
    Crossed = 12,
    /// The handshake took too long.
    Slow = 13,
    /// The node stops.
    Stopping = 14,
    /// A frame was damaged on its way.
    Damaged = 15,
    /// Nothing was heard for too long.
    Silent = 16,
    /// A later link takes its place.
    Replaced = 17,
    /// Too many connections that have proven nothing.
    Crowded = 18,
    /// The connection broke.
    Broken = 19,
    /// Its certificate is that of another host.
    Certificate = 20,
}

impl Refusal {
    const ALL: [Self; 20] = [
        Self::Rubbish,
        Self::TooLong,
        Self::TooOld,
        Self::TooNew,
        Self::Secret,
        Self::Cluster,
        Self::SameName,
        Self::OtherName,
        Self::Clock,
        Self::Stranger,
        Self::Stale,
        Self::Crossed,
        Self::Slow,
        Self::Stopping,
        Self::Damaged,
        Self::Silent,
        Self::Replaced,
        Self::Crowded,
        Self::Broken,
        Self::Certificate,
    ];

    /// Its number on the wire.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The one of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|refusal| refusal.number() == number)
    }

    /// Whether an operator has to do something before there can be a link.
    pub const fn needs_operator(self) -> bool {
        matches!(
            self,
            Self::Rubbish
                | Self::TooLong
                | Self::TooOld
                | Self::TooNew
                | Self::Secret
                | Self::Cluster
                | Self::SameName
                | Self::OtherName
                | Self::Clock
                | Self::Stranger
                | Self::Certificate
        )
    }

    /// Whether it is a matter of two nodes that dial each other, and no trouble.
    pub const fn is_usual(self) -> bool {
        matches!(self, Self::Crossed | Self::Stale | Self::Replaced)
    }
}

impl fmt::Display for Refusal {
    /// Holds on both ends: who refuses and who is refused write the same into their logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rubbish => "what was said is not the protocol of links between nodes",
            Self::TooLong => "something was longer than it may be",
            Self::TooOld | Self::TooNew => {
                "the nodes share no version of the protocol: upgrade the older one"
            }
            Self::Secret => {
                "the nodes do not have the same secret: cluster.secret must be equal on both, or on neither if certificates are looked at"
            }
            Self::Cluster => {
                "the nodes belong to different clusters: one has to be reset before it can join the other's"
            }
            Self::SameName => "both nodes have the same name: each needs a nodename of its own",
            Self::OtherName => "another node answers at this address: correct the address, or the nodename",
            Self::Clock => "the clocks of the nodes are an hour or more apart: set them",
            Self::Stranger => "the node is no member of this cluster: it has to join it",
            Self::Stale => "there is a later link, or the node was started again meanwhile",
            Self::Crossed => "the nodes dialled each other, and the other link is used",
            Self::Slow => "the handshake took too long",
            Self::Stopping => "the node stops",
            Self::Damaged => "a frame was damaged on its way, or something behind it is wrong with a node",
            Self::Silent => "nothing was heard for too long",
            Self::Replaced => "a later link takes its place",
            Self::Crowded => "too many connections at once had proven nothing yet",
            Self::Broken => "the connection broke",
            Self::Certificate => {
                "the certificate is not that of the node: it must have the host in the node's name among its alternative names"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_found_by_its_number_and_has_a_text_of_its_own_but_for_versions() {
        let mut texts = Vec::new();
        for (at, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(refusal.number()), at + 1);
            assert_eq!(Refusal::from_number(refusal.number()), Some(refusal));
            texts.push(refusal.to_string());
        }
        assert_eq!(Refusal::from_number(0), None);
        assert_eq!(Refusal::from_number(21), None);
        texts.sort();
        texts.dedup();
        assert_eq!(texts.len(), Refusal::ALL.len() - 1);
    }
}
