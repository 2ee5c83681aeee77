//! The counters and histograms of one thread.

use hdrhistogram::Histogram;

/// The longest latency that is told apart, an hour in nanoseconds; what is longer counts as this long.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Messages a `basic.ack` of the broker may settle at once and still be told apart.
const LARGEST_CONFIRM: u64 = 1 << 20;

/// What happened since the last time somebody took it. Latencies are nanoseconds (with `--use-millis`, too) and are
/// exact to three digits.
#[derive(Debug, Clone)]
pub struct Recorder {
    /// Messages, each.
    pub published: u64,
    pub returned: u64,
    pub confirmed: u64,
    pub nacked: u64,
    pub consumed: u64,
    /// Of the consumed ones, those that the broker had tried to deliver before.
    pub redelivered: u64,
    /// Of the consumed ones, those that came before they were sent: the clocks of two machines differ. They have no latency.
    pub early: u64,
    /// From the moment `--latency-from` names to the moment a consumer had the message.
    pub latency: Histogram<u64>,
    /// From the moment a message was written, as PerfTest counts. Holds something only if that differed from
    /// `latency` at least once; [`Recorder::sent`] is the one to read.
    pub sent_latency: Histogram<u64>,
    /// From the moment a message was published to its confirm.
    pub confirm_latency: Histogram<u64>,
    /// How many messages each confirm of the broker settled.
    pub confirm_size: Histogram<u64>,
    /// From here on `sent_latency` is filled beside `latency`.
    differs: bool,
    /// Given back by who took it last, so that taking allocates nothing.
    spare: Option<Box<Recorder>>,
}

impl Recorder {
    /// An empty one, of about 850 KB.
    pub fn new() -> Self {
        Self {
            published: 0,
            returned: 0,
            confirmed: 0,
            nacked: 0,
            consumed: 0,
            redelivered: 0,
            early: 0,
            latency: latencies(),
            sent_latency: latencies(),
            confirm_latency: latencies(),
            confirm_size: histogram(LARGEST_CONFIRM),
            differs: false,
            spare: None,
        }
    }

    /// A message's latency, when the moment it was due and the moment it was written are the same.
    #[inline]
    pub fn latency(&mut self, ns: u64) {
        self.latency_n(ns, 1);
    }

    /// The same latency of `n` messages, such as those that came in one read: as cheap as one.
    #[inline]
    pub fn latency_n(&mut self, ns: u64, n: u64) {
        self.latency.saturating_record_n(ns, n);
        if self.differs {
            self.sent_latency.saturating_record_n(ns, n);
        }
    }

    /// A message's latency from the moment it was due and from the moment it was written.
    #[inline]
    pub fn latency_both(&mut self, intended_ns: u64, sent_ns: u64) {
        if !self.differs && intended_ns != sent_ns {
            self.tell_apart();
        }
        self.latency.saturating_record(intended_ns);
        if self.differs {
            self.sent_latency.saturating_record(sent_ns);
        }
    }

    /// The time from a publish to its confirm, of `n` messages.
    #[inline]
    pub fn confirm_latency_n(&mut self, ns: u64, n: u64) {
        self.confirm_latency.saturating_record_n(ns, n);
    }

    /// The broker confirmed this many messages at once. Does not count them: `confirmed` and `nacked` do.
    #[inline]
    pub fn confirm_size(&mut self, messages: u64) {
        self.confirm_size.saturating_record(messages);
    }

    /// Latencies from the moment messages were written.
    pub fn sent(&self) -> &Histogram<u64> {
        if self.differs {
            &self.sent_latency
        } else {
            &self.latency
        }
    }

    /// Whether a message was written at another moment than it was due.
    pub fn sent_differs(&self) -> bool {
        self.differs
    }

    /// Whether nothing happened.
    pub fn is_idle(&self) -> bool {
        self.published == 0
            && self.returned == 0
            && self.confirmed == 0
            && self.nacked == 0
            && self.consumed == 0
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        self.published = self.published.saturating_add(other.published);
        self.returned = self.returned.saturating_add(other.returned);
        self.confirmed = self.confirmed.saturating_add(other.confirmed);
        self.nacked = self.nacked.saturating_add(other.nacked);
        self.consumed = self.consumed.saturating_add(other.consumed);
        self.redelivered = self.redelivered.saturating_add(other.redelivered);
        self.early = self.early.saturating_add(other.early);
        if other.differs && !self.differs {
            self.tell_apart();
        }
        if self.differs {
            add(&mut self.sent_latency, other.sent());
        }
        add(&mut self.latency, &other.latency);
        add(&mut self.confirm_latency, &other.confirm_latency);
        add(&mut self.confirm_size, &other.confirm_size);
    }

    /// What was counted so far; counting goes on from nothing. Costs no allocation if the last one taken was
    /// [given back](Self::give_back).
    pub fn take(&mut self) -> Self {
        let mut fresh = self.spare.take().map_or_else(Self::new, |spare| *spare);
        std::mem::swap(self, &mut fresh);
        fresh
    }

    /// Takes an old one to be counted into after the next [`take`](Self::take).
    pub fn give_back(&mut self, mut old: Self) {
        old.clear();
        old.spare = None;
        self.spare = Some(Box::new(old));
    }

    /// Adds what was counted so far to another one; counting goes on from nothing. Allocates nothing.
    pub fn drain_into(&mut self, total: &mut Self) {
        total.merge(self);
        self.clear();
    }

