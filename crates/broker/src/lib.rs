//! The broker: hosts run machines on journals; messages are published into queues and consumed from them.
//!
//! This crate knows no frame, no socket, no HTTP and no JSON, and spawns no async task. It knows protocols only by the names
//! that it shows to operators. Every call from a protocol's crate is synchronous and never waits for the disk: what must be
//! durable first is promised, and comes back as an event.
//!
//! # Floors
//!
//! A module imports those below it and no others. What has to be told upward, a lower floor tells through a small trait or a part
//! that `assembly` hands in. From the ground:
//!
//! | Module | What is there |
//! |---|---|
//! | `worker` | a thread with a mailbox |
//! | `clients` | users and what they may do, outboxes, alarms and back-pressure: how the broker speaks with clients |
//! | `options` | what a broker is opened with |
//! | `events` | what happened and who is told: watchers, the event exchange, the firehose |
//! | `stats` | what operators see of clients and queues |
//! | `node` | what all queues share: the log, journals and hosts, promises, the pager, time and timers |
//! | `groups` | replicated journals: a node's members of groups, and hosts that follow or lead |
//! | `queues` | handles and queues of this node, and how fast they are published to |
//! | `topology` | what exists: the catalog's host or the node that decides, the view, and which queues follow from it |
//! | `broker` | what all sessions share |
//! | `session` | a connection as the broker sees it: logins, rights, declarations |
//! | `messages` | what sessions do with messages, and what becomes of dead ones |
//! | `administration` | what operators change and see |
//! | `recovery` | one pass over the log at the start |
//! | `assembly` | opens and closes the broker, looks at memory and disk, repairs data directories |
//!
//! # The path of a published message
//!
//! Down, with the function that is called:
//!
//! | File | Function | What happens |
//! |---|---|---|
//! | `gateway/serve` | `read` | bytes come from the socket |
//! | `gateway/amqp/connection` | `input` | takes them; in `open`, `publishes` takes many in a row |
//! | `gateway/amqp/channel/publish` | `publish` | takes the confirm number (`channel/confirms`, `messages/unconfirmed`) |
//! | `messages/publish` | `Publisher::publish` | permission (`session`), route (`publish/routes`), into the block of its queues |
//!
//! Permission and route are remembered while the catalog's view stands. At the end of the read, once for all that came with it:
//!
//! | File | Function | What happens |
//! |---|---|---|
//! | `gateway/amqp/connection/events`, `channel` | `flush` | of each channel that published |
//! | `messages/publish` | `Publisher::flush` | hands the blocks over |
//! | `queues/handle` | `submit` | to the queue, wherever it is |
//! | `queues/local` | `submit` | into the queue's mailbox, or straight on if nobody turns the queue |
//! | `node/host` | `handle`, `commit` | one turn for everything that waits |
//! | `queue/fifo/classic` | `handle` | the queue decides and applies: `queue/fifo/publish`, `queue/store` |
//! | `queues/journal`, `node/journal` | `append` | one batch to the node's log, with what waits for it (`node/promise`) |
//! | `storage/log` | `append` | into the log's buffer (`pending`), which its thread writes (`writer`) |
//! | `queues/local/effects` | `commit`, `carry_out` | what comes out of the turn goes where it belongs |
//!
//! Up:
//! 1. `Deliver` goes to the outbox of the consumer's connection (`clients/outbox`); its front end gives it a tag and
//!    writes frames.
//! 2. `Confirm`, once the log is synced (`node/promise`, on the log's thread), goes to the publisher's outbox: one
//!    `basic.ack` for many.
//! 3. The consumer's ack becomes `Settle` (`messages/consume`), `Settled` in the journal, and `Release` of what was stored.
//!
//! What expires, is rejected or does not fit goes from the machine's `DeadLetter` to `messages/dead_letters`, which
//! publishes it as another publisher would, and `node/timers` turn the queues that have something due. What is long is
//! paged out and read back by the two threads of `node/pager`, apart from this path.

