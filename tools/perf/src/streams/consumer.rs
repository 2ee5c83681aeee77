//! A consumer: takes chunks apart, times messages, stores offsets, and asks for more.

use super::message::{self, Parts};
use super::plan::Plan;
use super::producer::Turn;
use super::stamp;
use crate::pace::{Due, Pacer};
use crate::plan::Schedule;
use model::chunk::{Chunk, ChunkError, Entry, UNCOMPRESSED_MOST};
use protocol::stream::{Command, OffsetSpec};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a consumer reads of one stream.
#[derive(Debug, Clone)]
pub struct Subscription {
    /// Which consumer it belongs to.
    pub consumer: usize,
    /// Its number on the connection.
    pub id: u8,
    pub stream: String,
    /// Where it began, or goes on after its connection was lost.
    pub from: OffsetSpec,
    /// The name that offsets are stored under.
    pub name: Option<String>,
    /// The super stream, if it is one.
    pub super_stream: Option<String>,
    /// The reader's number in the accounts.
    pub reader: usize,
    /// The first offset that was not taken.
    pub next: Option<u64>,
    /// Where the next message was when it began, if the broker says that.
    pub began: Option<u64>,
    /// Chunks that were taken since the last time that more were asked for.
    chunks: u16,
    /// Messages that were taken since an offset was stored.
    unstored: u64,
}

impl Subscription {
    pub fn new(consumer: usize, stream: String, from: OffsetSpec) -> Self {
        Self {
            consumer,
            id: 0,
            stream,
            from,
            name: None,
            super_stream: None,
            reader: 0,
            next: None,
            began: None,
            chunks: 0,
            unstored: 0,
        }
    }

    /// A chunk was taken to its end: asks for more, if it is time.
    fn credit(&mut self, plan: &Plan, out: &mut Vec<u8>) {
        self.chunks += 1;
        let (_, every) = plan.consuming.credits;
        if self.chunks >= every {
            self.chunks = 0;
            Command::Credit {
                subscription_id: self.id,
                credit: every,
            }
            .encode(out);
        }
    }

    /// Begins again: nothing is asked for, and it goes on behind what was taken.
    pub fn restart(&mut self) {
        self.chunks = 0;
        self.unstored = 0;
        if let Some(next) = self.next.or(self.began) {
            self.from = OffsetSpec::Offset(next);
        }
    }

    /// Goes on from an offset that somebody stored.
    pub fn resume_at(&mut self, offset: u64) {
        self.from = OffsetSpec::Offset(offset);
        self.next = Some(offset);
    }

    /// Stores how far it is, if that has not been stored.
    pub fn store(&mut self, out: &mut Vec<u8>) {
        if let (Some(name), Some(next)) = (&self.name, self.next)
            && self.unstored > 0
        {
            self.unstored = 0;
            let (reference, stream) = (name.as_str().into(), self.stream.as_str().into());
            Command::StoreOffset {
                reference,
                stream,
                offset: next.saturating_sub(1),
            }
            .encode(out);
        }
    }

    /// True if a message at this offset was asked for: chunks are sent whole, whatever offset they are asked for by.
    fn wants(&self, offset: u64) -> bool {
        match (self.next, self.from) {
            (Some(next), _) => offset >= next,
            (None, OffsetSpec::Offset(from)) => offset >= from,
            _ => true,
        }
    }
}

/// A message that waits for a slow consumer.
struct Waiting {
    link: usize,
    subscription: u8,
    offset: u64,
    message: Box<[u8]>,
    /// With it its chunk is done.
    is_last: bool,
}

/// Makes a consumer slow.
struct Slow {
    waiting: VecDeque<Waiting>,
    pacer: Option<Pacer>,
    latency_ns: u64,
    /// When it has done with the message before.
    free: u64,
}

/// See the module.
pub struct Consumer {
    plan: Arc<Plan>,
    taken: u64,
    done: bool,
    slow: Option<Slow>,
    /// What sub-batches are decompressed into.
    room: Vec<u8>,
}

