//! Virtual hosts.

use super::member_of;
use crate::ask::{Ask, encode, no_vhost};
use crate::columns::{self, Column};
use crate::command::{Command, Section::Vhosts};
use crate::failure::{BAD_VALUE, Failure};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Map, Value, json};

/// What a virtual host says of itself.
const METADATA: &[&str] = &["description|d=", "tags=", "default-queue-type="];
const METADATA_AND_PROTECTION: &[&str] = &[
    "description|d=",
    "tags=",
    "default-queue-type=",
    "protected-from-deletion",
];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Vhosts,
        "add_vhost",
        (1, 1),
        "<vhost> [--description <description> --tags \"<tag1>,<tag2>,<...>\" --default-queue-type <quorum|classic|stream>]",
        add,
    )
    .about("Creates a virtual host")
    .options(METADATA),
    Command::new(Vhosts, "delete_vhost", (1, 1), "<vhost>", delete)
        .about("Deletes a virtual host and everything in it and closes its connections"),
    Command::new(Vhosts, "list_vhosts", (0, 64), "[--no-table-headers] [<column> ...] [--timeout <timeout>]", list)
        .about("Lists virtual hosts")
        .more("Columns: name, description, tags, default_queue_type, protected_from_deletion, tracing, cluster_state, metadata.")
        .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(Vhosts, "set_vhost_tags", (1, 64), "<vhost> <tag> [...]", set_tags)
        .about("Replaces a virtual host's tags"),
    Command::new(
        Vhosts,
        "update_vhost_metadata",
        (1, 1),
        "<vhost> [--description <description>] [--tags \"<tag1>,<tag2>,<...>\"] [--default-queue-type <quorum|classic|stream>] \
         [--protected-from-deletion=<true|false>]",
        update,
    )
    .about("Updates a virtual host: description, tags, default queue type, deletion protection")
    .options(METADATA_AND_PROTECTION),
    Command::new(Vhosts, "enable_vhost_deletion_protection", (1, 1), "<vhost>", protect)
        .about("Protects a virtual host from deletion"),
    Command::new(Vhosts, "disable_vhost_deletion_protection", (1, 1), "<vhost>", unprotect)
        .about("Removes the deletion protection of a virtual host"),
    Command::new(Vhosts, "restart_vhost", (0, 0), "[--vhost <vhost>] [--timeout <timeout>]", restart)
        .about("Starts a failed virtual host; here they always run with the node, so it only checks that it exists"),
    Command::new(Vhosts, "reconcile_vhosts", (0, 0), "", reconcile)
        .about("Starts virtual hosts that are not running; here they always run with the node"),
    Command::new(Vhosts, "trace_on", (0, 0), "[--vhost <vhost>]", trace_on)
        .about("Turns tracing on: copies every message of a virtual host to amq.rabbitmq.trace"),
    Command::new(Vhosts, "trace_off", (0, 0), "[--vhost <vhost>]", trace_off)
        .about("Turns tracing off"),
];

const COLUMNS: &[Column] = &[
    Column::same("name"),
    Column::same("description"),
    Column::same("tags"),
    Column::same("default_queue_type"),
    Column::same("protected_from_deletion"),
    Column::same("tracing"),
    Column::same("cluster_state"),
    Column::same("metadata"),
];

fn path(vhost: &str) -> String {
    format!("/vhosts/{}", encode(vhost))
}

/// The body of a request from the options that were given.
fn metadata(ask: &Ask<'_>) -> Result<Value, Failure> {
    let mut body = Map::new();
    for (option, member) in [
        ("description", "description"),
        ("tags", "tags"),
        ("default-queue-type", "default_queue_type"),
    ] {
        if let Some(value) = ask.line.value(option) {
            body.insert(member.into(), value.into());
        }
    }
    let kind = ask.line.value("default-queue-type").unwrap_or("classic");
    if !["quorum", "classic", "stream"].contains(&kind) {
        let text = format!(
            "Bad argument: unsupported queue type '{kind}'. Supported types: quorum, classic, stream"
        );
        return Err(Failure::argument(BAD_VALUE, text));
    }
    if let Some(protected) = ask.line.flag("protected-from-deletion") {
        body.insert("protected_from_deletion".into(), protected.into());
    }
    Ok(Value::Object(body))
}

