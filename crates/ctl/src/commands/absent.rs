//! Commands about what is not here: mirrors, links to other brokers, Erlang's runtime. This table has all of them; each says
//! what RabbitMQ says where there is none, or why this broker has none.
//!
//! In what a command tells, `{0}` and `{1}` are words of its line, `{node}` and `{vhost}` where it is carried out.

use super::{text, this_node};
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::*};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::{Output, Rows};
use crate::tool::Tool::{Ctl, Diagnostics};
use serde_json::{Value, json};

pub(super) type Answer = Result<Output, Failure>;

/// A row a command: the tools that have it, heading, name, least and most words, usage; what it does; its options, its answer.
macro_rules! table {
    ($($tools:tt $section:ident $name:literal $least:literal $most:literal $usage:literal; $about:literal; $options:tt $run:expr;)*) => {
        &[$(Command::new($section, $name, ($least, $most), $usage, $run).about($about).options(&$options).of(&$tools)),*]
    };
}

/// Columns that RabbitMQ knows, so that a misspelt one is found.
macro_rules! known_columns {
    ($($name:literal)*) => { &[$(Column::same($name)),*] };
}

pub(super) use {known_columns, table};

pub const COMMANDS: &[Command] = table! {
    // What RabbitMQ 3 had, and plugins whose features are not part of this broker.
    [Ctl] Queues "sync_queue" 1 1 "[--vhost <vhost>] <queue>";
        "Has the mirrors of a queue synchronised, which they do by themselves; fails if it has none";
        [] |ask| synchronise(ask, "Synchronising queue '{0}' in vhost '{vhost}' ...", "sync");
    [Ctl] Queues "cancel_sync_queue" 1 1 "[--vhost <vhost>] <queue>";
        "Has no effect: mirrors are synchronised by themselves";
        [] |ask| synchronise(ask, "Stopping synchronising queue '{0}' in vhost '{vhost}' ...", "cancel_sync");
    [Ctl] Cluster "change_cluster_node_type" 1 1 "<disc | ram>"; "Fails: a single node keeps everything on disk";
        [] node_type;
    [Ctl, Diagnostics] Monitoring "shovel_status" 0 0 "[--timeout <timeout>]"; "Lists shovels; there are none in this version";
        [] |ask| nothing(ask, "Shovel status on node {node}");
    [Ctl, Diagnostics] Monitoring "federation_status" 0 0 "[--only-down]"; "Lists federation links; there are none in this version";
        ["only-down"] |ask| nothing(ask, "Listing federation links on node {node}...");
    [Ctl, Diagnostics] Monitoring "list_mqtt_connections" 0 64 "[--verbose] [<column> ...]";
        "Lists MQTT connections; there are none in this version";
        ["verbose"] |ask| nothing(ask, "Listing MQTT connections ...");
    // This broker's own interceptors (`message_interceptors`) have no order to be set.
    [Ctl, Diagnostics] Monitoring "list_channel_interceptors" 0 0 "[--no-table-headers]";
        "Lists channel interceptors of plugins; there are none";
        [] |ask| nothing(ask, "Listing channel interceptors ...");
    [Ctl] Configuration "set_channel_interceptor_priorities" 1 64 "<interceptor> <priority> [<interceptor> <priority> ...]";
        "Sets the order of channel interceptors; there are none";
        [] set_priorities;

    // Erlang's runtime, and its clusters.
    [Ctl] Erlang "eval_file" 0 64 "<file path>"; "Evaluates a file of Erlang"; [] runtime;
    [Ctl] Erlang "exec" 0 64 "<expression> [--offline]"; "Evaluates Elixir"; ["offline"] runtime;
    [Ctl] Erlang "force_boot" 0 64 ""; "Starts a node of a cluster alone"; [] cluster;
    [Ctl] Erlang "force_standalone_khepri_boot" 0 64 ""; "Starts a node of a cluster alone"; [] cluster;
    [Ctl] Erlang "rename_cluster_node" 0 64 "<old> <new>"; "Renames nodes of a cluster"; [] cluster;
    [Ctl] Erlang "update_cluster_nodes" 0 64 "<node>"; "Updates the nodes of a cluster"; [] cluster;
    [Ctl] Erlang "rotate_logs" 0 64 ""; "Rotates logs; deprecated";
        [] |_| Err(Failure::error(UNAVAILABLE, "This command does not rotate logs anymore [deprecated]"));
    [Diagnostics] Erlang "remote_shell" 0 64 ""; "Opens a shell of the runtime"; [] runtime;
    [Diagnostics] Erlang "observer" 0 64 ""; "Watches the runtime's processes"; ["interval|i=#"] runtime;
    [Diagnostics] Erlang "maybe_stuck" 0 64 ""; "Looks for stuck processes of the runtime"; [] runtime;
    [Diagnostics] Erlang "runtime_thread_stats" 0 64 ""; "Measures threads of the runtime"; ["sample-interval|i=#"] runtime;
    [Diagnostics] Erlang "erlang_cookie_hash" 0 64 ""; "Shows a hash of the runtime's cookie"; [] runtime;
    [Diagnostics] Erlang "erlang_cookie_sources" 0 64 ""; "Shows where the runtime's cookie comes from"; [] runtime;
    [Diagnostics] Erlang "resolver_info" 0 64 ""; "Shows how the runtime resolves names"; ["offline"] runtime;
    [Diagnostics] Erlang "metadata_store_status" 0 64 ""; "Shows the Raft group of the metadata"; [] cluster;
    [Diagnostics] Erlang "erlang_version" 0 64 ""; "Shows the version of the runtime"; ["details", "offline"] runtime;
};

