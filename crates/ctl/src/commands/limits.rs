//! Limits of virtual hosts and users.

use super::access::check_user;
use super::{json_of, text};
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Users, Section::Vhosts};
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::{Output, Rows};
use crate::tool::Tool;
use serde_json::{Map, Value, json};

const LISTERS: &[Tool] = &[Tool::Ctl, Tool::Diagnostics];

pub const COMMANDS: &[Command] = &[
    Command::new(
        Vhosts,
        "set_vhost_limits",
        (1, 1),
        "[--vhost <vhost>] <definition>",
        set_vhost,
    )
    .about("Sets the limits of a virtual host; the value is a JSON object")
    .more(
        "Limits: max-connections, max-queues. A negative number means no limit.\n\n    set_vhost_limits -p \
         shop '{\"max-queues\":100}'",
    ),
    Command::new(
        Vhosts,
        "clear_vhost_limits",
        (0, 0),
        "[--vhost <vhost>]",
        clear_vhost,
    )
    .about("Clears the limits of a virtual host"),
    Command::new(
        Vhosts,
        "list_vhost_limits",
        (0, 0),
        "[--vhost <vhost>] [--global] [--no-table-headers]",
        list_vhost,
    )
    .about("Lists the limits of one or all virtual hosts")
    .options(&["global"])
    .of(LISTERS),
    Command::new(
        Users,
        "set_user_limits",
        (2, 2),
        "<username> <definition>",
        set_user,
    )
    .about("Sets the limits of a user; the value is a JSON object")
    .more("Limits: max-connections, max-channels. A negative number means no limit."),
    Command::new(
        Users,
        "clear_user_limits",
        (2, 2),
        "<username> <limit_type> | all",
        clear_user,
    )
    .about("Clears one or all limits of a user"),
    Command::new(
        Users,
        "list_user_limits",
        (0, 0),
        "[--user <username>] [--global] [--no-table-headers]",
        list_user,
    )
    .about("Lists the limits of one or all users")
    .options(&["user=", "global"])
    .of(LISTERS),
];

/// The limits that the user typed.
fn typed(definition: &str) -> Result<Map<String, Value>, Failure> {
    match json_of(definition)? {
        Value::Object(limits) => Ok(limits),
        _ => Err(Failure::error(
            UNAVAILABLE,
            "Validation failed\n\nlimits are a JSON object\n",
        )),
    }
}

/// Sets limits one after the other, as the API has it.
fn store(ask: &Ask<'_>, path: &str, limits: Map<String, Value>) -> Result<Output, Failure> {
    for (name, value) in limits {
        ask.put(&format!("{path}/{}", encode(&name)), &json!({ "value": value }))?;
    }
    Ok(Output::Done)
}

/// The limits that are set there now.
fn stored(ask: &Ask<'_>, path: &str) -> Result<Map<String, Value>, Failure> {
    let found = ask.find(path)?.unwrap_or_default();
    let first = found.get(0).and_then(|limits| limits.get("value"));
    Ok(first.and_then(Value::as_object).cloned().unwrap_or_default())
}

/// All of one kind as a list; what has no limits is not in it.
fn all(ask: &Ask<'_>, path: &str, subject: &str) -> Result<Output, Failure> {
    let found = ask.get(path)?;
    let rows = found.as_array().into_iter().flatten().map(|limits| {
        let value = limits.get("value").cloned().unwrap_or_default();
        vec![text(limits, subject).into(), value.to_string().into()]
    });
    Ok(Output::Rows(Rows {
        columns: vec![subject.into(), "limits".into()],
        rows: rows.collect(),
        ..Rows::default()
    }))
}

/// One object's limits; nothing if there are none.
fn shown(limits: Map<String, Value>) -> Output {
    let value = Value::Object(limits);
    match value.as_object().is_some_and(Map::is_empty) {
        true => Output::Told(String::new(), value),
        false => Output::Told(value.to_string(), value),
    }
}

fn of_vhost(ask: &Ask<'_>) -> String {
    format!("/vhost-limits/{}", encode(ask.vhost()))
}

fn set_vhost(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Setting vhost limits to \"{}\" for vhost \"{}\" ...",
        ask.word(0),
        ask.vhost()
    ));
    let limits = typed(ask.word(0))?;
    ask.vhost_exists()?;
    let before = stored(ask, &of_vhost(ask))?;
    store(ask, &of_vhost(ask), limits.clone())?;
    for name in before.keys().filter(|name| !limits.contains_key(*name)) {
        ask.delete(&format!("{}/{}", of_vhost(ask), encode(name)))?;
    }
    Ok(Output::Done)
}

fn clear_vhost(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Clearing vhost \"{}\" limits ...", ask.vhost()));
    ask.vhost_exists()?;
    for name in stored(ask, &of_vhost(ask))?.keys() {
        ask.delete(&format!("{}/{}", of_vhost(ask), encode(name)))?;
    }
    Ok(Output::Done)
}

fn list_vhost(ask: &Ask<'_>) -> Result<Output, Failure> {
    if ask.line.has("global") {
        ask.say("Listing limits for all vhosts ...");
        return all(ask, "/vhost-limits", "vhost");
    }
    ask.say(format!("Listing limits for vhost \"{}\" ...", ask.vhost()));
    ask.vhost_exists()?;
    stored(ask, &of_vhost(ask)).map(shown)
}

fn of_user(user: &str) -> String {
    format!("/user-limits/{}", encode(user))
}

fn set_user(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, definition) = (ask.word(0), ask.word(1));
    ask.say(format!(
        "Setting user limits to \"{definition}\" for user \"{user}\" ..."
    ));
    let limits = typed(definition)?;
    check_user(ask, user)?;
    store(ask, &of_user(user), limits)
}

fn clear_user(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (user, kind) = (ask.word(0), ask.word(1));
    ask.say(match kind {
        "all" => format!("Clearing all limits for user \"{user}\" ..."),
        kind => format!("Clearing \"{kind}\" limit for user \"{user}\" ..."),
    });
    check_user(ask, user)?;
    let before = stored(ask, &of_user(user))?;
    for name in before
        .keys()
        .filter(|name| kind == "all" || kind == name.as_str())
    {
        ask.delete(&format!("{}/{}", of_user(user), encode(name)))?;
    }
    Ok(Output::Done)
}

fn list_user(ask: &Ask<'_>) -> Result<Output, Failure> {
    match ask.line.value("user") {
        Some(user) if !ask.line.has("global") => {
            ask.say(format!("Listing limits for user \"{user}\" ..."));
            check_user(ask, user)?;
            stored(ask, &of_user(user)).map(shown)
        }
        _ => {
            ask.say("Listing limits for all users ...");
            all(ask, "/user-limits", "user")
        }
    }
}