    /// Back to nothing.
    pub fn clear(&mut self) {
        self.published = 0;
        self.returned = 0;
        self.confirmed = 0;
        self.nacked = 0;
        self.consumed = 0;
        self.redelivered = 0;
        self.early = 0;
        self.differs = false;
        for histogram in [
            &mut self.latency,
            &mut self.sent_latency,
            &mut self.confirm_latency,
            &mut self.confirm_size,
        ] {
            if !histogram.is_empty() {
                histogram.reset();
            }
        }
    }

    /// Everything up to here was written when it was due.
    #[cold]
    fn tell_apart(&mut self) {
        self.differs = true;
        add(&mut self.sent_latency, &self.latency);
    }
}

impl Default for Recorder {
    fn default() -> Self {
        Self::new()
    }
}

/// An empty histogram of latencies: three digits from 1 ns to [`LONGEST_NS`].
pub fn latencies() -> Histogram<u64> {
    histogram(LONGEST_NS)
}

/// Three digits from 1 to `highest`. Such bounds are always possible.
fn histogram(highest: u64) -> Histogram<u64> {
    Histogram::new_with_bounds(1, highest, 3).unwrap_or_else(|_| unreachable!("1 to {highest} with 3 digits"))
}

/// Histograms of the same bounds always fit into each other; an empty one is not even looked at.
pub fn add(to: &mut Histogram<u64>, from: &Histogram<u64>) {
    if !from.is_empty() {
        let added = to.add(from);
        debug_assert!(added.is_ok(), "{added:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn latencies_are_exact_to_three_digits_and_never_out_of_bounds() {
        let mut recorder = Recorder::new();
        for ns in [0, 1, 999, 1_234_567, LONGEST_NS, u64::MAX] {
            recorder.latency(ns);
        }
        assert_eq!(recorder.latency.len(), 6);
        assert_eq!(recorder.latency.min(), 0);
        assert!(
            recorder
                .latency
                .equivalent(recorder.latency.value_at_quantile(0.66), 1_234_567)
        );
        assert!(recorder.latency.max() >= LONGEST_NS);
    }

    #[test]
    fn the_latency_from_the_send_is_the_other_one_until_they_differ() {
        let mut recorder = Recorder::new();
        recorder.latency_both(10, 10);
        recorder.latency(20);
        assert!(!recorder.sent_differs());
        assert_eq!(recorder.sent().len(), 2);
        recorder.latency_both(500, 30);
        assert!(recorder.sent_differs());
        recorder.latency_n(40, 2);
        assert_eq!((recorder.latency.len(), recorder.sent().len()), (5, 5));
        assert_eq!((recorder.latency.max(), recorder.sent().max()), (500, 40));
    }

    #[test]
    fn merging_keeps_both_latencies_whole_whichever_side_differs() {
        let mut same = Recorder::new();
        same.latency_n(10, 3);
        let mut differing = Recorder::new();
        differing.latency_both(900, 5);
        for (mut one, other) in [(same.clone(), &differing), (differing.clone(), &same)] {
            one.merge(other);
            assert_eq!((one.latency.len(), one.sent().len()), (4, 4));
            assert_eq!((one.latency.max(), one.sent().max()), (900, 10));
        }
    }

    #[test]
    fn taking_hands_out_everything_and_counts_on_from_nothing() {
        let mut recorder = Recorder::new();
        recorder.published = 7;
        recorder.latency_both(9, 4);
        let first = recorder.take();
        assert_eq!(
            (first.published, first.latency.len(), first.sent().len()),
            (7, 1, 1)
        );
        assert!(recorder.is_idle() && recorder.latency.is_empty() && !recorder.sent_differs());
        recorder.give_back(first);
        recorder.consumed = 1;
        let second = recorder.take();
        assert_eq!(
            (second.published, second.consumed, second.latency.len()),
            (0, 1, 0)
        );
        assert!(recorder.is_idle() && recorder.latency.is_empty() && recorder.sent_latency.is_empty());
    }

    #[test]
    fn draining_adds_to_the_total_and_empties() {
        let (mut recorder, mut total) = (Recorder::new(), Recorder::new());
        for round in 1..4 {
            recorder.confirmed += round;
            recorder.early += 1;
            recorder.redelivered += 2;
            recorder.confirm_latency_n(1_000, round);
            recorder.confirm_size(round);
            recorder.drain_into(&mut total);
            assert!(recorder.is_idle() && recorder.confirm_latency.is_empty());
        }
        assert_eq!((total.confirmed, total.early, total.redelivered), (6, 3, 6));
        assert_eq!((total.confirm_latency.len(), total.confirm_size.len()), (6, 3));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn any_split_over_threads_and_intervals_adds_up_to_the_same(
            messages in proptest::collection::vec((0u64..10_000_000_000, 0u64..1_000_000, 0usize..3, any::<bool>()), 0..60)
        ) {
            let mut whole = Recorder::new();
            let mut parts = [Recorder::new(), Recorder::new(), Recorder::new()];
            let mut total = Recorder::new();
            for (sent, lag, part, drain) in messages {
                whole.consumed += 1;
                whole.latency_both(sent + lag, sent);
                parts[part].consumed += 1;
                parts[part].latency_both(sent + lag, sent);
                if drain {
                    parts[part].drain_into(&mut total);
                }
            }
            for part in &mut parts {
                total.merge(&part.take());
            }
            prop_assert_eq!(total.consumed, whole.consumed);
            prop_assert_eq!(&total.latency, &whole.latency);
            prop_assert_eq!(total.sent(), whole.sent());
        }
    }
}
