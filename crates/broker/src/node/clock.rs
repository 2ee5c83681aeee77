//! The time that deadlines follow. It starts as the wall clock's and then passes as time does: somebody who sets the
//! wall clock by an hour neither expires messages nor keeps them for an hour longer. Small differences, as between two
//! quartzes, are made up for slowly.

use model::Timestamp;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use storage::World;

/// The wall clock was set if it moved so much more or less than time passed between two looks, in milliseconds.
const JUMP_MS: i64 = 2_000;
/// How much is made up for at each look, in milliseconds: with four looks a second, 0.4 %.
const STEP_MS: i64 = 1;

/// The clock. Never asked for more than a system call's worth of work.
#[derive(Debug)]
pub struct Clock {
    world: Arc<dyn World>,
    started: Duration,
    /// The wall clock's time then.
    from_ms: u64,
    /// What was made up for since.
    made_up_ms: AtomicI64,
    /// The latest time that was told. What is made up for may be less than nothing, but time never goes back: of two
    /// messages with one time to live, the later one would expire first.
    told_ms: AtomicU64,
    /// By how much the wall clock was ahead at the last look; jumps are not followed, so they are kept apart.
    seen: Mutex<ClockSteps>,
}

#[derive(Debug, Default)]
struct ClockSteps {
    ahead_ms: i64,
    jumps_ms: i64,
}

impl Clock {
    /// A clock that shows what the wall clock does now.
    pub fn start(world: Arc<dyn World>) -> Self {
        Self {
            started: world.elapsed(),
            from_ms: world.wall_ms(),
            world,
            made_up_ms: AtomicI64::new(0),
            told_ms: AtomicU64::new(0),
            seen: Mutex::default(),
        }
    }

    /// The time, in milliseconds since the Unix epoch. Never less than what it was before, whichever thread asked.
    pub fn now(&self) -> Timestamp {
        let now = self.at(self.elapsed_ms());
        let told_ms = self.told_ms.load(Ordering::Relaxed);
        if now.0 <= told_ms {
            return Timestamp(told_ms);
        }
        Timestamp(self.told_ms.fetch_max(now.0, Ordering::Relaxed).max(now.0))
    }

    fn elapsed_ms(&self) -> u64 {
        self.world.elapsed().saturating_sub(self.started).as_millis() as u64
    }

    fn at(&self, elapsed_ms: u64) -> Timestamp {
        let plain = self.from_ms + elapsed_ms;
        Timestamp(plain.saturating_add_signed(self.made_up_ms.load(Ordering::Relaxed)))
    }

    /// Looks at the wall clock. If it was set, says by how many milliseconds; else comes a little nearer to it.
    pub fn look(&self) -> Option<i64> {
        self.compare(self.elapsed_ms(), Timestamp(self.world.wall_ms()))
    }

    fn compare(&self, elapsed_ms: u64, wall: Timestamp) -> Option<i64> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let ahead_ms = (wall.0 as i64).wrapping_sub((self.from_ms + elapsed_ms) as i64);
        let moved = ahead_ms.wrapping_sub(seen.ahead_ms);
        seen.ahead_ms = ahead_ms;
        if moved.unsigned_abs() >= JUMP_MS.unsigned_abs() {
            seen.jumps_ms = seen.jumps_ms.wrapping_add(moved);
            return Some(moved);
        }
        let made_up = self.made_up_ms.load(Ordering::Relaxed);
        let missing = ahead_ms.wrapping_sub(seen.jumps_ms).wrapping_sub(made_up);
        self.made_up_ms
            .store(made_up + missing.clamp(-STEP_MS, STEP_MS), Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::System;

    const LOOK_MS: u64 = 250;

    fn clock() -> Clock {
        Clock {
            from_ms: 1_000_000_000,
            ..Clock::start(System::real())
        }
    }

    #[test]
    fn a_wall_clock_that_is_set_is_told_once_and_not_followed() {
        for hour in [3_600_000_i64, -3_600_000] {
            let clock = clock();
            let mut told = Vec::new();
            for look in 1..1_000 {
                let elapsed = look * LOOK_MS;
                let set = if look < 500 { 0 } else { hour };
                let wall = Timestamp((clock.from_ms + elapsed).saturating_add_signed(set));
                told.extend(clock.compare(elapsed, wall));
                assert_eq!(
                    clock.at(elapsed),
                    Timestamp(clock.from_ms + elapsed),
                    "look {look}"
                );
            }
            assert_eq!(told, [hour]);
        }
    }

    #[test]
    fn time_stands_but_does_not_go_back_while_the_wall_clock_is_behind() {
        let clock = clock();
        let before = clock.now();
        let wall = Timestamp(before.0 - 1_500);
        for _ in 0..1_500 {
            assert_eq!(clock.compare(0, wall), None);
        }
        assert!(clock.at(0) < before);
        assert!(clock.now() >= before);
    }

    #[test]
    fn a_wall_clock_that_runs_a_little_faster_or_slower_is_followed() {
        for drift in [-5_i64, 5] {
            let clock = clock();
            let mut last = Timestamp(0);
            for look in 1..10_000_u64 {
                let elapsed = look * LOOK_MS;
                let wall =
                    Timestamp((clock.from_ms + elapsed).saturating_add_signed(look as i64 * drift / 10));
                assert_eq!(clock.compare(elapsed, wall), None);
                let now = clock.at(elapsed);
                assert!(now.0.abs_diff(wall.0) <= 2 && now > last, "look {look}");
                last = now;
            }
        }
    }

    #[test]
    fn a_clock_starts_with_the_wall_clocks_time() {
        let world = System::real();
        let (before, clock) = (world.wall_ms(), Clock::start(world));
        assert!(clock.now().0 >= before && clock.look().is_none());
    }
}
