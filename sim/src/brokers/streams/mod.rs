//! A stream that all nodes have: who publishes to it and reads it, and what must be so of it.
//!
//! Clients of each node publish over AMQP, as to any queue. Publishers with a reference go where the stream is led, as those of
//! the stream protocol do: each asks how far it has come, and goes on there, at times with some that it knows to be there.
//! Readers of each node's copy stay while chunks come, and whole copies are looked at again and again.

mod book;
mod named;
mod reading;
mod settled;

use super::client::{CHANNEL, QUEUE};
use super::{Brokers, Client, Kind, NODES, Prepare, Process, Stage, Trouble, formed};
use crate::world::until_power_cut;
use book::Book;
use broker::{ChannelId, Event, Stream};
use model::table::Table;
use named::{NAMED, Named, Stand};
use reading::Reading;
use std::time::Duration;
use storage::World;
use storage::faulty::Random;

/// For so many calls a disk is full. The last one is 13 seconds for a log, which waits twice as long each time.
const FULL_FOR: [u64; 3] = [1, 3, 7];

/// What is counted of a stream.
pub const COUNTED_OF_STREAM: [&str; 8] = [
    "links broken",
    "ends of nodes",
    "ends where the stream's standing had changed",
    "full disks",
    "ends of all nodes at the same time",
    "messages confirmed",
    "contents that members have of others",
    "messages compared at the end",
];

/// See the module.
pub struct Streaming {
    pub(super) book: Book,
    segment_bytes: u64,
    max_bytes: Option<u64>,
    named: Vec<Named>,
    reading: Vec<Reading>,
    channels: u64,
    /// The offset behind what was read on each node in its life.
    seen: Vec<u64>,
    /// Nodes whose disks were full in that life: what is not synced is taken back there, and written again.
    takes_back: Vec<bool>,
}

impl Streaming {
    pub(super) fn new(random: &mut Random) -> Self {
        let max_bytes = (random.below(3) == 0).then(|| 4_000 + random.below(60_000));
        let named = (NAMED + 1..=NAMED + 2).map(|number| Named {
            number,
            sent: 0,
            stand: Stand::Away,
            since: Duration::ZERO,
        });
        Self {
            book: Book::new(max_bytes.is_some()),
            segment_bytes: 1_000 + random.below(12_000),
            max_bytes,
            named: named.collect(),
            reading: Vec::new(),
            channels: CHANNEL.0,
            seen: vec![0; NODES as usize],
            takes_back: vec![false; NODES as usize],
        }
    }

    pub(super) fn arguments(&self) -> Table {
        let table = Table::new()
            .with("x-queue-type", "stream")
            .with("x-stream-max-segment-size-bytes", self.segment_bytes as i64);
        match self.max_bytes {
            Some(most) => table.with("x-max-length-bytes", most as i64),
            None => table,
        }
    }

    /// A node's process is no more.
    pub(super) fn ended(&mut self, node: usize) {
        self.reading.retain(|reading| reading.at != node);
        let on_it = self.named.iter_mut().filter(|named| named.is_on(node));
        on_it.for_each(|named| named.stand = Stand::Away);
        (self.seen[node], self.takes_back[node]) = (0, false);
    }

    fn channel(&mut self) -> ChannelId {
        self.channels += 1;
        ChannelId(self.channels)
    }
}

/// Runs a seed with a stream that all nodes have, and says what happens in it if it is to be `told`.
///
/// # Errors
/// What was wrong.
pub fn run_stream(seed: u64, told: bool, prepare: Prepare) -> Result<Brokers, String> {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let trouble = Trouble {
        links_break: random.below(5) > 0,
        nodes_end: random.below(5) > 0,
        members_change: false,
    };
    let stream = Box::new(Streaming::new(&mut random));
    let mut run = Brokers::new(random, told, prepare, formed::disks());
    run.kind = Kind::Stream;
    run.trouble = trouble;
    run.tell(|| format!("{:?}, {trouble:?}", stream.arguments()));
    run.stream = Some(stream);
    let lived = run.live();
    (0..run.places.len()).for_each(|at| run.leave(at));
    lived.map(|()| run)
}

impl Client {
    fn stream_to_read(&self) -> Option<Stream> {
        self.session.stream_to_read(QUEUE, CHANNEL).ok()
    }
}

impl Brokers {
    fn streaming(&mut self) -> &mut Streaming {
        self.stream
            .get_or_insert_with(|| Box::new(Streaming::new(&mut Random(1))))
    }

