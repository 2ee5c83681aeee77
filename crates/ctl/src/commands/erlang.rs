//! Commands that make sense only for RabbitMQ's runtime, its plugins or its clusters. Each says so in a sentence.

use crate::ask::{Ask, encode};
use crate::command::{Command, Run, Section};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE, USAGE};
use crate::output::Output;
use crate::tool::Tool;

const CTL: &[Tool] = &[Tool::Ctl];
const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];
const QUEUES: &[Tool] = &[Tool::Queues];
const STREAMS: &[Tool] = &[Tool::Streams];

/// A command that is refused.
const fn refused(
    tools: &'static [Tool],
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    run: Run,
) -> Command {
    Command::new(Section::Erlang, name, (0, 64), usage, run)
        .about(about)
        .of(tools)
}

pub const COMMANDS: &[Command] = &[
    refused(CTL, "eval", "<expression>", "Evaluates Erlang", runtime),
    refused(
        CTL,
        "eval_file",
        "<file path>",
        "Evaluates a file of Erlang",
        runtime,
    ),
    refused(
        CTL,
        "exec",
        "<expression> [--offline]",
        "Evaluates Elixir",
        runtime,
    ),
    refused(
        CTL,
        "encode",
        "<value> <passphrase>",
        "Encrypts a value of advanced.config",
        advanced_config,
    ),
    refused(
        CTL,
        "decode",
        "<value> <passphrase>",
        "Decrypts a value of advanced.config",
        advanced_config,
    ),
    refused(
        CTL,
        "encrypt_conf_value",
        "<value> <passphrase>",
        "Encrypts a value of rabbitmq.conf",
        advanced_config,
    ),
    refused(
        CTL,
        "decrypt_conf_value",
        "<value> <passphrase>",
        "Decrypts a value of rabbitmq.conf",
        advanced_config,
    ),
    refused(
        CTL,
        "list_ciphers",
        "",
        "Lists ciphers of encode",
        advanced_config,
    ),
    refused(CTL, "list_hashes", "", "Lists hashes of encode", advanced_config),
    refused(
        CTL,
        "stop_app",
        "",
        "Stops the broker inside its runtime",
        application,
    ),
    refused(
        CTL,
        "start_app",
        "",
        "Starts the broker inside its runtime",
        application,
    ),
    refused(CTL, "reset", "", "Forgets everything", reset),
    refused(CTL, "force_reset", "", "Forgets everything", reset),
    refused(CTL, "force_boot", "", "Starts a node of a cluster alone", cluster),
    refused(
        CTL,
        "force_standalone_khepri_boot",
        "",
        "Starts a node of a cluster alone",
        cluster,
    ),
    refused(
        CTL,
        "join_cluster",
        "<existing_cluster_member>",
        "Joins a cluster",
        cluster,
    ),
    refused(
        CTL,
        "forget_cluster_node",
        "<existing_cluster_member_node>",
        "Removes a node from the cluster",
        not_a_member,
    ),
    refused(
        CTL,
        "rename_cluster_node",
        "<old> <new>",
        "Renames nodes of a cluster",
        cluster,
    ),
    refused(
        CTL,
        "update_cluster_nodes",
        "<node>",
        "Updates the nodes of a cluster",
        cluster,
    ),
    refused(CTL, "rotate_logs", "", "Rotates logs; deprecated", rotation),
    refused(
        DIAGNOSTICS,
        "remote_shell",
        "",
        "Opens a shell of the runtime",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "observer",
        "",
        "Watches the runtime's processes",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "maybe_stuck",
        "",
        "Looks for stuck processes of the runtime",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "runtime_thread_stats",
        "",
        "Measures threads of the runtime",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "erlang_cookie_hash",
        "",
        "Shows a hash of the runtime's cookie",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "erlang_cookie_sources",
        "",
        "Shows where the runtime's cookie comes from",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "resolver_info",
        "",
        "Shows how the runtime resolves names",
        runtime,
    ),
    refused(
        DIAGNOSTICS,
        "metadata_store_status",
        "",
        "Shows the Raft group of the metadata",
        cluster,
    ),
    refused(
        QUEUES,
        "add_member",
        "<queue> <node>",
        "Adds a replica of a quorum queue",
        not_in_cluster,
    ),
    refused(
        QUEUES,
        "delete_member",
        "<queue> <node>",
        "Removes a replica of a quorum queue",
        not_in_cluster,
    ),
    refused(
        QUEUES,
        "grow",
        "<node> <all | even>",
        "Adds replicas on a node",
        not_in_cluster,
    ),
    refused(
        QUEUES,
        "shrink",
        "<node>",
        "Removes replicas from a node",
        not_in_cluster,
    ),
    refused(
        QUEUES,
        "quorum_status",
        "<queue>",
        "Shows the replicas of a quorum queue",
        no_quorum_queue,
    ),
    refused(
        QUEUES,
        "reclaim_quorum_memory",
        "<quorum queue>",
        "Collects garbage of a quorum queue",
        no_quorum_queue,
    ),
    refused(
        QUEUES,
        "peek",
        "<queue> <position>",
        "Shows a message of a quorum queue",
        no_quorum_queue,
    ),
    refused(
        DIAGNOSTICS,
        "erlang_version",
        "",
        "Shows the version of the runtime",
        runtime,
    ),
    refused(
        QUEUES,
        "grow_to_count",
        "<node count> <all | even>",
        "Adds replicas until there are so many",
        not_in_cluster,
    ),
    refused(
        QUEUES,
        "transfer_leadership",
        "<queue> <node>",
        "Moves the leader of a quorum queue",
        no_quorum_queue,
    ),
    refused(
        STREAMS,
        "stream_status",
        "<stream>",
        "Shows the replicas of a stream",
        no_stream,
    ),
    refused(
        STREAMS,
        "restart_stream",
        "<stream>",
        "Restarts a stream",
        no_stream,
    ),
    refused(
        STREAMS,
        "add_replica",
        "<stream> <node>",
        "Adds a replica of a stream",
        no_stream,
    ),
    refused(
        STREAMS,
        "delete_replica",
        "<stream> <node>",
        "Removes a replica of a stream",
        no_stream,
    ),
    refused(
        STREAMS,
        "coordinator_status",
        "",
        "Shows the coordinator of streams",
        no_stream,
    ),
];

