//! The side that fetches: contents piece by piece, then the bodies that this node has not. Or bodies alone, in place of
//! those that it can't read.
//!
//! Nothing here reads a clock, a disk or a link. What a peer answers is held against what it was asked: what can't be
//! an answer is a [`Lie`], costs nothing, and another peer is asked.

use super::asking::{Asking, Waited};
use super::frame::{CONTENTS_LIMIT, Entry, Head, MESSAGE_LIMIT, Said, Why};
use cluster::{Mark, NodeId};
use model::{Index, Ranges, Seq};
use std::collections::VecDeque;

/// The most spans that a question names.
const ASKED_SPANS: usize = 1_024;
/// The most messages that a question names.
const ASKED_MESSAGES: u64 = 65_536;

/// No index or term is higher.
const NUMBER_LIMIT: u64 = 1 << 62;

/// Why an answer can't be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lie {
    /// Contents from before what was asked for, or of another checkpoint.
    Index,
    /// Bytes of another place, none, or more than there are to be.
    Bytes,
    /// Messages that were not asked for, or one in two standings.
    Numbers,
    /// Bytes that aren't those of so many messages.
    Messages,
    /// An answer to another question.
    Kind,
}

/// What an answer brought.
#[derive(Debug, PartialEq, Eq)]
pub enum Brought {
    /// Nothing to be acted on.
    Nothing,
    /// All of a checkpoint's contents.
    Contents { at: Mark, bytes: Vec<u8> },
    /// Bodies, to be stored.
    Bodies(Vec<Entry>),
}

/// What became of bodies that were looked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    /// Those that could not be had.
    pub missing: Ranges,
    /// Whether every node said so; otherwise some said nothing.
    pub sure: bool,
}

/// What is fetched, from whom.
#[derive(Debug)]
pub struct Fetch {
    asking: Asking,
    /// The question that is under way.
    question: Option<Said>,
    wanted: Wanted,
}

#[derive(Debug)]
enum Wanted {
    Nothing,
    Contents(Contents),
    Bodies(Bodies),
}

#[derive(Debug, Default)]
struct Contents {
    least: Index,
    at: Option<Mark>,
    total: u64,
    bytes: Vec<u8>,
}

#[derive(Debug, Default)]
struct Bodies {
    applied: Index,
    /// So many there are to be, and of so many bytes are those that have come.
    total: u64,
    bytes: u64,
    /// What is still to be asked of the node that is asked, ascending.
    todo: VecDeque<(Seq, Seq)>,
    /// What was asked.
    asked: Ranges,
    /// A message that comes in slices.
    slice: Option<(Head, u64, Vec<u8>)>,
    /// What the node that is asked can't read either.
    lost: Ranges,
    /// All that is left was lost at one node, and others are asked.
    is_rest: bool,
    /// How many nodes in a row could not give anything of the rest.
    losers: usize,
    /// One of them has said nothing.
    unsure: bool,
    /// The last answer answered something.
    moved: bool,
}

impl Fetch {
    /// Nothing is wanted. `incarnation` is the start of this node.
    pub fn new(incarnation: u64) -> Self {
        Self {
            asking: Asking::new(incarnation),
            question: None,
            wanted: Wanted::Nothing,
        }
    }

    /// A checkpoint at `least` or behind it is wanted from one of these, rather from the first.
    pub fn want_contents(&mut self, nodes: Vec<NodeId>, least: Index) {
        self.begin(
            nodes,
            Wanted::Contents(Contents {
                least,
                ..Contents::default()
            }),
        );
    }

    /// These bodies are wanted, of messages that were there once `applied` was applied.
    pub fn want_bodies(&mut self, nodes: Vec<NodeId>, applied: Index, seqs: &Ranges) {
        self.begin(
            nodes,
            Wanted::Bodies(Bodies {
                applied,
                total: seqs.count(),
                todo: seqs.spans().collect(),
                ..Bodies::default()
            }),
        );
    }

