//! The broker: hosts run machines on journals; messages are published into queues and consumed from them.
//!
//! This crate knows no frame, no socket, no HTTP and no JSON, and spawns no async task. It knows protocols only by the names
//! that it shows to operators. Every call from a protocol's crate is synchronous and never waits for the disk: what must be
//! durable first is promised, and comes back as an event.
//!
//! # The road of one published message
//!
//! Down:
//! 1. `gateway/amqp/connection` reads bytes; `protocol/amqp` finds a publish in them.
//! 2. `gateway/amqp/channel` takes the confirm number.
//! 3. [`publish`]: permission and route (`publish/routes`: both remembered per channel while the catalog's view stands), one block for all
//!    messages of the read that go to the same queues.
//! 4. [`queues::Handle::submit`], and `queues/local` if the queue is on this node: into the queue's mailbox, or straight on if nobody turns the queue.
//! 5. [`host`]: one turn for everything that waits; `queues/local/effects` sends what comes out of it where it belongs.
//! 6. `queue/fifo` decides and applies; [`journal`] appends one batch to the node's log (`storage/log`).
//!
//! Up:
//! 7. `Deliver` goes to the consumer's connection's [`outbox`]; its door gives it a tag and writes frames.
//! 8. `Confirm`, once the log is synced ([`promise`], on the log's thread), goes to the publisher's outbox: one
//!    `basic.ack` for many.
//! 9. The consumer's ack becomes `Settle` ([`consume`]), `Settled` in the journal, and `Release` of what was stored.
//!
//! What expires, is rejected or has no room goes from the machine's `DeadLetter` to [`dead_letters`], which publishes it
//! as another publisher would, and [`clock`] turns the queues that have something due.
//!
//! What is long is paged out and read back by [`pager`]'s two threads, apart from this road.
//!
//! # Other reading
//!
//! Opening and closing: [`broker`], [`recovery`] (replays), `repair` (goes on without what is lost), `service` (what operators change while it runs), `node` (what all queues
//! share), `worker` (a thread with a mailbox), `options`, `ends` (what doors tie to requests).
//!
//! What exists: `topology` turns the catalog, [`declare`], `policies`, `rules` and `administer` ask it, [`session`] is a connection as
//! the hall sees it, [`access`] says who may come in and what they may do, `passwords` who they are, `tally` how much they may have open.
//!
//! What becomes of messages besides: `copies` (`CC` and `BCC`), `interceptors` (what the node writes into them), [`replies`] (answers
//! without a queue), `deaths` (what a dead letter carries of its past), `caches` (what has passed deduplicating exchanges),
//! [`browse`] (looking through a queue, and taking out what operators name).
//!
//! Who is slowed down: [`alarms`] and [`pressure`] slow publishers, `pace` to the speed of quick consumers.
//!
//! What is told: [`stats`] is what operators see of clients, `survey` of the node; `notices` publishes what the node itself has to
//! tell (`events`, `firehose`, `log_exchange`), `watchers` are told without an exchange.

pub mod access;
mod administer;
pub mod alarms;
mod assembly;
pub mod broker;
pub mod browse;
mod caches;
mod clock;
pub mod consume;
mod copies;
mod dead_letters;
mod deaths;
pub mod declare;
mod draft;
mod ends;
mod erase;
mod events;
mod firehose;
mod host;
mod interceptors;
mod journal;
mod login;
mod new_vhost;
mod node;
mod node_limits;
mod notices;
mod open_sessions;
mod operations;
mod options;
pub mod outbox;
mod own_exchanges;
mod pace;
mod pager;
mod passwords;
mod policies;
pub mod pressure;
mod promise;
pub mod publish;
pub mod queues;
mod recovery;
mod repair;
pub mod replies;
mod resources;
mod rules;
mod service;
pub mod session;
pub mod stats;
mod steady;
mod survey;
mod tally;
mod topology;
mod unconfirmed;
mod vhost_defaults;
mod watchers;
mod worker;

pub use access::{LoginRefusal, Permissions, THE_NODE, User};
pub use administer::Administrator;
pub use alarms::AlarmReason;
pub use broker::Broker;
pub use browse::{Browsed, Browser, Seen, Start, TakenOut};
pub use consume::{Getting, QueueRef, Subscription};
pub use declare::{Binding, QueueDeclared, QueueDeleted};
pub use draft::{Draft, Mark};
pub use erase::erase;
pub use interceptors::Interceptors;
pub use login::LoginAttempt;
pub use node_limits::{CredentialValidator, NodeLimits};
pub use options::{DISK_FREE_LIMIT, OpenError, Options};
pub use outbox::{ChannelId, Event, Outbox, Ticket};
pub use pressure::{Pressure, Reason};
pub use publish::{Prepared, Publisher, Taken};
pub use recovery::{Losses, QueueLoss};
pub use repair::repair;
pub use replies::ReplyAddress;
pub use rules::{CLUSTER_ID, CLUSTER_TAGS};
pub use session::{OpenRefusal, Session};
pub use survey::{NodeStatus, QueueTotals, Turned};
pub use topology::Done;
pub use unconfirmed::Unconfirmed;
pub use vhost_defaults::{DefaultLimits, DefaultPolicy, DefaultUser, VhostDefaults};
pub use watchers::{Occurrence, Watcher};

pub use catalog::ConsumerArguments;
pub use catalog::policy::definition::{is_for_clusters, term};
/// What exists, as it is read by doors that list it.
pub use catalog::{
    Applied, Binding as BindingView, Cache, Destination, Exchange, ExchangeKind, Metadata, NodeConnection,
    NodeId, PasswordHash, PasswordHashing, Pattern, Permission, Policy, PolicyKind, Queue as QueueView,
    QueueKind, Quota, QuotaOf, TopicPermission, User as UserView, Vhost, View,
};
pub use catalog::{DeclareExchange, DeclareQueue, PutPolicy, Refusal, RefusalKind};
pub use model::{Overflow, QueueSettings};
pub use queue::fifo::{Answer, ConsumerSettings, Delivery, Disposal, Standing};
