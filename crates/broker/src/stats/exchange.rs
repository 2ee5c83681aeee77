//! What came to exchanges and left them.

use std::collections::HashMap;
use std::sync::{
    Arc, PoisonError, RwLock,
    atomic::{AtomicU64, Ordering},
};

/// What came to one exchange and left it. Many publishers add to it, each once for many messages.
#[derive(Debug, Default)]
pub struct ExchangeCounts {
    published: AtomicU64,
    routed: AtomicU64,
}

impl ExchangeCounts {
    /// Messages that were published to it.
    pub fn publish_in(&self) -> u64 {
        self.published.load(Ordering::Relaxed)
    }

    /// Messages that it gave to queues; one that went to two counts twice.
    pub fn publish_out(&self) -> u64 {
        self.routed.load(Ordering::Relaxed)
    }
}

/// A virtual host's and an exchange's name.
type Key = (Arc<str>, Box<str>);

/// The exchanges that were ever published to.
#[derive(Debug, Default)]
pub struct Exchanges {
    counts: RwLock<HashMap<Key, Arc<ExchangeCounts>>>,
    /// Messages that those gave to queues that are forgotten.
    forgotten: AtomicU64,
}

impl Exchanges {
    /// An exchange's counts, if anything was published to it.
    pub fn get(&self, vhost: &str, exchange: &str) -> Option<Arc<ExchangeCounts>> {
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        counts.get(&(vhost.into(), exchange.into())).cloned()
    }

    /// All of them, in no order.
    pub fn all(&self) -> Vec<(Arc<str>, Box<str>, Arc<ExchangeCounts>)> {
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        let each = counts.iter();
        each.map(|((vhost, name), counts)| (vhost.clone(), name.clone(), counts.clone()))
            .collect()
    }

    /// Messages that all exchanges gave to queues since the start.
    pub fn routed(&self) -> u64 {
        let counts = self.counts.read().unwrap_or_else(PoisonError::into_inner);
        let routed: u64 = counts.values().map(|counts| counts.publish_out()).sum();
        routed + self.forgotten.load(Ordering::Relaxed)
    }

    /// Forgets those of which `exists` is false.
    pub fn prune(&self, exists: impl Fn(&str, &str) -> bool) {
        let mut counts = self.counts.write().unwrap_or_else(PoisonError::into_inner);
        counts.retain(|(vhost, name), counts| {
            let kept = exists(vhost, name);
            if !kept {
                self.forgotten.fetch_add(counts.publish_out(), Ordering::Relaxed);
            }
            kept
        });
    }

    fn of(&self, vhost: &Arc<str>, exchange: &str) -> Arc<ExchangeCounts> {
        if let Some(known) = self.get(vhost, exchange) {
            return known;
        }
        let mut counts = self.counts.write().unwrap_or_else(PoisonError::into_inner);
        counts
            .entry((vhost.clone(), exchange.into()))
            .or_default()
            .clone()
    }
}

/// How many exchanges a publisher remembers before it starts again.
const REMEMBERED: usize = 64;

/// What one channel published, by exchange, until it is told.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    lines: Vec<ExchangeRow>,
    current: usize,
    /// What is not in the current exchange's line yet.
    published: u64,
    routed: u64,
}

#[derive(Debug)]
struct ExchangeRow {
    name: Box<[u8]>,
    counts: Arc<ExchangeCounts>,
    published: u64,
    routed: u64,
}

impl Ledger {
    /// True if what is noted concerns this exchange.
    pub(crate) fn is_at(&self, exchange: &[u8]) -> bool {
        self.lines
            .get(self.current)
            .is_some_and(|line| *line.name == *exchange)
    }

    /// What is noted from now on concerns this exchange.
    pub(crate) fn turn_to(&mut self, exchange: &[u8], vhost: &Arc<str>, exchanges: &Exchanges) {
        self.post();
        if let Some(at) = self.lines.iter().position(|line| *line.name == *exchange) {
            self.current = at;
            return;
        }
        if self.lines.len() >= REMEMBERED {
            self.tell();
            self.lines.clear();
        }
        self.current = self.lines.len();
        self.lines.push(ExchangeRow {
            name: exchange.into(),
            counts: exchanges.of(vhost, &String::from_utf8_lossy(exchange)),
            published: 0,
            routed: 0,
        });
    }

    /// So many messages came to the current exchange, and went on so often.
    pub(crate) fn note(&mut self, published: u64, routed: u64) {
        self.published = self.published.wrapping_add(published);
        self.routed += routed;
    }

    /// A message is noted twice because it goes on in two parts; it came once.
    pub(crate) fn came_once(&mut self) {
        self.published = self.published.wrapping_sub(1);
    }

    fn post(&mut self) {
        let (published, routed) = (
            std::mem::take(&mut self.published),
            std::mem::take(&mut self.routed),
        );
        if let Some(line) = self.lines.get_mut(self.current) {
            line.published = line.published.wrapping_add(published);
            line.routed += routed;
        }
    }

    /// Begins anew, once all is told.
    pub(crate) fn forget(&mut self) {
        self.tell();
        self.lines.clear();
        self.current = 0;
    }

    /// Adds what was noted to the exchanges' counts.
    pub(crate) fn tell(&mut self) {
        self.post();
        for line in &mut self.lines {
            if line.published > 0 {
                line.counts.published.fetch_add(line.published, Ordering::Relaxed);
                line.counts.routed.fetch_add(line.routed, Ordering::Relaxed);
                (line.published, line.routed) = (0, 0);
            }
        }
    }
}
