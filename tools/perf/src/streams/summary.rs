//! `--summary-file`: what was counted, second by second, in a file. It is laid out as stream-perf-test's, which the reporter of
//! Dropwizard's metrics writes.

use super::counted::{Counted, mean};
use super::plan::Plan;
use crate::failure::Failure;
use crate::measure::Latency;
use hdrhistogram::Histogram;
use jiff::Zoned;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file's name while the run goes on.
const CURRENT: &str = "stream-perf-test-current.txt";
/// How wide headings are, in columns.
const WIDTH: usize = 80;
/// The minutes over which rates are averaged.
const MINUTES: [f64; 3] = [1.0, 5.0, 15.0];

/// The open file.
pub struct SummaryFile {
    current: PathBuf,
    /// Its name at the end.
    last: PathBuf,
    file: File,
    meters: Vec<Meter>,
    latencies: Vec<&'static str>,
    batches: bool,
}

/// A count and its rates.
struct Meter {
    name: &'static str,
    of: fn(&Counted) -> u64,
    count: u64,
    /// Averages that forget, a second by [`MINUTES`] each; none before the first interval.
    averages: Option<[f64; 3]>,
}

impl SummaryFile {
    /// Creates the file in a folder.
    ///
    /// # Errors
    /// [`Failure::File`] if it can't be written.
    pub fn create(plan: &Plan, folder: &Path, now: &Zoned) -> Result<Self, Failure> {
        let current = folder.join(CURRENT);
        let mut file = File::create(&current).map_err(|error| refused(&current, &error))?;
        writeln!(file, "Arguments: {}", plan.arguments.join(" "))
            .map_err(|error| refused(&current, &error))?;
        let meter = |name, of| Meter {
            name,
            of,
            count: 0,
            averages: None,
        };
        let mut meters = vec![
            meter("rabbitmq.stream.consumed", |it| it.recorder.consumed),
            meter("rabbitmq.stream.producer_confirmed", |it| it.recorder.confirmed),
            meter("rabbitmq.stream.published", |it| it.recorder.published),
        ];
        if plan.report.byte_rates {
            meters.push(meter("rabbitmq.stream.read_bytes", |it| it.read));
            meters.push(meter("rabbitmq.stream.written_bytes", |it| it.written));
        }
        let mut latencies = vec!["rabbitmq.stream.latency"];
        if plan.report.confirm_latency {
            latencies.insert(0, "rabbitmq.stream.confirm_latency");
        }
        Ok(Self {
            last: folder.join(now.strftime("stream-perf-test-%Y-%m-%d-%H%M%S.txt").to_string()),
            current,
            file,
            meters,
            latencies,
            batches: plan.report.batch_size,
        })
    }

    /// Adds an interval: `all` is what was counted since the start, `elapsed` how long that is.
    ///
    /// # Errors
    /// [`Failure::File`] if it can't be written.
    pub fn add(
        &mut self,
        all: &Counted,
        interval: Duration,
        elapsed: Duration,
        now: &Zoned,
    ) -> Result<(), Failure> {
        let mut text = banner(&now.strftime("%-m/%-d/%y, %-I:%M:%S %p").to_string(), '=');
        text.push('\n');
        text += &banner("-- Histograms", '-');
        histogram(
            &mut text,
            "rabbitmq.stream.chunk_size",
            all.chunks,
            mean(all.entries, all.chunks),
        );
        if self.batches {
            histogram(
                &mut text,
                "rabbitmq.stream.publish_batch_size",
                all.batches,
                mean(all.batched, all.batches),
            );
        }
        text += &banner("\n-- Meters", '-');
        for meter in &mut self.meters {
            meter.update(all, interval);
            meter.write(&mut text, elapsed);
        }
        text += &banner("\n-- Timers", '-');
        for name in &self.latencies {
            let of = if name.ends_with("confirm_latency") {
                &all.recorder.confirm_latency
            } else {
                &all.recorder.latency
            };
            timer(&mut text, name, of, elapsed);
        }
        text += "\n\n";
        self.file
            .write_all(text.as_bytes())
            .map_err(|error| refused(&self.current, &error))
    }

    /// Gives the file its last name.
    ///
    /// # Errors
    /// [`Failure::File`] if that is not possible.
    pub fn finish(self) -> Result<(), Failure> {
        fs::rename(&self.current, &self.last).map_err(|error| refused(&self.last, &error))
    }
}

impl Meter {
    fn update(&mut self, all: &Counted, interval: Duration) {
        let count = (self.of)(all);
        let seconds = interval.as_secs_f64().max(f64::MIN_POSITIVE);
        let rate = count.saturating_sub(self.count) as f64 / seconds;
        self.count = count;
        let before = self.averages.unwrap_or([rate; 3]);
        let mut averages = before;
        for (average, minutes) in averages.iter_mut().zip(MINUTES) {
            *average += (1.0 - (-seconds / 60.0 / minutes).exp()) * (rate - *average);
        }
        self.averages = Some(averages);
    }

