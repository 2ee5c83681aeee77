//! The nouns that all crates share: names, ids, messages, field tables, limits, and the contract of a machine.
//!
//! This crate *does nothing*: no I/O, no clock, no randomness, no thread, no async, no policy. Every other
//! crate imports it; it imports none of ours.
//!
//! Reading order: [`ids`], [`ranges`], [`route`] and [`block`] (how messages are held and stored; [`chunk`] in streams),
//! [`machine`] (how the state machines are turned), then [`settings`] (what a queue's arguments and policies mean),
//! [`table`] (AMQP's field tables) and [`properties`] (what a message says of itself, in the format that it came in),
//! [`limits`]; [`hash`] makes a number of bytes, and [`words`] are numbers in a sentence.

pub mod block;
pub mod chunk;
pub mod deduplication;
pub mod delay;
pub mod expiration;
pub mod hash;
pub mod ids;
pub mod limits;
pub mod machine;
pub mod mutant;
pub mod properties;
pub mod ranges;
pub mod retry;
pub mod route;
pub mod settings;
pub mod table;
pub mod words;

pub use block::{Block, BlockBuilder, COPIES_SPENT, DEAD_LETTERED, HOP, HOPS, Message};
pub use deduplication::{DeduplicationKey, X_DEDUPLICATION_HEADER};
pub use delay::{X_CACHE_TTL, X_DELAY, cache_ttl_ms, delay_ms};
pub use expiration::{ExpirationError, LONGEST_MS, expiration_ms};
pub use hash::fnv;
pub use ids::{ConnectionId, ConsumerId, Incarnation, QueueId, Seq};
pub use limits::Limits;
pub use machine::{Index, Journaled, Machine, Outcome, Timestamp};
pub use mutant::Mutant;
pub use ranges::Ranges;
pub use retry::{DelayedRetry, LONGEST_RETRY_MS, RetryDelay, Returned};
pub use route::{Route, RouteBuf};
pub use settings::{DeadLetterTo, DeliveryLimit, Overflow, QueueSettings, Sorting};
