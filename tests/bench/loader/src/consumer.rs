//! One connection that consumes: it counts deliveries by the lengths of frames and copies nothing.

use crate::connection::{CHANNEL, Connection, STUCK_AFTER, first_method};
use crate::gate::Gate;
use crate::options::Options;
use protocol::amqp::Method;
use protocol::amqp::encode;
use protocol::amqp::frame::{BODY, END, HEAD, HEADER, HEARTBEAT, METHOD, OVERHEAD};
use protocol::amqp::method::{BasicConsume, BasicQos};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Instant;

/// Where the consumer tag of `basic.deliver` begins in its frame.
const TAG_AT: usize = HEAD + 4;

/// A consumer and what it has seen.
pub struct Consumer {
    connection: Connection,
    scan: Scan,
    /// Messages an acknowledgement; 0: auto-ack.
    every: u64,
    acked: u64,
}

/// Where the scanner stands in the stream of frames.
#[derive(Default)]
struct Scan {
    /// Bytes of the current frame that still have to come.
    skip: usize,
    /// Deliveries so far; also the delivery tag of the last one.
    deliveries: u64,
    /// Bytes of body so far.
    body: u64,
    /// What every body must have, in bytes.
    size: u64,
}

impl Scan {
    /// Goes through as many bytes as it can and tells how many.
    ///
    /// # Errors
    /// If the broker closes, or if deliveries are not what was published.
    fn advance(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let mut at = 0;
        loop {
            let skipped = self.skip.min(bytes.len() - at);
            self.skip -= skipped;
            at += skipped;
            let rest = &bytes[at..];
            if self.skip > 0 || rest.len() < HEAD {
                return Ok(at);
            }
            let size = u32::from_be_bytes([rest[3], rest[4], rest[5], rest[6]]) as usize;
            let length = size + OVERHEAD;
            if rest.len() >= length && rest[length - 1] != END {
                return Err(format!("a frame of type {} and size {size} has no end", rest[0]));
            }
            match rest[0] {
                BODY => self.body += size as u64,
                HEADER if rest.len() < HEAD + 12 => return Ok(at),
                HEADER => self.header(rest)?,
                METHOD if rest.len() < length => return Ok(at),
                METHOD => self.method(&rest[..length])?,
                HEARTBEAT => {}
                other => return Err(format!("a frame of type {other}")),
            }
            self.skip = length;
        }
    }

    fn header(&self, frame: &[u8]) -> Result<(), String> {
        let mut size = [0; 8];
        size.copy_from_slice(&frame[HEAD + 4..HEAD + 12]);
        let size = u64::from_be_bytes(size);
        if size == self.size {
            Ok(())
        } else {
            Err(format!("a body of {size} bytes"))
        }
    }

    fn method(&mut self, frame: &[u8]) -> Result<(), String> {
        if frame[HEAD..TAG_AT] != [0, 60, 0, 60] {
            return first_method(frame, &mut |_| None::<()>).map(|_| ());
        }
        let tag_at = TAG_AT + 1 + frame[TAG_AT] as usize;
        let tag = frame
            .get(tag_at..tag_at + 8)
            .ok_or("basic.deliver is too short")?;
        self.deliveries += 1;
        if tag == self.deliveries.to_be_bytes() {
            Ok(())
        } else {
            Err(format!("delivery tag {tag:?} instead of {}", self.deliveries))
        }
    }
}

impl Consumer {
    /// Connects and consumes from the queue.
    ///
    /// # Errors
    /// If the broker refuses.
    pub fn open(options: &Options, queue: &str) -> Result<Self, String> {
        let mut connection = Connection::open(options)?;
        if options.prefetch > 0 {
            let prefetch_count = options.prefetch;
            connection.send(
                CHANNEL,
                &BasicQos {
                    prefetch_count,
                    ..BasicQos::default()
                },
            )?;
            connection.await_method(|m| matches!(m, Method::BasicQosOk(_)).then_some(()))?;
        }
        let no_ack = options.ack == 0;
        connection.send(
            CHANNEL,
            &BasicConsume {
                queue,
                no_ack,
                ..BasicConsume::default()
            },
        )?;
        connection.await_method(|m| matches!(m, Method::BasicConsumeOk(_)).then_some(()))?;
        let scan = Scan {
            size: options.size as u64,
            ..Scan::default()
        };
        Ok(Self {
            connection,
            scan,
            every: options.ack,
            acked: 0,
        })
    }

