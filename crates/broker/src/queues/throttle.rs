//! How fast publishers may be with a queue that quick consumers are emptying: deliveries have the right of way.
//!
//! Consumers who take tens of thousands of messages a second are held up by machinery, the broker's or their own, and
//! not by thought. What a publisher adds to their queue then only stands in it and takes machinery from them. So it is
//! read from as fast as they take: the queue stays as short as keeps them busy, and a backlog shrinks. Slow consumers say
//! nothing about what a publisher may do: a broker is there to keep a backlog for them.

/// Microseconds on a clock that only goes forward.
pub type Micros = u64;

/// Consumers are quick from so many messages a second on, and until they take less than half of it. A large message
/// counts for more: see [`LARGE`].
const QUICK: f64 = 20_000.0;

/// A message of so many bytes counts for one, a larger one for as often as it has them: what takes 80 MB a second is
/// machinery too, and 512 messages of a megabyte are a queue.
const LARGE: f64 = 4_096.0;

/// The pace is measured over at least so many microseconds.
const WINDOW: Micros = 2_000;

/// How far back the measured pace remembers, in microseconds.
const MEMORY: f64 = 20_000.0;

/// Publishers wait when what is ready would keep the consumers busy for so many milliseconds, ...
const HIGH_MS: f64 = 1.5;

/// ... and go on when it is so little.
const LOW_MS: f64 = 0.75;

/// What is ready beyond so many milliseconds of the consumers' pace is a backlog.
const BACKLOG_MS: f64 = 20.0;

/// However slow the consumers, so few ready messages hold nobody.
const LEAST_HIGH: f64 = 512.0;

/// Of a backlog's drain, publishers may bring this share anew: the rest is what the backlog shrinks by.
const SHARE: f64 = 0.6;

/// A queue's numbers after a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages that may be delivered.
    pub ready: u64,
    /// The bytes of their bodies.
    pub ready_bytes: u64,
    /// Messages handed to consumers so far, less those that came back.
    pub handed: u64,
    /// Messages taken from publishers so far.
    pub taken: u64,
}

/// What publishers may do until the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Nobody is held.
    Free,
    /// Whoever comes goes on, and so many of those who wait.
    Admit(usize),
    /// Whoever comes waits.
    Hold,
}

/// The measured pace of one queue's consumers, and what follows from it.
#[derive(Debug, Default)]
pub struct Throttle {
    /// When the measurement under way began, and what had been handed out then.
    window: Option<(Micros, u64)>,
    /// Messages a second.
    rate: f64,
    quick: bool,
    last: Option<Counts>,
    /// How many messages a publisher brings at once, on average.
    batch: f64,
    held: bool,
    /// How many were ready when publishers were let go on last.
    admitted_at: u64,
    /// In a backlog: how many messages publishers may bring.
    credit: Option<f64>,
}

impl Throttle {
    /// The queue was empty or is without consumers: the measurement begins anew when this is over.
    pub fn rest(&mut self) {
        self.window = None;
        self.last = None;
        self.held = false;
        self.credit = None;
    }

    /// Looks at the queue after a turn that left something ready.
    pub fn look(&mut self, now: Micros, counts: Counts) -> Ruling {
        let weight = (counts.ready_bytes as f64 / (counts.ready.max(1) as f64 * LARGE)).max(1.0);
        self.measure(now, counts.handed, weight);
        let last = self.last.replace(counts).unwrap_or(counts);
        let taken = counts.taken.saturating_sub(last.taken) as f64;
        if taken > 0.0 {
            self.batch += (taken - self.batch) / 8.0;
        }
        if !self.quick {
            self.held = false;
            self.credit = None;
            return Ruling::Free;
        }
        let a_millisecond = self.rate / 1000.0;
        let least_high = LEAST_HIGH / weight;
        let high = (a_millisecond * HIGH_MS).max(least_high);
        let ready = counts.ready as f64;
        let backlog = (a_millisecond * BACKLOG_MS).max(2.0 * least_high);
        if ready > backlog || self.credit.is_some() && ready > high {
            let handed = counts.handed.saturating_sub(last.handed) as f64;
            let credit = self.credit.unwrap_or(0.0) + handed * SHARE - taken;
            let credit = credit.clamp(-high, high);
            self.credit = Some(credit);
            self.held = credit <= 0.0;
            return if self.held {
                Ruling::Hold
            } else {
                self.admit(credit)
            };
        }
        self.credit = None;
        let low = (a_millisecond * LOW_MS).max(least_high / 2.0);
        self.keep_short(counts.ready, low, high)
    }

    /// Holds publishers from `high` ready messages on, until there are only `low`.
    fn keep_short(&mut self, ready: u64, low: f64, high: f64) -> Ruling {
        let level = ready as f64;
        let was_held = self.held;
        self.held = level >= high || (was_held && level > low);
        if self.held {
            return Ruling::Hold;
        }
        // Those who were let go on may have nothing to bring: then the next have their turn.
        if was_held || ready < self.admitted_at / 2 {
            self.admitted_at = ready;
            return self.admit(high - level);
        }
        Ruling::Admit(0)
    }

    /// As many publishers as bring `messages`, at least one.
    fn admit(&self, messages: f64) -> Ruling {
        Ruling::Admit((messages / self.batch.max(1.0)).ceil().max(1.0) as usize)
    }

