//! Everything that a run tells, at one place.

use super::End;
use super::console::Console;
use super::csv;
use super::figures::Figures;
use super::hdr::HdrLog;
use super::json;
use super::parts::Parts;
use super::progress::Progress;
use crate::failure::Failure;
use crate::measure::{Latency, Recorder, Sample};
use crate::plan::{Format, Plan};
use jiff::tz::TimeZone;
use serde_json::{Map, Value};
use std::fs::{self, File};
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
    json: Option<Json>,
    /// All samples so far.
    total: Recorder,
    started_unix_us: u64,
    finished_unix_us: u64,
    elapsed: Duration,
    /// Intervals without a message since the last line.
    idle: Duration,
    headed: bool,
    warned_early: bool,
    /// The first file that could not be written to the end.
    broken: Option<Failure>,
}

/// The JSON object while it grows.
struct Json {
    path: PathBuf,
    /// Holds the place until the object is whole, so that there is never half of one under `path`.
    part: PathBuf,
    object: Map<String, Value>,
    intervals: Vec<Value>,
}

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
            .map(|path| Json::create(path, plan))
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
        })
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
        self.section("churn", measured);
    }

    /// What `leveret perf phases` measured, for the JSON object.
    pub fn phases(&mut self, measured: Value) {
        self.section("phases", measured);
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
        if !end.reasons.is_empty() {
            self.line(&format!("test stopped ({})", reasons(&end.reasons)));
        }
        let figures = Figures::of(&self.total, self.elapsed, self.elapsed);
        let sent = self.total.sent_differs().then(|| Latency::of(self.total.sent()));
        for line in self.console.summary(&figures, sent.as_ref()) {
            self.line(&line);
        }
        if let Some(why) = &end.cut_short {
            let id = self.line_beginning();
            self.line(&format!("{id}cut short: {why}"));
        }
        self.finish_json(end);
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
        self.elapsed = sample.elapsed;
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
            json.intervals.push(json::interval(sample));
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

    fn section(&mut self, name: &str, measured: Value) {
        if let Some(json) = &mut self.json {
            json.object.insert(name.into(), measured);
        }
    }

    fn finish_json(&mut self, end: &End) {
        let Some(mut json) = self.json.take() else { return };
        json.object
            .insert("started_unix_us".into(), self.started_unix_us.into());
        json.object
            .insert("finished_unix_us".into(), self.finished_unix_us.into());
        let total = json::total(&self.total, self.elapsed);
        json::close(&mut json.object, end, json.intervals, total);
        let mut text = Value::Object(json.object).to_string();
        text.push('\n');
        let written = fs::write(&json.part, text).and_then(|()| fs::rename(&json.part, &json.path));
        if let Err(error) = written {
            self.broke(&json.path, &error);
        }
    }

    /// A full disk ends a report and not the run: what was measured is worth more.
    fn broke(&mut self, path: &std::path::Path, error: &io::Error) {
        let text = format!(
            "cannot write {}: {error}. What stands in it is not the whole run; make room and run again",
            path.display()
        );
        self.warn(&text);
        self.broken.get_or_insert(Failure::File(text));
    }
}

impl Json {
    fn create(path: PathBuf, plan: &Plan) -> Result<Self, Failure> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(".part");
        let part = path.with_file_name(name);
        super::create(&part)?;
        Ok(Self {
            path,
            part,
            object: json::opening(plan),
            intervals: Vec::new(),
        })
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
