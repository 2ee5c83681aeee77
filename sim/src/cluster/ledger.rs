//! What clients know: what they published, what they were told, and what they did with what they were given.

use super::coverage::Coverage;
use super::exercised::{Deed, Exercised};
use super::history::{History, Id};
use super::invariants::active::Actives;
use super::invariants::contents::Contents;
use super::invariants::counts::Back;
use super::rot::Rot;
use super::terms::Terms;
use crate::ledger::Violation;
use crate::terms::Said;
use cluster::{GroupId, MemberId, Membership};
use model::Seq;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A leader in its term: what one has decided, the next one may not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Leadership {
    pub group: GroupId,
    pub node: u32,
    pub term: u64,
}

/// A message that was published to a queue.
#[derive(Debug, Clone, Default)]
pub struct Known {
    pub publisher: u32,
    pub said: Said,
    /// The length of its body.
    pub length: usize,
    pub published: Duration,
    /// How often it was handed to the queue.
    pub sent: u32,
    pub confirmed: bool,
    pub refused: bool,
    /// Nobody could be reached: its publisher was told that it is refused, and it may be there.
    pub given_up: bool,
    /// A client said that it is done with it.
    pub acked: bool,
    /// A client did not want it.
    pub rejected: bool,
    /// The queue of the dead was full when it came there as a letter.
    pub letter_refused: bool,
    /// How often a leader let it go to a client: so often it may have come back.
    pub delivered: u32,
}

/// What a client has, or had until it was done with it.
#[derive(Debug, Clone, Copy)]
pub struct Held {
    pub id: Id,
    /// `None` after a get.
    pub consumer: Option<u64>,
    pub node: u32,
    pub since: Duration,
    /// How often it had come back, and how often of these its consumer had failed.
    pub returns: u32,
    pub failures: u32,
}

/// One queue.
pub struct Book {
    pub terms: Terms,
    pub history: History,
    /// Who the members are, by the record from which on they are.
    pub members: BTreeMap<u64, Membership>,
    /// No log went further when somebody told first who they are now.
    pub sealed_behind: u64,
    pub known: BTreeMap<Id, Known>,
    /// What clients hold.
    pub hands: BTreeMap<Seq, Held>,
    /// What clients have given back, and nobody was given since.
    pub backs: BTreeMap<Seq, Back>,
    /// What clients said that they are done with, and since when.
    pub acked: BTreeMap<Seq, Held>,
    /// So many clients want the queue to be emptied and have no answer, or never had one.
    pub purges: u64,
    /// Who gave a message to a client last.
    pub delivered_by: BTreeMap<Seq, Leadership>,
    /// Somebody used the queue then, or declared it again.
    pub used: Duration,
    /// It was to end then, since nobody used it.
    pub ended: Option<Duration>,
    /// The last message of each publisher in each lane.
    pub last: BTreeMap<(u32, u64), Id>,
    /// Who consumes, if only one at a time is served.
    pub actives: Actives,
    /// What the members had after some records, without the places of bytes.
    pub contents: BTreeMap<u64, Contents>,
}

/// How much happened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    pub confirms: u64,
    pub refusals: u64,
    pub deliveries: u64,
    pub acks: u64,
    pub dead_letters: u64,
    pub leaderships: u64,
    /// What became of what had rotted.
    pub rot: Rot,
    /// What became of records when something went wrong.
    pub coverage: Coverage,
    /// What declarations have had queues do.
    pub exercised: Exercised,
}

impl Counts {
    /// Adds what happened in another seed.
    pub fn add(&mut self, other: &Self) {
        self.confirms += other.confirms;
        self.refusals += other.refusals;
        self.deliveries += other.deliveries;
        self.acks += other.acks;
        self.dead_letters += other.dead_letters;
        self.leaderships += other.leaderships;
        self.rot.add(&other.rot);
        self.coverage.add(&other.coverage);
        self.exercised.add(&other.exercised);
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            confirms,
            refusals,
            deliveries,
            acks,
            dead_letters,
            leaderships,
            rot,
            ..
        } = self;
        write!(
            f,
            "{confirms} confirms, {refusals} refusals, {deliveries} deliveries, {acks} acks, "
        )?;
        write!(f, "{dead_letters} dead letters, {leaderships} leaderships, {rot}")
    }
}