fn add(ask: &Ask<'_>) -> Result<Output, Failure> {
    let vhost = ask.word(0);
    if vhost.is_empty() {
        return Err(Failure::argument(
            BAD_VALUE,
            "Bad argument: vhost cannot be an empty string",
        ));
    }
    let body = metadata(ask)?;
    ask.say(format!("Adding vhost \"{vhost}\" ..."));
    ask.put(&path(vhost), &body)?;
    Ok(Output::Done)
}

fn delete(ask: &Ask<'_>) -> Result<Output, Failure> {
    let vhost = ask.word(0);
    ask.say(format!("Deleting vhost \"{vhost}\" ..."));
    let answer = ask.call("DELETE", &path(vhost), None)?;
    match answer.status {
        404 => Err(no_vhost(vhost)),
        412 => Err(Failure::error(
            BAD_VALUE,
            "Cannot delete this virtual host: it is protected from deletion. To lift the protection, inspect and update its metadata",
        )),
        _ => ask.accepted(&answer).map(|_| Output::Done),
    }
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, COLUMNS, &["name"])?;
    ask.say("Listing vhosts ...");
    let found = ask.get(&format!("/vhosts?columns={}", columns::wanted(&chosen)))?;
    Ok(Output::Rows(columns::rows(&chosen, &found)))
}

/// Changes some of a virtual host's metadata and leaves the rest as it is: the API replaces all.
fn change(ask: &Ask<'_>, vhost: &str, changes: Value) -> Result<Output, Failure> {
    let found = ask.find(&path(vhost))?.ok_or_else(|| no_vhost(vhost))?;
    let mut body = json!({
        "description": member_of(&found, "description"),
        "tags": member_of(&found, "tags"),
        "default_queue_type": member_of(&found, "default_queue_type"),
        "protected_from_deletion": member_of(&found, "protected_from_deletion"),
        "tracing": member_of(&found, "tracing"),
    });
    if let (Some(body), Value::Object(changes)) = (body.as_object_mut(), changes) {
        body.retain(|_, value| !value.is_null());
        body.extend(changes);
        // RabbitMQ takes tags as text only.
        if let Some(Value::Array(tags)) = body.get("tags") {
            let tags: Vec<&str> = tags.iter().filter_map(Value::as_str).collect();
            let tags = tags.join(",");
            body.insert("tags".into(), tags.into());
        }
    }
    ask.put(&path(vhost), &body)?;
    Ok(Output::Done)
}

fn set_tags(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (vhost, tags) = (ask.word(0), &ask.line.words[1..]);
    ask.say(format!(
        "Setting tags for virtual host \"{vhost}\" to [{}] ...",
        tags.join(", ")
    ));
    change(ask, vhost, json!({"tags": tags.join(",")}))
}

fn update(ask: &Ask<'_>) -> Result<Output, Failure> {
    let changes = metadata(ask)?;
    ask.say(format!("Updating metadata of vhost \"{}\" ...", ask.word(0)));
    change(ask, ask.word(0), changes)
}

fn protect(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Protecting virtual host \"{}\" from removal by updating its metadata...",
        ask.word(0)
    ));
    set_protection(ask, "POST")
}

fn unprotect(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Removing deletion protection from virtual host \"{}\" by updating its metadata...",
        ask.word(0)
    ));
    set_protection(ask, "DELETE")
}

fn set_protection(ask: &Ask<'_>, verb: &str) -> Result<Output, Failure> {
    let vhost = ask.word(0);
    let answer = ask.call(verb, &format!("{}/deletion/protection", path(vhost)), None)?;
    match answer.status {
        404 => Err(no_vhost(vhost)),
        _ => ask.accepted(&answer).map(|_| Output::Done),
    }
}

fn restart(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (vhost, node) = (ask.vhost(), ask.node());
    ask.say(format!("Trying to restart vhost '{vhost}' on node '{node}' ..."));
    ask.vhost_exists()?;
    Ok(Output::text(format!(
        "Vhost '{vhost}' is already running on node '{node}'"
    )))
}

fn reconcile(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Will try to initiate virtual host reconciliation on all reachable cluster nodes...");
    ask.get("/health/checks/virtual-hosts")?;
    Ok(Output::Done)
}

fn trace_on(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Starting tracing for vhost \"{}\" ...", ask.vhost()));
    change(ask, ask.vhost(), json!({"tracing": true}))?;
    Ok(Output::text(format!("Trace enabled for vhost {}", ask.vhost())))
}

fn trace_off(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Stopping tracing for vhost \"{}\" ...", ask.vhost()));
    change(ask, ask.vhost(), json!({"tracing": false}))?;
    Ok(Output::text(format!("Trace disabled for vhost {}", ask.vhost())))
}
