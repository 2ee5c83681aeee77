//! RabbitMQ's stream protocol, as its versions up to 4.3 speak it.
//!
//! Reading order, and where a caller begins:
//!
//! 1. [`frame`]: [`next_frame`] cuts a read buffer into frames.
//! 2. [`field`]: how numbers, strings and arrays are read and written where they lie.
//! 3. [`key`] and [`code`]: the commands with their versions, and what answers say.
//! 4. [`request`], [`answer`], [`command`]: [`Command::decode`] says what a frame is, [`Command::encode`] writes one, for both
//!    directions.
//! 5. [`publish`]: many messages in one frame, as they will stand in a chunk. [`offset`]: where a subscription begins.
//!    [`metadata`]: who has which streams.
//! 6. [`connection`]: from the first frame to the last, the server's side. What it has no use for itself it hands on.
//!
//! Slices in what comes out point into the read buffer. What is in a chunk, nobody here knows.

pub mod answer;
pub mod code;
pub mod command;
pub mod connection;
pub mod field;
pub mod frame;
pub mod key;
pub mod metadata;
pub mod offset;
pub mod publish;
pub mod request;

pub use answer::{Answer, Content, Stat};
pub use code::ResponseCode;
pub use command::{Command, PublishingError, deliver_head, publish_confirm};
pub use connection::{Connection, Event, Offer};
pub use field::{List, ListBuf, Malformed, Opaque, Properties, Property, Text, Trailing};
pub use frame::{Frame, FrameError, next_frame};
pub use key::{CommandVersions, Key, TAKEN_FROM_CLIENTS};
pub use metadata::PlacesBuf;
pub use offset::{OffsetSpec, Resolved};
pub use publish::{Body, Entries, EntriesBuf, Entry, Publish, PublishFrame};
pub use request::Request;
