//! A churn from beginning to end: make what is needed, let the workers work, sample, tell, take everything away.

use super::background::{self, Background, Spans};
use super::lines::Lines;
use super::options::Options;
use super::pool::Pool;
use super::publisher::Publisher;
use super::results::{Results, histograms};
use super::screen::Screen;
use super::site::Site;
use super::turns::{Turns, all_gave_up};
use super::what::What;
use super::words;
use super::worker::{CHANNEL, Job, Worker};
use crate::cli;
use crate::client::Client;
use crate::clock;
use crate::failure::{Failure, complain};
use crate::measure::{self, Recorder, Sample};
use crate::plan::Plan;
use crate::report::{End, Reports};
use crate::run::Interrupt;
use crate::subcommand;
use crate::subcommand::Request;
use hdrhistogram::Histogram;
use jiff::tz::TimeZone;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the course looks around; a deletion is told apart from what was before and after it as finely as this.
const GLANCE: Duration = Duration::from_millis(20);
/// Workers have this long to end what they are at.
const GOODBYE: Duration = Duration::from_secs(10);

/// Does what was asked for; returns the exit code.
///
/// # Errors
/// If the run could not start.
pub fn run(options: Options, arguments: &[String]) -> Result<ExitCode, Failure> {
    let interrupt = Interrupt::catch();
    let id = options.id.clone().unwrap_or_else(subcommand::own_id);
    let plan = connecting(&options, &id)?;
    let read = |flags: &String| background::plan(flags, &options.uri, &id);
    let beside = options.background.as_ref().map(read).transpose()?;
    let screen = Screen::new();
    let reports = reports(&options, &plan, beside.as_ref(), arguments, &screen)?;
    let theirs = beside
        .as_ref()
        .map(|plan| (plan.exchange.name.as_str(), plan.exchange.kind.as_str()));
    let mut site = Site::new(&options, &id, theirs);
    let what = options.what();
    let results = Results::new(
        what.operations(options.fills_queues()).len(),
        options.concurrency.into(),
    );
    let uri = plan
        .uris
        .first()
        .ok_or_else(|| Failure::Usage("there is no address: give --uri".into()))?;
    let mut control = Client::open(uri, &plan.connection, "perf-churn-control", &id, None)?;
    control.open_channel(CHANNEL)?;
    if what.needs_exchange() || options.preload > 0 {
        site.declare_exchange(&mut control, CHANNEL)?;
    }
    let job = Arc::new(Job {
        options,
        plan,
        site,
        results,
        pool: Pool::default(),
        stop: AtomicBool::new(false),
        deleting: AtomicUsize::new(0),
        deletions: AtomicUsize::new(0),
        gave_up: AtomicUsize::new(0),
    });
    let mut course = Course::new(job.clone(), interrupt, screen.clone(), reports);
    let done = course.go(beside.as_ref(), &mut control);
    job.stop.store(true, Relaxed);
    for publisher in job.pool.drain() {
        publisher.client.close();
    }
    clean(&job, control, &screen);
    done
}

/// A plan with nothing but a broker to connect to. A client at rest sends no heartbeats, so none are agreed on.
fn connecting(options: &Options, id: &str) -> Result<Plan, Failure> {
    // Somebody has to do something, says the command line; nobody starts what it asks for.
    let nobody = ["--producers", "0", "--consumers", "1", "--heartbeat", "0"];
    let arguments = [&["--uri", &options.uri, "--id", id][..], &nobody].concat();
    match cli::plan(
        &arguments.into_iter().map(str::to_owned).collect::<Vec<_>>(),
        &|_| None,
    )? {
        Request::Run(plan) => Ok(*plan),
        Request::Print(text) => Err(Failure::Usage(text)),
    }
}

/// The reports tell of the background; the churn's own lines go to the same screen.
fn reports(
    options: &Options,
    plan: &Plan,
    beside: Option<&Plan>,
    arguments: &[String],
    screen: &Screen,
) -> Result<Reports, Failure> {
    let mut told = beside.unwrap_or(plan).clone();
    told.report.json = options.json.clone();
    told.report.interval = options.interval();
    told.arguments = vec!["churn".to_owned()];
    told.arguments
        .extend(arguments.iter().map(|it| words::masked(it)));
    Reports::to(&told, false, Box::new(screen.clone()), TimeZone::system())
}

