//! A copy of a queue as its node's groups see it: what they tell it is written down before it is told.

use broker::groups::{Ends, Hosted, Member, News};
use queue::fifo::Classic;
use std::sync::{Arc, Mutex, PoisonError};

/// The copies of a simulated node.
pub type Queue = Hosted<Classic<Ends>>;

/// A copy, and what it was told.
pub struct Observed {
    pub queue: Arc<Queue>,
    told: Mutex<Vec<News>>,
}

impl Observed {
    pub fn new(queue: Arc<Queue>) -> Arc<Self> {
        let told = Mutex::default();
        Arc::new(Self { queue, told })
    }

    /// What it was told since somebody asked.
    pub fn take(&self) -> Vec<News> {
        std::mem::take(&mut *self.told.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Member for Observed {
    fn tell(&self, news: Vec<News>) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.extend(news.iter().cloned());
        drop(told);
        self.queue.tell(news);
    }

    fn turn(self: Arc<Self>) {
        self.queue.clone().turn();
    }
}
