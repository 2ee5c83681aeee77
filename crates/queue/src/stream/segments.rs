//! Which parts a stream has, and which of them go. A segment is closed by the tracking snapshot with which the next one begins,
//! or replaced by that, if it has no messages; the one that is written to never goes.

use super::StreamSettings;
use model::Timestamp;
use std::collections::VecDeque;

/// A part of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The offset of its first message, or of the next one if it has none.
    pub first: u64,
    /// The offset behind its last message.
    pub next: u64,
    /// Its chunks, in bytes.
    pub bytes: u64,
    /// When its last chunk was made.
    pub last: Timestamp,
}

/// The parts of a stream, the oldest one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segments {
    closed: VecDeque<Segment>,
    active: Segment,
    /// Of all, in bytes.
    bytes: u64,
    /// When it was last seen to that old ones go.
    looked: Timestamp,
}

/// What is too old and pinned is looked at again after so long, in milliseconds.
const LOOK_AGAIN_MS: u64 = 10_000;

impl Segments {
    /// The one that is written to begins at `first`.
    pub fn of(closed: impl IntoIterator<Item = Segment>, first: u64) -> Self {
        let closed: VecDeque<Segment> = closed.into_iter().collect();
        let last = closed.back().copied().unwrap_or_default();
        Self {
            bytes: closed.iter().map(|segment| segment.bytes).sum(),
            active: Segment {
                first,
                next: first,
                bytes: 0,
                last: last.last,
            },
            closed,
            looked: Timestamp(0),
        }
    }

    /// This one is written to, and others are nobody's affair here.
    pub(super) fn written_to(active: Segment) -> Self {
        Self {
            closed: VecDeque::new(),
            bytes: active.bytes,
            active,
            looked: Timestamp(0),
        }
    }

    /// Others than the one that is written to are somebody else's affair.
    pub(super) fn forget_closed(&mut self) {
        self.closed.clear();
        self.bytes = self.active.bytes;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.closed.len() + 1
    }

    /// False: one is always written to.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The closed ones, the oldest first.
    pub fn closed(&self) -> impl Iterator<Item = &Segment> {
        self.closed.iter()
    }

    /// The one that is written to.
    pub fn active(&self) -> &Segment {
        &self.active
    }

    /// All chunks, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first offset that is there, or the next one if there is none.
    pub fn first_offset(&self) -> u64 {
        self.closed.front().unwrap_or(&self.active).first
    }

    pub(super) fn next_offset(&self) -> u64 {
        self.active.next
    }

    pub(super) fn last_time(&self) -> Timestamp {
        self.active.last
    }

    /// A snapshot stands before this offset: what comes is another segment's. One without messages is replaced by that: all that
    /// it tracks is in the snapshot.
    pub(super) fn close(&mut self, first: u64) {
        if self.active.next == self.active.first {
            self.bytes -= self.active.bytes;
            self.active.bytes = 0;
            return;
        }
        self.closed.push_back(self.active);
        self.active = Segment {
            first,
            next: first,
            bytes: 0,
            last: self.active.last,
        };
    }

    /// A chunk was added.
    pub fn grow(&mut self, next: u64, bytes: u64, last: Timestamp) {
        (self.active.next, self.active.last) = (next, last);
        self.active.bytes += bytes;
        self.bytes += bytes;
    }

    /// Drops what the limits do not allow any more, from the oldest on. What a reader at `pinned` or behind it stands in is kept
    /// until the limits are exceeded twice. True if something was dropped.
    pub fn drop_old(&mut self, settings: &StreamSettings, now: Timestamp, pinned: Option<u64>) -> bool {
        let before = self.closed.len();
        self.looked = now;
        while let Some(oldest) = self.closed.front() {
            let is_pinned = pinned.is_some_and(|pinned| pinned < oldest.next);
            let factor = if is_pinned { 2 } else { 1 };
            let too_much = |most: u64| self.bytes > most.saturating_mul(factor);
            let too_old = |most: u64| now.0.saturating_sub(oldest.last.0) > most.saturating_mul(factor);
            if !settings.max_bytes.is_some_and(too_much) && !settings.max_age_ms.is_some_and(too_old) {
                break;
            }
            self.bytes -= oldest.bytes;
            self.closed.pop_front();
        }
        self.closed.len() < before
    }

    /// When the oldest closed one is too old, in milliseconds since the Unix epoch; `u64::MAX` for never.
    pub fn expires_at_ms(&self, settings: &StreamSettings) -> u64 {
        let (Some(oldest), Some(age)) = (self.closed.front(), settings.max_age_ms) else {
            return u64::MAX;
        };
        let due = oldest.last.0.saturating_add(age).saturating_add(1);
        if due <= self.looked.0 {
            self.looked.0.saturating_add(LOOK_AGAIN_MS)
        } else {
            due
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments() -> Segments {
        let closed = [(0, 10, 100), (10, 20, 200), (20, 30, 300)];
        let mut segments = Segments::of(
            closed.map(|(first, next, last)| Segment {
                first,
                next,
                bytes: 1_000,
                last: Timestamp(last),
            }),
            30,
        );
        segments.grow(35, 500, Timestamp(400));
        segments
    }

    /// The first offset that is left of these segments, of 1,000 bytes each and 500 in the active one.
    fn left(max_bytes: Option<u64>, max_age_ms: Option<u64>, now: u64, pinned: Option<u64>) -> u64 {
        let settings = StreamSettings {
            max_bytes,
            max_age_ms,
            ..StreamSettings::default()
        };
        let mut segments = segments();
        let dropped = segments.drop_old(&settings, Timestamp(now), pinned);
        assert_eq!(dropped, segments.len() < 4);
        assert_eq!(segments.bytes(), 500 + 1_000 * (segments.len() as u64 - 1));
        segments.first_offset()
    }

    #[test]
    fn whole_segments_go_and_the_active_one_stays() {
        assert_eq!(left(None, None, 10_000, None), 0);
        assert_eq!(left(Some(3_500), None, 0, None), 0);
        assert_eq!(left(Some(3_499), None, 0, None), 10);
        assert_eq!(left(Some(0), None, 0, None), 30);
        assert_eq!(left(None, Some(100), 200, None), 0);
        assert_eq!(left(None, Some(100), 201, None), 10);
        assert_eq!(left(None, Some(100), 9_000, None), 30);
    }

    #[test]
    fn what_a_reader_stands_in_is_kept_up_to_twice_the_limits() {
        assert_eq!(left(Some(2_000), None, 0, Some(15)), 10);
        assert_eq!(left(Some(2_000), None, 0, Some(0)), 0);
        assert_eq!(left(Some(1_700), None, 0, Some(0)), 10);
        assert_eq!(left(None, Some(100), 300, Some(5)), 0);
        assert_eq!(left(None, Some(100), 301, Some(5)), 10);
    }

    #[test]
    fn it_wakes_when_the_oldest_is_too_old_and_not_at_once_again_if_that_is_pinned() {
        let settings = StreamSettings {
            max_age_ms: Some(1_000),
            ..StreamSettings::default()
        };
        let mut segments = segments();
        assert_eq!(segments.expires_at_ms(&settings), 1_101);
        assert_eq!(segments.expires_at_ms(&StreamSettings::default()), u64::MAX);
        assert!(!segments.drop_old(&settings, Timestamp(1_101), Some(0)));
        assert_eq!(segments.expires_at_ms(&settings), 11_101);
        assert!(segments.drop_old(&settings, Timestamp(11_101), Some(0)));
        assert_eq!(segments.expires_at_ms(&settings), u64::MAX);
    }
}
