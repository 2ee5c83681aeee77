//! One connection of the load: bytes in and out, and the producers or consumers on its channels.

use super::consumer::{Consumer, Next, Received};
use super::producer::{Producer, Wants};
use super::shared::{Shared, lock};
use crate::client::{Agreed, Transport};
use crate::clock;
use crate::failure::Failure;
use crate::measure::Recorder;
use model::Limits;
use protocol::amqp::frame::{END, HEARTBEAT};
use protocol::amqp::method::{ConnectionClose, ConnectionUpdateSecret};
use protocol::amqp::{Assembler, LongStr, encode, next_frame, scan_ack, scan_deliver};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, RawFd};

/// Producers go on while less than this waits to be written, in bytes.
const ENOUGH_UNSENT: usize = 64 * 1024;
/// A buffer that has grown beyond this is given back when it is empty, in bytes.
const KEPT: usize = 128 * 1024;
/// No frame is larger, even if the broker agreed to frames of any size, in bytes.
const LARGEST_FRAME: usize = 16 * 1024 * 1024;

/// Who uses a connection.
pub enum Role {
    Producers(Vec<Producer>),
    Consumers(Vec<Consumer>),
}

/// What one turn of a thread gives to the links that it drives.
pub struct Turn<'a> {
    /// Nanoseconds of the monotonic clock.
    pub now: u64,
    pub recorder: &'a mut Recorder,
    pub shared: &'a Shared,
}

/// See the module.
pub struct Link {
    /// Which connection of its role it is, and so which of the broker's names it bears.
    pub number: usize,
    pub role: Role,
    transport: Transport,
    pub(super) inbound: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    pub(super) readable: bool,
    writable: bool,
    pub(super) frame_max: u32,
    pub(super) assemblers: Vec<Assembler>,
    pub(super) limits: Limits,
    /// The broker takes no messages for now (an alarm).
    pub(super) blocked: bool,
    pub(super) paused_until: u64,
    heartbeat_ns: u64,
    heard: u64,
    spoke: u64,
    /// The next producer to have its turn first.
    first: usize,
    pub(super) closed: bool,
    started: bool,
}

impl Link {
    /// A connection that is open, with what was read from it and not used.
    pub fn new(
        number: usize,
        role: Role,
        transport: Transport,
        agreed: Agreed,
        unused: Vec<u8>,
        now: u64,
    ) -> Self {
        let channels = match &role {
            Role::Producers(all) => all.len(),
            Role::Consumers(all) => all.len(),
        };
        Self {
            number,
            role,
            transport,
            inbound: unused,
            out: Vec::new(),
            written: 0,
            readable: true,
            writable: true,
            frame_max: agreed.frame_max,
            assemblers: (0..channels).map(|_| Assembler::new()).collect(),
            limits: generous(),
            blocked: false,
            paused_until: 0,
            heartbeat_ns: u64::from(agreed.heartbeat_s) * 1_000_000_000,
            heard: now,
            spoke: now,
            first: 0,
            closed: false,
            started: false,
        }
    }

    /// The same producers or consumers on a new connection.
    pub fn reconnected(
        &mut self,
        transport: Transport,
        agreed: Agreed,
        unused: Vec<u8>,
        queues: Vec<Vec<String>>,
        turn: &Turn<'_>,
    ) {
        let number = self.number;
        let started = self.started;
        let mut role = Role::Producers(Vec::new());
        std::mem::swap(&mut role, &mut self.role);
        *self = Self::new(number, role, transport, agreed, unused, turn.now);
        match &mut self.role {
            Role::Producers(producers) => producers.iter_mut().for_each(|it| it.reconnected(turn.shared)),
            Role::Consumers(consumers) => {
                if let Some(ledger) = &turn.shared.ledger {
                    lock(ledger).lost_consumer();
                }
                for (consumer, queues) in consumers.iter_mut().zip(queues) {
                    consumer.consumes_from(queues);
                }
            }
        }
        if started {
            self.start(turn.now);
        }
    }

    pub fn descriptor(&self) -> RawFd {
        self.transport.as_fd().as_raw_fd()
    }

    /// Lets the producers publish, or the consumers consume.
    pub fn start(&mut self, now: u64) {
        self.started = true;
        match &mut self.role {
            Role::Consumers(consumers) => consumers.iter_mut().for_each(|it| it.start(&mut self.out, now)),
            Role::Producers(producers) => producers.iter_mut().for_each(|it| it.start(now)),
        }
    }