    /// Nothing of a process that is about to end is in anybody's hands.
    pub(super) fn leave(&mut self, at: usize) {
        if let Some(streaming) = &mut self.stream {
            until_power_cut(|| streaming.ended(at));
        }
    }

    pub(super) fn act_on_stream(&mut self, at: usize) -> Result<(), String> {
        match self.random.below(32) {
            0..=9 => self.publish(at),
            10..=21 => self.publish_named(at),
            22..=26 => self.read_on(at)?,
            27..=28 => drop(self.look(at)?),
            29 => self.fill_disk(at),
            30 if self.trouble.nodes_end && self.ends_left > 0 && self.random.below(10) == 0 => {
                self.ends_left -= 1;
                self.all_end()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The disk of a node that runs has no room for some calls.
    fn fill_disk(&mut self, at: usize) {
        let full = FULL_FOR[self.random.below(FULL_FOR.len() as u64) as usize];
        if self.random.below(4) > 0 || self.places[at].client().is_none() {
            return;
        }
        self.counts[3] += 1;
        self.places[at].files.set_full(full);
        self.streaming().takes_back[at] = true;
        self.tell(|| format!("the disk of {:?} is full for {full} calls", self.places[at].id));
    }

    /// All disks have room again, and all clocks show the same. A thread that waits for a log which waits for room has its node's
    /// clock pushed until there is some: for others that node has stood still for so long.
    pub(super) fn make_room(&mut self) {
        let running = || self.places.iter().filter_map(|place| place.process.as_ref());
        let latest = running().map(|process| process.world.elapsed()).max();
        let ahead = latest.unwrap_or_default().saturating_sub(self.clock);
        self.clock += ahead;
        for place in &mut self.places {
            place.files.set_full(0);
            if let Some(Process {
                stage: Stage::Starts(_, until),
                ..
            }) = &mut place.process
            {
                *until += ahead;
            }
        }
    }

    /// What is heard about the stream.
    pub(super) fn hears_of_stream(&mut self, at: usize, event: Event) -> Result<(), String> {
        let own = self.places[at].id.0;
        match event {
            Event::Confirm { channel, numbers, .. } if channel == CHANNEL => {
                self.answered(at, numbers.iter().collect())?;
                self.counts[5] += numbers.count();
                self.note(numbers.iter().sum());
                let confirmed = numbers.iter().map(|number| (own, number));
                self.streaming().book.confirmed.extend(confirmed);
            }
            Event::Reject { channel, numbers, .. } if channel == CHANNEL => {
                self.answered(at, numbers.iter().collect())?;
                self.note(!numbers.iter().sum::<u64>());
            }
            Event::Confirm { channel, numbers, .. } => {
                let now = self.clock;
                let streaming = self.streaming();
                for named in &mut streaming.named {
                    let publisher = named.number;
                    let Stand::Publishes {
                        at: on,
                        channel: its,
                        waiting,
                        ..
                    } = &mut named.stand
                    else {
                        continue;
                    };
                    if (*on, *its) != (at, channel) {
                        continue;
                    }
                    for flushed in numbers.iter() {
                        let Some((first, last)) = waiting.remove(&flushed) else {
                            return Err(format!("flush {flushed} of {publisher} is confirmed twice"));
                        };
                        named.since = now;
                        let confirmed = (first..=last).map(|number| (publisher, number));
                        streaming.book.confirmed.extend(confirmed);
                    }
                }
                self.counts[5] += numbers.count();
                self.note(numbers.iter().sum());
            }
            Event::Reject { channel, .. } => self.leaves(
                at,
                |stand| matches!(stand, Stand::Publishes { channel: its, .. } if *its == channel),
            ),
            Event::ConsumerCancelled { consumer, .. } => {
                self.leaves(
                    at,
                    |stand| matches!(stand, Stand::Publishes { publisher, .. } if publisher.id() == consumer),
                );
                let reading = &mut self.streaming().reading;
                reading.retain(|it| it.at != at || it.id != consumer);
            }
            Event::Answer { question, answer, .. } => self.told(at, question, answer)?,
            _ => {}
        }
        Ok(())
    }

    fn answered(&mut self, at: usize, numbers: Vec<u64>) -> Result<(), String> {
        let own = self.places[at].id;
        let Some(client) = self.places[at].client_mut() else {
            return Ok(());
        };
        match numbers.iter().all(|number| client.open.remove(number)) {
            true => Ok(()),
            false => Err(format!(
                "{numbers:?} of {own:?} are answered twice, or were never asked"
            )),
        }
    }
}