    fn write(&self, text: &mut String, elapsed: Duration) {
        let _ = writeln!(text, "{}", self.name);
        value(text, "count", format!("{}", self.count));
        let [one, five, fifteen] = self.averages.unwrap_or_default();
        let all = self.count as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
        for (name, rate) in [
            ("mean rate", all),
            ("1-minute rate", one),
            ("5-minute rate", five),
            ("15-minute rate", fifteen),
        ] {
            value(text, name, format!("{rate:.2} events/second"));
        }
    }
}

fn histogram(text: &mut String, name: &str, count: u64, mean: f64) {
    let _ = writeln!(text, "{name}");
    value(text, "count", count.to_string());
    value(text, "mean", format!("{mean:.2}"));
}

fn timer(text: &mut String, name: &str, histogram: &Histogram<u64>, elapsed: Duration) {
    let latency = Latency::of(histogram);
    let _ = writeln!(text, "{name}");
    value(text, "count", latency.count.to_string());
    let rate = latency.count as f64 / elapsed.as_secs_f64().max(f64::MIN_POSITIVE);
    value(text, "mean rate", format!("{rate:.2} calls/second"));
    let ms = |ns: f64| format!("{:.2} milliseconds", ns / 1e6);
    let deviation = if histogram.is_empty() {
        0.0
    } else {
        histogram.stdev()
    };
    for (name, ns) in [
        ("min", latency.min as f64),
        ("max", latency.max as f64),
        ("mean", latency.mean),
        ("stddev", deviation),
        ("median", latency.p50 as f64),
    ] {
        value(text, name, ms(ns));
    }
    let p98 = if histogram.is_empty() {
        0
    } else {
        histogram.value_at_quantile(0.98)
    };
    for (name, ns) in [
        ("75%", latency.p75),
        ("95%", latency.p95),
        ("98%", p98),
        ("99%", latency.p99),
        ("99.9%", latency.p99_9),
    ] {
        let _ = writeln!(text, "{name:>17} <= {}", ms(ns as f64));
    }
}

fn value(text: &mut String, name: &str, value: String) {
    let _ = writeln!(text, "{name:>18} = {value}");
}

/// A heading, filled up to the width.
fn banner(title: &str, with: char) -> String {
    let fill = WIDTH.saturating_sub(title.trim_start().chars().count() + 1);
    format!("{title} {}\n", with.to_string().repeat(fill))
}

fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::File(format!(
        "cannot write {}: {error}. Start in a folder that can be written to, or leave out --summary-file",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::trial::plan;

    fn at(second: u32) -> Zoned {
        let at: jiff::Timestamp = format!("2026-11-27T21:00:{second:02}Z").parse().unwrap();
        at.to_zoned(jiff::tz::TimeZone::UTC)
    }

    #[test]
    fn the_file_grows_by_the_second_and_gets_its_name_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let second = Duration::from_secs(1);
        let mut file = SummaryFile::create(&plan("-x 2 -cl -sf"), folder.path(), &at(0)).unwrap();
        let current = folder.path().join("stream-perf-test-current.txt");
        assert_eq!(fs::read_to_string(&current).unwrap(), "Arguments: -x 2 -cl -sf\n");
        let mut all = Counted {
            chunks: 2,
            entries: 9,
            ..Counted::new()
        };
        all.recorder.published = 600;
        all.recorder.latency_n(2_000_000, 600);
        file.add(&all, second, second, &at(1)).unwrap();
        let one = fs::read_to_string(&current).unwrap().lines().count();
        all.recorder.published = 1_000;
        file.add(&all, second, 2 * second, &at(2)).unwrap();
        file.finish().unwrap();
        assert!(!current.exists());
        let text = fs::read_to_string(folder.path().join("stream-perf-test-2026-11-27-210000.txt")).unwrap();
        assert_eq!(text.lines().count(), 2 * one - 1);
        let heading = format!("11/27/26, 9:00:02 PM {}\n", "=".repeat(59));
        let last = text.split(&heading).nth(1).unwrap();
        for part in [
            "rabbitmq.stream.chunk_size\n             count = 2\n              mean = 4.50\n",
            "rabbitmq.stream.published\n             count = 1000\n         mean rate = 500.00 events/second\n     1-minute rate = 596.69",
            "rabbitmq.stream.confirm_latency\n             count = 0\n",
            "            median = 2.00 milliseconds\n              75% <= 2.00 milliseconds\n",
        ] {
            let part = part.trim_start();
            assert!(last.contains(part), "{part} is not in {last}");
        }
        assert!(!last.contains("read_bytes") && !last.contains("publish_batch_size"));
    }
}
