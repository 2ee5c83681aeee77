//! `eval`: a fixed list of expressions that suites, probes and operators' scripts ask RabbitMQ's runtime for. Here is
//! no Erlang that could evaluate others, and each of these is answered as there.

use super::{application, text, this_node};
use crate::ask::Ask;
use crate::command::{Command, Section::Operations};
use crate::failure::{Failure, UNAVAILABLE};
use crate::output::{Output, term};
use crate::tool::Tool;
use serde_json::{Value, json};

const LIMITS: &str = "/leveret/limits";

pub const COMMANDS: &[Command] = &[Command::new(Operations, "eval", (1, 64), "<expression>", eval)
    .about("Answers some of the Erlang expressions that scripts use, and refuses others")
    .more(KNOWN)
    .of(&[Tool::Ctl, Tool::Diagnostics])];

/// What is answered, for help and refusals.
const KNOWN: &str = "\
Answered are:

    node().
    rabbit:is_running().                        rabbit_nodes:is_running().
    rabbit:product_name().                      rabbit:product_version().
    rabbit_misc:version().                      rabbit_nodes:cluster_name().
    rabbit_nodes:list_members().                rabbit_nodes:list_running().
    rabbit_nodes:total_count().                 rabbit_nodes:running_count().
    rabbit_nodes:reached_target_cluster_size(). rabbit_db_cluster:is_clustered().
    rabbit_vhost:list_names().                  rabbit_alarm:get_alarms().
    rabbit_alarm:set_alarm({{resource_limit, memory, node()}, []}).      (or disk)
    rabbit_alarm:clear_alarm({resource_limit, memory, node()}).          (or disk)
    application:get_env(rabbit, channel_max).
    application:set_env(rabbit, channel_max, 100).";

/// An expression without what does not matter: spaces, and the stop at its end.
fn bare(expression: &str) -> Option<String> {
    let bare: String = expression.chars().filter(|c| !c.is_whitespace()).collect();
    bare.strip_suffix('.').map(str::to_owned)
}

/// What is between two parts of an expression.
fn between<'a>(expression: &'a str, before: &str, behind: &str) -> Option<&'a str> {
    expression.strip_prefix(before)?.strip_suffix(behind)
}

fn eval(ask: &Ask<'_>) -> Result<Output, Failure> {
    // RabbitMQ takes the words of an expression that was not quoted, too.
    let given = ask.line.words.join(" ");
    let Some(expression) = bare(&given) else {
        return Err(Failure::usage("\"syntax error before: \""));
    };
    match answer(ask, &expression)? {
        Some(text) => Ok(Output::text(text)),
        None => {
            let text =
                format!("{given} is no expression that this broker knows: there is no Erlang in it. {KNOWN}");
            Err(Failure::error(UNAVAILABLE, text))
        }
    }
}

/// The alarm that an expression names; those of other nodes don't exist.
fn alarm<'a>(ask: &Ask<'_>, named: &'a str) -> Option<&'a str> {
    let (resource, node) = named.split_once(',')?;
    let node = node.trim_matches('\'');
    let is_here = node == "node()" || node == ask.node();
    is_here
        .then_some(resource)
        .filter(|it| ["memory", "disk"].contains(it))
}

