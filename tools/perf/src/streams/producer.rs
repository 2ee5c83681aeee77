//! A producer: what is due goes out, as many messages in a frame as may be, and no more than may be unconfirmed.

use super::counted::Counted;
use super::in_flight::{InFlight, Span};
use super::link::Link;
use super::message::{self, Numbered, Template};
use super::plan::Plan;
use super::shared::Shared;
use super::stamp::Stamp;
use crate::failure::Failure;
use crate::pace::{Due, Pacer};
use crate::plan::{LatencyFrom, Schedule};
use model::chunk::Compression;
use protocol::stream::{Body, PublishFrame, PublishingError, Text};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Messages of one turn: others want to have theirs, too.
const AT_ONCE: u64 = 16_384;
/// Where a link has so many bytes to write, producers wait, in bytes.
const BACKLOG: usize = 256 * 1024;

/// What a producer waits for after its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Nothing: it has more to send.
    Turn,
    /// A moment, in nanoseconds of the monotonic clock.
    Moment(u64),
    /// Confirms.
    Confirms,
    /// Its connection to take what was written.
    Room,
    /// Nothing any more.
    Nothing,
}

/// Where it happens.
pub struct Turn<'a> {
    /// Nanoseconds of the monotonic clock.
    pub now: u64,
    pub counted: &'a mut Counted,
    pub shared: &'a Shared,
}

/// One of a producer's streams.
#[derive(Debug)]
pub struct Route {
    pub link: usize,
    /// Its number on the connection.
    pub publisher_id: u8,
    /// Its number in the run.
    pub publisher: u32,
    /// The number of its first message; those of a named publisher go on from what the broker knows.
    pub base: u64,
    /// The number of its next message.
    pub next: u64,
    pub in_flight: InFlight,
    /// Its connection is there.
    pub open: bool,
    /// Messages of this turn: their ids, and when they were due.
    assigned: Vec<(u64, u64)>,
}

impl Route {
    pub fn new(link: usize, publisher_id: u8, publisher: u32, base: u64) -> Self {
        Self {
            link,
            publisher_id,
            publisher,
            base,
            next: base,
            in_flight: InFlight::default(),
            open: true,
            assigned: Vec::new(),
        }
    }
}

/// See the module.
pub struct Producer {
    pub routes: Vec<Route>,
    plan: Arc<Plan>,
    templates: Arc<Vec<Template>>,
    values: FilterValues,
    pacer: Option<Pacer>,
    number: u64,
    /// Messages so far; the id of the next one.
    published: u64,
    unconfirmed: u64,
    /// Since when messages wait for a full batch.
    gathering: Option<u64>,
    /// The messages of a sub-batch, and the same compressed.
    batch: Vec<u8>,
    packed: Vec<u8>,
    done: bool,
}

impl Producer {
    pub fn new(plan: Arc<Plan>, templates: Arc<Vec<Template>>, number: usize, routes: Vec<Route>) -> Self {
        Self {
            routes,
            values: FilterValues::new(templates.len(), plan.producing.rate),
            templates,
            pacer: None,
            number: number as u64,
            published: 0,
            unconfirmed: 0,
            gathering: None,
            batch: Vec::new(),
            packed: Vec::new(),
            done: false,
            plan,
        }
    }

    /// Publishes from this moment on.
    pub fn start(&mut self, at: u64) {
        let schedule = self
            .plan
            .producing
            .rate
            .map_or(Schedule::Unlimited, Schedule::Rate);
        self.pacer = Some(Pacer::new(
            &schedule,
            at,
            self.number,
            self.plan.producing.producers as u64,
        ));
    }

