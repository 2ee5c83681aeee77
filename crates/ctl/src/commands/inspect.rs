//! Looking closer: the report for support, the end of the log, names and ciphers.

use super::this_node;
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Configuration, Section::Monitoring};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::line;
use crate::output::{self, Output, table};
use crate::tool::Tool;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::net::{IpAddr, ToSocketAddrs};

const DIAGNOSTICS: &[Tool] = &[Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(Monitoring, "report", (0, 0), "[--timeout <timeout>]", report)
        .about("Prints a report for support: status, connections, and the objects of each virtual host")
        .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Monitoring,
        "why_slow",
        (0, 1),
        "[--vhost <vhost>] <queue> | --connection <name>",
        why_slow,
    )
    .about("Shows which resource slows down a queue or a connection, with figures")
    .more("Name the connection as in the column name of list_connections.")
    .options(&["connection="])
    .of(&[]),
    Command::new(
        Monitoring,
        "log_tail",
        (0, 0),
        "[--number|-N <number>] [--timeout <timeout>]",
        log_tail,
    )
    .about("Shows the last lines of the log file (on the node's machine only)")
    .options(&["number|N=#"])
    .of(DIAGNOSTICS),
    Command::new(
        Configuration,
        "resolve_hostname",
        (1, 1),
        "<hostname> [--address-family <ipv4 | ipv6>]",
        resolve,
    )
    .about("Resolves a host name on this machine")
    .options(&["address-family|a=", "offline"])
    .of(DIAGNOSTICS),
    Command::new(
        Configuration,
        "tls_versions",
        (0, 0),
        "[--timeout <timeout>]",
        tls_versions,
    )
    .about("Lists the TLS versions that the node supports")
    .of(DIAGNOSTICS),
];

/// Runs another command and writes what it answers; a refusal is told and ends nothing.
fn part(ask: &Ask<'_>, words: &[&str]) {
    let given: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let name = line::name(&given).unwrap_or_default();
    let Some(command) = super::of_tool(Tool::Leveret).find(|command| command.name == name) else {
        return;
    };
    let line = line::parse(&given, Some(command.takes()));
    let inner = Ask {
        line: &line,
        credentials: ask.credentials.clone(),
        endpoint: ask.endpoint.clone(),
        ..*ask
    };
    let text = match (command.run)(&inner) {
        Ok(answer) => output::render(&answer, None, &line),
        Err(failure) => format!("{}\n", failure.text),
    };
    // Nobody may be reading any more; the next part finds that too.
    let _ = writeln!(io::stdout(), "{text}");
}

fn report(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Reporting server status of node {} ...\n", ask.node()));
    let vhosts = ask.get("/vhosts?columns=name")?;
    for words in [
        &["status"][..],
        &["cluster_status"],
        &["list_connections"],
        &["list_channels"],
    ] {
        part(ask, words);
    }
    for vhost in vhosts.as_array().into_iter().flatten() {
        let vhost = super::text(vhost, "name");
        for list in [
            "list_queues",
            "list_exchanges",
            "list_bindings",
            "list_consumers",
            "list_permissions",
            "list_policies",
            "list_operator_policies",
        ] {
            part(ask, &[list, "-p", vhost]);
        }
    }
    Ok(Output::Done)
}

fn why_slow(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (queue, vhost) = (ask.word(0), ask.vhost());
    let path = match ask.line.value("connection") {
        Some(name) => format!("/leveret/why/connections/{}", encode(name)),
        None if queue.is_empty() => return Err(Failure::usage("not enough arguments.")),
        None => format!("/leveret/why/queues/{}/{}", encode(vhost), encode(queue)),
    };
    let missing = || Failure::plain(BAD_VALUE, "Object (queue, stream, exchange, etc) was not found");
    let answer = ask.find(&path)?.ok_or_else(missing)?;
    let mut lines = vec![format!("Held by: {}", super::text(&answer, "held_by"))];
    for hold in answer["holds"].as_array().into_iter().flatten() {
        let (who, because) = (super::text(hold, "who"), super::text(hold, "because"));
        lines.push(format!("  {who}: {because}"));
    }
    lines.push("Figures:".into());
    for (name, value) in answer["figures"].as_object().into_iter().flatten() {
        lines.push(format!("  {name}: {}", figure(name, value)));
    }
    Ok(Output::Told(lines.join("\n"), answer))
}

/// A figure, or several under one name; what was not measured is left out.
fn figure(name: &str, value: &Value) -> String {
    let Value::Object(members) = value else {
        return table::cell(name, value);
    };
    let known = members.iter().filter(|(_, value)| !value.is_null());
    let told: Vec<String> = known
        .map(|(name, value)| format!("{name} {}", table::cell(name, value)))
        .collect();
    told.join(", ")
}

/// As much of a log as is looked at for its last lines, in bytes.
const TAIL: u64 = 1 << 20;

fn log_tail(ask: &Ask<'_>) -> Result<Output, Failure> {
    let count = ask.line.number("number").unwrap_or(50);
    let count = usize::try_from(count)
        .map_err(|_| Failure::usage(format!("Invalid options for this command:\n--number : {count}")))?;
    ask.say(format!("Last {count} log lines on node {} ...", ask.node()));
    let node = this_node(ask)?;
    let files = node["log_files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    let file = files.into_iter().find(|file| !file.starts_with('<'));
    let file = file.ok_or_else(|| {
        Failure::error(
            UNAVAILABLE,
            "the node does not log to a file; see its standard output",
        )
    })?;
    let text = end_of(file)
        .map_err(|error| Failure::error(UNAVAILABLE, format!("{file} cannot be read here: {error}")))?;
    let lines: Vec<&str> = text.lines().collect();
    Ok(Output::text(
        lines[lines.len().saturating_sub(count)..].join("\n"),
    ))
}

fn end_of(file: &str) -> io::Result<String> {
    let mut file = File::open(file)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn resolve(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (host, family) = (
        ask.word(0),
        ask.line.value("address-family").unwrap_or("ipv4").to_lowercase(),
    );
    let (name, is_wanted): (_, fn(&IpAddr) -> bool) = match family.as_str() {
        "ipv4" => ("IPv4", IpAddr::is_ipv4),
        "ipv6" => ("IPv6", IpAddr::is_ipv6),
        other => {
            let text =
                format!("Bad argument: unsupported address family {other}. Valid values are: ipv4, ipv6");
            return Err(Failure::argument(BAD_VALUE, text));
        }
    };
    ask.say(format!(
        "Asking node {} to resolve hostname {host} to {name} addresses...",
        ask.node()
    ));
    let found = (host, 0).to_socket_addrs();
    let found =
        found.map_err(|error| Failure::error(UNAVAILABLE, format!("{host} has no address: {error}")))?;
    let mut addresses: Vec<String> = found
        .map(|address| address.ip())
        .filter(is_wanted)
        .map(|address| address.to_string())
        .collect();
    addresses.dedup();
    Ok(Output::Told(addresses.join("\n"), json!(addresses)))
}

fn tls_versions(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Listing all TLS versions supported by the runtime...");
    ask.get("/overview?columns=node")?;
    let versions = ["tlsv1.3", "tlsv1.2"];
    Ok(Output::Told(versions.join("\n"), json!(versions)))
}
