//! What operators see of clients: connections, channels, consumers, and what they did.
//!
//! Whoever does something counts it, beside what it does: each number has one writer, a connection's thread, and is read by
//! anybody at any time without asking that thread. Nothing here decides anything.

mod attempts;
mod channel;
mod churn;
mod connection;
mod consumer;
mod count;
mod dead_letters;
mod exchange;
mod happenings;
mod held;
mod histogram;
mod losses;
mod message_counts;
mod probe;
mod registry;
mod secured;
mod sizes;
mod stream_clients;
mod totals;
mod touched;
mod work;

pub use attempts::{LoginAttempts, LoginSource};
pub use channel::{Channel, ChannelHandle};
pub use churn::Churn;
pub use connection::{Connection, ConnectionDetails, Protocol, State, UNIX};
pub(crate) use connection::{Opened, host};
pub use consumer::{Consumer, ConsumerDetails};
pub use count::Count;
pub use dead_letters::DeadLetterCounts;
pub(crate) use exchange::Ledger;
pub use exchange::{ExchangeCounts, Exchanges};
pub use held::Held;
pub use histogram::{Buckets, Histogram, Weights};
pub use losses::LossCounts;
pub use message_counts::{ChannelCounts, KINDS, MessageCounts};
pub(crate) use probe::Probe;
pub use probe::{Latencies, Pending};
pub use registry::Registry;
pub use secured::{PeerCertificate, Secured};
pub use sizes::{MessageSizes, SIZE_BOUNDS, SizeCounts, SizeRun};
pub use stream_clients::{Entered, StreamConsumer, StreamGroup, StreamPublisher};
pub use totals::Totals;
pub(crate) use touched::Touched;
pub use work::{Change, Work};
