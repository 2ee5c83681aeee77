//! Everything that a run tells, at one place.

use super::End;
use super::console::Console;
use super::csv;
use super::figures::Figures;
use super::hdr::HdrLog;
use super::json::Results;
use super::parts::Parts;
use super::progress::Progress;
use crate::failure::Failure;
use crate::measure::{Latency, Recorder, Sample};
use crate::plan::{Format, Plan};
use crate::verify::Verdict;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The open reports of a run.
pub struct Reports {
    id: String,
    parts: Parts,
    format: Format,
    console: Console,
    out: Box<dyn Write + Send>,
    progress: Option<Progress>,
    csv: Option<(PathBuf, File)>,
    hdr: Option<HdrLog>,
    json: Option<Results>,
    /// All samples so far.
    total: Recorder,
    started_unix_us: u64,
    finished_unix_us: u64,
    /// All intervals; in a run of several phases the time between them does not count.
    elapsed: Duration,
    /// Intervals without a message since the last line.
    idle: Duration,
    headed: bool,
    warned_early: bool,
    /// The first file that could not be written to the end.
    broken: Option<Failure>,
    /// Who else wants to see each whole interval.
    watcher: Option<Watcher>,
}

/// Sees a sample.
type Watcher = Box<dyn FnMut(&Sample) + Send>;

impl Reports {
    /// Opens the files that the plan names. `terminal`: stderr is a terminal, so a bounded run shows a bar there.
    pub fn new(plan: &Plan, terminal: bool) -> Result<Self, Failure> {
        Self::to(plan, terminal, Box::new(io::stdout()), TimeZone::system())
    }

    /// The same, with lines going to `out` and the compact format's clock in `zone`.
    pub fn to(
        plan: &Plan,
        terminal: bool,
        out: Box<dyn Write + Send>,
        zone: TimeZone,
    ) -> Result<Self, Failure> {
        let reporting = &plan.report;
        let parts = Parts::of(plan);
        let csv = match &reporting.csv {
            Some(path) => Some((path.clone(), super::create(path)?)),
            None => None,
        };
        let hdr = reporting.hdr.as_deref().map(HdrLog::create).transpose()?;
        let json = reporting
            .json
            .clone()
            .map(|path| Results::create(path, plan))
            .transpose()?;
        let now = unix_us();
        Ok(Self {
            id: plan.id.clone(),
            parts,
            format: reporting.format,
            console: Console::new(reporting.format, &plan.id, parts, zone),
            out,
            progress: if terminal { Progress::new(plan) } else { None },
            csv,
            hdr,
            json,
            total: Recorder::new(),
            started_unix_us: now,
            finished_unix_us: now,
            elapsed: Duration::ZERO,
            idle: Duration::ZERO,
            headed: false,
            warned_early: false,
            broken: None,
            watcher: None,
        })
    }

    /// Shows each whole interval to somebody else, too.
    pub fn watch(&mut self, watcher: Watcher) {
        self.watcher = Some(watcher);
    }

    /// The load begins now; the bar appears.
    pub fn started(&mut self) {
        self.started_unix_us = unix_us();
        self.finished_unix_us = self.started_unix_us;
        if let Some(progress) = &self.progress {
            progress.start();
        }
    }

    /// Prints a line as it is, above the bar. Where nobody reads any more (a closed pipe), nothing happens.
    pub fn line(&mut self, text: &str) {
        let out = &mut self.out;
        let mut print = || {
            let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        };
        match &self.progress {
            Some(progress) => progress.above(print),
            None => print(),
        }
    }

    /// Prints a warning to stderr, above the bar.
    pub fn warn(&mut self, text: &str) {
        let print = || {
            let _ = writeln!(io::stderr(), "{text}");
        };
        match &self.progress {
            Some(progress) => progress.above(print),
            None => print(),
        }
    }

    /// Tells an interval. One without any message has no line, as in PerfTest; the next line's rates are over both.
    pub fn interval(&mut self, sample: &Sample) {
        self.count(sample);
        if let Some(watcher) = &mut self.watcher {
            watcher(sample);
        }
        if sample.recorder.is_idle() {
            self.idle += sample.interval;
        } else {
            let span = sample.interval + std::mem::take(&mut self.idle);
            let figures = Figures::of(&sample.recorder, span, sample.elapsed);
            self.tell(&figures, sample.to_unix_us);
        }
        if let Some(progress) = &self.progress {
            progress.advance(sample, self.total.published);
        }
    }