/// Latencies of messages that were stamped alike are recorded at once.
#[derive(Default)]
struct Run {
    stamp: stamp::Stamp,
    count: u64,
}

impl Run {
    #[inline]
    fn add(&mut self, stamp: stamp::Stamp, turn: &mut Turn<'_>) {
        if stamp != self.stamp {
            self.flush(turn);
            self.stamp = stamp;
        }
        self.count += 1;
    }

    fn flush(&mut self, turn: &mut Turn<'_>) {
        if self.count == 0 {
            return;
        }
        let recorder = &mut turn.counted.recorder;
        let now = turn.shared.wall.at(turn.now);
        match now.checked_sub(self.stamp.at) {
            None => recorder.early += self.count,
            Some(age) => {
                let lag = u64::from(self.stamp.lag_us) * 1_000;
                // Most have no lag to speak of, and then both are one.
                match lag {
                    0 => recorder.latency_n(age, self.count),
                    _ => (0..self.count).for_each(|_| recorder.latency_both(age, age.saturating_sub(lag))),
                }
            }
        }
        self.count = 0;
    }
}

impl Consumer {
    pub fn new(plan: Arc<Plan>) -> Self {
        let consuming = &plan.consuming;
        let is_slow = consuming.rate.is_some() || !consuming.latency.is_zero();
        let slow = is_slow.then(|| Slow {
            waiting: VecDeque::new(),
            pacer: None,
            latency_ns: consuming.latency.as_nanos() as u64,
            free: 0,
        });
        Self {
            taken: 0,
            done: false,
            slow,
            room: Vec::new(),
            plan,
        }
    }

    /// Takes a chunk, or lets it wait for a slow consumer. `link` is the number of the connection that it came on; what there is
    /// to say goes to `out`.
    ///
    /// # Errors
    /// If it is not as a chunk should be.
    pub fn chunk(
        &mut self,
        bytes: &[u8],
        link: usize,
        it: &mut Subscription,
        out: &mut Vec<u8>,
        turn: &mut Turn<'_>,
    ) -> Result<(), ChunkError> {
        let (header, entries) = Chunk::delivered(bytes)?;
        turn.counted.chunks += 1;
        turn.counted.entries += u64::from(header.entries);
        if self.slow.is_some() {
            return self.set_aside(entries, link, it, out);
        }
        let mut room = std::mem::take(&mut self.room);
        let mut run = Run::default();
        let mut taken = 0;
        let mut accounts = turn.shared.accounts();
        for (first, entry) in entries {
            match entry {
                Entry::Message(message) => {
                    taken += self.take(message, first, it, &mut run, accounts.as_deref_mut(), turn);
                }
                Entry::SubBatch(batch) => {
                    for (offset, message) in (first..).zip(batch.messages(&mut room, UNCOMPRESSED_MOST)?) {
                        taken += self.take(message, offset, it, &mut run, accounts.as_deref_mut(), turn);
                    }
                }
            }
        }
        run.flush(turn);
        self.room = room;
        self.took(taken, it, out, turn);
        it.credit(&self.plan, out);
        Ok(())
    }

    /// Takes a message; 1 if it counts.
    #[inline]
    fn take(
        &mut self,
        message: &[u8],
        offset: u64,
        it: &mut Subscription,
        run: &mut Run,
        accounts: Option<&mut super::accounts::Accounts>,
        turn: &mut Turn<'_>,
    ) -> u64 {
        if self.done || !it.wants(offset) {
            return 0;
        }
        it.next = Some(offset + 1);
        let Parts { body, to } = message::parts(message, self.plan.producing.codec);
        let wanted = &self.plan.consuming.filter_values;
        // A chunk is sent if one of its messages passes the filter, and then with all of them.
        if !wanted.is_empty() && !to.is_some_and(|to| wanted.iter().any(|it| it.as_bytes() == to)) {
            return 0;
        }
        if let Some(accounts) = accounts {
            accounts.consumed(it.reader, body);
        }
        if self.plan.report.latency
            && let Some(stamp) = stamp::read(body)
        {
            run.add(stamp, turn);
        }
        self.taken += 1;
        self.done = self.plan.consuming.messages == Some(self.taken);
        1
    }

