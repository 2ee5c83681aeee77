//! Which nodes have the queues that several nodes have, and which one leads: the same for quorum queues and for streams.

use super::absent::{Answer, member, running_member, strategy};
use super::text;
use crate::ask::{Ask, encode, reason};
use crate::failure::{Failure, UNAVAILABLE};
use crate::http;
use crate::output::{Form, Output, Rows};
use regex::Regex;
use serde_json::{Value, json};
use std::thread;
use std::time::Duration;

/// How often it is looked whether leadership has moved, and how long is waited in between.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(50);

/// Of what kind the queues are that a command is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Quorum,
    Stream,
}

impl Kind {
    /// The word that the API has for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Quorum => "quorum",
            Self::Stream => "stream",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Quorum => "queues",
            Self::Stream => "streams",
        }
    }

    /// Where the API changes the members of a queue, by the virtual host and the name that a path ends with.
    fn replicas(self, queue: &str, is_member: bool) -> (&'static str, String) {
        match (self, is_member) {
            (Self::Quorum, true) => ("POST", format!("/queues/quorum/{queue}/replicas/add")),
            (Self::Quorum, false) => ("DELETE", format!("/queues/quorum/{queue}/replicas/delete")),
            (Self::Stream, true) => ("POST", format!("/leveret/streams/{queue}/replicas")),
            (Self::Stream, false) => ("DELETE", format!("/leveret/streams/{queue}/replicas")),
        }
    }
}

/// How paths of the API end for the queue that a line names.
pub fn path(ask: &Ask<'_>) -> String {
    format!("{}/{}", encode(ask.vhost()), encode(ask.word(0)))
}

/// The nodes that have a queue, or are to have it.
pub fn members(queue: &Value) -> Vec<&str> {
    let members = queue["members"].as_array().into_iter().flatten();
    members.filter_map(Value::as_str).collect()
}

