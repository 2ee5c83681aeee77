//! The catalog: the machine that knows what exists (virtual hosts, users, permissions, exchanges, queues, bindings),
//! and routes.
//!
//! It holds no message, does no I/O, has no clock and no randomness (salts and the bytes of made-up queue names come
//! in with requests), and knows no protocol: refusals carry RabbitMQ's words, reply codes are mapped elsewhere.
//! It does not check permissions before it acts either: the broker asks [`Request::check`] and [`View::may`] first.
//!
//! Two faces:
//!
//! - [`Catalog`] is turned by a host: [`Request`]s in, [`Record`]s and [`Effect`]s out (see `model::machine`). A
//!   request's answer is `Effect::Reply`, among the promises if a durable record was made and among the effects if
//!   not. The host journals all records. What has to be started, stopped or set follows from records, not from requests.
//! - [`View`] is what exists at one moment: immutable, cheap to clone ([`Catalog::view`]), safe to share. Publishing
//!   routes on it ([`View::exchange`], [`View::route`]), front ends and the HTTP API ask it ([`View::authenticate`],
//!   [`View::vhost_access`], [`View::may`]), management lists it. [`View::generation`] changes with every record.
//!
//! All containers are persistent (they share what did not change) and ordered, so nothing here depends on hash
//! seeds: a change costs O(log n) however many bindings there are, and a view stays as it was.
//!
//! Reading order: [`vhost`] (what is in a virtual host), [`exchange`], [`cache`], [`queue`], [`binding`], [`policy`],
//! [`routing`] (how keys and headers find destinations), [`user`], [`topic_permission`] and [`pattern`] (who may what),
//! [`quota`] (how much), [`view`], then [`request`], [`effect`], [`record`],
//! [`refusal`], [`arguments`] (what a declaration may say), and [`machine`] which puts them
//! together; [`shared`] is that for several nodes.

pub mod arguments;
pub mod binding;
pub mod cache;
mod codec;
mod conversion;
pub mod effect;
pub mod exchange;
pub mod exchange_kinds;
pub mod kinds;
pub mod machine;
pub mod metadata;
mod mirrors;
pub mod node;
pub mod password;
pub mod pattern;
pub mod policy;
pub mod queue;
pub mod queue_defaults;
pub mod quota;
pub mod record;
pub mod refusal;
pub mod request;
pub mod routing;
pub mod shared;
pub mod topic_permission;
pub mod user;
pub mod vhost;
pub mod view;

pub use arguments::placing::Locator;
pub use arguments::stream::{StreamArguments, StreamOffset};
pub use arguments::{ConsumerArguments, check_consumer, kind_of};
pub use binding::{Binding, Destination, NamedBinding};
pub use cache::Cache;
pub use conversion::Conversion;
pub use effect::{Answer, Effect};
pub use exchange::{DeclaredExchange, Exchange};
pub use exchange_kinds::ExchangeKind;
pub use kinds::QueueKind;
pub use machine::Catalog;
pub use metadata::Metadata;
pub use node::{Incarnation, Joined, Lifetime, Membership, Node, NodeConnection, NodeId};
pub use password::{PasswordHash, PasswordHashing};
pub use pattern::Pattern;
pub use policy::{Applied, ApplyTo, Policies, Policy, PolicyKind};
pub use queue::{Epoch, Member, Queue, server_name};
pub use queue_defaults::QueueDefaults;
pub use quota::{Quota, QuotaOf};
pub use record::Record;
pub use refusal::{ObjectKind, Refusal, RefusalKind, Verb};
pub use request::{Asked, DeclareExchange, DeclareQueue, PutPolicy, Request, WantedBinding, strip};
pub use routing::{DeduplicationFilter, Envelope, Looked};
pub use topic_permission::TopicPermission;
pub use user::{AuthRefusal, Permission, User};
pub use vhost::Vhost;
pub use view::View;

/// The name of a virtual host, user, exchange or queue: shared, since maps and bindings repeat it.
pub type Name = std::sync::Arc<str>;