/// Deletes what was made, on a new connection if that one is lost.
fn clean(job: &Job, mut control: Client, screen: &Screen) {
    if job.site.left() == 0 {
        return control.close();
    }
    let mut cleaned = job.site.clean(&mut control, CHANNEL);
    if matches!(cleaned, Err(Failure::Lost(_) | Failure::Connect(_))) {
        cleaned = job.connect("perf-churn-control").and_then(|client| {
            control = client;
            control.open_channel(CHANNEL)?;
            job.site.clean(&mut control, CHANNEL)
        });
    }
    if let Err(failure) = cleaned {
        let id = &job.plan.id;
        screen.line(&format!(
            "id: {id}, not all that was made could be deleted (names perf-churn-{id}…): {failure}"
        ));
    }
    control.close();
}

/// A churn on its way.
struct Course {
    job: Arc<Job>,
    interrupt: Interrupt,
    screen: Screen,
    reports: Reports,
    lines: Lines,
    all: Vec<Histogram<u64>>,
    spans: Spans,
    /// What the background did in this interval so far.
    beside: Recorder,
    slice_from: Instant,
    deletions_seen: usize,
    deleting: bool,
    started: Instant,
    sampled: Instant,
    sampled_unix_us: u64,
}

impl Course {
    fn new(job: Arc<Job>, interrupt: Interrupt, screen: Screen, reports: Reports) -> Self {
        let fills = job.options.fills_queues();
        let operations = job.options.what().operations(fills);
        let now = Instant::now();
        Self {
            lines: Lines {
                id: job.plan.id.clone(),
                operations,
            },
            all: histograms(operations.len()),
            spans: Spans::new(fills),
            beside: Recorder::new(),
            slice_from: now,
            deletions_seen: 0,
            deleting: false,
            started: now,
            sampled: now,
            sampled_unix_us: clock::unix_us(),
            job,
            interrupt,
            screen,
            reports,
        }
    }

    fn go(&mut self, beside: Option<&Plan>, control: &mut Client) -> Result<ExitCode, Failure> {
        let Some(workers) = self.prepare()? else {
            return Ok(self.exit_code(true));
        };
        let background = beside
            .map(|plan| Background::start(plan, control, CHANNEL))
            .transpose()?;
        let baseline = background
            .as_ref()
            .map_or(Ok(()), |background| self.baseline(background));
        let cut_short = match baseline {
            Ok(()) => self.churn(workers, background.as_ref()),
            Err(failure) => Err(failure),
        };
        if let Some(background) = background {
            for line in background.told() {
                self.screen.line(&line);
            }
            if let Err(failure) = background.stop(control, CHANNEL) {
                let id = &self.job.plan.id;
                self.screen.line(&format!(
                    "id: {id}, what the background made could not be deleted: {failure}"
                ));
            }
        }
        self.finish(cut_short)
    }

