//! What a consumer of this node has, and what it was done with so lately that the leader's answer is still to come.

use super::message::{Resolved, ToLeader, Way};
use model::{ConsumerId, Mutant, Ranges};
use queue::{Held, seq_set::SeqSet};
use std::collections::{BTreeMap, VecDeque};

/// So many spans are named in one part of what is held, at the most.
const MOST_SPANS: usize = 512;

/// Messages that somebody has, by how often they had come back when they were delivered.
#[derive(Debug, Default)]
pub struct Holding {
    by_returns: BTreeMap<u32, SeqSet>,
}

impl Holding {
    /// True if it has nothing.
    pub fn is_empty(&self) -> bool {
        self.by_returns.is_empty()
    }

    /// These were delivered.
    pub fn add(&mut self, seqs: &Ranges, returns: u32) {
        let set = self.by_returns.entry(returns).or_default();
        seqs.spans().for_each(|(first, last)| set.add(first, last));
    }

    /// Takes out those of these that it has, by how often they had come back.
    pub fn take(&mut self, seqs: &Ranges) -> Vec<(u32, Ranges)> {
        let mut taken = Vec::new();
        self.by_returns.retain(|returns, set| {
            let found = take_of(set, seqs);
            if !found.is_empty() {
                taken.push((*returns, found));
            }
            !set.is_empty()
        });
        taken
    }

    /// Takes out those of these that came back so often; returns the others.
    fn forget(&mut self, seqs: &Ranges, returns: u32) -> Ranges {
        let Some(set) = self.by_returns.get_mut(&returns) else {
            return seqs.clone();
        };
        let found = take_of(set, seqs);
        if set.is_empty() {
            self.by_returns.remove(&returns);
        }
        seqs.without(&found)
    }

    /// All of it.
    fn all(&self) -> Vec<(u32, Ranges)> {
        self.by_returns
            .iter()
            .map(|(returns, set)| (*returns, ranges(set)))
            .collect()
    }
}

/// Takes those of these numbers out of the set that are in it.
pub fn take_of(set: &mut SeqSet, seqs: &Ranges) -> Ranges {
    let mut found = Ranges::new();
    for (first, last) in seqs.spans() {
        let mut at = first;
        while let Some((from, to)) = set.overlap(at, last) {
            found.push_span(from, to);
            match to.checked_add(1) {
                Some(next) => at = next,
                None => break,
            }
        }
        set.remove(first, last);
    }
    found
}

/// What consumers were done with or gave back, as long as it may have to be said again.
#[derive(Debug)]
struct Operation {
    number: u64,
    consumer: Option<ConsumerId>,
    seqs: Vec<(u32, Ranges)>,
    way: Way,
}

/// Where a claim comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Consumer(Option<ConsumerId>),
    Operation(u64),
}

/// Part of what is claimed.
#[derive(Debug)]
struct Claim {
    source: Source,
    consumer: Option<ConsumerId>,
    seqs: Ranges,
    returns: u32,
}

/// Everything that this node's clients have of a queue.
#[derive(Debug)]
pub struct Holdings {
    by_consumer: BTreeMap<Option<ConsumerId>, Holding>,
    operations: VecDeque<Operation>,
    next: u64,
    /// Operations before this one were said in this session.
    unsaid: usize,
    /// The parts of what is claimed that have no answer, in order. Nothing is said of operations before they have.
    parts: VecDeque<Vec<Claim>>,
    /// The queue knows how often messages came back. Then a claim of what was given back and is somebody else's now is
    /// known to be false; else what was given back is not claimed, and comes back as what nobody claims does.
    counts_returns: bool,
}

impl Holdings {
    /// Nothing.
    pub fn new(counts_returns: bool) -> Self {
        Self {
            by_consumer: BTreeMap::new(),
            operations: VecDeque::new(),
            next: 1,
            unsaid: 0,
            parts: VecDeque::new(),
            counts_returns,
        }
    }

    /// Whether the queue knows how often messages came back.
    pub fn counts_returns(&mut self, counts: bool) {
        self.counts_returns = counts;
    }

    /// The first operation gets this number.
    pub fn count_from(&mut self, number: u64) {
        self.next = number;
    }

    /// True if nobody has anything, and nothing has to be said again.
    pub fn is_empty(&self) -> bool {
        self.by_consumer.is_empty() && self.operations.is_empty()
    }

    /// True if somebody has this message, or is done with it and may have to say so again.
    #[cfg(test)]
    pub fn has(&self, seq: model::Seq) -> bool {
        let settled = self
            .operations
            .iter()
            .filter(|it| matches!(it.way, Way::Settled(_)));
        let settled = settled.flat_map(|it| &it.seqs);
        let held: Vec<_> = self.by_consumer.values().flat_map(Holding::all).collect();
        settled.chain(&held).any(|(_, seqs)| seqs.contains(seq))
    }

