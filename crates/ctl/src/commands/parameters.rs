//! Runtime parameters, of virtual hosts and global ones.

use super::policies::cleared;
use super::{json_of, pick};
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Parameters};
use crate::failure::Failure;
use crate::output::{Output, Rows};
use crate::tool::Tool;
use serde_json::{Value, json};

pub const COMMANDS: &[Command] = &[
    Command::new(
        Parameters,
        "set_parameter",
        (3, 3),
        "[--vhost <vhost>] <component_name> <name> <value>",
        set,
    )
    .about("Sets a parameter of a component; the value is JSON"),
    Command::new(
        Parameters,
        "clear_parameter",
        (2, 2),
        "[--vhost <vhost>] <component_name> <name>",
        clear,
    )
    .about("Clears a parameter of a component"),
    Command::new(
        Parameters,
        "list_parameters",
        (0, 0),
        "[--vhost <vhost>] [--no-table-headers] [--timeout <timeout>]",
        list,
    )
    .about("Lists the parameters of a virtual host")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Parameters,
        "set_global_parameter",
        (2, 2),
        "<name> <value>",
        set_global,
    )
    .about("Sets a global parameter; the value is JSON"),
    Command::new(
        Parameters,
        "clear_global_parameter",
        (1, 1),
        "<name>",
        clear_global,
    )
    .about("Clears a global parameter"),
    Command::new(
        Parameters,
        "list_global_parameters",
        (0, 0),
        "[--no-table-headers] [--timeout <timeout>]",
        list_global,
    )
    .about("Lists the global parameters")
    .of(&[Tool::Ctl, Tool::Diagnostics]),
];

fn path(ask: &Ask<'_>) -> String {
    let (component, vhost, name) = (encode(ask.word(0)), encode(ask.vhost()), encode(ask.word(1)));
    format!("/parameters/{component}/{vhost}/{name}")
}

fn set(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (component, name, value, vhost) = (ask.word(0), ask.word(1), ask.word(2), ask.vhost());
    ask.say(format!(
        "Setting runtime parameter \"{name}\" for component \"{component}\" to \"{value}\" in vhost \"{vhost}\" ..."
    ));
    let value = json_of(value)?;
    ask.vhost_exists()?;
    let body = json!({"component": component, "vhost": vhost, "name": name, "value": value});
    ask.put(&path(ask), &body)?;
    Ok(Output::Done)
}

fn clear(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Clearing runtime parameter \"{}\" for component \"{}\" on vhost \"{}\" ...",
        ask.word(1),
        ask.word(0),
        ask.vhost()
    ));
    ask.vhost_exists()?;
    cleared(ask, &path(ask))
}

/// Values are shown as JSON text, in every form of output.
fn rows(columns: &[(&str, &str)], list: &Value) -> Rows {
    let mut rows = pick(columns, list);
    for value in rows.rows.iter_mut().filter_map(|row| row.last_mut()) {
        *value = value.to_string().into();
    }
    rows
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    let vhost = ask.vhost();
    ask.say(format!("Listing runtime parameters for vhost \"{vhost}\" ..."));
    ask.vhost_exists()?;
    let mut found = ask.get("/parameters")?;
    if let Value::Array(parameters) = &mut found {
        parameters.retain(|parameter| super::text(parameter, "vhost") == vhost);
    }
    let columns = [("component", "component"), ("name", "name"), ("value", "value")];
    Ok(Output::Rows(rows(&columns, &found)))
}

fn set_global(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (name, value) = (ask.word(0), ask.word(1));
    ask.say(format!(
        "Setting global runtime parameter \"{name}\" to \"{value}\" ..."
    ));
    let value = json_of(value)?;
    let path = format!("/global-parameters/{}", encode(name));
    ask.put(&path, &json!({"name": name, "value": value}))?;
    Ok(Output::Done)
}

fn clear_global(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Clearing global runtime parameter \"{}\" ...",
        ask.word(0)
    ));
    cleared(ask, &format!("/global-parameters/{}", encode(ask.word(0))))
}

fn list_global(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say("Listing global runtime parameters ...");
    let found = ask.get("/global-parameters")?;
    Ok(Output::Rows(rows(
        &[("name", "name"), ("value", "value")],
        &found,
    )))
}