    fn measure(&mut self, now: Micros, handed: u64, weight_of_one: f64) {
        let Some((since, before)) = self.window else {
            self.window = Some((now, handed));
            return;
        };
        let passed = now.saturating_sub(since);
        if passed < WINDOW {
            return;
        }
        self.window = Some((now, handed));
        let passed = passed as f64;
        let measured = handed.saturating_sub(before) as f64 * 1_000_000.0 / passed;
        let weight = match self.rate {
            0.0 => 1.0,
            _ => passed / (passed + MEMORY),
        };
        self.rate += (measured - self.rate) * weight;
        self.quick = self.rate * weight_of_one >= if self.quick { QUICK / 2.0 } else { QUICK };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Publishers that bring `batch` messages whenever they may, at most one of them every `interval`, and consumers who
    /// take `rate` a second, all on a simulated clock in steps of 50 microseconds.
    struct World {
        pace: Throttle,
        now: Micros,
        counts: Counts,
        batch: u64,
        interval: Micros,
        next: Micros,
        waiting: VecDeque<usize>,
        free: VecDeque<usize>,
        brought: Vec<u64>,
        rate: f64,
        owed: f64,
        size: u64,
    }

    impl World {
        fn new(publishers: usize, batch: u64, interval: Micros, rate: f64) -> Self {
            Self {
                pace: Throttle::default(),
                now: 0,
                counts: Counts::default(),
                batch,
                interval,
                next: interval,
                waiting: VecDeque::new(),
                free: (0..publishers).collect(),
                brought: vec![0; publishers],
                rate,
                owed: 0.0,
                size: 100,
            }
        }

        fn rule(&mut self) -> Ruling {
            if self.counts.ready == 0 {
                self.pace.rest();
                self.free.append(&mut self.waiting);
                return Ruling::Free;
            }
            self.counts.ready_bytes = self.counts.ready * self.size;
            let ruling = self.pace.look(self.now, self.counts);
            let admitted = match ruling {
                Ruling::Free => self.waiting.len(),
                Ruling::Admit(count) => count.min(self.waiting.len()),
                Ruling::Hold => 0,
            };
            self.free.extend(self.waiting.drain(..admitted));
            ruling
        }

        fn run(&mut self, micros: Micros) {
            let end = self.now + micros;
            while self.now < end {
                self.now += 50;
                self.owed += self.rate * 50.0 / 1_000_000.0;
                let takes = (self.owed as u64).min(self.counts.ready);
                self.owed = (self.owed - takes as f64).min(1000.0);
                self.counts.ready -= takes;
                self.counts.handed += takes;
                self.rule();
                while self.next <= self.now
                    && let Some(publisher) = self.free.pop_front()
                {
                    self.next = self.next.max(self.now - 50) + self.interval;
                    self.counts.ready += self.batch;
                    self.counts.taken += self.batch;
                    self.brought[publisher] += self.batch;
                    match self.rule() {
                        Ruling::Hold => self.waiting.push_back(publisher),
                        _ => self.free.push_back(publisher),
                    }
                }
            }
        }
    }

    #[test]
    fn a_publisher_at_full_speed_is_as_fast_as_quick_consumers_and_no_queue_stands() {
        let mut world = World::new(1, 128, 50, 500_000.0);
        world.run(200_000);
        let before = world.counts;
        world.run(1_000_000);
        let drained = world.counts.handed - before.handed;
        assert!(drained > 490_000, "the consumers were kept busy: {drained}");
        assert!(world.counts.ready < 1_500, "{:?}", world.counts);
    }

    #[test]
    fn slow_consumers_hold_nobody() {
        let mut world = World::new(1, 128, 1_000, 5_000.0);
        world.run(2_000_000);
        assert_eq!(world.counts.taken, 128 * 2_000);
    }

    #[test]
    fn consumers_of_large_messages_are_quick_by_their_bytes() {
        let mut world = World::new(1, 1, 50, 5_000.0);
        world.size = 64 * 1024;
        world.run(1_000_000);
        assert!(world.counts.handed > 4_800, "the consumers were kept busy");
        assert!(world.counts.ready <= 64, "{:?}", world.counts);
    }

    #[test]
    fn a_backlog_shrinks_by_what_publishers_may_not_bring() {
        let mut world = World::new(3, 128, 50, 200_000.0);
        world.counts.ready = 200_000;
        world.counts.taken = 200_000;
        world.run(1_000_000);
        let brought = world.counts.taken - 200_000;
        assert!((110_000..140_000).contains(&brought), "{brought}");
        world.run(2_000_000);
        assert!(world.counts.ready < 1_500, "{:?}", world.counts);
        let (least, most) = (world.brought.iter().min(), world.brought.iter().max());
        assert!(
            least.unwrap() * 10 > most.unwrap() * 9,
            "the publishers have equal shares: {:?}",
            world.brought
        );
    }

    #[test]
    fn consumers_who_become_slow_set_publishers_free() {
        let mut world = World::new(1, 128, 1_000, 100_000.0);
        world.counts.ready = 10_000;
        world.run(50_000);
        world.rate = 1_000.0;
        world.run(300_000);
        let before = world.counts.taken;
        world.run(1_000_000);
        assert_eq!(world.counts.taken - before, 128 * 1_000);
    }

    #[test]
    fn a_queue_below_its_marks_holds_nobody_however_quick_the_consumers() {
        let mut world = World::new(1, 100, 1_000, 200_000.0);
        world.run(1_000_000);
        assert_eq!(world.counts.taken, 100_000);
    }
}
