//! One run: declare, publish and consume, measure in the middle, drain, delete.

use crate::connection::{CHANNEL, Connection};
use crate::consumer::Consumer;
use crate::gate::Gate;
use crate::options::Options;
use crate::process::{Process, Usage};
use crate::publisher::Publisher;
use protocol::amqp::method::{QueueDeclare, QueueDelete};
use protocol::amqp::{Method, RawTable};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use std::time::{Duration, Instant};

/// How often the main thread looks whether somebody has failed.
const GLANCE: Duration = Duration::from_millis(20);

/// What a run gave.
pub struct Outcome {
    /// The measured window.
    window: Counters,
    /// The whole run, warm-up and draining included.
    total: Counters,
    consumes: bool,
    usage: Option<Usage>,
    /// Peak of the broker's resident memory from the end of the warm-up on.
    peak_bytes: Option<u64>,
}

/// Counters at a moment, or their difference between two.
#[derive(Clone, Copy, Debug)]
struct Counters {
    published: u64,
    consumed: u64,
    confirmed: u64,
    seconds: f64,
}

/// What all threads of a run share.
struct Shared {
    gates: Vec<Gate>,
    confirmed: AtomicU64,
    stop: AtomicBool,
    publishers_done: AtomicBool,
    failed: AtomicBool,
    start: Instant,
}

impl Shared {
    fn counters(&self) -> Counters {
        // Consumed first: it must never seem more than what was published.
        let consumed = self.gates.iter().map(Gate::consumed).sum();
        let confirmed = self.confirmed.load(SeqCst);
        let published = self.gates.iter().map(Gate::published).sum();
        Counters {
            published,
            consumed,
            confirmed,
            seconds: self.start.elapsed().as_secs_f64(),
        }
    }

    /// Waits, but not for a run that has failed.
    fn pause(&self, seconds: f64) {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while !self.failed.load(SeqCst) {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            thread::sleep(left.min(GLANCE));
        }
    }

    /// Notes a failure, which ends the run.
    fn watch(&self, result: Result<(), String>) -> Result<(), String> {
        if result.is_err() {
            self.failed.store(true, SeqCst);
            self.stop.store(true, SeqCst);
            self.publishers_done.store(true, SeqCst);
        }
        result
    }
}

/// Runs the load that the options describe.
///
/// # Errors
/// If the broker refuses something, loses or invents messages, or is stuck.
pub fn run(options: &Options) -> Result<Outcome, String> {
    let queues: Vec<String> = (0..options.queues).map(|i| format!("bench.{i}")).collect();
    let mut control = Connection::open(options)?;
    declare(&mut control, options, &queues)?;
    let limit = if options.consumers > 0 {
        options.in_flight
    } else {
        0
    };
    let shared = Shared {
        gates: queues.iter().map(|_| Gate::new(limit)).collect(),
        confirmed: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        publishers_done: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        start: Instant::now(),
    };
    let queue = |i: usize| queues[i % queues.len()].as_str();
    let consumers = (0..options.consumers)
        .map(|i| Consumer::open(options, queue(i)))
        .collect::<Result<Vec<_>, _>>()?;
    let publishers = (0..options.publishers)
        .map(|i| Publisher::open(options, queue(i)))
        .collect::<Result<Vec<_>, _>>()?;
    let outcome = drive(options, &shared, publishers, consumers)?;
    for queue in &queues {
        delete(&mut control, queue)?;
    }
    control.close();
    Ok(outcome)
}

/// Lets all threads run and measures between warm-up and stop.
fn drive(
    options: &Options,
    shared: &Shared,
    publishers: Vec<Publisher>,
    consumers: Vec<Consumer>,
) -> Result<Outcome, String> {
    let process = options.pid.map(Process::new);
    let usage = || process.as_ref().map(Process::usage).transpose();
    let gate = |i: usize| &shared.gates[i % shared.gates.len()];
    let consumes = !consumers.is_empty();
    // What was written need not have been handled. Consumers show what was; without them the whole run is measured, from
    // its beginning until the broker has answered a request behind the last message.
    let beginning = (shared.counters(), usage());
    thread::scope(|scope| {
        let mut consuming = Vec::new();
        for (i, consumer) in consumers.into_iter().enumerate() {
            consuming.push(scope.spawn(move || {
                shared.watch(consumer.run(gate(i), &shared.publishers_done, options.may_drop()))
            }));
        }
        let mut publishing = Vec::new();
        for (i, publisher) in publishers.into_iter().enumerate() {
            publishing.push(
                scope.spawn(move || shared.watch(publisher.run(gate(i), &shared.stop, &shared.confirmed))),
            );
        }
        shared.pause(options.warmup_s);
        if let Some(process) = &process {
            process.reset_peak();
        }
        let (mut before, mut used_before) = (shared.counters(), usage());
        shared.pause(options.seconds);
        let (mut after, mut used_after) = (shared.counters(), usage());
        shared.stop.store(true, SeqCst);
        let mut results: Vec<_> = publishing.into_iter().map(|thread| thread.join()).collect();
        if !consumes {
            (before, used_before) = beginning;
            (after, used_after) = (shared.counters(), usage());
        }
        shared.publishers_done.store(true, SeqCst);
        results.extend(consuming.into_iter().map(|thread| thread.join()));
        for result in results {
            result.map_err(|_| "a thread panicked".to_owned())??;
        }
        let total = shared.counters();
        judge(options, total)?;
        Ok(Outcome {
            window: after.since(before),
            total,
            consumes,
            usage: used_before?
                .zip(used_after?)
                .map(|(before, after)| after.since(before)),
            peak_bytes: process.as_ref().map(Process::peak_bytes).transpose()?,
        })
    })
}