/// Why the node refuses, in its words.
pub fn why(answer: &http::Answer) -> String {
    reason(&serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// A pattern that an option says; without it everything matches.
///
/// # Errors
/// It is none.
pub fn pattern(ask: &Ask<'_>, option: &str) -> Result<Regex, Failure> {
    let said = ask.line.value(option).unwrap_or(".*");
    Regex::new(said).map_err(|error| Failure::usage(format!("--{option}: {error}")))
}

/// A row for each queue of a kind that patterns of the line match, if there is something to say of it.
pub fn each(
    ask: &Ask<'_>,
    kind: Kind,
    names: &[&str],
    row: impl Fn(&Value) -> Result<Option<Vec<Value>>, Failure>,
) -> Answer {
    let queues = ask.get("/queues?columns=vhost,name,type,members,leader")?;
    let queues = queues.as_array().into_iter().flatten();
    let (vhosts, names_of) = (pattern(ask, "vhost-pattern")?, pattern(ask, "queue-pattern")?);
    let meant = queues.filter(|queue| {
        text(queue, "type") == kind.name()
            && vhosts.is_match(text(queue, "vhost"))
            && names_of.is_match(text(queue, "name"))
    });
    let only_errors = ask.line.has("errors-only");
    let mut rows = Vec::new();
    for queue in meant {
        let Some(told) = row(queue)? else { continue };
        let is_error = told
            .last()
            .and_then(Value::as_str)
            .is_some_and(|it| it.starts_with("error"));
        if is_error || !only_errors {
            rows.push([vec![queue["vhost"].clone(), queue["name"].clone()], told].concat());
        }
    }
    Ok(Output::Rows(Rows {
        columns: ["vhost", "name"]
            .iter()
            .chain(names)
            .map(|name| (*name).to_owned())
            .collect(),
        rows,
        form: Form::default(),
    }))
}

/// How many members a queue has then, and what came of it.
pub fn sized(size: usize, result: Value) -> Vec<Value> {
    vec![size.into(), result]
}

/// Has a queue get a member on a node, or lose it. What came of it, in a word.
pub fn changed(
    ask: &Ask<'_>,
    kind: Kind,
    queue: &Value,
    node: &str,
    is_member: bool,
) -> Result<Value, Failure> {
    let [vhost, name] = ["vhost", "name"].map(|it| encode(text(queue, it)));
    let (method, path) = kind.replicas(&format!("{vhost}/{name}"), is_member);
    let answer = ask.call(method, &path, Some(&json!({"node": node})))?;
    Ok(match answer.status {
        200..=299 => json!("ok"),
        _ => format!("error: {}", why(&answer)).into(),
    })
}

/// Changes the members of the queue that the line names by the node that it names.
pub fn change(ask: &Ask<'_>, kind: Kind, is_member: bool) -> Answer {
    let (method, path) = kind.replicas(&path(ask), is_member);
    let answer = ask.call(method, &path, Some(&json!({"node": ask.word(1)})))?;
    match answer.status {
        503 => Err(Failure::error(UNAVAILABLE, why(&answer))),
        _ => ask.accepted(&answer).map(|_| Output::Done),
    }
}

/// Every queue that patterns of the line match gets a member on a node.
pub fn grow(ask: &Ask<'_>, kind: Kind) -> Answer {
    strategy(ask)?;
    let node = ask.word(0);
    running_member(ask, node)?;
    ask.say(format!("Growing {} {} on {node}...", ask.word(1), kind.plural()));
    let only_even = ask.word(1) == "even";
    each(ask, kind, &["size", "result"], |queue| {
        let members = members(queue);
        let has = members.contains(&node);
        if has || only_even && members.len() % 2 == 1 {
            return Ok(None);
        }
        let result = changed(ask, kind, queue, node, true)?;
        let more = usize::from(result == json!("ok"));
        Ok(Some(sized(members.len() + more, result)))
    })
}

fn has_any(ask: &Ask<'_>, kind: Kind) -> Result<bool, Failure> {
    let queues = ask.get("/queues?columns=type")?;
    let mut queues = queues.as_array().into_iter().flatten();
    Ok(queues.any(|queue| text(queue, "type") == kind.name()))
}

/// Every queue goes on without its member on a node.
pub fn shrink(ask: &Ask<'_>, kind: Kind) -> Answer {
    let node = ask.word(0);
    ask.say(format!("Shrinking {} on {node}...", kind.plural()));
    let known = member(ask, node).map_err(|why| match why.with_usage {
        // As RabbitMQ says it.
        true => Failure::error(UNAVAILABLE, format!("{{:node_not_running, :{node}}}")),
        false => why,
    });
    // Of streams RabbitMQ asks where each of them is.
    if kind == Kind::Quorum || has_any(ask, kind)? {
        known?;
    }
    each(ask, kind, &["size", "result"], |queue| {
        let members = members(queue);
        match members.as_slice() {
            [only] if *only == node => {
                let text = "error: the last node cannot be removed";
                Ok(Some(sized(1, text.into())))
            }
            _ if members.contains(&node) => {
                let result = changed(ask, kind, queue, node, false)?;
                let less = usize::from(result == json!("ok"));
                Ok(Some(sized(members.len() - less, result)))
            }
            _ => Ok(None),
        }
    })
}

/// Has the node that the line names lead a queue, which the API has described.
pub fn transfer(ask: &Ask<'_>, queue: &Value) -> Answer {
    let node = ask.word(1);
    if !members(queue).contains(&node) {
        return Err(Failure::error(UNAVAILABLE, "unknown_member"));
    }
    if text(queue, "leader") == node {
        let text = "The target node is already the leader of this queue";
        return Err(Failure::error(UNAVAILABLE, text));
    }
    hand_over(ask, node)?;
    leader_afterwards(ask, node).map(Output::text)
}

/// Has whoever leads the queue that the line names hand it over to a node. That it begins, not that it has ended.
pub fn hand_over(ask: &Ask<'_>, node: &str) -> Result<(), Failure> {
    let path = format!("/leveret/queues/{}/leader", path(ask));
    let answer = ask.call("POST", &path, Some(&json!({"node": node})))?;
    match answer.status {
        503 => Err(Failure::error(UNAVAILABLE, why(&answer))),
        _ => ask.accepted(&answer).map(drop),
    }
}

/// Who leads the queue now: whoever was to, as soon as that is so, or after a while whoever does.
pub fn leader_afterwards(ask: &Ask<'_>, wanted: &str) -> Result<String, Failure> {
    let mut leader = String::new();
    for _ in 0..LOOKS {
        let queue = ask.find(&format!("/queues/{}?columns=leader", path(ask)))?;
        leader = queue.map_or_else(String::new, |queue| text(&queue, "leader").to_owned());
        if leader == wanted {
            break;
        }
        thread::park_timeout(BETWEEN);
    }
    Ok(leader)
}