    /// Consumes until the publishers are done and nothing is left in the queue.
    ///
    /// # Errors
    /// If the broker closes, delivers what was not published, or is stuck.
    pub fn run(mut self, gate: &Gate, publishers_done: &AtomicBool, may_drop: bool) -> Result<(), String> {
        let mut heard = Instant::now();
        loop {
            let before = self.scan.deliveries;
            let used = self.scan.advance(self.connection.unread())?;
            self.connection.used(used);
            gate.leave(self.scan.deliveries - before);
            self.acknowledge()?;
            if self.connection.fill()? {
                heard = Instant::now();
            } else if publishers_done.load(SeqCst) {
                if gate.consumed() >= gate.published() || may_drop {
                    break;
                }
                if heard.elapsed() > STUCK_AFTER {
                    return Err(format!(
                        "{} of {} messages came",
                        gate.consumed(),
                        gate.published()
                    ));
                }
            }
        }
        if self.every > 0 && self.acked < self.scan.deliveries {
            let mut frame = Vec::new();
            encode::ack(&mut frame, CHANNEL, self.scan.deliveries, true);
            self.connection.write(&frame)?;
        }
        if self.scan.skip > 0 || self.scan.body != self.scan.deliveries * self.scan.size {
            return Err(format!(
                "{} bytes of body in {} messages",
                self.scan.body, self.scan.deliveries
            ));
        }
        self.connection.close();
        Ok(())
    }

    /// One acknowledgement for every full `every`, all in one write.
    fn acknowledge(&mut self) -> Result<(), String> {
        if self.every == 0 || self.scan.deliveries - self.acked < self.every {
            return Ok(());
        }
        let mut frames = Vec::new();
        while self.scan.deliveries - self.acked >= self.every {
            self.acked += self.every;
            encode::ack(&mut frames, CHANNEL, self.acked, true);
        }
        self.connection.write(&frames)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::amqp::method::{BasicDeliver, ChannelClose};

    fn deliveries(count: u64, size: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for delivery_tag in 1..=count {
            let deliver = BasicDeliver {
                consumer_tag: "c",
                delivery_tag,
                ..BasicDeliver::default()
            };
            encode::content(&mut bytes, 1, &deliver, &[0, 0], &vec![7; size], 4096);
        }
        bytes
    }

    #[test]
    fn deliveries_are_counted_however_they_are_cut() {
        let bytes = deliveries(5, 5000);
        for piece in 1..400 {
            let mut scan = Scan {
                size: 5000,
                ..Scan::default()
            };
            let (mut start, mut end) = (0, 0);
            while end < bytes.len() {
                end = (end + piece).min(bytes.len());
                start += scan.advance(&bytes[start..end]).unwrap();
            }
            assert_eq!(
                (start, scan.deliveries, scan.body, scan.skip),
                (bytes.len(), 5, 25_000, 0)
            );
        }
    }

    #[test]
    fn wrong_deliveries_are_errors() {
        let mut scan = Scan {
            size: 9,
            ..Scan::default()
        };
        assert_eq!(scan.advance(&deliveries(1, 8)).unwrap_err(), "a body of 8 bytes");
        let mut scan = Scan {
            size: 8,
            deliveries: 1,
            ..Scan::default()
        };
        assert!(
            scan.advance(&deliveries(1, 8))
                .unwrap_err()
                .starts_with("delivery tag")
        );
        let mut close = Vec::new();
        let method = ChannelClose {
            reply_code: 404,
            reply_text: "gone",
            ..ChannelClose::default()
        };
        encode::method(&mut close, 1, &method);
        assert_eq!(
            Scan::default().advance(&close).unwrap_err(),
            "channel.close: 404 gone"
        );
    }
}
