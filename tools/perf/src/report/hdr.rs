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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Latency, Recorder};
    use crate::report::trial::{START_UNIX_US, second};
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use std::fs;

    fn log_of(samples: &[Sample]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.hlog");
        let mut log = HdrLog::create(&path).unwrap();
        for sample in samples {
            log.add(sample).unwrap();
        }
        fs::read_to_string(&path).unwrap()
    }

    fn decoded(base64: &str) -> Histogram<u64> {
        let value = |letter: u8| {
            let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
            alphabet.iter().position(|&known| known == letter).unwrap() as u32
        };
        let mut bytes = Vec::new();
        for four in base64.trim_end_matches('=').as_bytes().chunks(4) {
            let bits =
                four.iter().fold(0, |bits, &letter| bits << 6 | value(letter)) << (6 * (4 - four.len()));
            bytes.extend(&bits.to_be_bytes()[1..four.len()]);
        }
        Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap()
    }

    #[test]
    fn a_log_reads_back_as_what_was_measured() {
        let mut later = second(2, 2, &[300]);
        later.recorder.latency_both(900_000, 200_000);
        later.recorder.confirm_latency_n(50_000, 4);
        let log = log_of(&[second(1, 3, &[100, 200, 300]), later, second(3, 0, &[])]);
        let entries: Vec<_> = IntervalLogIterator::new(log.as_bytes())
            .map(Result::unwrap)
            .collect();
        assert!(matches!(entries[0], LogEntry::StartTime(at) if at.as_micros() as u64 == START_UNIX_US));
        assert!(matches!(entries[1], LogEntry::BaseTime(at) if at.as_micros() as u64 == START_UNIX_US));
        let intervals: Vec<_> = entries[2..]
            .iter()
            .map(|entry| match entry {
                LogEntry::Interval(interval) => interval,
                other => panic!("{other:?}"),
            })
            .collect();
        let told: Vec<_> = intervals
            .iter()
            .map(|one| {
                let latency = Latency::of(&decoded(one.encoded_histogram()));
                (
                    one.tag().unwrap().as_str(),
                    one.start_timestamp().as_secs(),
                    latency.count,
                    (latency.max + 500) / 1_000,
                )
            })
            .collect();
        let expected = [
            ("consumer", 0, 3, 300),
            ("consumer", 1, 2, 900),
            ("consumer-from-send", 1, 2, 300),
            ("confirm", 1, 4, 50),
        ];
        assert_eq!(told, expected);
        assert_eq!(intervals[0].duration(), Duration::from_secs(1));
        assert!((intervals[0].max() - 0.3).abs() < 0.001, "milliseconds");
    }

    #[test]
    fn viewers_find_a_version_and_compressed_histograms() {
        let log = log_of(&[second(1, 1, &[100])]);
        let lines: Vec<_> = log.lines().collect();
        assert_eq!(lines[0], "#[Histogram log format version 1.3]");
        assert!(lines[4].starts_with("\"StartTimestamp\""), "{log}");
        assert!(
            lines[5].starts_with("Tag=consumer,0.000,1.000,0.100,HISTFAAA"),
            "{log}"
        );
        assert_eq!(lines.len(), 6);
    }

    #[test]
    fn the_longest_and_the_shortest_latency_can_be_logged() {
        let mut sample = second(1, 1, &[]);
        sample.recorder = Recorder::new();
        sample.recorder.latency(0);
        sample.recorder.latency(u64::MAX);
        let log = log_of(&[sample]);
        let base64 = log.lines().last().unwrap().rsplit(',').next().unwrap();
        assert_eq!(decoded(base64).len(), 2);
    }
}
