//! The thread that samples, every five seconds.

use crate::history::{SLOT_S, Slot};
use crate::samples::Samples;
use broker::Broker;
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Samples what changes. Ends when dropped.
#[derive(Debug)]
pub struct Sampler {
    samples: Arc<RwLock<Samples>>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Sampler {
    /// Starts the thread.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(broker: &Arc<Broker>) -> std::io::Result<Self> {
        let samples: Arc<RwLock<Samples>> = Arc::default();
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let (watched, kept, signal) = (Arc::downgrade(broker), samples.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("sampler".into())
            .spawn(move || run(&watched, &kept, &signal))?;
        Ok(Self {
            samples,
            stop,
            thread: Some(thread),
        })
    }

    /// What was sampled.
    pub fn samples(&self) -> RwLockReadGuard<'_, Samples> {
        self.samples.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was sampled.
    pub fn restart(&self) {
        let mut samples = self.samples.write().unwrap_or_else(PoisonError::into_inner);
        samples.restart();
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        *self.stop.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Samples at once and then at the beginning of each slot: the samples of several nodes stand at the same moments.
fn run(broker: &Weak<Broker>, samples: &RwLock<Samples>, stop: &(Mutex<bool>, Condvar)) {
    let (stopped, changed) = stop;
    let mut stopped = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    let mut last: Slot = 0;
    while !*stopped {
        let now = since_epoch();
        let slot = now.as_secs() / SLOT_S;
        if slot > last {
            last = slot;
            let Some(broker) = broker.upgrade() else { return };
            samples
                .write()
                .unwrap_or_else(PoisonError::into_inner)
                .take(&broker, slot);
        }
        let next = Duration::from_secs((slot + 1) * SLOT_S);
        stopped = changed
            .wait_timeout(stopped, next.saturating_sub(since_epoch()))
            .unwrap_or_else(PoisonError::into_inner)
            .0;
    }
}

fn since_epoch() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
