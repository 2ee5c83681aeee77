//! What would be unavailable if a node stopped.

use super::{number, text};
use crate::ask::{Ask, encode};
use crate::command::{Command, Section::Cluster};
use crate::failure::{BAD_VALUE, Failure};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::{Value, json};

pub const COMMANDS: &[Command] = &[Command::new(
    Cluster,
    "stop_impact",
    (0, 1),
    "[<node>] [--timeout <timeout>]",
    stop_impact,
)
.about("Shows what would be unavailable if a node of the cluster stopped; the one that is asked if none is named")
.of(&[Tool::Ctl, Tool::Diagnostics])];

fn stop_impact(ask: &Ask<'_>) -> Result<Output, Failure> {
    let overview = ask.get("/overview?columns=node")?;
    let name = match ask.word(0) {
        "" => text(&overview, "node"),
        named => named,
    };
    ask.say(format!(
        "Asking what would be unavailable if node {name} stopped ..."
    ));
    let found = ask.find(&format!("/leveret/nodes/{}/stop-impact", encode(name)))?;
    let found =
        found.ok_or_else(|| Failure::plain(BAD_VALUE, format!("Error: {name} is no node of the cluster")))?;
    Ok(Output::Told(lines(&found).join("\n"), found))
}

/// The text; what there is none of is left out.
fn lines(found: &Value) -> Vec<String> {
    let name = text(found, "node");
    let mut lines = Vec::new();
    if found["running"] == json!(false) {
        lines.push(format!("Node {name} does not run, or cannot be reached."));
    }
    let left = format!(
        "{} of {} nodes would be left",
        found["running_without_it"], found["members"]
    );
    lines.push(match found["definitions_can_be_changed"] == json!(true) {
        true => format!("Definitions could still be changed, and publishing would go on: {left}."),
        false => format!("Nothing could be declared, changed or published: {left}, which is no majority."),
    });
    let counted = [
        (
            "durable_queues",
            "durable queues would be unavailable until the node is back",
        ),
        ("transient_queues", "transient queues would be deleted"),
        ("exclusive_queues", "exclusive queues would lose what is in them"),
        (
            "exchanges",
            "exchanges that keep something there would refuse what is published to them",
        ),
        (
            "connections",
            "connections of clients would have to be made to another node",
        ),
    ];
    let there = counted.iter().filter(|(member, _)| number(found, member) > 0);
    lines.extend(there.map(|(member, becomes)| format!("{} {becomes}", number(found, member))));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_there_is_none_of_is_left_out() {
        let found = json!({
            "node": "rabbit@b", "running": true, "members": 3, "running_without_it": 2, "definitions_can_be_changed": true,
            "durable_queues": 7, "transient_queues": 0, "exclusive_queues": 0, "exchanges": 1, "connections": null,
        });
        assert_eq!(
            lines(&found),
            [
                "Definitions could still be changed, and publishing would go on: 2 of 3 nodes would be left.",
                "7 durable queues would be unavailable until the node is back",
                "1 exchanges that keep something there would refuse what is published to them",
            ]
        );
        let found = json!({
            "node": "rabbit@b", "running": false, "members": 2, "running_without_it": 1, "definitions_can_be_changed": false,
        });
        assert_eq!(
            lines(&found),
            [
                "Node rabbit@b does not run, or cannot be reached.",
                "Nothing could be declared, changed or published: 1 of 2 nodes would be left, which is no majority.",
            ]
        );
    }
}
