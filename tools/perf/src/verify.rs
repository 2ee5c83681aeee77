//! Every message accounted for: `--verify`.
//!
//! A message is *lost* if it was published, nobody took responsibility away from the broker (a return, a nack), and it
//! never came. With confirms the broker is responsible once it has confirmed: what was on its way when a connection
//! broke, and did not come, is told apart. A message that comes twice is
//! a *duplicate*, unless the broker marks it as redelivered, or the consumer
//! lost its connection, and with it perhaps its acknowledgement, after it came. Order is checked for each producer; it
//! is a fault only with a single consumer, since several share a queue's messages in any order.

use crate::message::seal;
use model::Ranges;
use std::fmt::Write;

/// Numbers of lost messages that are named.
const NAMED: usize = 5;

/// What became of each message so far. Memory grows with gaps, not with messages.
#[derive(Debug)]
pub struct Ledger {
    producers: Vec<Producer>,
    confirms: bool,
    ordered: bool,
    consumed: u64,
    duplicates: u64,
    redelivered: u64,
    out_of_order: u64,
    corrupt: u64,
    foreign: u64,
}

#[derive(Debug, Default, Clone)]
struct Producer {
    published: u64,
    confirmed: Ranges,
    /// Nacked or returned: the broker said that it does not have them.
    refused: Ranges,
    /// On their way when a connection was lost.
    doubtful: Ranges,
    seen: Ranges,
    /// Seen before a consumer lost its connection: these may come again.
    repeatable: Ranges,
    /// The highest number that came, and one.
    next: u64,
}

/// What the ledger shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Verdict {
    pub published: u64,
    pub consumed: u64,
    pub lost: u64,
    pub duplicates: u64,
    pub redelivered: u64,
    pub out_of_order: u64,
    pub corrupt: u64,
    /// Messages of earlier runs, which are passed over.
    pub foreign: u64,
    /// Not confirmed when their connection broke, and not consumed: the broker promised nothing.
    pub unconfirmed_missing: u64,
    /// False if the run ended before everything could come; then nothing counts as lost.
    pub complete: bool,
    pub ok: bool,
    /// The first lost ones, as producer and number.
    pub examples: Vec<(usize, u64)>,
}

impl Ledger {
    /// For so many producers; `confirms` if the broker confirms, `ordered` if only one consumer takes the messages.
    pub fn new(producers: usize, confirms: bool, ordered: bool) -> Self {
        Self {
            producers: vec![Producer::default(); producers],
            confirms,
            ordered,
            consumed: 0,
            duplicates: 0,
            redelivered: 0,
            out_of_order: 0,
            corrupt: 0,
            foreign: 0,
        }
    }

    /// A producer published a message. Numbers ascend.
    pub fn published(&mut self, producer: u32, sequence: u64) {
        if let Some(it) = self.producers.get_mut(producer as usize) {
            it.published = it.published.max(sequence + 1);
        }
    }

    /// The broker confirmed a message.
    pub fn confirmed(&mut self, producer: u32, sequence: u64) {
        if let Some(it) = self.producers.get_mut(producer as usize) {
            it.confirmed.push(sequence);
        }
    }

    /// The broker refused a message.
    pub fn nacked(&mut self, producer: u32, sequence: u64) {
        if let Some(it) = self.producers.get_mut(producer as usize) {
            it.refused.push(sequence);
        }
    }

    /// The broker gave a message back: no queue takes it.
    pub fn returned(&mut self, body: &[u8]) {
        if let Some(sealed) = seal::read(body).filter(|it| it.ours) {
            self.nacked(sealed.producer, sealed.sequence);
        }
    }

    /// A producer's connection broke. What is not confirmed by now never will be.
    pub fn lost_connection(&mut self, producer: u32) {
        let Some(it) = self.producers.get_mut(producer as usize) else {
            return;
        };
        // Without confirms nobody knows how much of what was written arrived.
        let known = if self.confirms { &it.confirmed } else { &it.seen };
        for (first, last) in gaps(known, it.published) {
            it.doubtful.push_span(first, last);
        }
    }

