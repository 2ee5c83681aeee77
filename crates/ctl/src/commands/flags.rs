//! Feature flags, which RabbitMQ has for clusters of several versions, and what goes away some day.

use crate::ask::{Ask, encode};
use crate::columns::{self, Column};
use crate::command::{Command, Section::Flags};
use crate::failure::{Failure, USAGE};
use crate::output::{Form, Output};
use crate::tool::Tool;
use serde_json::Value;

const LISTERS: &[Tool] = &[Tool::Ctl, Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Flags,
        "list_feature_flags",
        (0, 16),
        "[<column> ...] [--timeout <timeout>]",
        list,
    )
    .about("Lists feature flags; everything that this broker supports is enabled")
    .more("Columns: name, state, stability, provided_by, desc, doc_url.")
    .of(LISTERS),
    Command::new(
        Flags,
        "enable_feature_flag",
        (1, 1),
        "<all | feature_flag> [--opt-in]",
        enable,
    )
    .about("Enables feature flags; they are always enabled")
    .options(&["opt-in|o", "experimental|e"]),
    Command::new(
        Flags,
        "list_deprecated_features",
        (0, 16),
        "[--used] [<column> ...]",
        list_deprecated,
    )
    .about("Lists deprecated features")
    .options(&["used"])
    .of(LISTERS),
];

const FLAGS: &[Column] = &[
    Column::same("name"),
    Column::same("state"),
    Column::same("stability"),
    Column::same("provided_by"),
    Column::same("desc"),
    Column::same("doc_url"),
];

const DEPRECATED: &[Column] = &[
    Column::same("name"),
    Column::same("deprecation_phase"),
    Column::same("state"),
    Column::same("provided_by"),
    Column::same("desc"),
    Column::same("doc_url"),
];

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, FLAGS, &["name", "state"])?;
    ask.say("Listing feature flags ...");
    Ok(Output::Rows(columns::rows(&chosen, &ask.get("/feature-flags")?)))
}

fn enable(ask: &Ask<'_>) -> Result<Output, Failure> {
    let flag = ask.word(0);
    if flag == "all" {
        ask.say("Enabling all feature flags ...");
        ask.get("/feature-flags")?;
        return Ok(Output::Done);
    }
    ask.say(format!("Enabling feature flag \"{flag}\" ..."));
    let flags = ask.get("/feature-flags")?;
    let mut names = flags
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|flag| flag["name"].as_str());
    if names.any(|name| name == flag) {
        return ask
            .put(&format!("/feature-flags/{}/enable", encode(flag)), &Value::Null)
            .map(|()| Output::Done);
    }
    let text = format!("This feature flag is not supported by node {}", ask.node());
    Err(Failure::error(USAGE, text))
}

fn list_deprecated(ask: &Ask<'_>) -> Result<Output, Failure> {
    let chosen = columns::chosen(ask, DEPRECATED, &["name", "deprecation_phase", "state"])?;
    let (path, told) = match ask.line.has("used") {
        true => (
            "/deprecated-features/used",
            "Listing deprecated features in use ...",
        ),
        false => ("/deprecated-features", "Listing deprecated features ..."),
    };
    ask.say(told);
    let mut rows = columns::rows(&chosen, &ask.get(path)?);
    rows.form = Form::Pretty;
    Ok(Output::Rows(rows))
}
