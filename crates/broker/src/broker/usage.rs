//! What users and virtual hosts have open, and how fast they publish, against their limits.

use crate::clients::pressure::{Pressure, Release};
use catalog::{Name, Quota};
use std::collections::HashMap;
use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicBool, AtomicU64, Ordering},
};
use std::time::Duration;

/// How much may be published at once after a pause, in parts of a second: so many a second are let through in even steps.
const BURSTS: u32 = 20;

/// What one user or one virtual host has open.
#[derive(Debug, Default)]
pub struct Usage {
    pub connections: AtomicU64,
    pub channels: AtomicU64,
    /// There is a limit on rates. All that publishers look at while there is none.
    metered: AtomicBool,
    meter: Mutex<Meter>,
}

/// Rates, and until when what was published is paid for.
#[derive(Debug, Default)]
struct Meter {
    messages: Rate,
    bytes: Rate,
    /// What those wait for who published too much: a change of the limits.
    release: Option<Arc<Release>>,
}

/// One rate: a second of publishing lets the due time move by a second.
#[derive(Debug, Default)]
struct Rate {
    /// So many a second; `None` if any.
    rate: Option<u64>,
    due: Option<Duration>,
}

impl Rate {
    fn charge(&mut self, now: Duration, amount: u64) -> Duration {
        let Some(rate) = self.rate else {
            return Duration::ZERO;
        };
        let burst = Duration::from_secs(1) / BURSTS;
        let cost = Duration::from_secs_f64((amount as f64 / rate as f64).min(LONGEST_S));
        let due = self.due.map_or(now, |due| due.max(now)) + cost;
        self.due = Some(due);
        due.saturating_sub(now + burst)
    }
}

/// What is published at once costs no more than this, in seconds.
const LONGEST_S: f64 = 3600.0;

impl Usage {
    /// True if what is published must be charged.
    pub fn is_metered(&self) -> bool {
        self.metered.load(Ordering::Relaxed)
    }

    /// Counts what was published. Who has published too much waits.
    pub fn charge(&self, now: Duration, messages: u64, bytes: u64) -> Option<Pressure> {
        let mut meter = self.lock();
        let wait = meter
            .messages
            .charge(now, messages)
            .max(meter.bytes.charge(now, bytes));
        // Shorter ones add up.
        (wait >= Duration::from_millis(1)).then(|| {
            let release = meter.release.get_or_insert_default().clone();
            Pressure::by_rate(release, wait)
        })
    }

    /// The limits are these now; who waits because of others goes on.
    fn follow(&self, quota: &Quota) {
        let rate = |limit: Option<i64>| limit.and_then(|it| u64::try_from(it).ok()).filter(|it| *it > 0);
        let (messages, bytes) = (rate(quota.message_rate), rate(quota.byte_rate));
        let mut meter = self.lock();
        if (meter.messages.rate, meter.bytes.rate) == (messages, bytes) {
            return;
        }
        meter.messages = Rate {
            rate: messages,
            due: None,
        };
        meter.bytes = Rate {
            rate: bytes,
            due: None,
        };
        let metered = messages.is_some() || bytes.is_some();
        self.metered.store(metered, Ordering::Relaxed);
        let release = meter.release.take();
        drop(meter);
        if let Some(release) = release {
            release.release();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Meter> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The usages of those who have connections: of all users, or of all virtual hosts.
#[derive(Debug, Default)]
pub struct Usages {
    all: Mutex<HashMap<Name, Arc<Usage>>>,
}

impl Usages {
    /// One connection more, unless there are as many as there may be.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn enter(&self, name: &str, quota: impl FnOnce() -> Quota, bound: bool) -> Result<Arc<Usage>, i64> {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let quota = quota();
        let usage = match all.get(name) {
            Some(usage) => usage.clone(),
            None => Arc::default(),
        };
        let open = usage.connections.load(Ordering::Relaxed);
        if bound && let Some(limit) = Quota::is_reached(quota.connections, open) {
            return Err(limit);
        }
        usage.connections.store(open + 1, Ordering::Relaxed);
        if open == 0 {
            usage.follow(&quota);
            all.insert(name.into(), usage.clone());
        }
        Ok(usage)
    }

    /// One connection less.
    pub fn leave(&self, name: &str, usage: &Usage) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if usage.connections.fetch_sub(1, Ordering::Relaxed) == 1 {
            all.remove(name);
        }
    }

    /// Limits have changed.
    pub fn follow(&self, name: &str, quota: impl FnOnce() -> Quota) {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(usage) = all.get(name) {
            usage.follow(&quota());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(message_rate: i64) -> Quota {
        Quota {
            message_rate: Some(message_rate),
            ..Quota::default()
        }
    }

    #[test]
    fn publishing_goes_on_at_the_rate_after_a_short_burst() {
        let usage = Usage::default();
        assert!(!usage.is_metered());
        usage.follow(&limited(1000));
        let start = Duration::from_secs(1);
        let wait = |now, count| {
            let pressure = usage.charge(now, count, 0);
            pressure.and_then(|it| it.timeout()).unwrap_or_default()
        };
        assert_eq!(wait(start, 50), Duration::ZERO);
        assert_eq!(wait(start, 100), Duration::from_millis(100));
        let later = start + Duration::from_millis(100);
        assert_eq!(wait(later, 10), Duration::from_millis(10));
        // An hour's rest gives no more than the burst.
        let rested = start + Duration::from_secs(3600);
        assert_eq!(wait(rested, 60), Duration::from_millis(10));
    }

    #[test]
    fn who_waits_goes_on_when_the_limit_changes() {
        let usage = Usage::default();
        usage.follow(&limited(1));
        let pressure = usage.charge(Duration::from_secs(1), 100, 0).unwrap();
        assert!(!pressure.poll(std::task::Waker::noop()));
        usage.follow(&limited(-1));
        assert!(pressure.poll(std::task::Waker::noop()) && !usage.is_metered());
    }

    #[test]
    fn connections_are_counted_until_the_last_is_gone() {
        let usages = Usages::default();
        let two = || Quota {
            connections: Some(2),
            ..Quota::default()
        };
        let first = usages.enter("u", two, true).unwrap();
        let second = usages.enter("u", two, true).unwrap();
        assert_eq!(usages.enter("u", two, true).unwrap_err(), 2);
        assert!(usages.enter("other", two, true).is_ok());
        usages.leave("u", &first);
        assert!(usages.enter("u", two, true).is_ok());
        usages.leave("u", &second);
    }
}