    /// These bodies could not be stored: they are wanted again.
    pub fn want_again(&mut self, seqs: &Ranges) {
        if let Wanted::Bodies(bodies) = &mut self.wanted {
            bodies.put_back(seqs);
        }
    }

    /// Nothing is wanted any more. Answers that are under way are not waited for.
    pub fn give_up(&mut self) {
        self.begin(Vec::new(), Wanted::Nothing);
    }

    fn begin(&mut self, nodes: Vec<NodeId>, wanted: Wanted) {
        self.asking.begin(nodes);
        self.question = None;
        self.wanted = wanted;
    }

    /// Whether anything is wanted.
    pub fn is_busy(&self) -> bool {
        !matches!(self.wanted, Wanted::Nothing)
    }

    /// How far it has come: bytes so far, how much there is to be and how much is missing (see
    /// [`CopyProgress`](super::CopyProgress)).
    /// `None` if nothing is wanted, or nobody has said how much there is.
    pub fn come(&self) -> Option<(u64, u64, u64)> {
        match &self.wanted {
            Wanted::Nothing => None,
            Wanted::Contents(contents) => {
                let here = contents.bytes.len() as u64;
                contents.at.map(|_| (here, contents.total, contents.total - here))
            }
            Wanted::Bodies(bodies) => {
                let todo: u64 = bodies.todo.iter().map(|(first, last)| last + 1 - first).sum();
                let left = todo + bodies.asked.count() + bodies.lost.count();
                Some((bodies.bytes, bodies.total, left.min(bodies.total)))
            }
        }
    }

    /// Whether all nodes were asked and none was of use: others may have the link meanwhile.
    pub fn is_in_vain(&self) -> bool {
        self.asking.is_in_vain()
    }

    /// The next question, and of whom, if one is due.
    pub fn ask(&mut self) -> Option<(NodeId, Said)> {
        if !self.asking.is_free() {
            return None;
        }
        if let Wanted::Bodies(bodies) = &mut self.wanted {
            bodies.go_round(&mut self.asking);
            if bodies.todo.is_empty() {
                return None;
            }
        }
        if !self.is_busy() {
            return None;
        }
        let (to, number) = self.asking.ask()?;
        let question = match &mut self.wanted {
            Wanted::Nothing => return None,
            Wanted::Contents(contents) => contents.question(number),
            Wanted::Bodies(bodies) => bodies.question(number),
        };
        self.question = Some(question.clone());
        Some((to, question))
    }

    /// Whether all bodies that could be had are here, or were handed out to be stored.
    pub fn ended(&self) -> Option<Ended> {
        let Wanted::Bodies(bodies) = &self.wanted else {
            return None;
        };
        let done = bodies.todo.is_empty() && bodies.asked.is_empty();
        let in_vain = bodies.losers >= self.asking.nodes();
        (done && (bodies.lost.is_empty() || in_vain)).then(|| Ended {
            missing: bodies.lost.clone(),
            sure: !bodies.unsure,
        })
    }

    /// So much time has passed. What is to be asked again, if something is; [`Fetch::ask`] may have a new question.
    pub fn tick(&mut self) -> Option<(NodeId, Said)> {
        match self.asking.tick() {
            Waited::Again(node) => Some((node, self.question.clone()?)),
            Waited::Silent => {
                self.unanswered();
                None
            }
            Waited::Nothing | Waited::Ask => None,
        }
    }

    /// The question will not be answered by whom it was asked. A body in slices begins anew elsewhere.
    fn unanswered(&mut self) {
        self.question = None;
        if let Wanted::Bodies(bodies) = &mut self.wanted {
            bodies.slice = None;
            let asked = std::mem::take(&mut bodies.asked);
            bodies.put_back(&asked);
            if bodies.is_rest {
                bodies.unsure = true;
                bodies.lose_round(self.asking.nodes());
            }
        }
    }