    /// The system says that the socket can be read or written.
    pub fn ready(&mut self, readable: bool, writable: bool) {
        self.readable |= readable;
        self.writable |= writable;
    }

    /// Reads once, publishes what may be published, writes: one turn. Tells what it waits for.
    ///
    /// # Errors
    /// If the connection is lost or the broker closed it.
    pub fn turn(&mut self, scratch: &mut [u8], turn: &mut Turn<'_>) -> Result<Wants, Failure> {
        let mut wants = Wants::Nothing;
        if self.paused_until > turn.now {
            wants = Wants::Moment(self.paused_until);
        } else {
            self.paused_until = 0;
            self.read(scratch, turn)?;
            if self.paused_until > 0 {
                wants = Wants::Moment(self.paused_until);
            } else if self.readable {
                wants = Wants::Turn;
            }
        }
        if self.started && !self.closed {
            wants = sooner(wants, self.work(turn));
        }
        self.write(turn.now)?;
        Ok(wants)
    }

    /// The producers publish; polling consumers ask.
    fn work(&mut self, turn: &mut Turn<'_>) -> Wants {
        let unsent = self.out.len() - self.written;
        match &mut self.role {
            Role::Producers(_) if self.blocked || unsent >= ENOUGH_UNSENT || !self.writable => Wants::Broker,
            Role::Producers(producers) => {
                let mut wants = Wants::Nothing;
                self.first = (self.first + 1) % producers.len().max(1);
                let (late, early) = producers.split_at_mut(self.first);
                for producer in early.iter_mut().chain(late) {
                    if self.out.len() - self.written >= ENOUGH_UNSENT {
                        return Wants::Turn;
                    }
                    let one = producer.publish(&mut self.out, turn.now, turn.recorder, turn.shared);
                    wants = sooner(wants, one);
                }
                wants
            }
            Role::Consumers(consumers) => {
                let moments = consumers
                    .iter_mut()
                    .filter_map(|it| it.poll(turn.now, &mut self.out));
                moments.min().map_or(Wants::Nothing, Wants::Moment)
            }
        }
    }

    /// Reads as much as `scratch` holds and goes through it.
    fn read(&mut self, scratch: &mut [u8], turn: &mut Turn<'_>) -> Result<(), Failure> {
        let unused = self.inbound.len();
        if unused > 0 && (unused * 2 > scratch.len() || !self.readable) {
            // Much is left, of a consumer that takes its time or of a large frame: no need to copy it back and forth.
            let mut inbound = std::mem::take(&mut self.inbound);
            let result = self.go_through_and_keep(&mut inbound, turn);
            self.inbound = inbound;
            result?;
            if self.paused_until > 0 || !self.readable {
                return Ok(());
            }
            return self.read_more(turn);
        }
        if !self.readable {
            return Ok(());
        }
        scratch[..unused].copy_from_slice(&self.inbound);
        self.inbound.clear();
        let read = self.receive(&mut scratch[unused..], turn)?;
        let all = unused + read;
        let used = self.go_through(&scratch[..all], turn)?;
        self.inbound.extend_from_slice(&scratch[used..all]);
        if self.inbound.is_empty() && self.inbound.capacity() > KEPT {
            self.inbound = Vec::new();
        }
        Ok(())
    }

    /// A frame larger than the shared buffer is collected in the link's own.
    fn read_more(&mut self, turn: &mut Turn<'_>) -> Result<(), Failure> {
        let unused = self.inbound.len();
        if unused > LARGEST_FRAME {
            return Err(Failure::Lost(format!(
                "the broker sent a frame of more than {LARGEST_FRAME} bytes"
            )));
        }
        let mut inbound = std::mem::take(&mut self.inbound);
        inbound.resize(unused + KEPT, 0);
        let read = self.receive(&mut inbound[unused..], turn);
        inbound.truncate(unused + *read.as_ref().unwrap_or(&0));
        let result = match read {
            Ok(_) => self.go_through_and_keep(&mut inbound, turn),
            Err(failure) => Err(failure),
        };
        self.inbound = inbound;
        result
    }

