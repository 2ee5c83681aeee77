//! From the first byte of a link to the first frame.
//!
//! ```text
//! who dials      prefix, greeting                          proof
//! who is dialled                   prefix, greeting               proof and welcome, or refusal
//! ```
//!
//! Who dials proves first: who only knocks gets nothing that secrets could be tried against. Either end refuses as soon as it
//! can, and says why. Before the other end has proven itself nothing of it is decoded but a greeting of bounded length.
//!
//! Messages have a kind (1), a length (2) and so many bytes. The prefix, the kinds and the beginning of a greeting are those of
//! all versions.

use super::greeting::{GREETING_LIMIT, Greeting};
use super::refusal::Refusal;
use super::secret::{End, PROOF_BYTES, Secret, Transcript};
use std::fmt;

/// The first bytes in each direction.
pub const PREFIX: [u8; 8] = *b"LVRTLINK";

/// From this difference of clocks on there is no link, in milliseconds.
pub const CLOCK_LIMIT_MS: u64 = 3_600_000;

const GREETING: u8 = 1;
const PROOF: u8 = 2;
const WELCOME: u8 = 3;
const REFUSAL: u8 = 4;

/// The bytes of a message before its body.
const HEAD: usize = 3;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More has to come.
    Waits,
    /// Who has dialled has proven itself: [`Handshake::welcome`] or [`Handshake::refuse`] is next.
    Proven,
    /// Frames are next, from this byte on.
    Linked,
}

/// It ended without a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    pub why: Refusal,
    /// The other node said so.
    pub by_peer: bool,
    /// Names and numbers of this case, for the log; may be empty.
    pub detail: String,
}

