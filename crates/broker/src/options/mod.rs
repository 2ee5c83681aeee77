//! What a broker is opened with, and why it may not open.

pub mod interceptors;
pub mod node_limits;
pub mod vhost_defaults;

use crate::options::interceptors::Interceptors;
use crate::options::node_limits::{CredentialValidator, NodeLimits};
use crate::options::vhost_defaults::VhostDefaults;
use catalog::{PasswordHashing, QueueDefaults};
use model::Limits;
use std::path::PathBuf;
use std::sync::Arc;
use storage::{LogOptions, SegmentOptions, StorageError, System, World};

/// Free space below which publishers are blocked unless the configuration says otherwise, in bytes. Above what the node
/// itself may need before anybody reads again: the log's next file and the one made ahead (64 MiB each), and what a
/// checkpoint moves out of the oldest.
pub const DISK_FREE_LIMIT: u64 = 256_000_000;

/// How a broker is set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything durable lies.
    pub data_dir: PathBuf,
    /// Files, clocks, chance and threads.
    pub world: Arc<dyn World>,
    /// How the write-ahead log is laid out.
    pub log: LogOptions,
    /// How segments are laid out.
    pub segments: SegmentOptions,
    /// Limits on what comes from outside.
    pub limits: Limits,
    /// The default user and virtual host are made at opening; otherwise by [`crate::Broker::create_defaults`].
    pub create_defaults: bool,
    /// The user that a node without users creates at its first start.
    pub default_user: String,
    /// Its password.
    pub default_password: String,
    /// The virtual host that it creates along with it.
    pub default_vhost: String,
    /// Its tags.
    pub default_tags: Vec<String>,
    /// Its permissions: configure, write, read.
    pub default_permissions: [String; 3],
    /// Users who may only log in from this machine.
    pub loopback_users: Vec<String>,
    /// Resident memory above which publishers are blocked, in bytes.
    pub memory_high_watermark: u64,
    /// Free space on the data directory's file system below which publishers are blocked, in bytes.
    pub disk_free_limit: u64,
    /// Announced to clients.
    pub cluster_name: String,
    /// What this node is called, for headers that name it.
    pub node_name: String,
    /// What is written into messages as they come in.
    pub interceptors: Interceptors,
    /// How long deliveries of queues and consumers that say nothing about it may stay unacknowledged, in milliseconds; 0 for as
    /// long as they like.
    pub consumer_timeout_ms: u64,
    /// What queues are that are declared without a type, and what may be declared again as what.
    pub queue_defaults: QueueDefaults,
    /// Whether quorum queues get the members that they are to have in the long run.
    pub reconciliation: Reconciliation,
    /// The virtual host in which an exchange tells what happens on this node, if one does.
    pub event_vhost: Option<String>,
    /// How new passwords are hashed.
    pub password_hashing: PasswordHashing,
    /// Opens a data directory that has lost something, without it; what is removed is kept in this folder. See
    /// [`crate::repair()`].
    pub set_aside: Option<PathBuf>,
    /// How much this node takes.
    pub node_limits: NodeLimits,
    /// What new passwords must be like.
    pub credentials: CredentialValidator,
    /// What new virtual hosts get.
    pub vhost_defaults: VhostDefaults,
    /// New queues of clients of this node get their home here; otherwise on other nodes that take queues.
    pub takes_queues: bool,
    /// Bodies in memory of all queues above which queues page out earlier, in bytes.
    pub message_memory: u64,
}

impl Options {
    /// RabbitMQ's defaults for a node whose data lies in `data_dir`.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            world: System::real(),
            log: LogOptions::default(),
            segments: SegmentOptions::default(),
            limits: Limits::default(),
            create_defaults: true,
            default_user: "guest".into(),
            default_password: "guest".into(),
            default_vhost: "/".into(),
            default_tags: vec!["administrator".into()],
            default_permissions: [".*".into(), ".*".into(), ".*".into()],
            loopback_users: vec!["guest".into()],
            memory_high_watermark: u64::MAX,
            disk_free_limit: DISK_FREE_LIMIT,
            cluster_name: "leveret".into(),
            node_name: "rabbit@localhost".into(),
            interceptors: Interceptors::default(),
            consumer_timeout_ms: 0,
            queue_defaults: QueueDefaults::default(),
            reconciliation: Reconciliation::default(),
            event_vhost: None,
            password_hashing: PasswordHashing::default(),
            set_aside: None,
            node_limits: NodeLimits::default(),
            credentials: CredentialValidator::default(),
            vhost_defaults: VhostDefaults::default(),
            takes_queues: true,
            message_memory: 256 * 1024 * 1024,
        }
    }
}

/// Whether quorum queues get the members that they are to have in the long run: RabbitMQ's
/// `quorum_queue.continuous_membership_reconciliation.*`, with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reconciliation {
    /// They do.
    pub is_enabled: bool,
    /// How many of which neither arguments nor policies say so; 0: as many as they began with.
    pub target_size: usize,
    /// How often all are looked at, in ticks of 100 ms.
    pub interval_ticks: u32,
    /// How soon after something has changed, in ticks of 100 ms.
    pub trigger_ticks: u32,
}

impl Default for Reconciliation {
    fn default() -> Self {
        Self {
            is_enabled: false,
            target_size: 0,
            interval_ticks: 36_000,
            trigger_ticks: 100,
        }
    }
}

/// What can be done about a data directory that has lost something.
const REPAIR: &str = "Nothing was changed. Put the files back if there is a copy of the whole data directory, or run \
    `leveret server --repair`, which says what would be lost without them";

/// Why a broker cannot start. The text tells an operator what to do.
#[derive(Debug)]
pub enum OpenError {
    /// The data directory, the log or the segments: see the text.
    Storage(StorageError),
    /// A record in the log is of a version that this build does not know, or damaged in a way its checksum does not show.
    Unreadable {
        journal: storage::JournalId,
        position: u64,
    },
    /// The default user, virtual host or permissions are refused.
    Defaults(catalog::Refusal),
    /// The catalog does not take the node's start.
    Catalog(catalog::Refusal),
    /// A thread could not be started.
    Thread(std::io::Error),
    /// The node is one of several and can't be, or it isn't and its data directory is that of one: the text says what to do.
    Clustered(String),
    /// The cluster that the node is of by its own file does not count it as a member: the text says why, and what to do.
    NotAMember(String),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Storage(
                error @ (StorageError::Incomplete { .. }
                | StorageError::Corrupt { .. }
                | StorageError::Refused { .. }),
            ) => {
                write!(f, "{error}. {REPAIR}")
            }
            Self::Storage(error) => write!(f, "{error}"),
            Self::Unreadable { journal, position } => write!(
                f,
                "the record at position {position} of the log ({journal}) is of a kind that this version does not know; \
                 was the data directory written by another version? Run that version, or begin with an empty data directory"
            ),
            Self::Catalog(refusal) => write!(f, "the node's start cannot be recorded: {refusal}"),
            Self::Defaults(refusal) => write!(f, "the default user cannot be created: {refusal}"),
            Self::Clustered(text) | Self::NotAMember(text) => f.write_str(text),
            Self::Thread(error) => write!(f, "a thread cannot be started: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}
