//! RabbitMQ's HTTP API, the metrics for Prometheus and the web UI.
//!
//! This crate knows HTTP and JSON and nothing of AMQP's frames. It never decides what the broker means: it reads the catalog's
//! published view and the numbers that queues publish after their turns, and changes things through a session, as a client
//! would. It never asks a queue's machine anything for a list of objects, and the cost of a list follows the page that
//! is asked for. Its modules import each other in one direction.
//!
//! Reading order:
//!
//! - [`options`] and [`management`]: starting and stopping. `served`, `admin_socket` and `serve`: threads, sockets and
//!   the budget of threads.
//! - `visit` (who asks), `errand` (what for), [`call`] (one request, as handlers see it), [`access`] (who may make it);
//!   `guesses`: how often passwords are tried; [`origins`]: pages of other sites.
//! - `others` (what other nodes are asked), `answering` (what they answer), `spread` (lists of what is on several nodes).
//! - [`routes`]: the one table of paths, verbs and rights, with a [`route`] for each path; `openapi` and `api_index` describe it.
//! - [`reply`] and `unread`: answers, and those that wait to be read. `pieces`, `snapshot` and `long_answer`: long ones
//!   are made in pieces that all tell of one moment. `telling`: answers that go on (`subscription`, `observed` with
//!   `observed_elsewhere` and `event_tail`, `tap`; `listening` gives them their turns).
//! - The objects: `overview`, `nodes`, `vhosts`, `users`, `permissions` and `topic_permissions` (both `grants`), `policies`,
//!   `parameters`, `limits`, `exchanges` (with `exchange_stats`), `queues` (with `quorum` and `rebalancing`), `bindings`,
//!   `connections`, `channels`, `consumers`, `messages`, `browsing` (with [`filter`]), `moving` (with [`selection`] and
//!   `moving_elsewhere`), `definitions` (a `document`; with `import`, `import_report`, `existing` and `unsupported`), `health`,
//!   `configuration`, `logs` (with `log_tail`), `network`, `alarms`. `api_session` is a session for what changes objects;
//!   [`listing`] pages, sorts and filters lists; [`json`] writes AMQP's tables.
//! - Numbers: [`sampler`] looks every five seconds what changed, `history` keeps it, `range` and `message_stats` show
//!   it; `timing` and `times` keep how long messages took; `why` and `holds` say what holds them up; `usage` is what
//!   the process uses of the machine.
//! - `metrics`: the pages for Prometheus, on a port of their own. `web_socket` hands clients for messages on to their front end;
//!   `web_ui` has the pages that are built in `ui/`.

mod access;
pub mod admin_socket;
mod alarms;
mod answering;
mod api_index;
mod api_session;
mod application;
mod arguments;
mod audit;
mod availability;
mod bindings;
mod browsing;
mod call;
mod channels;
mod configuration;
mod connections;
mod consumers;
mod converting;
mod copies;
mod definitions;
mod document;
mod errand;
mod event_tail;
mod events;
mod exchange_stats;
mod exchanges;
mod existing;
mod feature_flags;
mod filter;
mod grants;
mod guesses;
mod gzip;
mod health;
mod history;
mod holds;
mod import;
mod import_mark;
mod import_options;
mod import_report;
mod json;
mod limits;
mod listening;
mod listing;
mod log_tail;
mod login;
mod logs;
mod long_answer;
mod management;
mod memory;
mod message_stats;
mod messages;
mod metrics;
mod moment;
mod moving;
mod moving_elsewhere;
mod multipart;
mod network;
mod nodes;
mod observed;
mod observed_elsewhere;
mod openapi;
mod options;
mod origins;
mod others;
mod overview;
mod parameters;
mod permissions;
mod pieces;
mod plugins;
mod policies;
mod prefix;
mod process;
mod properties_key;
mod query;
mod queues;
mod quorum;
mod range;
mod rebalancing;
mod refusal;
mod reply;
mod route;
mod routes;
mod sampler;
mod samples;
mod selection;
mod serve;
mod served;
mod sign_on;
mod single;
mod snapshot;
mod spread;
mod standby;
mod stop_impact;
mod stream_browsing;
mod stream_copies;
mod stream_members;
mod stream_tracking;
mod streams;
mod subscription;
mod tap;
mod telling;
mod text;
mod times;
mod times_pages;
mod timing;
mod topic_permissions;
mod trace;
mod unread;
mod unsupported;
mod upkeep;
mod usage;
mod users;
mod vhosts;
mod visit;
mod web_socket;
mod web_ui;
mod why;

pub use import::{ImportRequest, Unimported, import, import_once};
pub use import_mark::imported_mark;
pub use import_options::ImportOptions;
pub use listener::StartError;
pub use log_tail::{LogLine, LogTail};
pub use management::Management;
pub use metrics::{Metrics, MetricsOptions};
pub use options::{
    AskNodes, HTTP, Leads, LinkFigures, Member, Members, Options, PROMETHEUS, SettingInForce,
    StopApplication, WebClients,
};
pub use origins::Origins;
pub use plugins::BUILT_IN as BUILT_IN_PLUGINS;
pub use sign_on::{SignOn, SignOnClient, SignOnServer};
pub use standby::{Order, Standby};