    /// Publishes what is due.
    ///
    /// # Errors
    /// If a message does not fit into a frame.
    pub fn turn(&mut self, links: &mut [Link], turn: &mut Turn<'_>) -> Result<Wants, Failure> {
        let plan = self.plan.clone();
        let Some(pacer) = self
            .pacer
            .as_mut()
            .filter(|_| !self.done && !turn.shared.is_quiet())
        else {
            return Ok(Wants::Nothing);
        };
        let busy =
            |route: &Route| !route.open || links.get(route.link).is_none_or(|link| link.backlog() > BACKLOG);
        if self.routes.iter().any(busy) {
            return Ok(Wants::Room);
        }
        let left = plan
            .producing
            .messages
            .map_or(u64::MAX, |all| all - self.published);
        let due = pacer.due(turn.now);
        let room = plan.producing.confirms.saturating_sub(self.unconfirmed);
        let count = due.min(left).min(room).min(AT_ONCE);
        if count == 0 {
            return Ok(self.wants(due, room));
        }
        if let Some(delay) = plan.producing.gather {
            let full = plan.producing.batch as u64 * u64::from(plan.producing.sub_entry);
            let since = *self.gathering.get_or_insert(turn.now);
            let end = since.saturating_add(delay.as_nanos() as u64);
            if count < full && count < left && turn.now < end {
                let rest = plan
                    .producing
                    .rate
                    .map_or(u64::MAX, |rate| ((full - count) as f64 * 1e9 / rate) as u64);
                return Ok(Wants::Moment(end.min(turn.now.saturating_add(rest))));
            }
            self.gathering = None;
        }
        self.assign(count, turn.now);
        for at in 0..self.routes.len() {
            self.publish(at, links, turn)?;
        }
        turn.counted.recorder.published += count;
        turn.shared.published.fetch_add(count, Relaxed);
        turn.shared.unconfirmed.fetch_add(count, Relaxed);
        self.published += count;
        self.unconfirmed += count;
        Ok(self.wants(due - count, room - count))
    }

    fn wants(&self, due: u64, room: u64) -> Wants {
        if self.plan.producing.messages == Some(self.published) {
            return Wants::Nothing;
        }
        match self.pacer.as_ref().map(Pacer::next) {
            None | Some(Due::Never) => Wants::Nothing,
            Some(_) if room == 0 => Wants::Confirms,
            Some(_) if due > 0 => Wants::Turn,
            Some(Due::Now) => Wants::Turn,
            Some(Due::At(moment)) => Wants::Moment(moment),
        }
    }

    /// Gives messages to the streams that they belong to.
    fn assign(&mut self, count: u64, now: u64) {
        let Some(pacer) = &mut self.pacer else { return };
        let routes = self.routes.len();
        for id in self.published..self.published + count {
            let at = if routes == 1 {
                0
            } else {
                message::partition(id, routes)
            };
            let due = pacer.take(now);
            self.routes[at].assigned.push((id, due));
        }
    }

    /// Sends what was assigned to a stream.
    fn publish(&mut self, at: usize, links: &mut [Link], turn: &mut Turn<'_>) -> Result<(), Failure> {
        let assigned = std::mem::take(&mut self.routes[at].assigned);
        let link = &mut links[self.routes[at].link];
        let first = self.routes[at].next;
        let sent = match self.plan.producing.sub_entry {
            1 => self.publish_messages(at, &assigned, link, turn),
            _ => self.publish_batches(at, &assigned, link, turn),
        };
        let route = &mut self.routes[at];
        if route.next > first
            && let Some(mut accounts) = turn.shared.accounts()
        {
            accounts.published(route.publisher, route.next - route.base);
        }
        route.assigned = assigned;
        route.assigned.clear();
        sent
    }

    fn publish_messages(
        &mut self,
        at: usize,
        mut assigned: &[(u64, u64)],
        link: &mut Link,
        turn: &mut Turn<'_>,
    ) -> Result<(), Failure> {
        let plan = &self.plan;
        let filtered = !plan.producing.filter_values.is_empty();
        let frame_max = link.frame_max();
        let route = &mut self.routes[at];
        while let [(_, from), ..] = assigned {
            let first = route.next;
            let mut last_due = *from;
            let mut frame = PublishFrame::begin(&mut link.out, route.publisher_id, filtered);
            for (id, due) in assigned.iter().take(plan.producing.batch) {
                let template = &self.templates[self.values.of(*id)];
                let value = template.filter_value.as_deref().map(Text::from);
                let entry = PublishFrame::MESSAGE_HEAD
                    + 2
                    + value.map_or(0, |it| it.0.len())
                    + template.bytes().len();
                if frame.size() + entry > frame_max {
                    break;
                }
                let numbered = plan.verify.then_some(Numbered {
                    publisher: route.publisher,
                    sequence: route.next - route.base,
                });
                let copy = frame.message(route.next, value, template.bytes());
                template.fill(copy, stamp(plan, *due, turn), *id, numbered);
                route.next += 1;
                last_due = *due;
            }
            let entries = frame.len();
            frame.finish();
            if entries == 0 {
                return Err(too_large(frame_max));
            }
            turn.counted.batches += 1;
            turn.counted.batched += entries as u64;
            route.in_flight.push(Span {
                first,
                last: route.next - 1,
                weight: 1,
                from: (*from, last_due),
            });
            assigned = &assigned[entries..];
        }
        Ok(())
    }