    /// Takes what a peer said.
    ///
    /// # Errors
    /// It can't be true. Another peer is asked then.
    pub fn hear(&mut self, from: NodeId, said: Said) -> Result<Brought, Lie> {
        let asked = match &said {
            Said::Contents { asked, .. }
            | Said::Bodies { asked, .. }
            | Said::Slice { asked, .. }
            | Said::NotNow { asked, .. } => *asked,
            Said::WantsContents { .. } | Said::WantsBodies { .. } => return Err(Lie::Kind),
        };
        // Late, doubled, or never asked for.
        if !self.asking.is_answered(from, asked) {
            return Ok(Brought::Nothing);
        }
        self.question = None;
        if let Said::NotNow { why, .. } = said {
            self.put_off(why);
            return Ok(Brought::Nothing);
        }
        let brought = match &mut self.wanted {
            Wanted::Contents(contents) => contents.take(said),
            Wanted::Bodies(bodies) => bodies.take(said),
            Wanted::Nothing => return Ok(Brought::Nothing),
        };
        match &brought {
            Ok(Brought::Contents { .. }) => self.wanted = Wanted::Nothing,
            Ok(Brought::Nothing) if self.is_stuck() => self.put_off(Why::Later),
            Ok(_) => self.asking.useful(),
            Err(_) => {
                self.asking.useless();
                self.unanswered();
            }
        }
        brought
    }

    /// Whether an answer answered nothing.
    fn is_stuck(&self) -> bool {
        matches!(&self.wanted, Wanted::Bodies(bodies) if bodies.slice.is_none() && !bodies.moved)
    }

    fn put_off(&mut self, why: Why) {
        match (&mut self.wanted, why) {
            (Wanted::Contents(contents), Why::Newer) => contents.restart(),
            _ => {
                self.asking.useless();
                self.unanswered();
            }
        }
    }
}

impl Contents {
    fn restart(&mut self) {
        *self = Self {
            least: self.least,
            ..Self::default()
        };
    }

    fn question(&mut self, number: u64) -> Said {
        Said::WantsContents {
            number,
            least: self.least,
            at: self.at.map_or(0, |at| at.index),
            offset: self.bytes.len() as u64,
        }
    }

    fn take(&mut self, said: Said) -> Result<Brought, Lie> {
        let Said::Contents {
            at,
            total,
            offset,
            bytes,
            ..
        } = said
        else {
            return Err(Lie::Kind);
        };
        let known = self.at.is_none_or(|known| known == at && self.total == total);
        let possible = at.index.max(at.term) <= NUMBER_LIMIT;
        if !known || !possible || at.index < self.least || total > CONTENTS_LIMIT {
            self.restart();
            return Err(Lie::Index);
        }
        let here = self.bytes.len() as u64;
        if offset != here || here + bytes.len() as u64 > total || (bytes.is_empty() && total > here) {
            self.restart();
            return Err(Lie::Bytes);
        }
        (self.at, self.total) = (Some(at), total);
        self.bytes.extend_from_slice(&bytes);
        match self.bytes.len() as u64 == total {
            true => Ok(Brought::Contents {
                at,
                bytes: std::mem::take(&mut self.bytes),
            }),
            false => Ok(Brought::Nothing),
        }
    }
}

impl Bodies {
    fn put_back(&mut self, seqs: &Ranges) {
        for span in seqs.spans().rev() {
            self.todo.push_front(span);
        }
    }

    /// Once nothing else is left, what one node lacks is asked of the next one.
    fn go_round(&mut self, asking: &mut Asking) {
        let left = !self.todo.is_empty() || !self.asked.is_empty();
        if left || self.lost.is_empty() || self.losers >= asking.nodes() {
            return;
        }
        asking.elsewhere();
        let lost = std::mem::take(&mut self.lost);
        self.put_back(&lost);
        // What is left may be of several nodes: from now on each of them is asked for all of it.
        if std::mem::replace(&mut self.is_rest, true) {
            self.lose_round(asking.nodes());
        }
    }

    /// One node more could not give the rest. After the last one it is not asked for any more.
    fn lose_round(&mut self, nodes: usize) {
        self.losers += 1;
        if self.losers >= nodes {
            let rest = self.todo.drain(..);
            rest.for_each(|(first, last)| self.lost.push_span(first, last));
        }
    }

