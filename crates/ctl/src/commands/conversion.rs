//! Queues become ones of another type, in their place and by their names: one, or all that patterns match, some at a time.

use super::members::pattern;
use super::text;
use crate::ask::{Ask, encode, reason};
use crate::command::{Command, Section::Queues};
use crate::failure::{Failure, TIMED_OUT, UNAVAILABLE};
use crate::http::Answer;
use crate::output::{Output, Rows};
use crate::progress::Progress;
use crate::tool::Tool;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// The time between two looks at how far queues are.
const BETWEEN: Duration = Duration::from_millis(200);

/// So many queues are on their way at once if nobody says how many.
const AT_ONCE: i64 = 4;

pub const COMMANDS: &[Command] = &[Command::new(
    Queues,
    "convert_queue",
    (1, 2),
    "[<queue>] <quorum | classic> [--vhost <vhost>] [--queue-pattern <pattern>] [--vhost-pattern <pattern>] [--at-once <number>] [--dry-run] [--force] [--timeout <timeout>]",
    convert,
)
.about("Converts a queue to another type in its place, with its messages, bindings, consumers and policies")
.more(
    "Clients stay connected, and declare it as before. With patterns instead of a name all durable queues that match are converted, \
     four at a time unless --at-once says otherwise. --dry-run changes nothing and lists what would be otherwise. Queues that would \
     lose arguments with an effect are left as they are unless --force is given.",
)
.options(&[
    "queue-pattern=",
    "vhost-pattern=",
    "at-once=#",
    "dry-run",
    "force",
])
.of(&[Tool::Queues])];

/// A queue, by virtual host and name.
#[derive(Clone, Debug, PartialEq)]
struct Named {
    vhost: String,
    name: String,
}

impl Named {
    fn path(&self) -> String {
        format!(
            "/leveret/queues/{}/{}/convert",
            encode(&self.vhost),
            encode(&self.name)
        )
    }
}

fn convert(ask: &Ask<'_>) -> Result<Output, Failure> {
    let words = [ask.word(0), ask.word(1)];
    let has_pattern = ask.line.has("queue-pattern") || ask.line.has("vhost-pattern");
    let (name, kind) = match words {
        [kind, ""] if has_pattern => (None, kind),
        [_, ""] => {
            let text = "name a queue and the type that it is to have, or patterns and the type";
            return Err(Failure::usage(text));
        }
        [..] if has_pattern => return Err(Failure::usage("name a queue, or give patterns, but not both")),
        [name, kind] => (Some(name), kind),
    };
    if !["quorum", "classic"].contains(&kind) {
        let text = format!("type {kind} is not supported. Try one of quorum, classic.");
        return Err(Failure::error(UNAVAILABLE, text));
    }
    let queues = match name {
        Some(name) => vec![Named {
            vhost: ask.vhost().to_owned(),
            name: name.to_owned(),
        }],
        None => matching(ask, kind)?,
    };
    if ask.line.has("dry-run") {
        return compare(ask, kind, &queues);
    }
    match name {
        Some(name) => ask.say(format!(
            "Converting queue '{name}' in vhost '{}' to a {kind} queue ...",
            ask.vhost()
        )),
        None => ask.say(format!("Converting {} queues to {kind} queues ...", queues.len())),
    }
    run(ask, kind, queues)
}

/// The queues of the other type that patterns of the line match, and that can be converted.
fn matching(ask: &Ask<'_>, kind: &str) -> Result<Vec<Named>, Failure> {
    let (vhosts, names) = (pattern(ask, "vhost-pattern")?, pattern(ask, "queue-pattern")?);
    let queues = ask.get("/queues?columns=vhost,name,type,durable,auto_delete,exclusive")?;
    let queues = queues.as_array().into_iter().flatten();
    let converts = queues.filter(|queue| {
        let is_other = text(queue, "type") == if kind == "quorum" { "classic" } else { "quorum" };
        let lasts = queue["durable"] == json!(true)
            && queue["auto_delete"] != json!(true)
            && queue["exclusive"] != json!(true);
        is_other && lasts && vhosts.is_match(text(queue, "vhost")) && names.is_match(text(queue, "name"))
    });
    let named = converts.map(|queue| Named {
        vhost: text(queue, "vhost").to_owned(),
        name: text(queue, "name").to_owned(),
    });
    Ok(named.collect())
}