    /// What came after the last whole interval: it counts for the summary and the files of our own, and has no line, as
    /// in PerfTest.
    pub fn remainder(&mut self, sample: &Sample) {
        self.count(sample);
    }

    /// What `leveret perf churn` measured, for the JSON object.
    pub fn churn(&mut self, measured: Value) {
        if let Some(json) = &mut self.json {
            json.section("churn", measured);
        }
    }

    /// What `leveret perf phases` measured, for the JSON object.
    pub fn phases(&mut self, measured: Value) {
        if let Some(json) = &mut self.json {
            json.section("phases", measured);
        }
    }

    /// Which broker it is, by its own words, for the JSON object.
    pub fn server(&mut self, product: &str, version: &str) {
        if let Some(json) = &mut self.json {
            json.section("server", json!({ "product": product, "version": version }));
        }
    }

    /// Everything told so far.
    pub fn total(&self) -> &Recorder {
        &self.total
    }

    /// Prints why the run ended and the summary, and finishes the files. Fails if one of the files could not be written
    /// to the end; everything else is told all the same.
    pub fn finish(&mut self, end: &End) -> Result<(), Failure> {
        if let Some(progress) = self.progress.take() {
            progress.clear();
        }
        // There is always a reason: if neither producers nor consumers nor the clock had one, it was cut short.
        let why = match &end.cut_short {
            Some(cut) if end.reasons.is_empty() => cut.clone(),
            _ => reasons(&end.reasons),
        };
        self.line(&format!("test stopped ({why})"));
        let figures = Figures::of(&self.total, self.elapsed, self.elapsed);
        let sent = self.total.sent_differs().then(|| Latency::of(self.total.sent()));
        for line in self.console.summary(&figures, sent.as_ref()) {
            self.line(&line);
        }
        let id = self.line_beginning();
        for line in end.verdict.iter().flat_map(Verdict::text) {
            self.line(&format!("{id}{line}"));
        }
        if let Some(why) = &end.cut_short {
            self.line(&format!("{id}cut short: {why}"));
        }
        if let Some(json) = self.json.take() {
            let path = json.path().to_path_buf();
            let run = (self.started_unix_us, self.finished_unix_us);
            if let Err(error) = json.finish(end, run, &self.total, self.elapsed) {
                self.broke(&path, &error);
            }
        }
        self.broken.take().map_or(Ok(()), Err)
    }

    fn line_beginning(&self) -> String {
        match self.format {
            Format::Default => format!("id: {}, ", self.id),
            Format::Compact => String::new(),
        }
    }

    fn count(&mut self, sample: &Sample) {
        self.total.merge(&sample.recorder);
        self.elapsed += sample.interval;
        self.finished_unix_us = sample.to_unix_us;
        if sample.recorder.early > 0 && !self.warned_early {
            self.warned_early = true;
            self.warn(
                "Messages arrived before they were sent: the clocks of the machines differ. Their latency is not \
                 counted. Synchronise the clocks (NTP) and use --use-millis on both sides, or run producers and \
                 consumers on one machine.",
            );
        }
        if let Some(hdr) = &mut self.hdr
            && let Err(error) = hdr.add(sample)
        {
            let path = hdr.path().to_path_buf();
            self.hdr = None;
            self.broke(&path, &error);
        }
        if let Some(json) = &mut self.json {
            json.interval(sample);
        }
    }

    fn tell(&mut self, figures: &Figures, unix_us: u64) {
        let first = !std::mem::replace(&mut self.headed, true);
        if first && let Some(header) = self.console.header() {
            self.line(&header);
        }
        let line = self.console.interval(figures, unix_us);
        self.line(&line);
        let mut rows = String::new();
        if first {
            rows += &csv::header(&self.parts);
            rows.push('\n');
        }
        rows += &csv::row(&self.id, figures, &self.parts);
        rows.push('\n');
        if let Some((path, file)) = &mut self.csv
            && let Err(error) = file.write_all(rows.as_bytes())
        {
            let path = path.clone();
            self.csv = None;
            self.broke(&path, &error);
        }
    }