/// A text with what its names in braces stand for.
pub(super) fn filled(ask: &Ask<'_>, text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, (name, behind))) = rest
        .split_once('{')
        .and_then(|(before, after)| Some((before, after.split_once('}')?)))
    {
        out.push_str(before);
        match name {
            "0" => out.push_str(ask.word(0)),
            "1" => out.push_str(ask.word(1)),
            "vhost" => out.push_str(ask.vhost()),
            _ => out.push_str(&ask.node()),
        }
        rest = behind;
    }
    out + rest
}

/// Tells what is looked for, and sees that the node is there to be asked.
pub(super) fn tell(ask: &Ask<'_>, told: &str) -> Result<(), Failure> {
    ask.say(filled(ask, told));
    ask.get("/overview?columns=node").map(drop)
}

/// There is none, which is no mistake.
pub(super) fn nothing(ask: &Ask<'_>, told: &str) -> Answer {
    tell(ask, told)?;
    Ok(Output::Rows(Rows::default()))
}

/// In the words of RabbitMQ 3.10.
fn synchronise(ask: &Ask<'_>, told: &str, action: &str) -> Answer {
    ask.say(filled(ask, told));
    let (queue, vhost) = (encode(ask.word(0)), encode(ask.vhost()));
    let known = ask.find(&format!("/queues/{vhost}/{queue}"))?;
    let Some(known) = known else {
        return Err(Failure::error(UNAVAILABLE, "not_found"));
    };
    if known["type"] == "quorum" {
        return Err(Failure::error(UNAVAILABLE, "quorum_queue_not_supported"));
    }
    if action == "cancel_sync" {
        return Ok(Output::text("not_syncing"));
    }
    if known["slave_nodes"].is_null() {
        return Err(Failure::error(UNAVAILABLE, "not_mirrored"));
    }
    let (path, wanted) = (
        format!("/queues/{vhost}/{queue}/actions"),
        json!({"action": action}),
    );
    let answer = ask.call("POST", &path, Some(&wanted))?;
    ask.accepted(&answer).map(|_| Output::Done)
}

/// RabbitMQ shows these words in quotes.
fn wrong(text: String) -> Failure {
    Failure::usage(format!("\"{text}\""))
}

pub(super) fn is_positive(number: &str, told: impl Fn(&str) -> String) -> Result<(), Failure> {
    match number.parse::<u64>() {
        Ok(1..) => Ok(()),
        _ => Err(wrong(told(number))),
    }
}

