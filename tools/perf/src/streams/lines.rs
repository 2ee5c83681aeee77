//! The lines of a run, as stream-perf-test prints them.

use super::counted::{Counted, mean};
use super::plan::Plan;
use crate::measure::Latency;
use crate::plan::Format;
use crate::report::per_second;
use hdrhistogram::Histogram;
use jiff::Zoned;
use std::time::Duration;

/// What the lines have in them.
#[derive(Debug, Clone, Copy)]
pub struct Lines {
    format: Format,
    confirm_latency: bool,
    latency: bool,
    byte_rates: bool,
    batch_size: bool,
}

impl Lines {
    pub fn of(plan: &Plan) -> Self {
        let it = &plan.report;
        Self {
            format: it.format,
            confirm_latency: it.confirm_latency,
            latency: it.latency,
            byte_rates: it.byte_rates,
            batch_size: it.batch_size,
        }
    }

    /// What stands above the lines of the compact format.
    pub fn header(&self) -> Option<String> {
        if self.format == Format::Default {
            return None;
        }
        let mut line = format!("{:<19}", "time");
        let mut rates = vec!["published", "confirmed", "consumed"];
        if self.byte_rates {
            rates.extend(["written bytes", "read bytes"]);
        }
        rates.iter().for_each(|name| line += &format!("{name:>15}"));
        if self.confirm_latency {
            line += &format!("{:>18}", "confirm latency");
        }
        if self.latency {
            line += &format!("{:>18}", "latency");
        }
        if self.batch_size {
            line += &format!("{:>12}", "batch size");
        }
        line += &format!("{:>12}", "chunk size");
        Some(line)
    }

    /// The line of an interval, the `number`th of the run.
    pub fn interval(&self, number: u64, counted: &Counted, span: Duration, now: &Zoned) -> String {
        match self.format {
            Format::Default => self.default(number, counted, span),
            Format::Compact => self.compact(counted, span, now),
        }
    }

    fn default(&self, number: u64, counted: &Counted, span: Duration) -> String {
        let mut line = format!("{number}, ");
        for (name, rate) in rates(counted, span) {
            line += &format!("{name} {rate} msg/s, ");
        }
        for (name, rate) in self.bytes(counted, span) {
            line += &format!("{name} {}, ", byte_rate(rate));
        }
        let points =
            |name: &str, histogram| format!("{name} median/75th/95th/99th {} ms, ", milliseconds(histogram));
        let recorder = &counted.recorder;
        if self.confirm_latency {
            line += &points("confirm latency", &recorder.confirm_latency);
        }
        if self.latency {
            line += &points("latency", &recorder.latency);
        }
        line += &self.sizes(counted);
        line
    }

    fn compact(&self, counted: &Counted, span: Duration, now: &Zoned) -> String {
        let mut line = now.strftime("%Y/%m/%d %H:%M:%S").to_string();
        for (_, rate) in rates(counted, span) {
            line += &format!("{:>15}", format!("{rate} msg/s"));
        }
        for (_, rate) in self.bytes(counted, span) {
            line += &format!("{:>15}", byte_rate(rate));
        }
        let recorder = &counted.recorder;
        let confirm = self.confirm_latency.then_some(&recorder.confirm_latency);
        for histogram in confirm
            .into_iter()
            .chain(self.latency.then_some(&recorder.latency))
        {
            let points = format!("{} ms", milliseconds(histogram));
            line += &match points.len() > 17 {
                true => format!(" {points}"),
                false => format!("{points:>18}"),
            };
        }
        if self.batch_size {
            line += &format!("{:>12.0}", mean(counted.batched, counted.batches));
        }
        line += &format!("{:>12.0}", mean(counted.entries, counted.chunks));
        line
    }

    /// The line at the end, about the whole run.
    pub fn summary(&self, counted: &Counted, span: Duration) -> String {
        // As with stream-perf-test, a run is a second long at least.
        let span = if span.as_secs() == 0 {
            Duration::from_secs(1)
        } else {
            span
        };
        let mut line = "Summary: ".to_owned();
        for (name, rate) in rates(counted, span) {
            line += &format!("{name} {rate} msg/s, ");
        }
        for (name, rate) in self.bytes(counted, span) {
            line += &format!("{name} {}, ", byte_rate(rate));
        }
        let point = |name: &str, histogram: &Histogram<u64>| {
            format!("{name} 95th {:.0} ms, ", Latency::of(histogram).p95 as f64 / 1e6)
        };
        let recorder = &counted.recorder;
        if self.confirm_latency {
            line += &point("confirm latency", &recorder.confirm_latency);
        }
        if self.latency {
            line += &point("latency", &recorder.latency);
        }
        line += &self.sizes(counted);
        line
    }

    fn sizes(&self, counted: &Counted) -> String {
        let mut text = String::new();
        if self.batch_size {
            text += &format!(
                "publish batch size {:.0}, ",
                mean(counted.batched, counted.batches)
            );
        }
        text + &format!("chunk size {:.0}", mean(counted.entries, counted.chunks))
    }

    fn bytes(&self, counted: &Counted, span: Duration) -> Vec<(&'static str, f64)> {
        match self.byte_rates {
            false => Vec::new(),
            true => vec![
                ("written bytes", per_second(counted.written, span)),
                ("read bytes", per_second(counted.read, span)),
            ],
        }
    }
}