mod administration;
mod assembly;
pub mod broker;
mod clients;
mod events;
pub mod groups;
mod messages;
mod node;
mod options;
pub mod queues;
mod recovery;
mod session;
pub mod stats;
mod topology;
mod worker;

pub use broker::replies;
pub use clients::{access, pressure};

pub use administration::administrator::Administrator;
pub use administration::draft::{Draft, Mark};
pub use administration::overview::{NodeStatus, QueueTotals, Turned};
pub use administration::parameters::{CLUSTER_ID, CLUSTER_TAGS};
pub use administration::rebalance::{Asked, Leaderships, Progress, Told, rebalance};
pub use administration::replicas::{OwnCopy, SharedStanding};
pub use assembly::erase::erase;
pub use assembly::repair::repair;
pub use broker::Broker;
#[cfg(any(test, feature = "late-catalog"))]
pub use broker::late_catalog::LateCatalog;
pub use broker::replies::ReplyAddress;
pub use broker::shared_catalog::CatalogStanding;
pub use clients::access::{LoginRefusal, Permissions, THE_NODE, User};
pub use clients::alarms::AlarmReason;
pub use clients::close_reason::CloseReason;
pub use clients::outbox::{ChannelId, Event, Outbox, Question as QueueQuestion, Ticket};
pub use clients::pressure::{Pressure, Reason};
pub use events::watchers::{Occurrence, Watcher};
pub use groups::{CopyPhase, CopyProgress};
pub use messages::browse::{Browsed, Browser, Seen, Start, TakenOut, Wait};
pub use messages::carbon_copies::Copies;
pub use messages::consume::{QueueRef, Subscription};
pub use messages::publish::{Prepared, Publisher, Taken};
pub use messages::streams::{NoStream, Stream, StreamNumbers, StreamPlaces, StreamPublisher};
pub use messages::streams::{StreamTracking, StreamWatch};
pub use messages::unconfirmed::Unconfirmed;
pub use options::interceptors::Interceptors;
pub use options::node_limits::{CredentialValidator, NodeLimits};
pub use options::vhost_defaults::{DefaultLimits, DefaultPolicy, DefaultUser, VhostDefaults};
pub use options::{DISK_FREE_LIMIT, OpenError, Options, Reconciliation};
pub use queues::streams::{NextChunk, ReadChunk, StreamFigures, StreamReader};
pub use queues::{HostAndPort, StreamAddresses};
pub use recovery::{Losses, QueueLoss};
pub use session::declare::{Binding, Deleting, QueueDeclared, QueueDeleted, QueueDeletion};
pub use session::login::LoginAttempt;
pub use session::{OpenRefusal, Session};
pub use topology::{CatalogLeader, Done, Question, Sharing};

pub use catalog::arguments::takes as takes_argument;
pub use catalog::policy::definition::{is_for_clusters, term};
/// What exists, as front ends that list it read it.
pub use catalog::{
    Applied, ApplyTo, Binding as BindingView, Cache, Destination, Exchange, ExchangeKind, Incarnation,
    Lifetime, Metadata, NodeConnection, NodeId, PasswordHash, PasswordHashing, Pattern, Permission, Policy,
    PolicyKind, Queue as QueueView, QueueKind, Quota, QuotaOf, TopicPermission, User as UserView, Vhost,
    View,
};
pub use catalog::{ConsumerArguments, Conversion, Locator, QueueDefaults, StreamArguments, StreamOffset};
pub use catalog::{DeclareExchange, DeclareQueue, PutPolicy, Refusal, RefusalKind};
pub use model::chunk::Matcher;
pub use model::{Overflow, QueueSettings};
pub use queue::stream::Start as StreamStart;
pub use queue::{Answer, ConsumerSettings, Delivery, Disposal, NodeConsumer, Standing};