    /// A consumer's connection broke. What it had taken and not acknowledged comes again, and a broker that was killed
    /// cannot know what it had delivered.
    pub fn lost_consumer(&mut self) {
        for it in &mut self.producers {
            it.repeatable = it.seen.clone();
        }
    }

    /// A consumer got a message.
    pub fn consumed(&mut self, body: &[u8], redelivered: bool) {
        let Some(sealed) = seal::read(body) else {
            self.corrupt += 1;
            return;
        };
        let producer = self
            .producers
            .get_mut(sealed.producer as usize)
            .filter(|_| sealed.ours);
        let Some(it) = producer else {
            self.foreign += 1;
            return;
        };
        self.consumed += 1;
        self.redelivered += u64::from(redelivered);
        if it.seen.contains(sealed.sequence) {
            let again = redelivered || it.repeatable.contains(sealed.sequence);
            self.duplicates += u64::from(!again);
            self.redelivered += u64::from(again && !redelivered);
            return;
        }
        it.seen.push(sealed.sequence);
        if sealed.sequence < it.next && !redelivered {
            self.out_of_order += 1;
        }
        it.next = it.next.max(sealed.sequence + 1);
    }

    /// What the ledger shows now; `complete` if nothing more can come.
    pub fn report(&self, complete: bool) -> Verdict {
        let mut verdict = Verdict {
            consumed: self.consumed,
            duplicates: self.duplicates,
            redelivered: self.redelivered,
            out_of_order: self.out_of_order,
            corrupt: self.corrupt,
            foreign: self.foreign,
            complete,
            ..Verdict::default()
        };
        for (number, it) in self.producers.iter().enumerate() {
            verdict.published += it.published;
            if complete {
                it.missing(number, &mut verdict);
            }
        }
        let faults = verdict.lost + verdict.duplicates + verdict.corrupt;
        verdict.ok = faults == 0 && (verdict.out_of_order == 0 || !self.ordered);
        verdict
    }
}

impl Producer {
    /// Counts what never came.
    fn missing(&self, number: usize, verdict: &mut Verdict) {
        for (first, last) in gaps(&self.seen, self.published) {
            for sequence in first..=last {
                if self.refused.contains(sequence) {
                    continue;
                }
                if self.doubtful.contains(sequence) {
                    verdict.unconfirmed_missing += 1;
                    continue;
                }
                verdict.lost += 1;
                if verdict.examples.len() < NAMED {
                    verdict.examples.push((number, sequence));
                }
            }
        }
    }
}

/// What is not in `known` of the numbers below `end`.
fn gaps(known: &Ranges, end: u64) -> Vec<(u64, u64)> {
    let mut gaps = Vec::new();
    let mut next = 0;
    for (first, last) in known.spans() {
        if first > next {
            gaps.push((next, first - 1));
        }
        next = last + 1;
    }
    if end > next {
        gaps.push((next, end - 1));
    }
    gaps
}

impl Verdict {
    /// Lines for people.
    pub fn text(&self) -> Vec<String> {
        let mut line = format!(
            "verify: {}, published {}, consumed {}, lost {}, duplicates {}, redelivered {}, out of order {}, corrupt {}",
            if self.ok { "ok" } else { "FAULTS" },
            self.published,
            self.consumed,
            self.lost,
            self.duplicates,
            self.redelivered,
            self.out_of_order,
            self.corrupt
        );
        if self.unconfirmed_missing > 0 {
            let _ = write!(line, ", unconfirmed and missing {}", self.unconfirmed_missing);
        }
        if self.foreign > 0 {
            let _ = write!(line, ", of earlier runs {}", self.foreign);
        }
        let mut lines = vec![line];
        if !self.complete {
            lines.push(
                "verify: the run was cut short, so what did not come is not counted as lost".to_owned(),
            );
        }
        if !self.examples.is_empty() {
            let named: Vec<String> = self
                .examples
                .iter()
                .map(|(producer, it)| format!("#{it} of producer {producer}"))
                .collect();
            lines.push(format!("verify: lost, for example: {}", named.join(", ")));
        }
        lines
    }
}

#[cfg(test)]
mod tests;
