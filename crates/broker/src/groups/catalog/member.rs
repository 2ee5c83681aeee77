//! The catalog as a machine on a journal of several nodes.

use crate::groups::Replicated;
use catalog::shared::{Contents, Decided, Happened, Numbered, Shared};
use cluster::NodeId;
use model::{Index, Journaled, Machine, Outcome, Ranges, Seq, Timestamp};
use queue::HandOver;
use queue::store::{self, LogPlace};

/// What is asked of the machine.
#[derive(Debug)]
pub enum Request {
    /// To decide.
    Decide(Numbered),
    /// To prove that nobody else decides.
    Prove(Question),
    /// What concerns checkpoints.
    Store(store::Request),
}

/// What is proven for a node that wants a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Question {
    /// In which term it was asked.
    pub term: u64,
    /// By whom.
    pub node: NodeId,
    /// By which of its starts.
    pub start: u64,
    /// Which of its questions it is.
    pub round: u64,
}

/// What the machine orders.
#[derive(Debug)]
pub enum Effect {
    /// A request was decided, and is committed.
    Happened(Box<Happened>),
    /// Nobody else was elected when this was asked, and what was decided before is committed.
    Proven(Question),
    /// The machine took another one's place: what may have been missed is here.
    Resumed(Box<Contents>),
    /// What concerns checkpoints.
    Store(store::Effect),
}

/// What a node remembers: the contents before a record.
#[derive(Debug)]
pub struct Checkpoint {
    next: Index,
    contents: Contents,
}

impl Checkpoint {
    /// The contents before this record.
    pub fn new(next: Index, contents: Contents) -> Self {
        Self { next, contents }
    }
}

impl Journaled for Checkpoint {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next.to_le_bytes());
        self.contents.encode(out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (next, contents) = bytes.split_first_chunk()?;
        Some(Self {
            next: Index::from_le_bytes(*next),
            contents: Contents::decode(contents)?,
        })
    }
}

impl From<store::Record> for Checkpoint {
    /// The catalog has no messages, so nothing of them is ever remembered.
    fn from(_: store::Record) -> Self {
        let contents = Shared::default().contents();
        Self { next: 1, contents }
    }
}

/// The catalog of several nodes.
#[derive(Default)]
pub struct CatalogMember(Shared);

impl CatalogMember {
    /// What it has, between two turns.
    pub fn shared(&self) -> &Shared {
        &self.0
    }
}

impl Machine for CatalogMember {
    type Request = Request;
    type Record = Decided;
    type Effect = Effect;
    /// The version.
    type Status = u64;

    fn handle(&mut self, now: Timestamp, request: Request, outcome: &mut Outcome<Decided, Effect>) {
        match request {
            Request::Decide(asked) => {
                if let Some((decided, happened)) = self.0.decide(now, asked) {
                    outcome.records.push(decided);
                    outcome.promises.push(Effect::Happened(Box::new(happened)));
                }
            }
            Request::Prove(question) => outcome.effects.push(Effect::Proven(question)),
            Request::Store(store::Request::Checkpoint { .. }) => {
                outcome.promises.push(Effect::Store(store::Effect::Checkpoint));
            }
            Request::Store(_) => {}
        }
    }

    fn apply(&mut self, _: Index, decided: Decided, outcome: &mut Outcome<Decided, Effect>) {
        let happened = self.0.apply(decided);
        outcome.effects.push(Effect::Happened(Box::new(happened)));
    }

    fn recovered(&mut self, _closed: bool) {}

    fn follow(&mut self) {}

    fn wakes_at_ms(&self) -> u64 {
        u64::MAX
    }

    fn status(&self) -> u64 {
        self.0.version()
    }
}

impl Replicated for CatalogMember {
    type Settings = ();
    type Local = Checkpoint;

    fn new((): ()) -> Self {
        Self::default()
    }

    fn checkpoint(&self, next: Index) -> (Checkpoint, Option<LogPlace>) {
        let contents = self.0.contents();
        (Checkpoint { next, contents }, None)
    }

    fn complete(checkpoint: &mut Checkpoint, next: Index, _: &[(Seq, LogPlace)]) -> Option<LogPlace> {
        checkpoint.next = next;
        None
    }

    fn hand_over(&self, next: Index) -> HandOver<Checkpoint> {
        HandOver::Contents(self.checkpoint(next).0)
    }

    fn apply_local(&mut self, checkpoint: Checkpoint) -> Option<Index> {
        self.0 = Shared::of(&checkpoint.contents);
        Some(checkpoint.next)
    }

    fn without_places(checkpoint: Checkpoint) -> Option<Checkpoint> {
        Some(checkpoint)
    }

    fn ask_store(request: store::Request) -> Request {
        Request::Store(request)
    }

    fn of_store(request: &Request) -> Option<&store::Request> {
        match request {
            Request::Store(request) => Some(request),
            _ => None,
        }
    }

    fn ordered_by_store(effect: &Effect) -> Option<&store::Effect> {
        match effect {
            Effect::Store(effect) => Some(effect),
            _ => None,
        }
    }

    fn into_store(effect: Effect) -> Result<store::Effect, Effect> {
        match effect {
            Effect::Store(effect) => Ok(effect),
            other => Err(other),
        }
    }

    /// There is nothing to give up.
    fn give_up(_: Ranges) -> Request {
        Request::Store(store::Request::Found { pieces: Vec::new() })
    }

    fn ends_something(_: &Request) -> bool {
        false
    }

    fn resumed(&self) -> Option<Effect> {
        Some(Effect::Resumed(Box::new(self.0.contents())))
    }
}