impl Refused {
    /// This end refuses.
    pub const fn here(why: Refusal) -> Self {
        Self {
            why,
            by_peer: false,
            detail: String::new(),
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.by_peer {
            f.write_str("the other node says: ")?;
        }
        self.why.fmt(f)?;
        match self.detail.is_empty() {
            true => Ok(()),
            false => write!(f, " ({})", self.detail),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Prefix,
    Greeting,
    /// Who is dialled waits for it.
    Proof,
    /// Who is dialled decides.
    Proven,
    /// Who dials waits for it.
    Welcome,
    Over,
}

/// One end of a handshake. After an error nothing more is fed.
#[derive(Debug)]
pub struct Handshake {
    me: Greeting,
    /// Whom it has dialled.
    expected: Option<Box<str>>,
    secret: Secret,
    transcript: Transcript,
    state: State,
    peer: Option<Greeting>,
}

impl Handshake {
    /// Begins as who dials. `me` says what was dialled; `expected` is the name of the node that has to answer, `binding` what
    /// only the two ends of a TLS session know (RFC 9266), or nothing.
    pub fn dial(me: Greeting, expected: &str, secret: Secret, binding: &[u8], out: &mut Vec<u8>) -> Self {
        let mut handshake = Self::listen(me, secret, binding);
        handshake.expected = Some(expected.into());
        handshake.transcript.dialler = handshake.greet(out);
        handshake
    }

    /// Begins as who is dialled, and waits.
    pub fn listen(me: Greeting, secret: Secret, binding: &[u8]) -> Self {
        let binding = binding.to_vec();
        Self {
            me,
            expected: None,
            secret,
            transcript: Transcript {
                binding,
                ..Transcript::default()
            },
            state: State::Prefix,
            peer: None,
        }
    }

    /// The greeting of the other end, as soon as it is there. Proven only once it is linked, or [`Progress::Proven`] was said.
    pub fn peer(&self) -> Option<&Greeting> {
        self.peer.as_ref()
    }

    /// What this end says of itself.
    pub fn me(&self) -> &Greeting {
        &self.me
    }

    /// The highest version that both speak; that of this node before the other end has greeted.
    pub fn version(&self) -> u16 {
        let spoken = self.me.versions;
        let common = self.peer.as_ref().and_then(|peer| spoken.common(peer.versions));
        common.unwrap_or(spoken.highest)
    }

    /// Takes what it can of `bytes` and says how many it took. What is to be answered is appended to `out`, also before an
    /// error.
    ///
    /// # Errors
    /// There is no link: one of the ends refuses.
    pub fn input(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(usize, Progress), Refused> {
        let mut taken = 0;
        if self.state == State::Prefix {
            let there = bytes.len().min(PREFIX.len());
            if bytes[..there] != PREFIX[..there] {
                // Whoever it is would not understand a refusal.
                self.state = State::Over;
                return Err(self.refused(Refusal::Rubbish));
            }
            if there < PREFIX.len() {
                return Ok((0, Progress::Waits));
            }
            taken = there;
            self.state = State::Greeting;
        }
        while !matches!(self.state, State::Proven | State::Over) {
            let Some((head, rest)) = bytes[taken..].split_first_chunk::<HEAD>() else {
                break;
            };
            let [kind, length @ ..] = *head;
            let length = usize::from(u16::from_be_bytes(length));
            if length > self.limit(kind) {
                let why = match kind {
                    GREETING => Refusal::TooLong,
                    _ => Refusal::Rubbish,
                };
                return Err(self.refuse(why, out));
            }
            let Some(body) = rest.get(..length) else {
                break;
            };
            taken += HEAD + length;
            match self.message(kind, body, out)? {
                Progress::Waits => {}
                further => return Ok((taken, further)),
            }
        }
        Ok((taken, Progress::Waits))
    }

    /// How long the body of such a message may be, where it may come now.
    fn limit(&self, kind: u8) -> usize {
        match (kind, self.state) {
            (GREETING, State::Greeting) => GREETING_LIMIT,
            (PROOF, State::Proof) | (WELCOME, State::Welcome) => PROOF_BYTES,
            (REFUSAL, _) => 1,
            _ => 0,
        }
    }

    fn message(&mut self, kind: u8, body: &[u8], out: &mut Vec<u8>) -> Result<Progress, Refused> {
        match (kind, self.state) {
            (REFUSAL, _) => {
                let why = body.first().and_then(|number| Refusal::from_number(*number));
                self.state = State::Over;
                Err(Refused {
                    by_peer: why.is_some(),
                    ..self.refused(why.unwrap_or(Refusal::Rubbish))
                })
            }
            (GREETING, State::Greeting) => self.greeted(body, out),
            (PROOF, State::Proof) => match self.secret.verify(End::Dialler, &self.transcript, body) {
                true => {
                    self.state = State::Proven;
                    Ok(Progress::Proven)
                }
                false => Err(self.refuse(Refusal::Secret, out)),
            },
            (WELCOME, State::Welcome) => match self.secret.verify(End::Listener, &self.transcript, body) {
                true => {
                    self.state = State::Over;
                    Ok(Progress::Linked)
                }
                false => Err(self.refuse(Refusal::Secret, out)),
            },
            _ => Err(self.refuse(Refusal::Rubbish, out)),
        }
    }

    fn greeted(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<Progress, Refused> {
        let dials = self.expected.is_some();
        match dials {
            true => self.transcript.listener = body.to_vec(),
            false => {
                self.transcript.dialler = body.to_vec();
                self.transcript.listener = self.greet(out);
            }
        }
        let Some(versions) = Greeting::versions(body) else {
            return Err(self.refuse(Refusal::Rubbish, out));
        };
        if self.me.versions.common(versions).is_none() {
            let why = match versions.highest < self.me.versions.lowest {
                true => Refusal::TooOld,
                false => Refusal::TooNew,
            };
            let detail = format!("{} here, {versions} there", self.me.versions);
            return Err(Refused {
                detail,
                ..self.refuse(why, out)
            });
        }
        let Some(peer) = Greeting::read(body, !dials) else {
            return Err(self.refuse(Refusal::Rubbish, out));
        };
        let wrong = self.wrong_with(&peer);
        self.peer = Some(peer);
        if let Some(why) = wrong.filter(|_| dials) {
            return Err(self.refuse(why, out));
        }
        self.state = match dials {
            true => {
                put(out, PROOF, &self.secret.prove(End::Dialler, &self.transcript));
                State::Welcome
            }
            false => State::Proof,
        };
        Ok(Progress::Waits)
    }

    /// Why there can't be a link with a node that says this of itself.
    fn wrong_with(&self, peer: &Greeting) -> Option<Refusal> {
        let (mine, theirs) = (self.me.cluster, peer.cluster);
        match &self.expected {
            _ if peer.name == self.me.name => Some(Refusal::SameName),
            Some(expected) if peer.name != *expected => Some(Refusal::OtherName),
            _ if mine.is_some() && theirs.is_some() && mine != theirs => Some(Refusal::Cluster),
            _ if self.me.clock_ms.abs_diff(peer.clock_ms) >= CLOCK_LIMIT_MS => Some(Refusal::Clock),
            _ => None,
        }
    }

    /// The end that was dialled takes the link, unless it must refuse it.
    ///
    /// # Errors
    /// It must: what was said of the node can't be. Or nothing was proven.
    pub fn welcome(&mut self, out: &mut Vec<u8>) -> Result<(), Refused> {
        let wrong = self.peer.as_ref().and_then(|peer| self.wrong_with(peer));
        let wrong = match self.state {
            State::Proven => wrong,
            _ => Some(Refusal::Secret),
        };
        if let Some(why) = wrong {
            return Err(self.refuse(why, out));
        }
        put(out, WELCOME, &self.secret.prove(End::Listener, &self.transcript));
        self.state = State::Over;
        Ok(())
    }

    /// Refuses, and tells the other end why.
    pub fn refuse(&mut self, why: Refusal, out: &mut Vec<u8>) -> Refused {
        if self.expected.is_none() && self.transcript.listener.is_empty() {
            out.extend(PREFIX);
        }
        put(out, REFUSAL, &[why.number()]);
        self.state = State::Over;
        self.refused(why)
    }

    fn refused(&self, why: Refusal) -> Refused {
        let detail = self.detail(why).unwrap_or_default();
        Refused {
            detail,
            ..Refused::here(why)
        }
    }

    /// What an operator wants to know besides.
    fn detail(&self, why: Refusal) -> Option<String> {
        let (me, peer) = (&self.me, self.peer.as_ref()?);
        let cluster = |greeting: &Greeting| greeting.cluster.map_or("none".to_owned(), |it| it.to_string());
        Some(match why {
            Refusal::Cluster => format!("{} here, {} there", cluster(me), cluster(peer)),
            Refusal::SameName => me.name.to_string(),
            Refusal::OtherName => match &self.expected {
                Some(expected) => format!("{expected} was dialled, and {} answers", peer.name),
                None => format!("this is {}", me.name),
            },
            Refusal::Clock => {
                let apart_s = me.clock_ms.abs_diff(peer.clock_ms) / 1000;
                let which = match me.clock_ms > peer.clock_ms {
                    true => "ahead",
                    false => "behind",
                };
                format!("that of this node is {apart_s} s {which}")
            }
            _ => return None,
        })
    }

    fn greet(&self, out: &mut Vec<u8>) -> Vec<u8> {
        let mut body = Vec::new();
        self.me.put(&mut body);
        out.extend(PREFIX);
        put(out, GREETING, &body);
        body
    }
}

fn put(out: &mut Vec<u8>, kind: u8, body: &[u8]) {
    out.push(kind);
    out.extend((body.len() as u16).to_be_bytes());
    out.extend(body);
}

#[cfg(test)]
mod tests;