    fn publish_batches(
        &mut self,
        at: usize,
        assigned: &[(u64, u64)],
        link: &mut Link,
        turn: &mut Turn<'_>,
    ) -> Result<(), Failure> {
        let plan = self.plan.clone();
        let frame_max = link.frame_max();
        let compression = plan.producing.compression;
        let mut frame = PublishFrame::begin(&mut link.out, self.routes[at].publisher_id, false);
        for some in assigned.chunks(plan.producing.sub_entry.into()) {
            self.gather(at, some, turn);
            let batch = match compression {
                Compression::None => &self.batch,
                compression => {
                    self.packed.clear();
                    compression.compress(&self.batch, &mut self.packed);
                    &self.packed
                }
            };
            // What stands before a batch, and its number.
            let entry = batch.len() + 11 + 8;
            if frame.len() == plan.producing.batch || (frame.size() + entry > frame_max && !frame.is_empty())
            {
                frame.finish();
                turn.counted.batches += 1;
                frame = PublishFrame::begin(&mut link.out, self.routes[at].publisher_id, false);
            }
            if frame.size() + entry > frame_max {
                frame.finish();
                return Err(too_large(frame_max));
            }
            let route = &mut self.routes[at];
            let last = route.next - 1;
            let body = Body::Batch {
                compression: compression.to_bits(),
                records: some.len() as u16,
                uncompressed_bytes: self.batch.len() as u32,
                batch,
            };
            frame.body(last, None, &body);
            turn.counted.batched += some.len() as u64;
            let from = some.first().map_or(turn.now, |(_, due)| *due);
            route.in_flight.push(Span {
                first: last,
                last,
                weight: some.len() as u64,
                from: (from, from),
            });
        }
        turn.counted.batches += u64::from(!frame.is_empty());
        frame.finish();
        Ok(())
    }

    /// Puts messages together, each with its length before it.
    fn gather(&mut self, at: usize, some: &[(u64, u64)], turn: &Turn<'_>) {
        let plan = &self.plan;
        let route = &mut self.routes[at];
        self.batch.clear();
        for (id, due) in some {
            let template = &self.templates[0];
            self.batch
                .extend_from_slice(&(template.bytes().len() as u32).to_be_bytes());
            let begin = self.batch.len();
            self.batch.extend_from_slice(template.bytes());
            let numbered = plan.verify.then_some(Numbered {
                publisher: route.publisher,
                sequence: route.next - route.base,
            });
            template.fill(&mut self.batch[begin..], stamp(plan, *due, turn), *id, numbered);
            route.next += 1;
        }
    }

    /// The broker confirmed entries of one of its streams.
    pub fn confirmed(&mut self, at: usize, numbers: impl Iterator<Item = u64>, turn: &mut Turn<'_>) {
        let route = &mut self.routes[at];
        let mut accounts = turn.shared.accounts();
        let timed = self.plan.report.confirm_latency;
        let (mut messages, mut entries) = (0, 0);
        // Those that count from the same moment are recorded at once.
        let (mut from, mut alike) = (0, 0);
        for number in numbers {
            let Some(settled) = route.in_flight.settle(number) else {
                continue;
            };
            messages += settled.messages;
            entries += 1;
            if timed {
                if settled.from != from && alike > 0 {
                    turn.counted
                        .recorder
                        .confirm_latency_n(turn.now.saturating_sub(from), alike);
                    alike = 0;
                }
                from = settled.from;
                alike += settled.messages;
            }
            if let Some(accounts) = &mut accounts {
                for sequence in sequences(route, number, settled.messages) {
                    accounts.confirmed(route.publisher, sequence);
                }
            }
        }
        if alike > 0 {
            turn.counted
                .recorder
                .confirm_latency_n(turn.now.saturating_sub(from), alike);
        }
        turn.counted.recorder.confirmed += messages;
        turn.counted.recorder.confirm_size(entries);
        drop(accounts);
        self.settled(messages, turn.shared);
    }

    /// The broker did not take entries of one of its streams.
    pub fn refused(&mut self, at: usize, errors: impl Iterator<Item = PublishingError>, turn: &mut Turn<'_>) {
        let route = &mut self.routes[at];
        let mut messages = 0;
        let mut code = None;
        for error in errors {
            let Some(settled) = route.in_flight.settle(error.publishing_id) else {
                continue;
            };
            messages += settled.messages;
            code = Some(error.code);
            if let Some(mut accounts) = turn.shared.accounts() {
                for sequence in sequences(route, error.publishing_id, settled.messages) {
                    accounts.refused(route.publisher, sequence);
                }
            }
        }
        if let Some(code) = code {
            let publisher = route.publisher;
            turn.shared.tell(format!(
                "The broker did not take {messages} messages of publisher #{publisher}: {}",
                code.text()
            ));
        }
        turn.counted.recorder.nacked += messages;
        self.settled(messages, turn.shared);
    }

