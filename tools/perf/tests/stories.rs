//! Stories of the schedules, in `stories/*.txt`: what a RabbitMQ user would expect of a rate, on a clock that only the story
//! moves.
//!
//! A line that begins with `#` names a story. Its other lines are commands, and indented under them what must be true then:
//!
//! ```text
//! rate R | interval SECONDS | variable R:SECONDS … | unlimited   the schedule, with [producers N]
//! writing takes T       how long a producer is busy with a message
//! delivery takes T      how long the broker has a message
//! until T               the clock goes on, and producers publish what is due
//! blocked until T       the clock goes on, and nobody can publish
//!     sent at T, T, …   the moments of all that was published since the command
//!     sent N            how many these were
//!     due N             how many could be published now
//!     next at T | next at once | next never                       what the first producer waits for
//!     latency from intended|sent T, T, …                          as a consumer reads it from the messages
//!     in any SPAN A to B   the fewest and the most in any such span of time (a message on its border counts either way)
//! ```

#![allow(clippy::unwrap_used, reason = "a story that can't be read has failed")]

use perf::Request;
use perf::cli::plan;
use perf::message::{Messages, stamp};
use perf::pace::{Due, Pacer};
use perf::plan::Schedule;
use perf::topology::Route;
use protocol::amqp::PublishScanner;
use std::path::Path;
use std::time::Duration;

/// A message that was published.
#[derive(Clone, Copy)]
struct Sent {
    at: u64,
    /// How old it is when it comes, if it counts from when it was due, and from when it was sent.
    from_intended: u64,
    from_sent: u64,
}

struct World {
    pacers: Vec<Pacer>,
    /// When each producer has written what it took.
    free: Vec<u64>,
    messages: Messages,
    writing: u64,
    delivery: u64,
    now: u64,
    /// Since the last command, in order of time.
    sent: Vec<Sent>,
}

impl World {
    fn new(schedule: &Schedule, producers: u64) -> Self {
        let Ok(Request::Run(plan)) = plan(&["--size".to_owned(), "16".to_owned()], &|_| None) else {
            panic!("no plan")
        };
        let route = Route {
            exchange: String::new(),
            routing_key: Some("q".to_owned()),
        };
        Self {
            pacers: (0..producers)
                .map(|index| Pacer::new(schedule, 0, index, producers))
                .collect(),
            free: vec![0; producers as usize],
            messages: Messages::new(&plan, 0, 1, &route, 4096, 0).unwrap(),
            writing: 0,
            delivery: 0,
            now: 0,
            sent: Vec::new(),
        }
    }

    fn advance(&mut self, to: u64, blocked: bool) {
        self.sent.clear();
        if !blocked {
            for producer in 0..self.pacers.len() {
                self.publish(producer, to);
            }
            self.sent.sort_by_key(|it| it.at);
        }
        self.now = to;
    }

    /// One producer from now on, up to and with the moment `to`.
    fn publish(&mut self, producer: usize, to: u64) {
        let mut clock = self.now.max(self.free[producer]);
        while clock <= to {
            let pacer = &mut self.pacers[producer];
            if pacer.due(clock) > 0 {
                let intended = pacer.take(clock);
                let sent = self.send(clock, intended);
                self.sent.push(sent);
                clock += self.writing;
                continue;
            }
            match pacer.next() {
                Due::At(moment) => {
                    assert!(
                        moment > clock,
                        "nothing is due at {clock}, which is past {moment}"
                    );
                    clock = moment;
                }
                Due::Never => break,
                Due::Now => panic!("due at once, and not due"),
            }
        }
        self.free[producer] = clock.min(to.saturating_add(self.writing));
    }

    /// Writes a message and reads it as a consumer does.
    fn send(&mut self, now: u64, intended: u64) -> Sent {
        let mut bytes = Vec::new();
        self.messages.append(&mut bytes, now, intended);
        let mut scanner = PublishScanner::new(4096, model::Limits::default());
        let (publish, used) = scanner.scan(&bytes).unwrap();
        assert_eq!(used, bytes.len());
        let stamp = stamp::read(publish.message.body).unwrap();
        let from_sent = now + self.delivery - stamp.sent;
        Sent {
            at: now,
            from_intended: from_sent + u64::from(stamp.lag_us) * 1000,
            from_sent,
        }
    }

    fn due(&mut self) -> u64 {
        let now = self.now;
        self.pacers.iter_mut().map(|pacer| pacer.due(now)).sum()
    }

    fn next(&self) -> String {
        match self.pacers[0].next() {
            Due::Now => "next at once".to_owned(),
            Due::Never => "next never".to_owned(),
            Due::At(moment) => format!("next at {}", told(moment)),
        }
    }

