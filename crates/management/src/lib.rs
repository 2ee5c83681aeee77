//! The door for people: RabbitMQ's HTTP API and the web UI.
//!
//! This room knows HTTP and JSON and nothing of AMQP's frames. It never decides what the broker means: it reads the catalog's
//! published view and the numbers that queues publish after their turns, and changes things through a session, as a client
//! would. It never asks a queue's machine anything for a list of objects, and the cost of a list follows the page that is asked for.
//!
//! Reading order: [`options`] and [`management`] (starting and stopping), `served`, `admin_socket` and `serve` (threads, sockets and the budget of threads), `visit`, `errand`, `long_answer`, `guesses` and `unread` (what a request wants, what is made in `pieces`, of one `snapshot`, how often passwords are guessed, what waits to be read), [`call`]
//! and [`access`] (one request, and who may make it), [`routes`] (the one table of paths, verbs and rights; `openapi` and `api_index` describe it), [`origins`] (pages of other sites), `gzip`, then the objects:
//! `overview`, `nodes`, `vhosts`, `users`, `permissions` and `topic_permissions` (both `grants`), `policies`, `parameters`, `limits`, `exchanges`, `queues`, `bindings`, `connections`, `channels`, `consumers`, `messages`, `browsing` (with [`filter`]), `moving` (with [`selection`]), `definitions` (with `import`, `import_report`, `existing` and `unsupported`),
//! `health`; `desk` (a
//! session for what changes objects), [`listing`] pages, sorts
//! and filters them, [`sampler`] looks every five seconds what changed, `history` keeps it, `range` and `message_stats` show it, `timing` and `times` keep how long messages took, `why` and `holds` what holds them up (`words`: numbers in a sentence); `events` tells what a page looks at as it changes; `alarms` what blocks publishers, `log_tail` has the last lines of the log, `overheard` tells what happens and what is logged as it goes on, `network` where the machine has addresses and by which certificates the doors are known, `configuration` what is in force; `metrics` is
//! the page for Prometheus, on a port of its own; [`json`] writes AMQP's tables as JSON. `web_socket` lets clients for messages through to another door; `web_ui` has the pages, which are built apart from
//! this (`ui/`).

mod access;
pub mod admin_socket;
mod alarms;
mod api_index;
mod application;
mod arguments;
mod audit;
mod bindings;
mod browsing;
mod call;
mod channels;
mod configuration;
mod connections;
mod consumers;
mod definitions;
mod desk;
mod document;
mod errand;
mod events;
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
mod import_report;
mod json;
mod limits;
mod listening;
mod listing;
mod log_tail;
mod login;
mod long_answer;
mod management;
mod memory;
mod message_stats;
mod messages;
mod metrics;
mod moment;
mod moving;
mod multipart;
mod network;
mod nodes;
mod openapi;
mod options;
mod origins;
mod overheard;
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
mod refusal;
mod reply;
mod routes;
mod sampler;
mod samples;
mod selection;
mod serve;
mod served;
mod sign_on;
mod single;
mod snapshot;
mod standby;
mod tap;
mod text;
mod times;
mod times_pages;
mod timing;
mod topic_permissions;
mod trace;
mod unread;
mod unsupported;
mod upkeep;
mod users;
mod vhosts;
mod visit;
mod web_socket;
mod web_ui;
mod why;
mod words;

pub use configuration::SettingInForce;
pub use import::{Asked, ImportOptions, Unimported, import};
pub use import_mark::{imported_mark, set_imported_mark};
pub use listener::StartError;
pub use log_tail::{Line as LogLine, LogTail};
pub use management::Management;
pub use metrics::{Metrics, MetricsOptions};
pub use options::{HTTP, Options, PROMETHEUS, StopApplication, WebClients};
pub use origins::Origins;
pub use plugins::BUILT_IN as BUILT_IN_PLUGINS;
pub use sign_on::{SignOn, SignOnClient, SignOnServer};
pub use standby::{Order, Standby};