pub(super) fn membership(ask: &Ask<'_>) -> Result<(), Failure> {
    match ask.line.value("membership") {
        // A member votes once it has a copy: until then it would only be in the way of a majority.
        None | Some("promotable" | "voter") => Ok(()),
        Some("non_voter") => {
            let text =
                "members that never vote are not supported: a member votes once it has a copy of the queue";
            Err(Failure::error(UNAVAILABLE, text))
        }
        Some(other) => Err(wrong(format!("voter status '{other}' is not recognised."))),
    }
}

pub(super) fn strategy(ask: &Ask<'_>) -> Result<(), Failure> {
    match ask.word(1) {
        "all" | "even" => Ok(()),
        other => Err(wrong(format!("strategy '{other}' is not recognised."))),
    }
}

/// The node that is named is this one.
fn here(ask: &Ask<'_>, node: &str) -> Result<bool, Failure> {
    let this = this_node(ask)?;
    Ok(text(&this, "name") == node || ask.node() == node)
}

pub(super) fn member(ask: &Ask<'_>, node: &str) -> Result<(), Failure> {
    member_that(ask, node, |_| true)
}

/// As in RabbitMQ a node that does not run is told to be none.
pub(super) fn running_member(ask: &Ask<'_>, node: &str) -> Result<(), Failure> {
    member_that(ask, node, |known| known["running"] == json!(true))
}

fn member_that(ask: &Ask<'_>, node: &str, fits: fn(&Value) -> bool) -> Result<(), Failure> {
    let nodes = super::nodes(ask)?;
    let mut known = nodes.iter().filter(|known| text(known, "name") == node);
    match here(ask, node)? || known.any(fits) {
        true => Ok(()),
        false => Err(Failure {
            with_usage: true,
            ..Failure::plain(
                USAGE,
                format!("Error: node {node} is not a member of the cluster"),
            )
        }),
    }
}

fn node_type(ask: &Ask<'_>) -> Answer {
    match ask.word(0) {
        "disc" | "disk" | "ram" => {
            let text = "Error: change_cluster_node_type is for clusters; this version runs a single node, which keeps everything on disk";
            Err(Failure::plain(USAGE, text))
        }
        other => {
            let text = format!("Bad argument: The node type must be either disc or ram, not {other}");
            Err(Failure::argument(BAD_VALUE, text))
        }
    }
}

fn set_priorities(ask: &Ask<'_>) -> Answer {
    let (mut shown, mut names) = (Vec::new(), Vec::new());
    for pair in ask.line.words.chunks(2) {
        let [name, priority] = pair else {
            let text = "Bad argument: Interceptors and priorities must be provided as <interceptor> <priority> pairs";
            return Err(Failure::argument(BAD_VALUE, text));
        };
        if priority.parse::<i64>().is_err() {
            let text = format!("Bad argument: Priority \"{priority}\" is not a valid integer");
            return Err(Failure::argument(BAD_VALUE, text));
        }
        shown.push(format!("{name}={priority}"));
        names.push(format!("<<\"{name}\">>"));
    }
    ask.say(format!(
        "Setting channel interceptor priorities to [{}] ...",
        shown.join(", ")
    ));
    this_node(ask)?;
    Err(Failure::error(
        UNAVAILABLE,
        format!(
            "cannot set channel interceptor priorities: the following are not registered as channel interceptors: [{}]",
            names.join(",")
        ),
    ))
}

fn runtime(ask: &Ask<'_>) -> Answer {
    let name = name(ask);
    Err(Failure::error(
        UNAVAILABLE,
        format!("{name} needs Erlang's runtime, which this broker does not have"),
    ))
}

fn cluster(ask: &Ask<'_>) -> Answer {
    let name = name(ask);
    Err(Failure::error(
        UNAVAILABLE,
        format!("{name} is for clusters; this version runs a single node"),
    ))
}

fn name<'a>(ask: &Ask<'a>) -> &'a str {
    crate::line::name(&ask.line.given).unwrap_or_default()
}