/// What would be otherwise, a line each.
fn compare(ask: &Ask<'_>, kind: &str, queues: &[Named]) -> Result<Output, Failure> {
    ask.say(format!("What would be otherwise if they were {kind} queues:"));
    let mut rows = rows("difference");
    for queue in queues {
        let body = json!({"type": kind, "dry_run": true});
        let answer = ask.call("POST", &queue.path(), Some(&body))?;
        let told = match answer.status {
            400 => vec![refused(&answer)],
            _ => differences(&ask.accepted(&answer)?),
        };
        for line in told {
            rows.rows.push(row(queue, &line));
        }
    }
    Ok(Output::Rows(rows))
}

/// What a dry run has told of a queue.
fn differences(told: &Value) -> Vec<String> {
    let list = |name: &str| -> Vec<String> {
        let all = told[name].as_array().into_iter().flatten();
        all.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let lost = list("lost");
    let mut lines = list("differences");
    if !lost.is_empty() {
        lines.push(format!(
            "it is converted with --force only: it would lose {}",
            lost.join(", ")
        ));
    }
    if lines.is_empty() {
        lines.push("nothing".to_owned());
    }
    lines
}

/// Converts them, so many at a time, and waits until each is where it is to be.
fn run(ask: &Ask<'_>, kind: &str, queues: Vec<Named>) -> Result<Output, Failure> {
    let at_once = ask.line.number("at-once").unwrap_or(AT_ONCE);
    let at_once = usize::try_from(at_once).ok().filter(|number| *number > 0);
    let at_once = at_once.ok_or_else(|| Failure::usage("--at-once: at least 1"))?;
    let body = json!({"type": kind, "force": ask.line.has("force")});
    let until = ask.timeout.map(|timeout| Instant::now() + timeout);
    let mut progress = Progress::new("queues converted", queues.len());
    let mut outcomes = rows("outcome");
    let (mut left, mut under_way, mut failed) = (queues.into_iter(), Vec::new(), 0);
    loop {
        under_way.extend(left.by_ref().take(at_once.saturating_sub(under_way.len())));
        if under_way.is_empty() {
            break;
        }
        let mut on_their_way = Vec::new();
        for queue in under_way {
            let answer = ask.call("POST", &queue.path(), Some(&body))?;
            let outcome = match answer.status {
                200 if ask.accepted(&answer)?["in_place"] == json!(true) => "converted".to_owned(),
                // Whoever led it leads it no more, or cannot be reached for the moment.
                200 | 503 => {
                    on_their_way.push(queue);
                    continue;
                }
                _ => {
                    failed += 1;
                    refused(&answer)
                }
            };
            outcomes.rows.push(row(&queue, &outcome));
            progress.step();
        }
        under_way = on_their_way;
        if until.is_some_and(|until| Instant::now() >= until) {
            progress.end();
            let text = "time is up; queues that are on their way are converted all the same";
            return Err(Failure::error(TIMED_OUT, text));
        }
        if under_way.len() == at_once || left.len() == 0 && !under_way.is_empty() {
            thread::park_timeout(BETWEEN);
        }
    }
    progress.end();
    if failed > 0 {
        let lines = outcomes.rows.iter().map(|row| {
            let part = |at: usize| row[at].as_str().unwrap_or_default();
            format!("queue '{}' in vhost '{}': {}", part(1), part(0), part(2))
        });
        return Err(Failure::error(UNAVAILABLE, lines.collect::<Vec<_>>().join("\n")));
    }
    Ok(Output::Rows(outcomes))
}

fn refused(answer: &Answer) -> String {
    reason(&serde_json::from_slice(&answer.body).unwrap_or_default())
}

fn rows(last: &str) -> Rows {
    Rows {
        columns: ["vhost", "name", last].map(str::to_owned).into(),
        ..Rows::default()
    }
}

fn row(queue: &Named, told: &str) -> Vec<Value> {
    [queue.vhost.as_str(), queue.name.as_str(), told]
        .map(Value::from)
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_be_lost_is_said_last_and_nothing_is_said_too() {
        let told =
            json!({"lost": ["x-max-priority"], "differences": ["its argument x-max-priority (5) goes"]});
        assert_eq!(
            differences(&told),
            [
                "its argument x-max-priority (5) goes",
                "it is converted with --force only: it would lose x-max-priority"
            ]
        );
        assert_eq!(differences(&json!({"lost": [], "differences": []})), ["nothing"]);
    }

    #[test]
    fn the_path_of_a_queue_is_encoded() {
        let queue = Named {
            vhost: "/".into(),
            name: "a b".into(),
        };
        assert_eq!(queue.path(), "/leveret/queues/%2F/a%20b/convert");
    }
}
