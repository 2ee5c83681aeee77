//! What is counted and timed. No clock, no I/O: moments come in as nanoseconds, numbers go out to `report` and `exporter`.
//!
//! A [`Recorder`] belongs to one thread and counts what happened since it was last taken; a [`Sample`] is
//! what all threads counted in one interval; a [`Latency`] is what a histogram tells a reader.

mod latency;
mod recorder;
mod sample;

pub use latency::Latency;
pub use recorder::{LONGEST_NS, Recorder, add, latencies};
pub use sample::Sample;
