//! Policies, and the operator's that limit them.

use super::{json_of, member_of, pick, text};
use crate::ask::{Ask, encode, no_vhost};
use crate::command::{Command, Section::Policies};
use crate::failure::{BAD_VALUE, Failure, UNAVAILABLE};
use crate::output::{Form, Output, Rows};
use crate::tool::Tool;
use serde_json::{Value, json};

const OPTIONS: &[&str] = &["priority=#", "apply-to="];
const SETTING: &str =
    "[--vhost <vhost>] [--priority <priority>] [--apply-to <apply-to>] <name> <pattern> <definition>";

pub const COMMANDS: &[Command] = &[
    Command::new(Policies, "set_policy", (3, 3), SETTING, set)
        .about("Sets a policy: arguments for all queues and exchanges with matching names")
        .more(
            "The definition is a JSON object. If several policies match, the one with the highest priority \
             applies.\n\n    set_policy short '^log\\.' '{\"max-length\":1000}' --apply-to queues --priority 1",
        )
        .options(OPTIONS),
    Command::new(Policies, "clear_policy", (1, 1), "[--vhost <vhost>] <name>", clear).about("Deletes a policy"),
    Command::new(Policies, "list_policies", (0, 0), "[--vhost <vhost>] [--no-table-headers]", list)
        .about("Lists the policies of a virtual host")
        .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(Policies, "set_operator_policy", (3, 3), SETTING, set_operator)
        .about("Sets an operator policy: limits for policies and arguments of all matching objects")
        .options(OPTIONS),
    Command::new(Policies, "clear_operator_policy", (1, 1), "[--vhost <vhost>] <name>", clear_operator)
        .about("Deletes an operator policy"),
    Command::new(Policies, "list_operator_policies", (0, 0), "[--vhost <vhost>] [--no-table-headers]", list_operator)
        .about("Lists the operator policies of a virtual host")
        .of(&[Tool::Ctl, Tool::Diagnostics]),
    Command::new(
        Policies,
        "list_policies_that_match",
        (1, 1),
        "[--vhost <vhost>] [--object-type <type>] <name>",
        list_that_match,
    )
    .about("Lists the policies that match a queue or an exchange")
    .options(&["object-type="])
    .of(&[Tool::Diagnostics]),
];

/// The two kinds: where the API has them.
const PLAIN: &str = "policies";
const OPERATOR: &str = "operator-policies";

fn path(ask: &Ask<'_>, kind: &str) -> String {
    format!("/{kind}/{}/{}", encode(ask.vhost()), encode(ask.word(0)))
}

fn store(ask: &Ask<'_>, kind: &str, noun: &str) -> Result<Output, Failure> {
    let (name, pattern, definition) = (ask.word(0), ask.word(1), ask.word(2));
    let priority = ask.line.value("priority").unwrap_or("0");
    let number: i64 = priority.parse().map_err(|_| {
        Failure::usage(format!(
            "Invalid options for this command:\n--priority : {priority}"
        ))
    })?;
    ask.say(format!(
        "Setting {noun} \"{name}\" for pattern \"{pattern}\" to \"{definition}\" with priority \"{priority}\" for vhost \"{}\" ...",
        ask.vhost()
    ));
    let body = json!({
        "pattern": pattern,
        "definition": json_of(definition)?,
        "priority": number,
        "apply-to": ask.line.value("apply-to").unwrap_or("all"),
    });
    ask.vhost_exists()?;
    ask.put(&path(ask, kind), &body)?;
    let list = stored(ask, kind)?;
    let made = list
        .as_array()
        .into_iter()
        .flatten()
        .filter(|policy| text(policy, "name") == name);
    tell_idle(ask, made);
    Ok(Output::Done)
}

/// Names the keys of policies that do nothing, so that nobody relies on them: those of mirrored queues, on a single node.
fn tell_idle<'a>(ask: &Ask<'_>, policies: impl Iterator<Item = &'a Value>) {
    for policy in policies {
        let keys = policy["takes_effect_in_a_cluster"]
            .as_array()
            .into_iter()
            .flatten();
        let keys: Vec<&str> = keys.filter_map(Value::as_str).collect();
        if !keys.is_empty() {
            let (name, keys) = (text(policy, "name"), keys.join(", "));
            ask.note(format!(
                "Note: policy '{name}': no effect on a single node: {keys}"
            ));
        }
    }
}

fn set(ask: &Ask<'_>) -> Result<Output, Failure> {
    store(ask, PLAIN, "policy")
}

fn set_operator(ask: &Ask<'_>) -> Result<Output, Failure> {
    store(ask, OPERATOR, "operator policy override")
}

/// The failure of taking away what is not there.
pub fn cleared(ask: &Ask<'_>, path: &str) -> Result<Output, Failure> {
    match ask.delete(path)? {
        true => Ok(Output::Done),
        false => Err(Failure::error(UNAVAILABLE, "Parameter does not exist")),
    }
}

fn clear(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Clearing policy \"{}\" on vhost \"{}\" ...",
        ask.word(0),
        ask.vhost()
    ));
    ask.vhost_exists()?;
    cleared(ask, &path(ask, PLAIN))
}

fn clear_operator(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Clearing operator policy \"{}\" on vhost \"{}\" ...",
        ask.word(0),
        ask.vhost()
    ));
    ask.vhost_exists()?;
    cleared(ask, &path(ask, OPERATOR))
}

fn stored(ask: &Ask<'_>, kind: &str) -> Result<Value, Failure> {
    let found = ask.find(&format!("/{kind}/{}", encode(ask.vhost())))?;
    found.ok_or_else(|| no_vhost(ask.vhost()))
}

/// Definitions are shown as JSON text, in every form of output.
pub fn rows(list: &Value) -> Rows {
    let columns = ["vhost", "name", "pattern", "apply-to", "definition", "priority"].map(|name| (name, name));
    let mut rows = pick(&columns, list);
    for row in &mut rows.rows {
        row[4] = row[4].to_string().into();
    }
    rows
}

fn list(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!("Listing policies for vhost \"{}\" ...", ask.vhost()));
    listed(ask, PLAIN)
}

fn listed(ask: &Ask<'_>, kind: &str) -> Result<Output, Failure> {
    let list = stored(ask, kind)?;
    tell_idle(ask, list.as_array().into_iter().flatten());
    Ok(Output::Rows(rows(&list)))
}

fn list_operator(ask: &Ask<'_>) -> Result<Output, Failure> {
    ask.say(format!(
        "Listing operator policy overrides for vhost \"{}\" ...",
        ask.vhost()
    ));
    listed(ask, OPERATOR)
}

fn list_that_match(ask: &Ask<'_>) -> Result<Output, Failure> {
    let (name, kind) = (ask.word(0), ask.line.value("object-type").unwrap_or("queue"));
    let objects = if kind == "exchange" { "exchanges" } else { "queues" };
    ask.say(format!(
        "Listing policies that match {kind} '{name}' in vhost '{}' ...",
        ask.vhost()
    ));
    let path = format!("/{objects}/{}/{}", encode(ask.vhost()), encode(name));
    let missing = || Failure::plain(BAD_VALUE, "Object (queue, stream, exchange, etc) was not found");
    let object = ask.find(&path)?.ok_or_else(missing)?;
    let holding = member_of(&object, "policy");
    let mut list = stored(ask, PLAIN)?;
    if let Value::Array(policies) = &mut list {
        policies.retain(|policy| policy.get("name") == Some(&holding));
    }
    let mut rows = rows(&list);
    rows.form = Form::Pretty;
    Ok(Output::Rows(rows))
}
