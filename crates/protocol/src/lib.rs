//! The languages of the broker and of its clients: bytes in, nouns and answers out.
//!
//! One folder for each protocol. What this crate never does: no socket, no clock, no thread, no async, no policy. A
//! state machine in here is fed bytes and says what they mean and what to write back; the front ends in `gateway`
//! and the load generator do the reading and writing.
//!
//! No length that a peer claims is believed: memory grows with bytes that really came, and every decoder has a
//! [`model::Limits`] to keep to. No input makes it panic; the fuzz targets in `fuzz/` see to that.

pub mod amqp;
pub mod link;
pub mod stream;
