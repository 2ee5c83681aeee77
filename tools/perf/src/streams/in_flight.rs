//! What a publisher has sent and the broker has not confirmed.

use std::collections::VecDeque;

/// Entries that were sent together: each has its number, and is confirmed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub first: u64,
    pub last: u64,
    /// Messages of each entry.
    pub weight: u64,
    /// From when the first one and the last one count, in nanoseconds of the monotonic clock. Those between are spread evenly.
    pub from: (u64, u64),
}

/// An entry that was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settled {
    pub messages: u64,
    /// From when it counts.
    pub from: u64,
}

/// In the order of their numbers, which the broker mostly confirms in.
#[derive(Debug, Default)]
pub struct InFlight {
    spans: VecDeque<(Span, u64)>,
    messages: u64,
}

impl InFlight {
    /// Remembers what was sent. Its numbers are above all before.
    pub fn push(&mut self, span: Span) {
        let entries = span.last - span.first + 1;
        self.messages += entries * span.weight;
        self.spans.push_back((span, entries));
    }

    /// The broker settled the entry of this number; `None` if it is not under way.
    #[inline]
    pub fn settle(&mut self, number: u64) -> Option<Settled> {
        let is_in_front = self.spans.front().is_some_and(|(span, _)| number <= span.last);
        let at = match is_in_front {
            true => 0,
            false => self.spans.partition_point(|(span, _)| span.last < number),
        };
        let (span, left) = self.spans.get_mut(at)?;
        if number < span.first || *left == 0 {
            return None;
        }
        *left -= 1;
        let settled = Settled {
            messages: span.weight,
            from: span.moment(number),
        };
        self.messages -= span.weight;
        while self.spans.front().is_some_and(|(_, left)| *left == 0) {
            self.spans.pop_front();
        }
        Some(settled)
    }

    /// Messages that are under way.
    pub fn messages(&self) -> u64 {
        self.messages
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        self.spans.clear();
        self.messages = 0;
    }
}

impl Span {
    #[inline]
    fn moment(&self, number: u64) -> u64 {
        let (first, last) = self.from;
        if first == last || self.first == self.last {
            return first;
        }
        let part = u128::from(last - first) * u128::from(number - self.first);
        first + (part / u128::from(self.last - self.first)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(first: u64, last: u64, weight: u64) -> Span {
        Span {
            first,
            last,
            weight,
            from: (first * 10, last * 10),
        }
    }

    #[test]
    fn entries_are_settled_once_in_any_order_with_their_own_moments() {
        let mut in_flight = InFlight::default();
        in_flight.push(span(5, 9, 1));
        in_flight.push(span(12, 12, 3));
        assert_eq!(in_flight.messages(), 8);
        assert_eq!(
            in_flight.settle(12),
            Some(Settled {
                messages: 3,
                from: 120
            })
        );
        assert_eq!(in_flight.settle(12), None);
        for number in [9, 5, 7, 6, 8] {
            assert_eq!(
                in_flight.settle(number),
                Some(Settled {
                    messages: 1,
                    from: number * 10
                })
            );
        }
        assert_eq!((in_flight.messages(), in_flight.settle(8)), (0, None));
    }

    #[test]
    fn numbers_that_were_never_sent_settle_nothing() {
        let mut in_flight = InFlight::default();
        assert_eq!(in_flight.settle(0), None);
        in_flight.push(span(5, 6, 1));
        assert_eq!((in_flight.settle(4), in_flight.settle(7)), (None, None));
        in_flight.clear();
        assert_eq!((in_flight.settle(5), in_flight.messages()), (None, 0));
    }
}