    /// True if this one has it: what it had before may be another one's by now.
    #[cfg(test)]
    pub fn is_held_by(&self, consumer: Option<ConsumerId>, seq: model::Seq) -> bool {
        let holding = self.by_consumer.get(&consumer);
        holding.is_some_and(|it| it.all().iter().any(|(_, seqs)| seqs.contains(seq)))
    }

    /// True if nothing that is claimed waits for an answer.
    #[cfg(test)]
    pub fn all_counts(&self) -> bool {
        self.parts.is_empty()
    }

    /// These were delivered.
    pub fn add(&mut self, consumer: Option<ConsumerId>, seqs: &Ranges, returns: u32) {
        self.by_consumer.entry(consumer).or_default().add(seqs, returns);
    }

    /// The client is done with these. What it does not have any more is passed over.
    pub fn resolve(&mut self, consumer: Option<ConsumerId>, seqs: &Ranges, way: Way) {
        let Some(holding) = self.by_consumer.get_mut(&consumer) else {
            return;
        };
        let taken = holding.take(seqs);
        if holding.is_empty() {
            self.by_consumer.remove(&consumer);
        }
        if !taken.is_empty() {
            self.push(consumer, taken, way);
        }
    }

    /// These came for somebody who is gone: nobody has seen them.
    pub fn decline(&mut self, consumer: Option<ConsumerId>, seqs: Ranges, returns: u32) {
        let way = Way::Returned { failed: false };
        self.push(consumer, vec![(returns, seqs)], way);
    }

    fn push(&mut self, consumer: Option<ConsumerId>, seqs: Vec<(u32, Ranges)>, way: Way) {
        let unsaid = self.operations.len() > self.unsaid;
        if let Some(last) = self.operations.back_mut().filter(|_| unsaid)
            && (last.consumer, last.way) == (consumer, way)
            && let ([(returns, all)], [(same, more)]) = (&mut last.seqs[..], &seqs[..])
            && returns == same
        {
            more.spans().for_each(|(first, last)| all.push_span(first, last));
            return;
        }
        self.operations.push_back(Operation {
            number: self.next,
            consumer,
            seqs,
            way,
        });
        self.next += 1;
    }

    /// A session begins with a leader that knows of operations up to `known`, if it leads in the same term as the last one.
    /// Says what is held.
    pub fn speak(&mut self, known: Option<u64>, said: &mut Vec<ToLeader>) {
        if known.is_none() {
            // What nobody has seen, nobody claims; nor what no false claim could be told from.
            let counts = self.counts_returns;
            self.operations.retain(|it| match it.way {
                Way::Settled(_) => true,
                Way::Returned { failed } => counts && failed,
                Way::Requeued => counts,
            });
        }
        let known = known.unwrap_or(if Mutant::ForgetsResolved.is_on() {
            u64::MAX
        } else {
            0
        });
        self.unsaid = self.operations.partition_point(|it| it.number <= known);
        let mut claims = Vec::new();
        let named = self.by_consumer.iter().filter(|_| !Mutant::HoldsNothing.is_on());
        for (consumer, holding) in named {
            let source = Source::Consumer(*consumer);
            claims.extend(Claim::all(source, *consumer, holding.all()));
        }
        for operation in self.operations.range(self.unsaid..) {
            let source = Source::Operation(operation.number);
            claims.extend(Claim::all(source, operation.consumer, operation.seqs.clone()));
        }
        self.parts = in_parts(claims);
        for (at, part) in self.parts.iter().enumerate() {
            said.push(ToLeader::Holds {
                held: part.iter().map(Claim::held).collect(),
                more: at + 1 < self.parts.len(),
            });
        }
    }

    /// The session is over: nothing more is said in it.
    pub fn pause(&mut self) {
        self.parts.clear();
        self.unsaid = self.operations.len();
    }

    /// The answer to the next part of what was claimed: these don't count. False if no part waits for one.
    pub fn discard(&mut self, seqs: &Ranges) -> bool {
        let Some(part) = self.parts.pop_front() else {
            return false;
        };
        for claim in part {
            let mut gone = both(&claim.seqs, seqs);
            if let Source::Consumer(consumer) = claim.source
                && let Some(holding) = self.by_consumer.get_mut(&consumer)
            {
                gone = holding.forget(&gone, claim.returns);
                if holding.is_empty() {
                    self.by_consumer.remove(&consumer);
                }
            }
            // What the consumer was done with meanwhile is gone as well.
            for operation in self.operations.range_mut(self.unsaid..) {
                let concerned = match claim.source {
                    Source::Consumer(consumer) => operation.consumer == consumer,
                    Source::Operation(number) => operation.number == number,
                };
                if concerned && !gone.is_empty() {
                    operation.forget(&gone, claim.returns);
                }
            }
        }
        true
    }