fn answer(ask: &Ask<'_>, expression: &str) -> Result<Option<String>, Failure> {
    if let Some(named) = between(expression, "rabbit_alarm:set_alarm({{resource_limit,", "},[]})") {
        return raise(ask, named, true);
    }
    if let Some(named) = between(expression, "rabbit_alarm:clear_alarm({resource_limit,", "})") {
        return raise(ask, named, false);
    }
    if let Some(number) = between(expression, "application:set_env(rabbit,channel_max,", ")") {
        let Ok(number) = number.parse::<u16>() else {
            return Ok(None);
        };
        ask.put(LIMITS, &json!({"channel_max": number}))?;
        return Ok(Some("ok".into()));
    }
    let overview = |member: &str| -> Result<Value, Failure> {
        Ok(ask.get("/overview")?.get(member).cloned().unwrap_or_default())
    };
    // Names of nodes are atoms, and what is quoted is a string of Erlang's, not a binary.
    let quoted = |value: Value| format!("\"{}\"", value.as_str().unwrap_or_default());
    Ok(Some(match expression {
        "node()" | "erlang:node()" => atom(&ask.node()),
        "rabbit:is_running()" | "rabbit_nodes:is_running()" | "rabbit_nodes:is_running(node())" => {
            running(ask)?.to_string()
        }
        "rabbit:product_version()" => quoted(overview("product_version")?),
        "rabbit:product_name()" => quoted(overview("product_name")?),
        "rabbit_misc:version()" | "rabbit:base_product_version()" => quoted(overview("rabbitmq_version")?),
        "rabbit_nodes:cluster_name()" => term(&overview("cluster_name")?),
        "rabbit_nodes:list_members()"
        | "rabbit_nodes:list_running()"
        | "rabbit_nodes:all()"
        | "rabbit_nodes:all_running()" => {
            format!("[{}]", atom(text(&this_node(ask)?, "name")))
        }
        "rabbit_nodes:total_count()" | "rabbit_nodes:running_count()" => {
            this_node(ask)?;
            "1".into()
        }
        "rabbit_nodes:reached_target_cluster_size()" => {
            let answer = ask.call("GET", "/health/checks/reached-target-cluster-size", None)?;
            (answer.status == 200).to_string()
        }
        "rabbit_db_cluster:is_clustered()" | "rabbit_mnesia:is_clustered()" => {
            this_node(ask)?;
            "false".into()
        }
        "rabbit_vhost:list_names()" => {
            let vhosts = ask.get("/vhosts?columns=name")?;
            let names = vhosts.as_array().into_iter().flatten();
            term(&names.map(|vhost| vhost["name"].clone()).collect())
        }
        "rabbit_alarm:get_alarms()" => alarms(ask)?,
        "application:get_env(rabbit,channel_max)" => format!("{{ok,{}}}", ask.get(LIMITS)?["channel_max"]),
        _ => return Ok(None),
    }))
}

/// False also where the node answers, with its broker stopped.
fn running(ask: &Ask<'_>) -> Result<bool, Failure> {
    match ask.endpoint {
        crate::endpoint::Endpoint::Socket(_) => Ok(application::state(ask)?["running"] == json!(true)),
        crate::endpoint::Endpoint::Web { .. } => ask.get("/overview?columns=node").map(|_| true),
    }
}

fn raise(ask: &Ask<'_>, named: &str, on: bool) -> Result<Option<String>, Failure> {
    let Some(resource) = alarm(ask, named) else {
        return Ok(None);
    };
    let member = format!("{resource}_alarm");
    ask.put(LIMITS, &json!({ member: on }))?;
    Ok(Some("ok".into()))
}

fn alarms(ask: &Ask<'_>) -> Result<String, Failure> {
    let (limits, node) = (ask.get(LIMITS)?, atom(&ask.node()));
    let on = ["memory", "disk"]
        .into_iter()
        .filter(|resource| limits[format!("{resource}_alarm")] == json!(true));
    let alarms: Vec<String> = on
        .map(|resource| format!("{{{{resource_limit,{resource},{node}}},[]}}"))
        .collect();
    Ok(format!("[{}]", alarms.join(",\n ")))
}

/// A name as Erlang writes it: in quotes if it has other characters than an atom's.
fn atom(name: &str) -> String {
    let is_plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '@');
    match is_plain {
        true => name.to_owned(),
        false => format!("'{name}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_do_not_matter_and_a_stop_does() {
        assert_eq!(bare(" node( ) . ").unwrap(), "node()");
        assert_eq!(bare("node()"), None);
    }

    #[test]
    fn names_with_other_characters_are_quoted() {
        assert_eq!(atom("rabbit@host_1"), "rabbit@host_1");
        assert_eq!(atom("rabbit@my-host"), "'rabbit@my-host'");
        assert_eq!(atom("rabbit@a.b"), "'rabbit@a.b'");
    }
}
