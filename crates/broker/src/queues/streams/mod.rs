//! Streams: their machine on files of its own (`storage::StreamFiles`), which many read at once
//! ([decision 70](../../../../../docs/decisions/0070-streams.md)).
//!
//! | File | What is there |
//! |---|---|
//! | `log` | what host and readers share: the files, the newest chunks, how far all is safe |
//! | `writing` | what the writing thread does |
//! | `host` | the host of a stream: requests in, effects out, chunks to the writing thread |
//! | `deciding` | what decides in a stream, whoever keeps its records |
//! | `member` | the same as a machine on the journal of several nodes |
//! | `feeding` | what those have committed, on its way to this node's files |
//! | `copy` | what each of them does with its copy |
//! | `unjoined` | who watches a copy, and whether it came to publish |
//! | `recovered` | the machine as the files have it |
//! | `opening` | files that could not be opened are tried again |
//! | `senders` | other nodes that send what their clients publish |
//! | `messages` | chunks to messages of AMQP, and back |
//! | `reads` | what both hosts do for those who read here |
//! | `readers` | those who read here: what each is told, beside the machine |
//! | `consumers` | those who take messages |
//! | `reader` | those who take chunks |
//! | `browse` | those who look at messages and are no readers |
//! | `kind` | what the table of kinds knows of streams |

mod browse;
mod consumers;
mod copy;
mod deciding;
mod feeding;
mod host;
mod kind;
mod log;
mod member;
mod messages;
mod opening;
mod reader;
mod readers;
mod reads;
mod recovered;
mod senders;
mod unjoined;
mod writing;

pub(crate) use copy::is_of_copy;
pub use feeding::{Pieces, Stands};
pub use kind::OfFiles;
pub use log::{StreamFigures, StreamLog};
pub use member::StreamMember;
pub use reader::{NextChunk, ReadChunk, StreamReader};
pub(crate) use writing::remove_closed;