fn runtime(ask: &Ask<'_>) -> Result<Output, Failure> {
    let name = name(ask);
    Err(Failure::error(
        UNAVAILABLE,
        format!("{name} needs Erlang's runtime, which this broker does not have"),
    ))
}

fn advanced_config(ask: &Ask<'_>) -> Result<Output, Failure> {
    let name = name(ask);
    Err(Failure::error(
        UNAVAILABLE,
        format!("{name} is for Erlang's encrypted configuration values, which this broker does not read"),
    ))
}

fn application(_: &Ask<'_>) -> Result<Output, Failure> {
    Err(Failure::error(
        UNAVAILABLE,
        "There is no runtime in which this broker could be stopped and started: use stop, and start the process again",
    ))
}

fn reset(_: &Ask<'_>) -> Result<Output, Failure> {
    Err(Failure::plain(
        USAGE,
        "Error: a node is reset while it is down: stop it and remove its data directory",
    ))
}

fn cluster(ask: &Ask<'_>) -> Result<Output, Failure> {
    let name = name(ask);
    Err(Failure::error(
        UNAVAILABLE,
        format!("{name} is for clusters; this version runs a single node"),
    ))
}

fn not_a_member(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Removing node {} from the cluster", ask.word(0)));
    let reason = "{:not_a_cluster_node, ~c\"The node selected is not in the cluster.\"}";
    Err(Failure::error(UNAVAILABLE, reason))
}

fn rotation(_: &Ask<'_>) -> Result<Output, Failure> {
    Err(Failure::error(
        UNAVAILABLE,
        "This command does not rotate logs anymore [deprecated]",
    ))
}

fn not_in_cluster(ask: &Ask<'_>) -> Result<Output, Failure> {
    let node = ask.line.words.iter().find(|word| word.contains('@'));
    let node = node.map_or("named here", String::as_str);
    Err(Failure {
        with_usage: true,
        ..Failure::plain(
            USAGE,
            format!("Error: node {node} is not a member of the cluster"),
        )
    })
}

fn no_quorum_queue(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (queue, vhost) = (ask.word(0), ask.vhost());
    ask.say(format!("Status of queue {queue} on node {} ...", ask.node()));
    let path = format!("/queues/{}/{}?columns=name", encode(vhost), encode(queue));
    let text = match ask.find(&path)? {
        Some(_) => format!("queue '{queue}' in virtual host '{vhost}' is no quorum queue"),
        None => format!("queue '{queue}' was not found in virtual host '{vhost}'"),
    };
    Err(Failure::plain(BAD_VALUE, text))
}

fn no_stream(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Status of stream {} on node {} ...",
        ask.word(0),
        ask.node()
    ));
    Err(Failure::plain(
        BAD_VALUE,
        "Object (queue, stream, exchange, etc) was not found",
    ))
}

fn name<'a>(ask: &Ask<'a>) -> &'a str {
    crate::line::name(&ask.line.given).unwrap_or_default()
}
