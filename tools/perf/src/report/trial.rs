//! A plan and samples to try reports and metrics with.

use crate::client::scripted::connecting;
use crate::measure::{Recorder, Sample};
use crate::plan::*;
use crate::report::{End, Reports};
use jiff::tz::TimeZone;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// One producer, one consumer, everything else as PerfTest's defaults. No broker: reports never ask for one.
pub fn plan() -> Plan {
    Plan {
        id: "abc".into(),
        arguments: ["--rate", "50", "--uri", "amqp://***@localhost"]
            .map(str::to_owned)
            .into(),
        uris: Vec::new(),
        declare_uri: None,
        allocation: Allocation::Random,
        connection: connecting(),
        exchange: Exchange {
            name: "direct".into(),
            kind: "direct".into(),
        },
        queues: Queues {
            names: QueueNames::ServerNamed,
            durable: false,
            auto_delete: true,
            exclusive: false,
            arguments: Default::default(),
            predeclared: false,
            skip_binding: false,
            delete_at_end: false,
        },
        routing: Routing {
            key: None,
            random: false,
            cache: 0,
        },
        producing: producing(),
        message: MessagePlan {
            body: BodyPlan::Size(12),
            properties: Properties::default(),
        },
        consuming: consuming(),
        stopping: Stopping {
            time: None,
            exit_when: None,
            shutdown_timeout: Duration::from_secs(5),
        },
        report: Reporting {
            interval: Duration::from_secs(1),
            format: Format::Default,
            csv: None,
            json: None,
            hdr: None,
            millis: false,
            verbose: Verbose::No,
        },
        exporter: Exporting {
            prefix: "perftest_".into(),
            ..Exporting::default()
        },
        instances: None,
        threads: 1,
        max_in_flight: None,
        verify: false,
    }
}

fn producing() -> Producing {
    Producing {
        producers: 1,
        channels: 1,
        schedule: Schedule::Unlimited,
        random_start_delay: Duration::ZERO,
        confirm: None,
        confirm_timeout: Duration::from_secs(30),
        transaction: 0,
        mandatory: false,
        persistent: false,
        messages: None,
        latency_from: LatencyFrom::Intended,
    }
}

fn consuming() -> Consuming {
    Consuming {
        consumers: 1,
        channels: 1,
        rate: None,
        auto_ack: false,
        multi_ack_every: 0,
        prefetch: 0,
        channel_prefetch: 0,
        nack: None,
        transaction: 0,
        latency: Vec::new(),
        polling: None,
        arguments: Default::default(),
        messages: None,
        slow_start: false,
        start_delay: Duration::ZERO,
    }
}

/// The second number `second` of a run, with so many messages published and consumed, of latencies in microseconds.
pub fn second(second: u32, messages: u64, latencies_us: &[u64]) -> Sample {
    let mut recorder = Recorder::new();
    recorder.published = messages;
    recorder.consumed = messages;
    for us in latencies_us {
        recorder.latency(us * 1_000);
    }
    let end = START_UNIX_US + u64::from(second) * 1_000_000;
    Sample {
        from_unix_us: end - 1_000_000,
        to_unix_us: end,
        elapsed: Duration::from_secs(second.into()),
        interval: Duration::from_secs(1),
        recorder,
    }
}

/// When runs of tests begin: 2025/04/08 16:54:18 UTC.
pub const START_UNIX_US: u64 = 1_744_131_258_000_000;

/// What was printed.
#[derive(Clone, Default)]
pub struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Paper {
    pub fn lines(&self) -> Vec<String> {
        String::from_utf8(self.0.lock().unwrap().clone())
            .unwrap()
            .lines()
            .map(str::to_owned)
            .collect()
    }
}

pub fn reports(plan: &Plan) -> (Reports, Paper) {
    let paper = Paper::default();
    let reports = Reports::to(plan, false, Box::new(paper.clone()), TimeZone::UTC).unwrap();
    (reports, paper)
}

/// The end of a run whose time is over.
pub fn end() -> End {
    End {
        reasons: vec![("Reached time limit".into(), 1)],
        ..End::default()
    }
}