/// Everything that was published must have come, and nothing else.
fn judge(options: &Options, total: Counters) -> Result<(), String> {
    let Counters {
        published,
        consumed,
        confirmed,
        ..
    } = total;
    if consumed > published || (options.consumers > 0 && !options.may_drop() && consumed < published) {
        return Err(format!(
            "{published} messages were published and {consumed} consumed"
        ));
    }
    if options.confirm > 0 && confirmed != published {
        return Err(format!(
            "{published} messages were published and {confirmed} confirmed"
        ));
    }
    Ok(())
}

/// Declares the queues anew: what an aborted run left behind is deleted first.
fn declare(control: &mut Connection, options: &Options, queues: &[String]) -> Result<(), String> {
    let mut arguments = Vec::new();
    if let Some(length) = options.max_length {
        arguments.extend_from_slice(b"\x0cx-max-lengthl");
        arguments.extend_from_slice(&length.to_be_bytes());
    }
    for queue in queues {
        delete(control, queue)?;
        let arguments = RawTable(&arguments);
        control.send(
            CHANNEL,
            &QueueDeclare {
                queue,
                durable: options.durable,
                arguments,
                ..QueueDeclare::default()
            },
        )?;
        control.await_method(|m| matches!(m, Method::QueueDeclareOk(_)).then_some(()))?;
    }
    Ok(())
}

fn delete(control: &mut Connection, queue: &str) -> Result<(), String> {
    control.send(
        CHANNEL,
        &QueueDelete {
            queue,
            ..QueueDelete::default()
        },
    )?;
    control.await_method(|m| matches!(m, Method::QueueDeleteOk(_)).then_some(()))
}

impl Counters {
    fn since(self, before: Self) -> Self {
        Self {
            published: self.published - before.published,
            consumed: self.consumed - before.consumed,
            confirmed: self.confirmed - before.confirmed,
            seconds: self.seconds - before.seconds,
        }
    }
}

impl Usage {
    fn since(self, before: Self) -> Self {
        Self {
            user_s: self.user_s - before.user_s,
            system_s: self.system_s - before.system_s,
            written: self.written.saturating_sub(before.written),
        }
    }
}

impl Outcome {
    /// Messages of the window: the mean of published and consumed, or what was published if nobody consumes.
    fn messages(&self) -> f64 {
        let Counters {
            published, consumed, ..
        } = self.window;
        if self.consumes {
            (published + consumed) as f64 / 2.0
        } else {
            published as f64
        }
    }

    /// One line of JSON.
    pub fn json(&self) -> String {
        let Counters {
            published,
            consumed,
            confirmed,
            seconds,
        } = self.window;
        let messages = self.messages().max(1.0);
        let rate = |count: u64| count as f64 / seconds;
        let mut fields = vec![
            format!("\"published\":{published},\"consumed\":{consumed},\"confirmed\":{confirmed}"),
            format!("\"seconds\":{seconds:.4}"),
            format!(
                "\"publish_rate\":{:.1},\"consume_rate\":{:.1}",
                rate(published),
                rate(consumed)
            ),
            format!(
                "\"total_published\":{},\"total_consumed\":{}",
                self.total.published, self.total.consumed
            ),
        ];
        if let Some(usage) = self.usage {
            let cpu_s = usage.user_s + usage.system_s;
            fields.push(format!(
                "\"cpu_user_s\":{:.2},\"cpu_system_s\":{:.2}",
                usage.user_s, usage.system_s
            ));
            fields.push(format!("\"cpu_us_per_message\":{:.4}", cpu_s * 1e6 / messages));
            fields.push(format!(
                "\"written_bytes_per_message\":{:.1}",
                usage.written as f64 / messages
            ));
        }
        if let Some(peak) = self.peak_bytes {
            fields.push(format!("\"rss_peak_bytes\":{peak}"));
        }
        format!("{{{}}}", fields.join(","))
    }
}
