//! `--hdr`: the latencies of each interval in HdrHistogram's log format, which its viewers read.

use crate::failure::Failure;
use crate::measure::Sample;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Viewers show the maximum of an interval in milliseconds.
const NS_A_MS: f64 = 1_000_000.0;

/// An open log. Every line is written at once, so that a run that is killed leaves what it measured.
pub struct HdrLog {
    path: PathBuf,
    file: File,
    serializer: Option<V2DeflateSerializer>,
    start_unix_us: Option<u64>,
}

impl HdrLog {
    /// Creates the file, or empties it.
    pub fn create(path: &Path) -> Result<Self, Failure> {
        let file = super::create(path)?;
        Ok(Self {
            path: path.into(),
            file,
            serializer: None,
            start_unix_us: None,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds an interval: a line for each kind of latency of which there was one. The tags are `consumer`, `confirm`
    /// and, where messages were written later than they were due, `consumer-from-send`.
    pub fn add(&mut self, sample: &Sample) -> io::Result<()> {
        let start = match self.start_unix_us {
            Some(start) => start,
            None => self.open(sample.from_unix_us)?,
        };
        let since_start = micros(sample.from_unix_us.saturating_sub(start));
        let recorder = &sample.recorder;
        let sent = recorder.sent_differs().then_some(&recorder.sent_latency);
        for (tag, histogram) in [
            ("consumer", Some(&recorder.latency)),
            ("consumer-from-send", sent),
            ("confirm", Some(&recorder.confirm_latency)),
        ] {
            if let Some(histogram) = histogram.filter(|histogram| !histogram.is_empty()) {
                self.line(tag, histogram, since_start, sample.interval)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, start_unix_us: u64) -> io::Result<u64> {
        let start = SystemTime::UNIX_EPOCH + micros(start_unix_us);
        let mut text = Vec::new();
        IntervalLogWriterBuilder::new()
            .add_comment("[Histogram log format version 1.3]")
            .add_comment("[Latencies in nanoseconds, interval maxima in milliseconds]")
            .with_start_time(start)
            .with_base_time(start)
            .begin_log_with(&mut text, &mut V2DeflateSerializer::new())?;
        text.extend_from_slice(
            b"\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        );
        self.file.write_all(&text)?;
        self.start_unix_us = Some(start_unix_us);
        Ok(start_unix_us)
    }

    fn line(
        &mut self,
        tag: &str,
        histogram: &Histogram<u64>,
        start: Duration,
        length: Duration,
    ) -> io::Result<()> {
        let serializer = self.serializer.get_or_insert_with(V2DeflateSerializer::new);
        let mut text = Vec::new();
        IntervalLogWriterBuilder::new()
            .with_max_value_divisor(NS_A_MS)
            .begin_log_with(&mut text, serializer)?
            .write_histogram(histogram, start, length, Tag::new(tag))
            .map_err(|error| io::Error::other(error.to_string()))?;
        // The builder repeats the divisor above each line; the last line is the interval.
        let body = text.strip_suffix(b"\n").unwrap_or(&text);
        let begin = body
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |at| at + 1);
        self.file.write_all(&text[begin..])
    }
}

fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}