    /// The connection of one of its streams is gone, and with it the confirms of what was under way.
    pub fn lost(&mut self, at: usize, shared: &Shared) {
        let route = &mut self.routes[at];
        route.open = false;
        let messages = route.in_flight.messages();
        route.in_flight.clear();
        if let Some(mut accounts) = shared.accounts() {
            accounts.lost_connection(route.publisher);
        }
        self.settled(messages, shared);
    }

    fn settled(&mut self, messages: u64, shared: &Shared) {
        self.unconfirmed = self.unconfirmed.saturating_sub(messages);
        shared.unconfirmed.fetch_sub(messages, Relaxed);
        let is_last = self.plan.producing.messages == Some(self.published) && self.unconfirmed == 0;
        if is_last && !std::mem::replace(&mut self.done, true) {
            shared.producing.fetch_sub(1, Relaxed);
        }
    }
}

/// What a message says of its sending.
#[inline]
fn stamp(plan: &Plan, due: u64, turn: &Turn<'_>) -> Stamp {
    match plan.producing.latency_from {
        LatencyFrom::Intended => Stamp {
            at: turn.shared.wall.at(due),
            lag_us: u32::try_from(turn.now.saturating_sub(due) / 1_000).unwrap_or(u32::MAX),
        },
        LatencyFrom::Sent => Stamp {
            at: turn.shared.wall.at(turn.now),
            lag_us: 0,
        },
    }
}

/// The numbers that `--verify` knows the messages of an entry by, whose number is that of its last one.
fn sequences(route: &Route, number: u64, messages: u64) -> std::ops::RangeInclusive<u64> {
    let last = number - route.base;
    last + 1 - messages..=last
}

fn too_large(frame_max: usize) -> Failure {
    Failure::Usage(format!(
        "a message or sub-batch does not fit into a frame of {frame_max} bytes: write a smaller --size, --sub-entry-size or a larger --requested-max-frame-size"
    ))
}

/// Which filter value a message gets: as with stream-perf-test, a part of the values takes turns, and now and then it is another
/// part, so that chunks have some of them and lack others.
#[derive(Debug)]
struct FilterValues {
    /// Indices of templates; the first `part` of them are used.
    shuffled: Vec<usize>,
    part: usize,
    /// After how many messages it is another part.
    cycle: u64,
    shuffled_at: u64,
}

impl FilterValues {
    fn new(count: usize, rate: Option<f64>) -> Self {
        Self {
            shuffled: (0..count).collect(),
            part: match count {
                0..=3 => 1,
                4..=10 => count - 3,
                _ => count * 7 / 10,
            },
            cycle: rate.map_or(100_000, |rate| ((rate / 10.0) as u64).max(10)),
            shuffled_at: u64::MAX,
        }
    }

    #[inline]
    fn of(&mut self, id: u64) -> usize {
        if self.shuffled.len() == 1 {
            return 0;
        }
        if id / self.cycle != self.shuffled_at {
            self.shuffled_at = id / self.cycle;
            fastrand::shuffle(&mut self.shuffled);
        }
        self.shuffled[(id % self.part as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_filter_values_takes_turns_and_changes() {
        let mut values = FilterValues::new(5, Some(100.0));
        let mut seen = std::collections::BTreeSet::new();
        for cycle in 0..200 {
            let used: std::collections::BTreeSet<_> = (0..10).map(|it| values.of(cycle * 10 + it)).collect();
            assert_eq!(used.len(), 2);
            seen.extend(used);
        }
        assert_eq!(seen.len(), 5);
        assert_eq!(
            (FilterValues::new(15, None).part, FilterValues::new(3, None).part),
            (10, 1)
        );
    }

    #[test]
    fn a_message_tells_when_it_was_due_or_when_it_was_sent() {
        let mut counted = Counted::new();
        for (line, at, lag_us) in [
            ("-r 5", 1_000_000, 2_000),
            ("-r 5 --latency-from sent", 3_000_000, 0),
        ] {
            let plan = Arc::new(crate::streams::trial::plan(line));
            let shared = Shared::new(plan.clone(), None);
            let turn = Turn {
                now: 3_000_000,
                counted: &mut counted,
                shared: &shared,
            };
            let told = stamp(&plan, 1_000_000, &turn);
            assert_eq!(
                told,
                Stamp {
                    at: shared.wall.at(at),
                    lag_us
                }
            );
        }
    }
}
