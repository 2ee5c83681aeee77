//! What the workers of a churn count: a histogram for each operation, and what went wrong.

use crate::failure::Failure;
use crate::measure;
use hdrhistogram::Histogram;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Workers share this many sets of histograms, so that few wait for each other and memory stays small.
const LANES: usize = 8;

/// Shared by all workers.
pub struct Results {
    operations: usize,
    lanes: Vec<Mutex<Vec<Histogram<u64>>>>,
    errors: Mutex<Errors>,
}

/// What went wrong.
#[derive(Debug, Clone, Default)]
pub struct Errors {
    pub count: u64,
    pub first: Option<Failure>,
}

impl Results {
    pub fn new(operations: usize, workers: usize) -> Self {
        let lane = || Mutex::new(histograms(operations));
        Self {
            operations,
            lanes: (0..workers.clamp(1, LANES)).map(|_| lane()).collect(),
            errors: Mutex::new(Errors::default()),
        }
    }

    /// An operation took this many nanoseconds.
    pub fn record(&self, worker: usize, operation: usize, ns: u64) {
        let lane = &self.lanes[worker % self.lanes.len()];
        if let Some(histogram) = lock(lane).get_mut(operation) {
            histogram.saturating_record(ns);
        }
    }

    /// An operation failed.
    pub fn failed(&self, failure: &Failure) {
        let mut errors = lock(&self.errors);
        errors.count += 1;
        errors.first.get_or_insert_with(|| failure.clone());
    }

    /// All that failed so far.
    pub fn errors(&self) -> Errors {
        lock(&self.errors).clone()
    }

    /// What was recorded since the last time.
    pub fn take(&self) -> Vec<Histogram<u64>> {
        let mut all = histograms(self.operations);
        for lane in &self.lanes {
            for (sum, part) in all.iter_mut().zip(lock(lane).iter_mut()) {
                measure::add(sum, part);
                part.reset();
            }
        }
        all
    }
}

/// Empty ones.
pub fn histograms(operations: usize) -> Vec<Histogram<u64>> {
    (0..operations).map(|_| measure::latencies()).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_workers_recorded_comes_out_once() {
        let results = Results::new(2, 100);
        for worker in 0..100 {
            results.record(worker, worker % 2, 1_000);
        }
        results.record(0, 7, 1);
        let taken = results.take();
        assert_eq!((taken[0].len(), taken[1].len()), (50, 50));
        assert!(results.take().iter().all(Histogram::is_empty));
    }

    #[test]
    fn the_first_error_is_kept_and_all_are_counted() {
        let results = Results::new(1, 1);
        results.failed(&Failure::Lost("first".into()));
        results.failed(&Failure::Lost("second".into()));
        let errors = results.errors();
        assert_eq!(
            (errors.count, errors.first),
            (2, Some(Failure::Lost("first".into())))
        );
    }

    #[test]
    fn a_latency_beyond_an_hour_counts_as_an_hour() {
        let results = Results::new(1, 1);
        results.record(0, 0, u64::MAX);
        assert_eq!(results.take()[0].len(), 1);
    }
}
