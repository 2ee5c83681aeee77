//! The time in messages: when each was due, and how much later it was sent.
//!
//! The first eight bytes of a body are stream-perf-test's: milliseconds since 1970, so that its consumers can time our messages
//! and ours can time its. It leaves all others zero. Where there is room, two more bytes say which part of the millisecond it
//! was (in 65536ths), and four more how long after that moment the message was sent, in microseconds: zeros are just what is
//! true of its messages.

use crate::clock;

/// The smallest body, in bytes.
pub const SMALLEST: usize = 8;
/// A body from so many bytes on tells parts of milliseconds.
const WITH_PART: usize = 10;
/// A body from so many bytes on tells its lag.
const WITH_LAG: usize = 14;

const NS_A_MS: u64 = 1_000_000;

/// What a message says about its sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Nanoseconds since 1970.
    pub at: u64,
    /// How long after that it was sent, in microseconds.
    pub lag_us: u32,
}

/// Writes a stamp into the beginning of a body, as much of it as there is room for.
#[inline]
pub fn write(body: &mut [u8], stamp: Stamp) {
    let (ms, part) = (stamp.at / NS_A_MS, stamp.at % NS_A_MS);
    if let Some(it) = body.first_chunk_mut::<SMALLEST>() {
        *it = ms.to_be_bytes();
    }
    if let Some(it) = body.get_mut(SMALLEST..WITH_PART) {
        it.copy_from_slice(&(((part << 16) / NS_A_MS) as u16).to_be_bytes());
    }
    if let Some(it) = body.get_mut(WITH_PART..WITH_LAG) {
        it.copy_from_slice(&stamp.lag_us.to_be_bytes());
    }
}

/// Reads the stamp at the beginning of a body; `None` if it is too short for one, or says something that no time is.
#[inline]
pub fn read(body: &[u8]) -> Option<Stamp> {
    let ms = u64::from_be_bytes(*body.first_chunk()?);
    let part = body
        .get(SMALLEST..WITH_PART)
        .map_or(0, |it| u64::from(it[0]) << 8 | u64::from(it[1]));
    let lag_us = body
        .get(WITH_PART..WITH_LAG)
        .and_then(|it| it.first_chunk().copied())
        .map_or(0, u32::from_be_bytes);
    let at = ms.checked_mul(NS_A_MS)?.checked_add((part * NS_A_MS) >> 16)?;
    Some(Stamp { at, lag_us })
}

/// The wall clock that messages are stamped by: as it was at the start, and moved on by the monotonic clock, so that nothing
/// jumps when the system's clock is set.
#[derive(Debug, Clone, Copy)]
pub struct WallClock {
    /// Nanoseconds to add to the monotonic clock.
    ahead: u64,
}

impl WallClock {
    /// The system's, from now on.
    pub fn start() -> Self {
        Self {
            ahead: clock::unix_us().saturating_mul(1_000).wrapping_sub(clock::now()),
        }
    }

    /// Nanoseconds since 1970 at a moment of [`clock::now`].
    #[inline]
    pub fn at(&self, moment: u64) -> u64 {
        moment.wrapping_add(self.ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_message_of_stream_perf_test_is_timed_to_the_millisecond() {
        let mut body = [0; 20];
        body[..8].copy_from_slice(&1_700_000_000_123u64.to_be_bytes());
        let stamp = Stamp {
            at: 1_700_000_000_123_000_000,
            lag_us: 0,
        };
        assert_eq!((read(&body), read(&body[..8])), (Some(stamp), Some(stamp)));
        assert_eq!(read(&body[..7]), None);
        assert_eq!(read(&[0xff; 16]), None, "no time");
    }

    #[test]
    fn stream_perf_test_reads_our_milliseconds_and_finds_zeros_where_it_writes_them() {
        let mut body = [0; 40];
        write(
            &mut body,
            Stamp {
                at: 1_700_000_000_123_999_999,
                lag_us: 7,
            },
        );
        assert_eq!(
            u64::from_be_bytes(*body.first_chunk().unwrap()),
            1_700_000_000_123
        );
        assert_eq!(body[14..], [0; 26]);
    }

    #[test]
    fn the_wall_clock_goes_as_the_monotonic_one() {
        let wall = WallClock::start();
        let now = clock::now();
        assert_eq!(wall.at(now + 5) - wall.at(now), 5);
        assert!(wall.at(now).abs_diff(clock::unix_us() * 1_000) < 60_000_000_000);
    }

    proptest! {
        #[test]
        fn as_much_comes_back_as_there_is_room_for(at in 0u64..4_000_000_000_000_000_000, lag_us: u32, size in 8usize..40) {
            let mut body = vec![0; size];
            write(&mut body, Stamp { at, lag_us });
            let stamp = read(&body).unwrap();
            let exact = if size >= 10 { 17 } else { NS_A_MS };
            prop_assert!(at - stamp.at < exact);
            prop_assert_eq!(stamp.lag_us, if size >= 14 { lag_us } else { 0 });
        }
    }
}