    /// Lets all workers make what they need; `None` if a signal came.
    fn prepare(&mut self) -> Result<Option<Vec<Worker>>, Failure> {
        let job = self.job.clone();
        let (id, options) = (&job.plan.id, &job.options);
        let workers: usize = options.concurrency.into();
        let bindings = options.preload * if options.fills_queues() { workers as u64 } else { 1 };
        if options.what() == What::Acquire {
            for _ in 0..options.pool {
                job.pool
                    .release(Some(Publisher::new(job.connect("perf-churn-pool")?, true)?));
            }
        }
        if bindings > 0 {
            self.screen.line(&format!("id: {id}, making {bindings} bindings"));
            self.screen.bar(bindings, "bindings");
        }
        let (done, made) = mpsc::channel();
        for number in 0..workers {
            let (job, done) = (job.clone(), done.clone());
            let prepare = move || drop(done.send(Worker::prepare(number, job)));
            spawn(number, prepare)?;
        }
        drop(done);
        let mut ready = Vec::new();
        let mut told = Instant::now();
        while ready.len() < workers {
            match made.recv_timeout(GLANCE * 5) {
                Ok(worker) => ready.push(worker?),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if self.interrupt.came().is_some() {
                job.stop.store(true, Relaxed);
                self.screen.clear();
                return Ok(None);
            }
            let loaded = job.site.loaded.load(Relaxed);
            self.screen
                .advance(loaded, self.started.elapsed(), &format!("{loaded} of {bindings}"));
            if !self.screen.has_bar() && told.elapsed() >= Duration::from_secs(10) {
                told = Instant::now();
                self.screen
                    .line(&format!("id: {id}, {loaded} of {bindings} bindings made"));
            }
        }
        self.screen.clear();
        if bindings > 0 {
            let seconds = self.started.elapsed().as_secs_f64();
            self.screen
                .line(&format!("id: {id}, {bindings} bindings made in {seconds:.1} s"));
        }
        Ok(Some(ready))
    }

    /// The background alone.
    fn baseline(&mut self, background: &Background) -> Result<(), Failure> {
        let span = Duration::try_from_secs_f64(self.job.options.baseline).unwrap_or_default();
        let id = self.job.plan.id.clone();
        self.screen.line(&format!(
            "id: {id}, the background runs alone for {} s",
            span.as_secs_f64()
        ));
        // The first moments, in which everything is new, tell nothing.
        let settle = span / 5;
        for (part, counts) in [(settle, false), (span - settle, true)] {
            let from = Instant::now();
            while from.elapsed() < part && self.interrupt.came().is_none() {
                if let Some(failure) = background.failure() {
                    return Err(failure);
                }
                thread::park_timeout(GLANCE.min(part));
            }
            let recorder = background.take();
            if counts {
                self.spans.before.add(&recorder, from.elapsed());
            }
        }
        Ok(())
    }

    /// Lets the workers work until the end; the error is why it came too early.
    fn churn(&mut self, workers: Vec<Worker>, background: Option<&Background>) -> Result<(), Failure> {
        let job = self.job.clone();
        let options = &job.options;
        let start = clock::now();
        let end = options
            .time()
            .map(|time| start.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)));
        let turns = Arc::new(Turns::new(options.rate, start, end, options.count));
        let count = workers.len();
        self.begin();
        let mut threads = Vec::new();
        for (number, worker) in workers.into_iter().enumerate() {
            let turns = turns.clone();
            threads.push(spawn(number, move || worker.work(&turns))?);
        }
        let mut next = self.sampled + options.interval();
        let mut cut_short = Ok(());
        while !threads.iter().all(JoinHandle::is_finished) && self.interrupt.came().is_none() {
            let now = Instant::now();
            let due = now >= next;
            if let Some(background) = background {
                self.slice(background, due);
                if let Some(failure) = background.failure() {
                    cut_short = Err(failure);
                    break;
                }
            }
            if due {
                self.sample(true);
                next += options.interval();
            }
            // An operation that hangs must not make the run longer than it was asked to be.
            if end.is_some_and(|end| clock::now() > end.saturating_add(GOODBYE.as_nanos() as u64)) {
                break;
            }
            thread::park_timeout(GLANCE.min(next.saturating_duration_since(Instant::now())));
        }
        job.stop.store(true, Relaxed);
        let until = Instant::now() + GOODBYE;
        while !threads.iter().all(JoinHandle::is_finished) && Instant::now() < until {
            thread::park_timeout(GLANCE);
        }
        if let Some(background) = background {
            self.slice(background, true);
        }
        self.sample(false);
        if job.gave_up.load(Relaxed) == count && cut_short.is_ok() {
            let first = job
                .results
                .errors()
                .first
                .map_or_else(String::new, |failure| failure.to_string());
            cut_short = Err(all_gave_up(&first));
        }
        cut_short
    }

    /// The clock of the run starts.
    fn begin(&mut self) {
        self.reports.started();
        let options = &self.job.options;
        let milliseconds = options
            .time()
            .map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        if let Some(whole) = milliseconds.or(options.count) {
            self.screen.bar(whole, options.what().name());
        }
        let now = Instant::now();
        (self.started, self.sampled, self.slice_from) = (now, now, now);
        self.sampled_unix_us = clock::unix_us();
    }

    /// What the background did since the last look. It belongs to a deletion if one was under way, or the look before had
    /// one: confirms that it held up come right behind it. Without deletions to tell apart, looks are as rare as lines.
    fn slice(&mut self, background: &Background, due: bool) {
        if self.spans.deletions.is_none() && !due {
            return;
        }
        let now = Instant::now();
        for line in background.told() {
            self.screen.line(&line);
        }
        let begun = self.job.deletions.load(Relaxed);
        let deleting = self.job.deleting.load(Relaxed) > 0 || begun != self.deletions_seen;
        let recorder = background.take();
        let span = now.duration_since(self.slice_from);
        if let Some(deletions) = &mut self.spans.deletions
            && (deleting || self.deleting)
        {
            deletions.add(&recorder, span);
        }
        self.spans.during.add(&recorder, span);
        self.beside.merge(&recorder);
        (self.slice_from, self.deletions_seen, self.deleting) = (now, begun, deleting);
    }

    /// An interval is over, or the whole run.
    fn sample(&mut self, whole: bool) {
        let (now, unix_us) = (Instant::now(), clock::unix_us());
        let (elapsed, interval) = (now - self.started, now - self.sampled);
        let taken = self.job.results.take();
        if let Some(line) = self.lines.interval(&taken, interval, elapsed).filter(|_| whole) {
            self.screen.line(&line);
        }
        for (sum, part) in self.all.iter_mut().zip(&taken) {
            measure::add(sum, part);
        }
        let sample = Sample {
            from_unix_us: self.sampled_unix_us,
            to_unix_us: unix_us,
            elapsed,
            interval,
            recorder: self.beside.take(),
        };
        if whole {
            self.reports.interval(&sample);
        } else {
            self.reports.remainder(&sample);
        }
        (self.sampled, self.sampled_unix_us) = (now, unix_us);
        let turns = self
            .all
            .get(usize::from(self.job.options.fills_queues()))
            .map_or(0, Histogram::len);
        let done = match self.job.options.time {
            Some(_) => u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            None => turns,
        };
        self.screen.advance(done, elapsed, &format!("{turns} turns"));
    }

    fn finish(&mut self, ended: Result<(), Failure>) -> Result<ExitCode, Failure> {
        self.screen.clear();
        let job = self.job.clone();
        let errors = job.results.errors();
        let mut cut_short = ended.err().map(|failure| failure.to_string());
        if self.interrupt.came().is_some() {
            cut_short.get_or_insert_with(|| "it was interrupted".to_owned());
        }
        let reason = match (&cut_short, job.options.count) {
            (Some(_), _) => None,
            (None, Some(count)) if self.all.iter().any(|each| each.len() >= count) => {
                Some("Reached number of turns")
            }
            _ => Some("Reached time limit"),
        };
        let code = self.exit_code(cut_short.is_some() || errors.count > 0);
        let span = self.started.elapsed().min(self.sampled - self.started);
        let mut json = self
            .lines
            .json(job.options.what().name(), &self.all, span, &errors);
        let beside = job.options.background.is_some();
        if beside {
            json.insert("background".into(), self.spans.json());
        } else {
            // No messages, no lines about messages.
            self.screen.mute();
            let why = reason.or(cut_short.as_deref()).unwrap_or_default();
            self.screen.line(&format!("test stopped ({why})"));
        }
        self.reports.churn(json.into());
        let end = End {
            reasons: reason.map(|reason| (reason.to_owned(), 1)).into_iter().collect(),
            exit_code: self.exit_number(cut_short.is_some() || errors.count > 0).into(),
            cut_short: cut_short.clone(),
            ..End::default()
        };
        let written = self.reports.finish(&end);
        if beside {
            for line in self.lines.background(&self.spans) {
                self.screen.line(&line);
            }
        }
        for line in self.lines.table(&self.all, span, &errors) {
            self.screen.line(&line);
        }
        if let Some(reason) = cut_short {
            complain(format_args!("The run was cut short: {reason}"));
        }
        written.map(|()| code)
    }

    fn exit_number(&self, failed: bool) -> u8 {
        self.interrupt
            .came()
            .map_or(u8::from(failed), |signal| 128 + signal)
    }

    fn exit_code(&self, failed: bool) -> ExitCode {
        ExitCode::from(self.exit_number(failed))
    }
}

fn spawn(number: usize, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, Failure> {
    thread::Builder::new()
        .name(format!("churn {number}"))
        .spawn(work)
        .map_err(|error| {
            Failure::Lost(format!(
                "can't start a thread: {error}; ask for less --concurrency"
            ))
        })
}