    fn question(&mut self, number: u64) -> Said {
        let (mut spans, mut messages) = (0, 0);
        let slice = self
            .slice
            .as_ref()
            .map(|(head, _, bytes)| (head.first, bytes.len()));
        while spans < ASKED_SPANS
            && messages < ASKED_MESSAGES
            && let Some((first, last)) = self.todo.pop_front()
        {
            let end = last.min(first.saturating_add(ASKED_MESSAGES - messages - 1));
            if end < last {
                self.todo.push_front((end + 1, last));
            }
            self.asked.push_span(first, end);
            messages += end - first + 1;
            spans += 1;
        }
        let offset = slice.filter(|(first, _)| self.asked.first() == Some(*first));
        if offset.is_none() {
            self.slice = None;
        }
        Said::WantsBodies {
            number,
            applied: self.applied,
            offset: offset.map_or(0, |(_, length)| length as u64),
            seqs: self.asked.clone(),
        }
    }

    fn take(&mut self, said: Said) -> Result<Brought, Lie> {
        match said {
            Said::Bodies {
                gone, lost, entries, ..
            } => self.take_bodies(&gone, &lost, entries),
            Said::Slice {
                head,
                total,
                offset,
                bytes,
                ..
            } => self.take_slice(head, total, offset, &bytes),
            _ => Err(Lie::Kind),
        }
    }

    fn take_bodies(&mut self, gone: &Ranges, lost: &Ranges, entries: Vec<Entry>) -> Result<Brought, Lie> {
        let mut answered = gone.clone();
        answered.extend(lost);
        for entry in &entries {
            answered.push_span(entry.head.first, entry.head.last());
        }
        let messages = || {
            let bodies = entries.iter().map(|entry| u64::from(entry.head.count));
            gone.count() + lost.count() + bodies.sum::<u64>()
        };
        if !answered.without(&self.asked).is_empty() || answered.count() != messages() {
            return Err(Lie::Numbers);
        }
        if !entries.iter().all(Entry::is_whole) {
            return Err(Lie::Messages);
        }
        self.answered(&answered, lost);
        self.bytes += entries.iter().map(|entry| entry.bytes.len() as u64).sum::<u64>();
        self.slice = None;
        Ok(match entries.is_empty() {
            true => Brought::Nothing,
            false => Brought::Bodies(entries),
        })
    }

    /// What was asked and not answered is asked again.
    fn answered(&mut self, answered: &Ranges, lost: &Ranges) {
        let asked = std::mem::take(&mut self.asked);
        self.moved = !answered.is_empty();
        self.put_back(&asked.without(answered));
        self.lost.extend(lost);
        if answered.count() > lost.count() {
            (self.losers, self.unsure, self.is_rest) = (0, false, false);
        }
    }

    fn take_slice(&mut self, head: Head, total: u64, offset: u64, bytes: &[u8]) -> Result<Brought, Lie> {
        if head.count != 1 || self.asked.first() != Some(head.first) {
            return Err(Lie::Numbers);
        }
        self.moved = true;
        let (known, of, mut here) = self.slice.take().unwrap_or((head, total, Vec::new()));
        let fits = here.len() as u64 == offset && offset + bytes.len() as u64 <= total;
        if known != head || of != total || !fits || bytes.is_empty() || total > MESSAGE_LIMIT {
            return Err(Lie::Bytes);
        }
        here.extend_from_slice(bytes);
        if (here.len() as u64) < total {
            let asked = std::mem::take(&mut self.asked);
            self.put_back(&asked);
            self.slice = Some((head, total, here));
            return Ok(Brought::Nothing);
        }
        let entry = Entry {
            head,
            bytes: here.into(),
        };
        if !entry.is_whole() {
            return Err(Lie::Messages);
        }
        self.answered(&Ranges::one(head.first), &Ranges::new());
        self.bytes += total;
        Ok(Brought::Bodies(vec![entry]))
    }
}
