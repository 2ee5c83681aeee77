//! After the end: the answer to our `connection.close`, the client's hanging up after its own, and what the broker still sends.

use super::departed::Departures;
use super::open::{Open, Waiting};
use crate::connection::Millis;
use crate::output::Output;
use broker::{Event, Pressure};
use protocol::amqp::method::ConnectionCloseOk;
use protocol::amqp::{Part, encode, next_frame};

/// How long the answer is waited for (RabbitMQ's `CLOSING_TIMEOUT`).
const CLOSING_TIMEOUT: Millis = 30_000;

/// How long answers of queues are waited for, to give back what comes with them or before them.
const DISK_TIMEOUT: Millis = 60_000;

/// `connection.close-ok` as a frame.
const CLOSE_OK: [u8; 12] = [1, 0, 0, 0, 0, 0, 4, 0, 10, 0, 51, 0xce];

/// Our `connection.close` is out.
pub struct Closing {
    until: Millis,
    frame_max: u32,
    lost_step: bool,
}

impl Closing {
    /// From now on. If the two sides have `lost_step`, frames cannot be told apart any more.
    pub fn new(now: Millis, frame_max: u32, lost_step: bool) -> Self {
        Self {
            until: now + CLOSING_TIMEOUT,
            frame_max,
            lost_step,
        }
    }

    /// When to hang up without an answer.
    pub fn until(&self) -> Millis {
        self.until
    }

    /// Drops everything but the answer. Says how many bytes it took, and whether the answer was among them.
    pub fn input(&mut self, bytes: &[u8], out: &mut Output) -> (usize, bool) {
        let mut at = 0;
        while !self.lost_step {
            let Ok(next) = next_frame(&bytes[at..], self.frame_max) else {
                self.lost_step = true;
                break;
            };
            let Some((frame, length)) = next else {
                return (at, false);
            };
            at += length;
            match frame.part() {
                Ok(Part::Method(id, _)) if frame.channel == 0 && (id.class, id.method) == (10, 51) => {
                    return (bytes.len(), true);
                }
                // Both closed at the same time.
                Ok(Part::Method(id, _)) if frame.channel == 0 && (id.class, id.method) == (10, 50) => {
                    encode::method(out.bytes(), 0, &ConnectionCloseOk {});
                }
                _ => {}
            }
        }
        // The answer is looked for at any place; its beginning may be at the very end.
        let done = bytes[at..]
            .windows(CLOSE_OK.len())
            .any(|window| window == CLOSE_OK);
        let kept = (bytes.len() - at).min(CLOSE_OK.len() - 1);
        (bytes.len() - kept, done)
    }
}

/// How long a client that closed may take to hang up, with an agreed heartbeat of so many seconds: RabbitMQ's
/// `CLOSING_TIMEOUT`, or the heartbeat if that is shorter.
///
/// The client hangs up first. Some read on while they close, and take an end of the stream right behind
/// `connection.close-ok` for a loss of the connection (streadway/amqp 1.0.0 waits for itself for ever then).
pub fn hang_up_by(now: Millis, heartbeat_s: u16) -> Millis {
    let heartbeat = Millis::from(heartbeat_s) * 1000;
    now + match heartbeat {
        0 => CLOSING_TIMEOUT,
        _ => heartbeat.min(CLOSING_TIMEOUT),
    }
}

/// What is still to be done for a connection that is gone: what it held goes back, a part at a time. Then deliveries
/// may still come of a queue that was just being turned, and the answer to a `basic.get`.
pub struct Remains {
    /// It still holds something.
    open: Option<Box<Open>>,
    /// Its exclusive queues are being deleted until then.
    clearing: Option<Pressure>,
    departures: Departures,
    waiting: Option<Box<Waiting>>,
    answers_until: Millis,
}

impl Remains {
    /// Of this connection.
    pub fn new(open: Box<Open>) -> Self {
        Self {
            open: Some(open),
            clearing: None,
            departures: Departures::default(),
            waiting: None,
            answers_until: 0,
        }
    }

    /// Gives back a part of what the connection held. True if it holds more.
    pub fn give_back(&mut self, now: Millis) -> bool {
        let Some(open) = &mut self.open else {
            return false;
        };
        open.set_now(now);
        // Nobody reads what it still has to say.
        if !open.close_channels(false, &mut Output::default()) {
            return true;
        }
        self.clearing = open.shared.session.close();
        self.departures = std::mem::take(&mut open.departures);
        self.waiting = open.waiting.take();
        self.answers_until = now + DISK_TIMEOUT;
        self.open = None;
        false
    }

    /// True if the connection still holds something.
    pub fn holds(&self) -> bool {
        self.open.is_some()
    }

    /// Until when exclusive queues of the connection are being deleted, if they are very many.
    pub fn clearing(&mut self) -> Option<Pressure> {
        self.clearing.take()
    }

    /// Gives everything back.
    pub fn events(&mut self, events: &mut Vec<Event>) {
        if let Some(open) = &mut self.open {
            return open.events(events, &mut Output::default());
        }
        for event in events.drain(..) {
            match event {
                Event::Deliver {
                    consumer, delivery, ..
                } => self.departures.give_back(consumer, delivery),
                Event::Answer { question, answer, .. } => {
                    self.departures.answered(question);
                    let waiting = self.waiting.take_if(|waiting| waiting.question == question);
                    if let Some(waiting) = waiting {
                        self.departures.add(waiting.asked.abandon(answer));
                    }
                }
                _ => {}
            }
        }
    }

    /// When nothing is waited for any longer; `None` if that is now.
    pub fn until(&self) -> Option<Millis> {
        let waits = self.waiting.is_some() || !self.departures.is_empty();
        waits.then_some(self.answers_until)
    }

    /// True if nothing can come any more.
    pub fn is_over(&self, now: Millis) -> bool {
        !self.holds() && self.until().is_none_or(|until| now >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::amqp::method::BasicAck;

    #[test]
    fn only_the_answer_counts() {
        let mut bytes = Vec::new();
        encode::method(
            &mut bytes,
            1,
            &BasicAck {
                delivery_tag: 1,
                multiple: false,
            },
        );
        let length = bytes.len();
        bytes.extend_from_slice(&CLOSE_OK[..5]);
        let mut closing = Closing::new(0, 4096, false);
        assert_eq!(closing.input(&bytes, &mut Output::default()), (length, false));
        assert_eq!(closing.input(&CLOSE_OK, &mut Output::default()), (12, true));
    }

    #[test]
    fn a_client_that_closed_has_thirty_seconds_to_hang_up_or_one_heartbeat() {
        let by = [0, 2, 30, 60].map(|heartbeat_s| hang_up_by(1_000, heartbeat_s));
        assert_eq!(by, [31_000, 3_000, 31_000, 31_000]);
    }

    #[test]
    fn the_answer_is_found_after_losing_step() {
        let mut closing = Closing::new(0, 4096, true);
        let mut bytes = vec![7; 100];
        bytes.extend_from_slice(&CLOSE_OK[..6]);
        let (taken, done) = closing.input(&bytes, &mut Output::default());
        assert!(!done && (89..=100).contains(&taken));
        bytes.extend_from_slice(&CLOSE_OK[6..]);
        assert!(closing.input(&bytes[taken..], &mut Output::default()).1);
    }
}