    /// Counts what was taken, and stores the offset if it is time.
    fn took(&mut self, taken: u64, it: &mut Subscription, out: &mut Vec<u8>, turn: &mut Turn<'_>) {
        turn.counted.recorder.consumed += taken;
        turn.shared.consumed.fetch_add(taken, Relaxed);
        it.unstored += taken;
        if self
            .plan
            .consuming
            .store_every
            .is_some_and(|every| it.unstored >= every)
        {
            it.store(out);
        }
        if self.done && taken > 0 {
            turn.shared.consuming.fetch_sub(1, Relaxed);
        }
    }

    fn set_aside(
        &mut self,
        entries: model::chunk::Entries<'_>,
        link: usize,
        it: &mut Subscription,
        out: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        let Some(slow) = &mut self.slow else { return Ok(()) };
        let before = slow.waiting.len();
        let mut put = |offset: u64, message: &[u8]| {
            if it.wants(offset) {
                slow.waiting.push_back(Waiting {
                    link,
                    subscription: it.id,
                    offset,
                    message: message.into(),
                    is_last: false,
                });
            }
        };
        for (first, entry) in entries {
            match entry {
                Entry::Message(message) => put(first, message),
                Entry::SubBatch(batch) => {
                    let messages = batch.messages(&mut self.room, UNCOMPRESSED_MOST)?;
                    (first..)
                        .zip(messages)
                        .for_each(|(offset, message)| put(offset, message));
                }
            }
        }
        let has_more = slow.waiting.len() > before;
        match slow.waiting.back_mut() {
            Some(last) if has_more => last.is_last = true,
            _ => it.credit(&self.plan, out),
        }
        Ok(())
    }

    /// When the next message of a slow consumer is due; `None` if none waits.
    pub fn next_due(&mut self, now: u64) -> Option<u64> {
        let rate = self.plan.consuming.rate;
        let slow = self.slow.as_mut().filter(|slow| !slow.waiting.is_empty())?;
        let free = slow.free;
        let Some(rate) = rate else { return Some(free) };
        // What was not there when it was due does not come faster later on.
        let pacer = slow
            .pacer
            .get_or_insert_with(|| Pacer::new(&Schedule::Rate(rate), now, 0, 1));
        match pacer.next() {
            Due::At(moment) => Some(moment.max(free)),
            Due::Now => Some(free),
            Due::Never => None,
        }
    }

    /// A slow consumer takes the message that is due. `find` gives the subscription and where to write for it; what belongs to a
    /// connection that was lost is sent again, and passed over here.
    pub fn take_due(&mut self, links: &mut [super::link::Link], turn: &mut Turn<'_>) {
        let Some(slow) = &mut self.slow else { return };
        let Some(waiting) = slow.waiting.pop_front() else {
            return;
        };
        if let Some(pacer) = &mut slow.pacer {
            pacer.take(turn.now);
        }
        slow.free = turn.now.saturating_add(slow.latency_ns);
        if slow.waiting.is_empty() {
            slow.pacer = None;
            // Unless the rate lets another one come at once.
            if let Some(rate) = self.plan.consuming.rate {
                slow.free = slow.free.max(turn.now + (1e9 / rate) as u64);
            }
        }
        let Some((it, out)) = links
            .get_mut(waiting.link)
            .and_then(|link| link.subscription(waiting.subscription))
        else {
            return;
        };
        let mut run = Run::default();
        let mut accounts = turn.shared.accounts();
        let taken = self.take(
            &waiting.message,
            waiting.offset,
            it,
            &mut run,
            accounts.as_deref_mut(),
            turn,
        );
        drop(accounts);
        run.flush(turn);
        self.took(taken, it, out, turn);
        if waiting.is_last {
            it.credit(&self.plan, out);
        }
    }

    /// A connection is gone: what came on it and was not taken comes again.
    pub fn forget(&mut self, link: usize) {
        if let Some(slow) = &mut self.slow {
            slow.waiting.retain(|waiting| waiting.link != link);
        }
    }
}