    /// A full disk ends a report and not the run: what was measured is worth more.
    fn broke(&mut self, path: &std::path::Path, error: &io::Error) {
        let text = format!(
            "cannot write {}: {error}. What stands in it is not the whole run; make room and run again",
            path.display()
        );
        // It stands on stderr once, when the run has ended with it.
        let id = self.line_beginning();
        self.line(&format!("{id}{text}"));
        self.broken.get_or_insert(Failure::File(text));
    }
}

/// `A, B [3]`: with how many, if more than one.
fn reasons(reasons: &[(String, usize)]) -> String {
    let each = reasons.iter().map(|(reason, count)| match count {
        0 | 1 => reason.clone(),
        count => format!("{reason} [{count}]"),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn unix_us() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::trial::{end, plan, reports, second};
    use std::fs;
    use std::path::Path;

    #[test]
    fn a_run_reads_like_perftests() {
        let (mut reports, paper) = reports(&plan());
        reports.line("id: abc, starting consumer #0");
        reports.started();
        reports.interval(&second(1, 101, &[100, 200]));
        reports.interval(&second(2, 7, &[300]));
        reports.finish(&end()).unwrap();
        assert_eq!(
            paper.lines(),
            [
                "id: abc, starting consumer #0",
                "id: abc, time 1.000 s, sent: 101 msg/s, received: 101 msg/s, \
                 min/median/75th/95th/99th/max consumer latency: 100/100/200/200/200/200 µs",
                "id: abc, time 2.000 s, sent: 7.0 msg/s, received: 7.0 msg/s, \
                 min/median/75th/95th/99th/max consumer latency: 300/300/300/300/300/300 µs",
                "test stopped (Reached time limit)",
                "id: abc, sending rate avg: 54 msg/s",
                "id: abc, receiving rate avg: 54 msg/s",
                "id: abc, consumer latency min/median/75th/95th/99th/max 100/200/300/300/300/300 µs",
            ]
        );
    }

    #[test]
    fn an_interval_without_messages_has_no_line_and_counts_in_the_next_one() {
        let (mut reports, paper) = reports(&plan());
        for (at, messages) in [(1, 2), (2, 0), (3, 1), (4, 1)] {
            reports.interval(&second(at, messages, &[]));
        }
        let rates: Vec<_> = paper.lines().iter().map(|line| line[9..43].to_owned()).collect();
        assert_eq!(
            rates,
            [
                "time 1.000 s, sent: 2.0 msg/s, rec",
                "time 3.000 s, sent: 0.50 msg/s, re",
                "time 4.000 s, sent: 1.0 msg/s, rec"
            ]
        );
    }

    #[test]
    fn what_came_after_the_last_interval_is_in_the_summary_only() {
        let (mut reports, paper) = reports(&plan());
        reports.interval(&second(1, 100, &[]));
        reports.remainder(&second(2, 300, &[]));
        reports.finish(&End::default()).unwrap();
        assert_eq!(paper.lines().len(), 5);
        assert_eq!(paper.lines()[2], "id: abc, sending rate avg: 200 msg/s");
    }

    #[test]
    fn the_compact_format_has_its_header_once() {
        let mut plan = plan();
        plan.report.format = Format::Compact;
        let (mut reports, paper) = reports(&plan);
        reports.interval(&second(1, 1, &[]));
        reports.interval(&second(2, 1, &[]));
        reports.finish(&end()).unwrap();
        let lines = paper.lines();
        assert!(lines[0].starts_with("time "));
        assert!(lines[1].starts_with("2025/04/08 16:54:19 ") && lines[2].starts_with("2025/04/08 16:54:20 "));
        assert_eq!(
            lines[3..5],
            ["test stopped (Reached time limit)", "sending rate avg: 1.0 msg/s"]
        );
    }

    #[test]
    fn several_who_stopped_for_one_reason_are_counted() {
        let stopped = [
            ("Producer reached message limit".to_owned(), 3),
            ("Consumer reached message limit".to_owned(), 1),
        ];
        assert_eq!(
            reasons(&stopped),
            "Producer reached message limit [3], Consumer reached message limit"
        );
    }

    #[test]
    fn the_csv_file_has_a_row_for_every_line() {
        let folder = tempfile::tempdir().unwrap();
        let mut plan = plan();
        plan.report.csv = Some(folder.path().join("out.csv"));
        let (mut reports, _) = reports(&plan);
        reports.interval(&second(1, 0, &[]));
        reports.interval(&second(2, 40, &[5]));
        let csv = fs::read_to_string(folder.path().join("out.csv")).unwrap();
        let rows: Vec<_> = csv.lines().collect();
        assert_eq!(rows.len(), 2);
        assert!(rows[0].starts_with("id,time (s),published (msg/s),"));
        assert_eq!(rows[1], "abc,2.000,20,,,,20,5,5,5,5,5,,,,,");
    }

    #[test]
    fn a_folder_that_is_missing_is_told_before_the_run() {
        let path = Path::new("/no/such/folder/file");
        for choose in [
            |plan: &mut Plan, path: PathBuf| plan.report.csv = Some(path),
            |plan: &mut Plan, path: PathBuf| plan.report.json = Some(path),
            |plan: &mut Plan, path: PathBuf| plan.report.hdr = Some(path),
        ] {
            let mut plan = plan();
            choose(&mut plan, path.into());
            let failure = Reports::new(&plan, false).map(|_| ()).unwrap_err();
            assert!(
                matches!(&failure, Failure::File(text) if text.contains("/no/such/folder/file: ")),
                "{failure}"
            );
        }
    }

    #[test]
    fn a_full_disk_ends_a_file_and_not_the_run() {
        let mut plan = plan();
        plan.report.csv = Some("/dev/full".into());
        let (mut reports, paper) = reports(&plan);
        reports.interval(&second(1, 1, &[]));
        reports.interval(&second(2, 1, &[]));
        let failure = reports.finish(&end()).unwrap_err();
        assert!(
            failure.to_string().starts_with("cannot write /dev/full: "),
            "{failure}"
        );
        assert_eq!(
            paper.lines().len(),
            7,
            "two intervals, the disk, the reason, the summary"
        );
        assert!(paper.lines()[1].starts_with("id: abc, cannot write /dev/full: "));
    }

    #[test]
    fn a_run_that_was_cut_short_tells_what_it_has_and_that_it_is_not_all() {
        let (mut reports, paper) = reports(&plan());
        reports.interval(&second(1, 20, &[]));
        let cut = End {
            cut_short: Some("the broker is gone".into()),
            ..End::default()
        };
        reports.finish(&cut).unwrap();
        let lines = paper.lines();
        assert_eq!(
            lines[1..3],
            [
                "test stopped (the broker is gone)",
                "id: abc, sending rate avg: 20 msg/s"
            ]
        );
        assert_eq!(lines.last().unwrap(), "id: abc, cut short: the broker is gone");
    }

    #[test]
    fn what_verification_found_stands_below_the_summary_and_in_the_json() {
        let folder = tempfile::tempdir().unwrap();
        let mut plan = plan();
        plan.report.json = Some(folder.path().join("run.json"));
        let (mut reports, paper) = reports(&plan);
        reports.interval(&second(1, 20, &[]));
        let verdict = Verdict {
            published: 20,
            consumed: 19,
            lost: 1,
            ..Verdict::default()
        };
        reports
            .finish(&End {
                verdict: Some(verdict.clone()),
                exit_code: 1,
                ..end()
            })
            .unwrap();
        let below: Vec<_> = verdict
            .text()
            .iter()
            .map(|line| format!("id: abc, {line}"))
            .collect();
        assert!(
            !below.is_empty() && paper.lines().ends_with(&below),
            "{:?}",
            paper.lines()
        );
        let run: Value = serde_json::from_slice(&fs::read(folder.path().join("run.json")).unwrap()).unwrap();
        let told = &run["verify"];
        assert_eq!(
            (&told["published"], &told["lost"], &told["ok"]),
            (&20.into(), &1.into(), &false.into())
        );
    }

    #[test]
    fn nobody_reading_is_no_reason_to_stop() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }

            fn flush(&mut self) -> io::Result<()> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
        }
        let mut reports = Reports::to(&plan(), false, Box::new(Closed), TimeZone::UTC).unwrap();
        reports.interval(&second(1, 1, &[]));
        assert!(reports.finish(&end()).is_ok());
        assert_eq!(reports.total().published, 1);
    }
}