    fn go_through_and_keep(&mut self, inbound: &mut Vec<u8>, turn: &mut Turn<'_>) -> Result<(), Failure> {
        let used = self.go_through(inbound, turn)?;
        inbound.drain(..used);
        Ok(())
    }

    fn receive(&mut self, buffer: &mut [u8], turn: &mut Turn<'_>) -> Result<usize, Failure> {
        match self.transport.read(buffer) {
            Ok(0) => Err(Failure::Lost("the broker closed the connection".into())),
            Ok(read) => {
                // What was just read may have been sent since the turn began.
                turn.now = clock::now();
                self.heard = turn.now;
                // The socket is edge-triggered: only when it says so has everything been read.
                self.readable = true;
                Ok(read)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.readable = false;
                Ok(0)
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(Failure::Lost(format!("reading: {error}"))),
        }
    }

    /// Goes through what was read; returns how many bytes were used.
    fn go_through(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Result<usize, Failure> {
        let result = match self.role {
            Role::Producers(_) => self.go_through_answers(bytes, turn),
            Role::Consumers(_) => self.go_through_deliveries(bytes, turn),
        };
        if let Role::Consumers(consumers) = &mut self.role {
            consumers
                .iter_mut()
                .for_each(|it| it.flush(turn.now, turn.recorder));
        }
        result
    }

    fn go_through_answers(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Result<usize, Failure> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            if let Some((ack, used)) = scan_ack(rest)
                && self.is_idle(ack.channel)
            {
                if let Some(producer) = self.producer(ack.channel) {
                    let (tag, multiple) = (ack.method.delivery_tag, ack.method.multiple);
                    producer.settled(tag, multiple, false, turn.now, turn.recorder, turn.shared);
                }
                at += used;
            } else {
                match self.frame(rest, turn)? {
                    0 => return Ok(at),
                    used => at += used,
                }
            }
        }
    }

    fn go_through_deliveries(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Result<usize, Failure> {
        let (mut at, mut taken) = (0, 0);
        let mut result = Ok(());
        while self.paused_until == 0 {
            let rest = &bytes[at..];
            if let Some((delivery, used)) = scan_deliver(rest)
                && self.is_idle(delivery.channel)
            {
                let message = Received {
                    delivery_tag: delivery.delivery_tag,
                    redelivered: delivery.redelivered,
                    routing_key: delivery.routing_key,
                    properties: delivery.properties,
                    body: delivery.body,
                };
                self.message(delivery.channel, &message, turn);
                at += used;
                taken += 1;
            } else {
                match self.frame(rest, turn) {
                    Ok(0) => break,
                    Ok(used) => at += used,
                    Err(failure) => {
                        result = Err(failure);
                        break;
                    }
                }
            }
        }
        if taken > 0 {
            turn.shared.count_consumed(taken);
        }
        result.map(|()| at)
    }

    /// Gives a message to its consumer.
    #[inline]
    pub(super) fn message(&mut self, channel: u16, message: &Received<'_>, turn: &mut Turn<'_>) {
        let Role::Consumers(consumers) = &mut self.role else {
            return;
        };
        let Some(consumer) = consumers.get_mut(usize::from(channel).wrapping_sub(1)) else {
            return;
        };
        let next = consumer.received(message, turn.now, &mut self.out, turn.recorder, turn.shared);
        // Once `connection.close` is sent, no consumer pauses any more: the answer comes behind these messages.
        if let Next::Pause(until) = next
            && self.started
        {
            self.paused_until = until;
        }
    }

    /// The general way through one frame; returns its length, or 0 if it is not all there.
    fn frame(&mut self, bytes: &[u8], turn: &mut Turn<'_>) -> Result<usize, Failure> {
        let frame = next_frame(bytes, self.frame_max).map_err(|error| Failure::Lost(error.to_string()))?;
        let Some((frame, used)) = frame else { return Ok(0) };
        if frame.kind != HEARTBEAT {
            self.take_frame(&frame, turn)?;
        }
        Ok(used)
    }

    #[inline]
    fn is_idle(&self, channel: u16) -> bool {
        self.assemblers
            .get(usize::from(channel).wrapping_sub(1))
            .is_some_and(Assembler::is_idle)
    }

    pub(super) fn producer(&mut self, channel: u16) -> Option<&mut Producer> {
        match &mut self.role {
            Role::Producers(producers) => producers.get_mut(usize::from(channel).wrapping_sub(1)),
            Role::Consumers(_) => None,
        }
    }

    pub(super) fn consumer(&mut self, channel: u16) -> Option<&mut Consumer> {
        match &mut self.role {
            Role::Consumers(consumers) => consumers.get_mut(usize::from(channel).wrapping_sub(1)),
            Role::Producers(_) => None,
        }
    }

    /// Where answers are written to.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Writes what waits, as far as the socket takes it.
    fn write(&mut self, now: u64) -> Result<(), Failure> {
        while self.writable && self.written < self.out.len() {
            match self.transport.write(&self.out[self.written..]) {
                Ok(written) => {
                    self.written += written;
                    self.spoke = now;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Failure::Lost(format!("writing: {error}"))),
            }
        }
        if self.written == self.out.len() {
            self.out.clear();
            self.written = 0;
            if self.out.capacity() > 2 * KEPT {
                self.out = Vec::new();
            }
        }
        if self.writable && self.transport.wants_write() {
            match self.transport.flush() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                other => other.map_err(|error| Failure::Lost(format!("writing: {error}")))?,
            }
        }
        Ok(())
    }

    /// Heartbeats and what else time brings; about twice a second.
    ///
    /// # Errors
    /// If the broker has been silent for too long.
    pub fn tick(&mut self, now: u64, confirm_timeout_ns: u64, shared: &Shared) -> Result<(), Failure> {
        if self.heartbeat_ns > 0 {
            if now.saturating_sub(self.heard) > 2 * self.heartbeat_ns {
                return Err(Failure::Lost("the broker sent no heartbeat".into()));
            }
            if now.saturating_sub(self.spoke) > self.heartbeat_ns / 2 && self.out.is_empty() {
                self.out.extend_from_slice(&[HEARTBEAT, 0, 0, 0, 0, 0, 0, END]);
            }
        }
        if let Role::Producers(producers) = &mut self.role {
            for producer in producers
                .iter_mut()
                .filter(|it| it.is_stuck(now, confirm_timeout_ns))
            {
                let text = "Waiting for publisher confirms for too long";
                let advice = format!(
                    "{text}: look whether the broker is blocked by an alarm, or raise --confirm-timeout"
                );
                producer.fail(text, Failure::Lost(advice), shared);
            }
        }
        Ok(())
    }

    /// A token that is about to expire is replaced by a newer one.
    pub fn update_secret(&mut self, token: &str) {
        encode::method(
            &mut self.out,
            0,
            &ConnectionUpdateSecret {
                new_secret: LongStr(token.as_bytes()),
                reason: "token refresh",
            },
        );
    }

    /// Says goodbye; the link is closed when the broker answers.
    pub fn say_goodbye(&mut self) {
        self.started = false;
        self.paused_until = 0;
        encode::method(
            &mut self.out,
            0,
            &ConnectionClose {
                reply_code: 200,
                reply_text: "Closed by leveret perf",
                class_id: 0,
                method_id: 0,
            },
        );
    }

    /// The connection is lost for good: its producers and consumers have come to their end.
    pub fn give_up(&mut self, failure: &Failure, shared: &Shared) {
        match &mut self.role {
            Role::Producers(producers) => {
                let reason = format!("Error in producer ({failure})");
                producers
                    .iter_mut()
                    .for_each(|it| it.fail(&reason, failure.clone(), shared));
            }
            Role::Consumers(consumers) => consumers
                .iter_mut()
                .for_each(|it| it.fail(failure.clone(), shared)),
        }
    }
}

/// The broker is no stranger, but a length that it claims is not believed either.
fn generous() -> Limits {
    Limits {
        message_bytes: 512 * 1024 * 1024,
        ..Limits::default()
    }
}

/// Which of two needs comes first.
pub fn sooner(a: Wants, b: Wants) -> Wants {
    match (a, b) {
        (Wants::Turn, _) | (_, Wants::Turn) => Wants::Turn,
        (Wants::Window, _) | (_, Wants::Window) => Wants::Window,
        (Wants::Moment(a), Wants::Moment(b)) => Wants::Moment(a.min(b)),
        (moment @ Wants::Moment(_), _) | (_, moment @ Wants::Moment(_)) => moment,
        (Wants::Broker, _) | (_, Wants::Broker) => Wants::Broker,
        (Wants::Nothing, Wants::Nothing) => Wants::Nothing,
    }
}