/// Messages a second, cut to whole ones.
fn rates(counted: &Counted, span: Duration) -> [(&'static str, u64); 3] {
    let recorder = &counted.recorder;
    [
        ("published", recorder.published),
        ("confirmed", recorder.confirmed),
        ("consumed", recorder.consumed),
    ]
    .map(|(name, count)| (name, per_second(count, span) as u64))
}

/// Four points in milliseconds.
fn milliseconds(histogram: &Histogram<u64>) -> String {
    let latency = Latency::of(histogram);
    let points = [latency.p50, latency.p75, latency.p95, latency.p99];
    points.map(|ns| format!("{:.0}", ns as f64 / 1e6)).join("/")
}

/// `12.3 MB/s`.
fn byte_rate(rate: f64) -> String {
    if rate.abs() < 1_000.0 {
        return format!("{rate:.1} B/s");
    }
    let (mut rate, mut units) = (rate, "kMGTPE".chars());
    let mut unit = units.next().unwrap_or('k');
    while rate >= 999_950.0 {
        rate /= 1_000.0;
        unit = units.next().unwrap_or(unit);
    }
    format!("{:.1} {unit}B/s", rate / 1_000.0)
}

/// What `--memory-report` shows.
pub fn memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let of = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().split(' ').next()?.parse::<u64>().ok()
    };
    let (used, most) = (of("VmRSS:")? * 1024, of("VmHWM:")? * 1024);
    let told = |bytes: u64| {
        format!(
            "{} ({bytes} bytes)",
            byte_rate(bytes as f64).trim_end_matches("/s")
        )
    };
    Some(format!(
        "Used memory {}, at most so far {}",
        told(used),
        told(most)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::trial::plan;

    const SECOND: Duration = Duration::from_secs(1);

    fn counted() -> Counted {
        let mut counted = Counted {
            chunks: 4,
            entries: 1_000,
            batches: 10,
            batched: 990,
            written: 12_345_678,
            read: 999,
            ..Counted::new()
        };
        let recorder = &mut counted.recorder;
        (recorder.published, recorder.confirmed, recorder.consumed) = (990_500, 990_000, 989_999);
        (1..=100).for_each(|ms| recorder.latency(ms * 1_000_000));
        recorder.confirm_latency_n(2_600_000, 5);
        counted
    }

    fn now() -> Zoned {
        let at: jiff::Timestamp = "2026-11-27T21:00:05Z".parse().unwrap();
        at.to_zoned(jiff::tz::TimeZone::UTC)
    }

    #[test]
    fn a_line_is_stream_perf_tests() {
        let lines = |flags| Lines::of(&plan(flags));
        assert_eq!(
            lines("").interval(3, &counted(), SECOND, &now()),
            "3, published 990500 msg/s, confirmed 990000 msg/s, consumed 989999 msg/s, latency median/75th/95th/99th 50/75/95/99 ms, \
             chunk size 250"
        );
        assert_eq!(
            lines("-cl -mbr -bsm").interval(1, &counted(), 2 * SECOND, &now()),
            "1, published 495250 msg/s, confirmed 495000 msg/s, consumed 494999 msg/s, written bytes 6.2 MB/s, read bytes 499.5 B/s, \
             confirm latency median/75th/95th/99th 3/3/3/3 ms, latency median/75th/95th/99th 50/75/95/99 ms, publish batch size 99, \
             chunk size 250"
        );
        assert_eq!(
            lines("-nl").interval(1, &counted(), SECOND, &now()),
            "1, published 990500 msg/s, confirmed 990000 msg/s, consumed 989999 msg/s, chunk size 250"
        );
        let nothing = lines("").interval(2, &Counted::new(), SECOND, &now());
        assert_eq!(
            nothing,
            "2, published 0 msg/s, confirmed 0 msg/s, consumed 0 msg/s, latency median/75th/95th/99th 0/0/0/0 ms, chunk size 0"
        );
    }

    #[test]
    fn the_compact_form_has_columns_under_their_names() {
        let lines = Lines::of(&plan("-mf compact -cl -bsm"));
        let header = lines.header().unwrap();
        let line = lines.interval(1, &counted(), SECOND, &now());
        assert_eq!(
            header,
            "time                     published      confirmed       consumed   confirm latency           latency  batch size  chunk size"
        );
        assert_eq!(
            line,
            "2026/11/27 21:00:05   990500 msg/s   990000 msg/s   989999 msg/s        3/3/3/3 ms    50/75/95/99 ms          99         250"
        );
        assert_eq!(header.len(), line.len());
        assert_eq!(Lines::of(&plan("")).header(), None);
    }

    #[test]
    fn the_summary_is_of_the_whole_run() {
        assert_eq!(
            Lines::of(&plan("-cl")).summary(&counted(), 10 * SECOND),
            "Summary: published 99050 msg/s, confirmed 99000 msg/s, consumed 98999 msg/s, confirm latency 95th 3 ms, latency 95th 95 ms, \
             chunk size 250"
        );
        let short = Lines::of(&plan("")).summary(&counted(), SECOND / 10);
        assert!(short.starts_with("Summary: published 990500 msg/s"), "{short}");
    }

    #[test]
    fn bytes_are_told_in_the_unit_a_reader_expects() {
        let told = [0.0, 999.0, 1_000.0, 999_949.0, 999_950.0, 2.5e9].map(byte_rate);
        assert_eq!(
            told,
            [
                "0.0 B/s",
                "999.0 B/s",
                "1.0 kB/s",
                "999.9 kB/s",
                "1.0 MB/s",
                "2.5 GB/s"
            ]
        );
    }
}
