//! Who a node says it is: the first thing on a link, in each direction.
//!
//! ```text
//! greeting    lowest version (2), highest version (2), cluster (16; zeros: none yet), incarnation (8), clock (8),
//!             challenge (32), length of the name (1), name,
//!             and of who dials: lane (1; 255: none, it only asks), number (8), known incarnation (8), known number (8)
//! ```
//!
//! Numbers have their highest byte first. The versions stand first and stay there, so that nodes which share no version can say
//! so. What stands behind all this is of a later version, and passed over.

use super::Lane;
use std::fmt;

/// The most bytes of a greeting.
pub const GREETING_LIMIT: usize = 1024;

/// The most bytes of a node's name.
pub const NAME_LIMIT: usize = 255;

/// In place of a lane.
const NO_LANE: u8 = 255;

/// The bytes of a challenge.
pub const RANDOM_BYTES: usize = 32;

/// The versions of links that a node speaks, the lowest and the highest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    pub lowest: u16,
    pub highest: u16,
}

impl Versions {
    /// Those that are spoken here.
    pub const SPOKEN: Self = Self {
        lowest: 1,
        highest: 1,
    };

    /// The highest one that both speak.
    pub fn common(self, other: Self) -> Option<u16> {
        let highest = self.highest.min(other.highest);
        (highest >= self.lowest.max(other.lowest)).then_some(highest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lowest == self.highest {
            true => write!(f, "{}", self.lowest),
            false => write!(f, "{} to {}", self.lowest, self.highest),
        }
    }
}

/// A cluster, by a number that was drawn when it began. Never all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterId(pub [u8; 16]);

impl fmt::Display for ClusterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A link among all that a node has ever dialled: the node's incarnation, and a number that rises in it. 0 in both is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct LinkNumber {
    pub incarnation: u64,
    pub number: u64,
}

/// What who dials says of the link that is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dialled {
    /// `None` of who only asks to be let in, and has no link.
    pub lane: Option<Lane>,
    /// Its number, in the incarnation of the greeting.
    pub number: u64,
    /// The last link of this lane that the other node had dialled and this one has had. If it dials all the same, that one is
    /// lost.
    pub knows: LinkNumber,
}

/// A greeting. Nothing of it is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Greeting {
    pub versions: Versions,
    /// `None` of a node that is in no cluster yet.
    pub cluster: Option<ClusterId>,
    /// The node's name: 1 to [`NAME_LIMIT`] bytes that can be printed.
    pub name: Box<str>,
    /// Which start of the node this is.
    pub incarnation: u64,
    /// What its clock shows, in milliseconds since 1970.
    pub clock_ms: u64,
    /// Random bytes that were never used before.
    pub challenge: [u8; RANDOM_BYTES],
    /// Only of who dials.
    pub dialled: Option<Dialled>,
}

impl Greeting {
    /// Appends it. A name is cut off where it is too long for a name.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend(self.versions.lowest.to_be_bytes());
        out.extend(self.versions.highest.to_be_bytes());
        out.extend(self.cluster.map_or([0; 16], |cluster| cluster.0));
        out.extend(self.incarnation.to_be_bytes());
        out.extend(self.clock_ms.to_be_bytes());
        out.extend(self.challenge);
        let name = &self.name.as_bytes()[..self.name.len().min(NAME_LIMIT)];
        out.push(name.len() as u8);
        out.extend(name);
        if let Some(Dialled { lane, number, knows }) = self.dialled {
            out.push(lane.map_or(NO_LANE, Lane::number));
            for number in [number, knows.incarnation, knows.number] {
                out.extend(number.to_be_bytes());
            }
        }
    }

    /// The versions that a greeting of whatever version names.
    pub fn versions(bytes: &[u8]) -> Option<Versions> {
        let mut input = Input(bytes);
        let [lowest, highest] = [input.take()?, input.take()?].map(u16::from_be_bytes);
        (lowest <= highest).then_some(Versions { lowest, highest })
    }

    /// Reads one, of who dials or of who is dialled. `None` if it is none of a version that is spoken here.
    pub fn read(bytes: &[u8], dials: bool) -> Option<Self> {
        let versions = Self::versions(bytes)?;
        let mut input = Input(bytes.get(4..)?);
        let cluster: [u8; 16] = input.take()?;
        let incarnation = input.number()?;
        let clock_ms = input.number()?;
        let challenge = input.take()?;
        let [length] = input.take()?;
        let (name, rest) = input.0.split_at_checked(length.into())?;
        input.0 = rest;
        let name = std::str::from_utf8(name).ok()?;
        if name.is_empty() || !name.chars().all(|char| char.is_ascii_graphic()) {
            return None;
        }
        Some(Self {
            versions,
            cluster: (cluster != [0; 16]).then_some(ClusterId(cluster)),
            name: name.into(),
            incarnation,
            clock_ms,
            challenge,
            dialled: match dials {
                true => Some(input.dialled()?),
                false => None,
            },
        })
    }
}

struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn number(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }

    fn dialled(&mut self) -> Option<Dialled> {
        let [lane] = self.take()?;
        Some(Dialled {
            lane: match lane {
                NO_LANE => None,
                lane => Some(Lane::from_number(lane)?),
            },
            number: self.number()?,
            knows: LinkNumber {
                incarnation: self.number()?,
                number: self.number()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greeting() -> impl Strategy<Value = Greeting> {
        let dialled = (0..4_u8, any::<[u64; 3]>()).prop_map(|(lane, [number, incarnation, known])| Dialled {
            lane: Lane::from_number(lane),
            number,
            knows: LinkNumber {
                incarnation,
                number: known,
            },
        });
        let rest = (
            any::<[u8; 32]>(),
            any::<[u64; 2]>(),
            any::<[u8; 16]>(),
            any::<[u16; 2]>(),
        );
        ("[!-~]{1,255}", proptest::option::of(dialled), rest).prop_map(
            |(name, dialled, (challenge, numbers, cluster, versions))| Greeting {
                versions: Versions {
                    lowest: versions[0].min(versions[1]),
                    highest: versions[0].max(versions[1]),
                },
                cluster: (cluster[0] > 100).then_some(ClusterId(cluster)),
                name: name.into(),
                incarnation: numbers[0],
                clock_ms: numbers[1],
                challenge,
                dialled,
            },
        )
    }

    proptest! {
        #[test]
        fn a_greeting_is_read_as_it_was_written_whatever_a_later_version_puts_behind_it(
            greeting in greeting(),
            behind in proptest::collection::vec(any::<u8>(), 0..20),
        ) {
            let dials = greeting.dialled.is_some();
            let mut bytes = Vec::new();
            greeting.put(&mut bytes);
            prop_assert!(bytes.len() <= GREETING_LIMIT);
            for length in 0..bytes.len() {
                prop_assert_eq!(Greeting::read(&bytes[..length], dials), None);
            }
            bytes.extend(behind);
            prop_assert_eq!(Greeting::versions(&bytes), Some(greeting.versions));
            prop_assert_eq!(Greeting::read(&bytes, dials), Some(greeting));
        }
    }

    #[test]
    fn a_name_that_would_write_lines_into_a_log_is_none() {
        let name = |name: &str| {
            let greeting = Greeting {
                versions: Versions::SPOKEN,
                cluster: None,
                name: name.into(),
                incarnation: 1,
                clock_ms: 1,
                challenge: [0; 32],
                dialled: None,
            };
            let mut bytes = Vec::new();
            greeting.put(&mut bytes);
            Greeting::read(&bytes, false).is_some()
        };
        assert!(name("rabbit@n1"));
        for wrong in ["", "a\nb", "a b", "ä", "a\u{1b}"] {
            assert!(!name(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn nodes_speak_the_highest_version_that_both_know() {
        let versions = |lowest, highest| Versions { lowest, highest };
        assert_eq!(versions(1, 3).common(versions(2, 5)), Some(3));
        assert_eq!(versions(2, 5).common(versions(1, 2)), Some(2));
        assert_eq!(versions(1, 2).common(versions(3, 4)), None);
        assert_eq!(versions(3, 4).common(versions(1, 2)), None);
    }
}