    /// The fewest and the most messages in any `span` that lies between the first and the last message.
    fn crowd(&self, span: u64) -> (usize, usize) {
        let moments: Vec<u64> = self.sent.iter().map(|it| it.at).collect();
        let last = *moments.last().unwrap();
        let count = |from: u64| {
            moments.partition_point(|at| *at < from + span) - moments.partition_point(|at| *at < from)
        };
        // The crowd changes where a span begins with a message, or just behind one.
        let starts = moments.iter().flat_map(|at| [*at, *at + 1]);
        let counts: Vec<usize> = starts.filter(|at| at + span <= last).map(count).collect();
        (*counts.iter().min().unwrap(), *counts.iter().max().unwrap())
    }

    /// What is true in place of an expectation.
    fn truth(&mut self, expected: &str) -> String {
        let all = |value: fn(&Sent) -> u64, sent: &[Sent]| -> String {
            sent.iter()
                .map(|it| told(value(it)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let words: Vec<&str> = expected.split_whitespace().collect();
        match words.as_slice() {
            ["sent", "at", ..] => format!("sent at {}", all(|it| it.at, &self.sent)),
            ["sent", _] => format!("sent {}", self.sent.len()),
            ["due", _] => format!("due {}", self.due()),
            ["next", ..] => self.next(),
            ["latency", "from", "intended", ..] => {
                format!("latency from intended {}", all(|it| it.from_intended, &self.sent))
            }
            ["latency", "from", "sent", ..] => {
                format!("latency from sent {}", all(|it| it.from_sent, &self.sent))
            }
            ["in", "any", span, unit, ..] => {
                let (least, most) = self.crowd(time(span, unit));
                format!("in any {span} {unit} {least} to {most}")
            }
            _ => panic!("no expectation: {expected}"),
        }
    }
}

/// Nanoseconds.
fn time(number: &str, unit: &str) -> u64 {
    let unit = match unit {
        "s" => 1e9,
        "ms" => 1e6,
        _ => panic!("no unit of time: {unit}"),
    };
    (number.parse::<f64>().unwrap() * unit).round() as u64
}

/// As stories write it: whole seconds, or milliseconds.
fn told(nanoseconds: u64) -> String {
    if nanoseconds > 0 && nanoseconds.is_multiple_of(1_000_000_000) {
        return format!("{} s", nanoseconds / 1_000_000_000);
    }
    let (whole, rest) = (nanoseconds / 1_000_000, nanoseconds % 1_000_000);
    let text = format!("{whole}.{rest:06}");
    format!("{} ms", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A first command: a schedule, for how many producers.
fn schedule(words: &[&str]) -> (Schedule, u64) {
    let (words, producers) = match words {
        [words @ .., "producers", number] => (words, number.parse().unwrap()),
        words => (words, 1),
    };
    let seconds = |text: &str| Duration::from_secs_f64(text.parse().unwrap());
    let schedule = match words {
        ["unlimited"] => Schedule::Unlimited,
        ["rate", rate] => Schedule::Rate(rate.parse().unwrap()),
        ["interval", interval] => Schedule::Interval(seconds(interval)),
        ["variable", parts @ ..] => Schedule::Variable(
            parts
                .iter()
                .map(|part| part.split_once(':').unwrap())
                .map(|(rate, holds)| (rate.parse().unwrap(), seconds(holds)))
                .collect(),
        ),
        other => panic!("no schedule: {other:?}"),
    };
    (schedule, producers)
}

/// Plays a story; `Err` says where it is untrue.
fn play(lines: &[&str]) -> Result<(), String> {
    let (first, rest) = lines.split_first().unwrap();
    let (schedule, producers) = schedule(&first.split_whitespace().collect::<Vec<_>>());
    let mut world = World::new(&schedule, producers);
    for line in rest {
        if line.starts_with(' ') {
            let truth = world.truth(line);
            if truth != line.trim() {
                return Err(format!("  expected {}\n  in truth {truth}", line.trim()));
            }
            continue;
        }
        match line.split_whitespace().collect::<Vec<_>>().as_slice() {
            ["until", number, unit] => world.advance(time(number, unit), false),
            ["blocked", "until", number, unit] => world.advance(time(number, unit), true),
            ["writing", "takes", number, unit] => world.writing = time(number, unit),
            ["delivery", "takes", number, unit] => world.delivery = time(number, unit),
            other => panic!("no command: {other:?}"),
        }
    }
    Ok(())
}

#[test]
fn schedules_behave_as_their_stories_tell() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let (mut played, mut untrue) = (0, Vec::new());
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        for story in text.split("# ").skip(1) {
            let mut lines = story.lines().filter(|line| !line.trim().is_empty());
            let name = lines.next().unwrap();
            let lines: Vec<&str> = lines.collect();
            assert!(
                lines.iter().any(|line| line.starts_with(' ')),
                "nothing is expected: {name}"
            );
            if let Err(why) = play(&lines) {
                untrue.push(format!("{name}\n{why}"));
            }
            played += 1;
        }
    }
    assert!(played > 15, "only {played} stories were found");
    assert!(untrue.is_empty(), "\n{}", untrue.join("\n"));
}