/// Everything.
#[derive(Default)]
pub struct Ledger {
    pub now: Duration,
    pub books: BTreeMap<GroupId, Book>,
    /// Who led which term.
    pub leaders: BTreeMap<(GroupId, u64), MemberId>,
    /// When somebody was heard to lead a term for the first time.
    pub elected: BTreeMap<(GroupId, u64), Duration>,
    /// When leaders were asked for something, by the number of the question or of the consumer.
    pub asked: BTreeMap<(Leadership, u64), Duration>,
    /// What the clock shows that is most ahead: they jump, and who waits for a thread has time pass.
    pub latest: Duration,
    pub violations: Vec<Violation>,
    /// What happened, in words, if somebody wants to read it.
    pub story: Option<Vec<String>>,
    /// A sum over all that happened, to see whether a seed does the same again.
    pub digest: u64,
    pub counts: Counts,
    /// When each node was in trouble last.
    pub troubles: BTreeMap<u32, Duration>,
}

impl Ledger {
    pub fn violated(&mut self, invariant: &'static str, what: String) {
        self.violations.push(Violation { invariant, what });
    }

    /// Writes down what happens.
    pub fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(format!("{:?} {}", self.now, what()));
        }
    }

    /// Mixes something that happened into the digest.
    pub fn note(&mut self, what: u64) {
        self.digest = (self.digest.rotate_left(5) ^ what).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    /// A queue begins.
    pub fn open(&mut self, group: GroupId, terms: Terms) {
        let book = Book {
            history: History::default(),
            members: BTreeMap::from([(0, terms.members())]),
            sealed_behind: 0,
            terms,
            known: BTreeMap::new(),
            hands: BTreeMap::new(),
            backs: BTreeMap::new(),
            purges: 0,
            delivered_by: BTreeMap::new(),
            used: Duration::ZERO,
            ended: None,
            last: BTreeMap::new(),
            acked: BTreeMap::new(),
            actives: Actives::default(),
            contents: BTreeMap::new(),
        };
        self.books.insert(group, book);
    }

    /// A message is about to be handed to a queue.
    pub fn published(&mut self, group: GroupId, id: Id, known: Known) {
        let now = self.now;
        if let Some(book) = self.books.get_mut(&group) {
            let entry = book.known.entry(id).or_insert(Known {
                published: now,
                ..known
            });
            entry.sent += 1;
        }
    }

    /// Clients of this node have nothing of this queue any more.
    pub fn drop_hands(&mut self, group: GroupId, node: u32) {
        if let Some(book) = self.books.get_mut(&group) {
            book.hands.retain(|_, held| held.node != node);
            book.backs.retain(|_, back| !back.is_of(node));
            book.acked.retain(|_, held| held.node != node);
            book.actives.forget(node);
        }
    }

    /// A node is killed, cut off, stands still or the like.
    pub fn trouble(&mut self, node: u32) {
        self.troubles.insert(node, self.now);
    }

    /// Whether all nodes were.
    pub fn all_are_well_since(&self, since: Duration) -> bool {
        self.troubles.values().all(|trouble| *trouble < since)
    }

    /// Something was done that a declaration or a policy asks for.
    pub fn exercised(&mut self, deed: Deed) {
        self.counts.exercised.did(deed);
    }

    /// Whether this node was well all the time since then.
    pub fn is_well_since(&self, node: u32, since: Duration) -> bool {
        self.troubles.get(&node).is_none_or(|trouble| *trouble < since)
    }
}
