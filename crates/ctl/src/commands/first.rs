//! Help, versions and what shells ask for.

use super::{completions, help, of_tool};
use crate::ask::Ask;
use crate::command::{Command, Section::Help};
use crate::failure::{Failure, USAGE};
use crate::output::Output;
use crate::tool::Tool;
use serde_json::json;

pub const COMMANDS: &[Command] = &[
    Command::new(Help, "help", (0, 1), "[<command>] [--list-commands]", help)
        .about("Shows help about a command, or lists all commands")
        .options(&["list-commands"])
        .of(&[
            Tool::Ctl,
            Tool::Diagnostics,
            Tool::Queues,
            Tool::Streams,
            Tool::Plugins,
            Tool::Upgrade,
        ]),
    Command::new(Help, "version", (0, 0), "[--timeout <timeout>]", version)
        .about("Shows the version of the tool")
        .of(&[Tool::Ctl, Tool::Diagnostics, Tool::Plugins]),
    Command::new(
        Help,
        "autocomplete",
        (1, 1),
        "[prefix] [--timeout <timeout>]",
        autocomplete,
    )
    .about("Lists the commands that start with the given text")
    .of(&[Tool::Ctl, Tool::Diagnostics, Tool::Queues, Tool::Plugins]),
    Command::new(Help, "completions", (1, 1), "<bash | zsh | fish>", shell)
        .about("Prints a script for shell completion of commands, options and columns")
        .more("    leveret ctl completions bash > /etc/bash_completion.d/leveret"),
];

fn help(ask: &Ask<'_>) -> Result<Output, Failure> {
    let name = ask.word(0);
    if ask.line.has("list-commands") {
        return Ok(Output::text(help::commands(ask.tool)));
    }
    if name.is_empty() {
        return Ok(Output::text(help::overview(ask.tool)));
    }
    match of_tool(ask.tool).find(|command| command.name == name) {
        Some(command) => Ok(Output::text(help::of_command(ask.tool, command))),
        None => Err(Failure::error(USAGE, help::not_found(ask.tool, name))),
    }
}

fn version(ask: &Ask<'_>) -> Result<Output, Failure> {
    let value = json!({"node": ask.node(), "result": "ok", "value": {"version": ask.version}});
    Ok(Output::Told(ask.version.to_owned(), value))
}

fn autocomplete(ask: &Ask<'_>) -> Result<Output, Failure> {
    let commands = of_tool(ask.tool).map(|command| command.name);
    let found: Vec<&str> = commands.filter(|name| name.starts_with(ask.word(0))).collect();
    Ok(Output::Told(found.join("\n"), json!(found)))
}

fn shell(ask: &Ask<'_>) -> Result<Output, Failure> {
    match completions::script(ask.word(0)) {
        Some(script) => Ok(Output::text(script)),
        None => Err(Failure::usage(format!(
            "unknown shell {}: use bash, zsh or fish",
            ask.word(0)
        ))),
    }
}
