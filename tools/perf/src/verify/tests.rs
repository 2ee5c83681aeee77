//! The ledger against each kind of fault, and against a list of all messages.

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
