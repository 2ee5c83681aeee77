//! Every message accounted for: `--verify`.
//!
//! A message is *lost* if it was published, nobody took responsibility away from the broker (a return, a nack), and it never came.
//! With confirms the broker is responsible once it has confirmed: what was on its way when a connection broke, and did not
//! come, is told apart. A message that comes twice is a *duplicate*, unless the broker marks it as redelivered, or the consumer
//! lost its connection, and with it perhaps its acknowledgement, after it came. Order is checked for each producer; it is a fault only with a single consumer, since several share a queue's messages in any order.

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
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(producer: u32, sequence: u64) -> Vec<u8> {
        let mut body = vec![0; 40];
        let filler = seal::filler_crc(&body);
        seal::write(&mut body[..seal::LENGTH], producer, sequence, filler);
        body
    }

    fn published(count: u64) -> Ledger {
        let mut ledger = Ledger::new(1, true, true);
        (0..count).for_each(|it| ledger.published(0, it));
        ledger
    }

    #[test]
    fn all_is_well_when_all_come_in_order() {
        let mut ledger = published(3);
        (0..3).for_each(|it| ledger.consumed(&body(0, it), false));
        let verdict = ledger.report(true);
        assert!(verdict.ok);
        assert_eq!((verdict.published, verdict.consumed, verdict.lost), (3, 3, 0));
        assert_eq!(verdict.text().len(), 1);
    }

    #[test]
    fn each_kind_of_fault_is_told_apart() {
        let mut ledger = published(5);
        for it in [0, 2, 1, 1] {
            ledger.consumed(&body(0, it), false);
        }
        ledger.consumed(&body(0, 0), true);
        let mut damaged = body(0, 3);
        damaged[39] ^= 1;
        ledger.consumed(&damaged, false);
        ledger.nacked(0, 4);
        let it = ledger.report(true);
        assert!(!it.ok);
        assert_eq!(
            (
                it.lost,
                it.duplicates,
                it.out_of_order,
                it.corrupt,
                it.redelivered
            ),
            (1, 1, 1, 1, 1)
        );
        assert_eq!(it.examples, [(0, 3)]);
    }

    #[test]
    fn what_was_unconfirmed_when_a_connection_broke_is_not_lost() {
        let mut ledger = published(4);
        ledger.confirmed(0, 0);
        ledger.confirmed(0, 1);
        ledger.lost_connection(0);
        ledger.consumed(&body(0, 0), false);
        ledger.consumed(&body(0, 2), false);
        let it = ledger.report(true);
        assert_eq!((it.lost, it.unconfirmed_missing), (1, 1));
        assert_eq!(it.examples, [(0, 1)]);
    }

    #[test]
    fn a_message_that_came_before_its_consumer_was_cut_off_may_come_again() {
        let mut ledger = published(2);
        ledger.consumed(&body(0, 0), false);
        ledger.lost_consumer();
        for it in [0, 1, 1] {
            ledger.consumed(&body(0, it), false);
        }
        let it = ledger.report(true);
        assert_eq!((it.duplicates, it.redelivered), (1, 1));
    }

    #[test]
    fn a_run_that_was_cut_short_loses_nothing() {
        let verdict = published(4).report(false);
        assert!(verdict.ok);
        assert_eq!(verdict.lost, 0);
        assert!(verdict.text().join(" ").contains("cut short"));
    }

    #[test]
    fn several_consumers_may_share_messages_in_any_order() {
        let mut ledger = Ledger::new(1, false, false);
        (0..2).for_each(|it| ledger.published(0, it));
        [1, 0]
            .into_iter()
            .for_each(|it| ledger.consumed(&body(0, it), false));
        let verdict = ledger.report(true);
        assert_eq!((verdict.out_of_order, verdict.ok), (1, true));
    }

    #[test]
    fn hundreds_of_millions_in_order_take_no_memory_to_speak_of() {
        let mut ledger = Ledger::new(1, true, true);
        ledger.published(0, 300_000_000 - 1);
        let it = &mut ledger.producers[0];
        it.seen = Ranges::span(0, 299_999_990);
        it.confirmed = it.seen.clone();
        (299_999_991..300_000_000).for_each(|it| {
            ledger.consumed(&body(0, it), false);
            ledger.confirmed(0, it);
        });
        ledger.lost_consumer();
        ledger.lost_connection(0);
        let it = &ledger.producers[0];
        let spans =
            [&it.confirmed, &it.refused, &it.doubtful, &it.seen, &it.repeatable].map(|it| it.spans().count());
        assert_eq!(spans, [1, 0, 0, 1, 1]);
        assert!(ledger.report(true).ok);
    }

    /// What chance does to a producer's messages.
    #[derive(Debug, Clone)]
    enum Fate {
        Publish,
        /// Of the messages that were published, this one (counted round) is …
        Confirm(prop::sample::Index),
        Nack(prop::sample::Index),
        Return(prop::sample::Index),
        Deliver(prop::sample::Index, bool),
        /// … with a bit flipped in its body: which one.
        Damage(prop::sample::Index, usize),
        CutProducer,
        CutConsumer,
    }

    fn fate() -> impl Strategy<Value = (usize, Fate)> {
        let index = any::<prop::sample::Index>;
        let fate = prop_oneof![
            8 => Just(Fate::Publish),
            4 => index().prop_map(Fate::Confirm),
            1 => index().prop_map(Fate::Nack),
            1 => index().prop_map(Fate::Return),
            8 => (index(), prop::bool::weighted(0.2)).prop_map(|(it, again)| Fate::Deliver(it, again)),
            1 => (index(), 0..8 * 40usize).prop_map(|(it, bit)| Fate::Damage(it, bit)),
            1 => Just(Fate::CutProducer),
            1 => Just(Fate::CutConsumer),
        ];
        (0..3usize, fate)
    }

    /// One producer's messages, each by itself.
    #[derive(Default)]
    struct Naive {
        messages: Vec<NaiveMessage>,
        highest: Option<usize>,
    }

    #[derive(Default, Clone)]
    struct NaiveMessage {
        confirmed: bool,
        refused: bool,
        doubtful: bool,
        came: bool,
        came_before_a_cut: bool,
    }

    impl Naive {
        fn deliver(&mut self, at: usize, redelivered: bool, verdict: &mut Verdict) {
            verdict.consumed += 1;
            let message = &mut self.messages[at];
            if message.came {
                let allowed = redelivered || message.came_before_a_cut;
                *(if allowed {
                    &mut verdict.redelivered
                } else {
                    &mut verdict.duplicates
                }) += 1;
                return;
            }
            message.came = true;
            verdict.redelivered += u64::from(redelivered);
            verdict.out_of_order += u64::from(!redelivered && self.highest.is_some_and(|it| it > at));
            self.highest = self.highest.max(Some(at));
        }

        fn missing(&self, verdict: &mut Verdict) {
            verdict.published += self.messages.len() as u64;
            for message in self.messages.iter().filter(|it| !it.came && !it.refused) {
                *(if message.doubtful {
                    &mut verdict.unconfirmed_missing
                } else {
                    &mut verdict.lost
                }) += 1;
            }
        }
    }

    proptest! {
        #[test]
        fn it_counts_like_a_list_of_all_messages(
            confirms: bool, ordered: bool, fates in prop::collection::vec(fate(), 0..300),
        ) {
            let mut ledger = Ledger::new(3, confirms, ordered);
            let mut naive: [Naive; 3] = Default::default();
            let mut expected = Verdict { complete: true, ..Verdict::default() };
            for (number, fate) in fates {
                let (producer, all) = (number as u32, &mut naive[number]);
                let count = all.messages.len();
                let pick = |it: prop::sample::Index| it.index(count);
                match fate {
                    Fate::Publish => {
                        all.messages.push(NaiveMessage::default());
                        ledger.published(producer, count as u64);
                    }
                    Fate::CutProducer => {
                        for it in &mut all.messages {
                            it.doubtful |= if confirms { !it.confirmed } else { !it.came };
                        }
                        ledger.lost_connection(producer);
                    }
                    Fate::CutConsumer => {
                        let all = naive.iter_mut().flat_map(|it| &mut it.messages);
                        all.for_each(|it| it.came_before_a_cut |= it.came);
                        ledger.lost_consumer();
                    }
                    _ if count == 0 => {}
                    Fate::Confirm(it) => {
                        all.messages[pick(it)].confirmed = true;
                        ledger.confirmed(producer, pick(it) as u64);
                    }
                    Fate::Nack(it) => {
                        all.messages[pick(it)].refused = true;
                        ledger.nacked(producer, pick(it) as u64);
                    }
                    Fate::Return(it) => {
                        all.messages[pick(it)].refused = true;
                        ledger.returned(&body(producer, pick(it) as u64));
                    }
                    Fate::Deliver(it, redelivered) => {
                        all.deliver(pick(it), redelivered, &mut expected);
                        ledger.consumed(&body(producer, pick(it) as u64), redelivered);
                    }
                    Fate::Damage(it, bit) => {
                        let mut damaged = body(producer, pick(it) as u64);
                        damaged[bit / 8] ^= 1 << (bit % 8);
                        expected.corrupt += 1;
                        ledger.consumed(&damaged, false);
                    }
                }
            }
            naive.iter().for_each(|it| it.missing(&mut expected));
            let faults = expected.lost + expected.duplicates + expected.corrupt;
            expected.ok = faults == 0 && !(ordered && expected.out_of_order > 0);
            let mut verdict = ledger.report(true);
            prop_assert_eq!(verdict.examples.len() as u64, expected.lost.min(NAMED as u64));
            for (producer, sequence) in std::mem::take(&mut verdict.examples) {
                let it = &naive[producer].messages[sequence as usize];
                prop_assert!(!it.came && !it.refused && !it.doubtful);
            }
            prop_assert_eq!(verdict, expected);
        }
    }
}