    /// Says what consumers were done with, unless it is not known yet what of it counts.
    pub fn say(&mut self, said: &mut Vec<ToLeader>) {
        if !self.parts.is_empty() {
            return;
        }
        for operation in self.operations.range(self.unsaid..) {
            let mut seqs = Ranges::new();
            let spans = operation.seqs.iter().flat_map(|(_, seqs)| seqs.spans());
            spans.for_each(|(first, last)| seqs.push_span(first, last));
            let (consumer, way) = (operation.consumer, operation.way);
            said.push(ToLeader::Resolve {
                number: operation.number,
                resolved: Resolved { consumer, seqs, way },
            });
        }
        self.unsaid = self.operations.len();
    }

    /// Operations up to this one are so for good.
    pub fn resolved(&mut self, number: u64) {
        let done = self.operations.partition_point(|it| it.number <= number);
        self.operations.drain(..done);
        self.unsaid = self.unsaid.saturating_sub(done);
    }

    /// All that somebody has goes back: clients may have seen it, which a leader in the same term is told as soon as there is a
    /// session.
    pub fn return_all(&mut self) {
        let way = Way::Returned { failed: true };
        for (consumer, holding) in std::mem::take(&mut self.by_consumer) {
            self.push(consumer, holding.all(), way);
        }
    }

    /// What was claimed in the session that begins has numbers that mean nothing here any more: what of it counts goes back, also
    /// where somebody was done with it, which may have been another message.
    pub fn are_void(&mut self) {
        let way = Way::Returned { failed: true };
        self.operations.iter_mut().for_each(|it| it.way = way);
        self.return_all();
    }

    /// Nobody has anything any more.
    pub fn forget(&mut self) {
        self.by_consumer.clear();
        self.operations.clear();
        self.parts.clear();
        self.unsaid = 0;
    }
}

impl Claim {
    fn all(
        source: Source,
        consumer: Option<ConsumerId>,
        seqs: Vec<(u32, Ranges)>,
    ) -> impl Iterator<Item = Self> {
        seqs.into_iter().map(move |(returns, seqs)| Self {
            source,
            consumer,
            seqs,
            returns,
        })
    }

    fn held(&self) -> Held {
        Held {
            consumer: self.consumer,
            seqs: self.seqs.clone(),
            returns: self.returns,
        }
    }
}

impl Operation {
    fn forget(&mut self, seqs: &Ranges, returns: u32) {
        for (_, own) in self.seqs.iter_mut().filter(|(own, _)| *own == returns) {
            *own = own.without(seqs);
        }
    }
}

/// Claims in parts of a bounded size, none of which names a number twice; at least one.
fn in_parts(claims: Vec<Claim>) -> VecDeque<Vec<Claim>> {
    let mut parts = VecDeque::new();
    let (mut part, mut named, mut spans) = (Vec::new(), SeqSet::default(), 0);
    for claim in claims {
        let Claim {
            source,
            consumer,
            seqs,
            returns,
        } = claim;
        let mut piece = Ranges::new();
        for (first, last) in seqs.spans() {
            if spans == MOST_SPANS || named.overlap(first, last).is_some() {
                let seqs = std::mem::take(&mut piece);
                part.push(Claim {
                    source,
                    consumer,
                    seqs,
                    returns,
                });
                parts.push_back(std::mem::take(&mut part));
                named.clear();
                spans = 0;
            }
            named.insert(first, last);
            piece.push_span(first, last);
            spans += 1;
        }
        part.push(Claim {
            source,
            consumer,
            seqs: piece,
            returns,
        });
    }
    parts.push_back(part);
    parts
}

/// A set as what is said of it.
pub fn ranges(set: &SeqSet) -> Ranges {
    let mut ranges = Ranges::new();
    set.spans()
        .for_each(|(first, last)| ranges.push_span(first, last));
    ranges
}

/// The numbers that are in both.
fn both(one: &Ranges, other: &Ranges) -> Ranges {
    let mut found = Ranges::new();
    let (mut ones, mut others) = (one.spans().peekable(), other.spans().peekable());
    while let (Some((first, last)), Some((from, to))) = (ones.peek(), others.peek()) {
        found.push_span(*first.max(from), *last.min(to));
        match last < to {
            true => drop(ones.next()),
            false => drop(others.next()),
        }
    }
    found
}
