//! Commands that make sense only for RabbitMQ's runtime, its plugins or its clusters. Each says so in a sentence.

use crate::ask::Ask;
use crate::command::{Command, Run, Section};
use crate::failure::{Failure, UNAVAILABLE, USAGE};
use crate::output::Output;
use crate::tool::Tool;

const CTL: &[Tool] = &[Tool::Ctl];
const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

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
    )
    .options(&["offline"]),
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
    )
    .options(&["disc"]),
    refused(
        CTL,
        "forget_cluster_node",
        "<existing_cluster_member_node>",
        "Removes a node from the cluster",
        not_a_member,
    )
    .options(&["offline"]),
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
    )
    .options(&["interval|i=#"]),
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
    )
    .options(&["sample-interval|i=#"]),
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
    )
    .options(&["offline"]),
    refused(
        DIAGNOSTICS,
        "metadata_store_status",
        "",
        "Shows the Raft group of the metadata",
        cluster,
    ),
    refused(
        DIAGNOSTICS,
        "erlang_version",
        "",
        "Shows the version of the runtime",
        runtime,
    )
    .options(&["details", "offline"]),
];

fn runtime(ask: &Ask<'_>) -> Result<Output, Failure> {
    let name = name(ask);
    Err(Failure::error(
        UNAVAILABLE,
        format!("{name} needs Erlang's runtime, which this broker does not have"),
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
    if ask.line.has("offline") {
        let text = "Error: this command requires the target node to be stopped.";
        return Err(Failure::plain(USAGE, text));
    }
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

fn name<'a>(ask: &Ask<'a>) -> &'a str {
    crate::line::name(&ask.line.given).unwrap_or_default()
}
