//! How long a message waits before it is tried again.

/// The longest delay that may be asked for, in milliseconds: a day.
pub const LONGEST_RETRY_MS: u64 = 86_400_000;

/// A growing delay with an end: the n-th retry waits `initial * factor^(n-1)`, at most `cap`, give or take `jitter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryDelay {
    /// The first delay, in milliseconds.
    pub initial_ms: u64,
    /// By how much each delay is longer than the one before, in thousandths; 1000 is always the same.
    pub factor: u32,
    /// The longest delay, in milliseconds.
    pub cap_ms: u64,
    /// By how much of it a delay may be shorter or longer, in percent, at most 100.
    pub jitter: u8,
}

impl RetryDelay {
    /// How long the message waits that came back for the `times`-th time, in milliseconds. `seed` decides about the jitter: the
    /// same seed, the same delay.
    pub fn delay_ms(&self, times: u32, seed: u64) -> u64 {
        let mut delay = self.initial_ms.min(self.cap_ms);
        for _ in 1..times {
            if self.factor <= 1000 || delay >= self.cap_ms {
                break;
            }
            let longer = delay.saturating_mul(u64::from(self.factor)) / 1000;
            delay = longer.max(delay + 1).min(self.cap_ms);
        }
        if self.jitter == 0 {
            return delay;
        }
        let most = delay * u64::from(self.jitter.min(100)) / 100;
        delay - most + spread(seed) % (2 * most + 1)
    }
}

/// What waits before it is tried again, and how long, as RabbitMQ's quorum queues have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayedRetry {
    /// Which returns it is about.
    pub of: Returned,
    /// The delay after the first failure, in milliseconds; after the n-th one it is n times as long.
    pub least_ms: u64,
    /// The longest delay, in milliseconds.
    pub most_ms: u64,
}

/// Ways in which messages come back: `x-delayed-retry-type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returned {
    /// All of them.
    All,
    /// They were rejected, or their consumer was lost.
    Failed,
    /// A consumer gave them back.
    GivenBack,
}

impl DelayedRetry {
    /// How long the message waits that came back like this, in milliseconds, if it does.
    pub fn delay_ms(&self, failed: bool, failures: u32) -> Option<u64> {
        let waits = match self.of {
            Returned::All => true,
            Returned::Failed => failed,
            Returned::GivenBack => !failed,
        };
        let delay = self.least_ms.saturating_mul(failures.max(1).into());
        waits.then_some(delay.min(self.most_ms))
    }
}

/// Numbers that follow each other become numbers that differ in all bits.
fn spread(seed: u64) -> u64 {
    let mut bits = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROWING: RetryDelay = RetryDelay {
        initial_ms: 100,
        factor: 2000,
        cap_ms: 1000,
        jitter: 0,
    };

    #[test]
    fn delays_grow_by_the_factor_up_to_the_cap() {
        let delays: Vec<u64> = (1..=6).map(|times| GROWING.delay_ms(times, 0)).collect();
        assert_eq!(delays, [100, 200, 400, 800, 1000, 1000]);
        assert_eq!(GROWING.delay_ms(u32::MAX, 0), 1000);
        let same = RetryDelay {
            factor: 1000,
            ..GROWING
        };
        assert_eq!(same.delay_ms(u32::MAX, 0), 100);
    }

    #[test]
    fn quorum_queues_wait_longer_with_each_failure() {
        let all = DelayedRetry {
            of: Returned::All,
            least_ms: 100,
            most_ms: 250,
        };
        let delays: Vec<_> = (0..4).map(|failures| all.delay_ms(true, failures)).collect();
        assert_eq!(delays, [100, 100, 200, 250].map(Some));
        let failed = DelayedRetry {
            of: Returned::Failed,
            ..all
        };
        let given_back = DelayedRetry {
            of: Returned::GivenBack,
            ..all
        };
        assert_eq!([true, false].map(|it| failed.delay_ms(it, 1)), [Some(100), None]);
        assert_eq!(
            [true, false].map(|it| given_back.delay_ms(it, 1)),
            [None, Some(100)]
        );
    }

    #[test]
    fn jitter_stays_within_its_part_and_is_the_same_for_the_same_seed() {
        let unsteady = RetryDelay {
            jitter: 20,
            ..GROWING
        };
        let delays: Vec<u64> = (0..1000).map(|seed| unsteady.delay_ms(1, seed)).collect();
        assert!(delays.iter().all(|delay| (80..=120).contains(delay)));
        assert!(delays.contains(&80) && delays.contains(&120));
        assert_eq!(unsteady.delay_ms(1, 7), unsteady.delay_ms(1, 7));
    }
}
