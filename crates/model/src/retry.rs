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
