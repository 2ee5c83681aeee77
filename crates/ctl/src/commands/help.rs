//! What help shows.

use super::{lists::columns_of, of_tool};
use crate::command::{Command, SECTIONS};
use crate::line::{GLOBAL, long_names};
use crate::tool::Tool;

/// The options of every command, as people read them.
const OPTIONS: &str = "\
General Options

  -n, --node NODE        the node: rabbit@HOST uses its HTTP API, this machine's its admin socket
      --data-dir DIR     data directory of the node on this machine (LEVERET_DATA_DIR; ./var)
      --url URL          HTTP API, such as https://host:15671 (LEVERET_URL)
      --username NAME    user for the HTTP API (LEVERET_USERNAME; guest)
      --password WORD    password for the HTTP API (LEVERET_PASSWORD; guest)
      --ca-certificate FILE  CA certificates to use instead of the system's
  -p, --vhost VHOST      virtual host (/)
  -t, --timeout SECONDS  timeout
  -q, --quiet            no informational messages
  -s, --silent           no informational messages and no column headers
      --no-table-headers no column headers
      --formatter FORM   table, pretty_table, json, json_stream, csv or erlang
  -?, --help             help about a command
      --version          print the version";

/// All commands with what they do.
pub fn overview(tool: Tool) -> String {
    format!(
        "\nUsage\n\n{tool} [--node <node>] [--timeout <timeout>] [--longnames] [--quiet] <command> [<command options>]\n\n\
         Available commands:\n{}\nUse '{tool} help <command>' to learn more about a specific command",
        commands(tool)
    )
}

/// The list of commands by headings.
pub fn commands(tool: Tool) -> String {
    let width = of_tool(tool).map(|command| command.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for (section, heading) in SECTIONS {
        let mut commands: Vec<&Command> = of_tool(tool)
            .filter(|command| command.section == section)
            .collect();
        commands.sort_by_key(|command| command.name);
        if commands.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{heading}:\n\n"));
        for command in commands {
            text.push_str(&format!("   {:width$}  {}\n", command.name, command.about));
        }
    }
    text
}

/// One command.
pub fn of_command(tool: Tool, command: &Command) -> String {
    let mut text = format!(
        "\nUsage\n\n{}\n\n{}.\n\n",
        command.usage_line(tool),
        command.about
    );
    if !command.more.is_empty() {
        text.push_str(&format!("{}\n\n", command.more));
    }
    let columns: Vec<&str> = columns_of(command.name).collect();
    if !columns.is_empty() {
        text.push_str(&format!("Columns: {}.\n\n", columns.join(", ")));
    }
    text.push_str(OPTIONS);
    text
}

/// The usage that follows a mistake.
pub fn usage(tool: Tool, command: &Command, given: &[String]) -> String {
    format!(
        "Arguments given:\n\t{}\n\nUsage\n\n{}",
        given.join(" "),
        command.usage_line(tool)
    )
}

/// A command that is not there: the nearest one, or all.
pub fn unknown(tool: Tool, name: &str) -> String {
    match near(tool, name) {
        Some(near) => format!("\nCommand '{name}' not found. \nDid you mean '{near}'? \n"),
        None => format!("\nCommand '{name}' not found. \n{}", overview(tool)),
    }
}

/// A command that `help` was asked for.
pub fn not_found(tool: Tool, name: &str) -> String {
    match near(tool, name) {
        Some(near) => format!("\nCommand '{name}' not found.\nDid you mean '{near}'?"),
        None => format!("\nCommand '{name}' not found."),
    }
}

/// How alike a command must be to be named (0 to 1), so that a word that means nothing is answered by the list.
const ALIKE: f64 = 0.75;

fn near(tool: Tool, name: &str) -> Option<&'static str> {
    let names = of_tool(tool).map(|command| command.name);
    let alike = names.map(|known| (strsim::jaro(known, name), known));
    let (likeness, near) = alike.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= ALIKE).then_some(near)
}

/// All options of a command, its own first.
pub fn options_of(command: &Command) -> impl Iterator<Item = &'static str> {
    long_names(command.options).chain(long_names(GLOBAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_names_every_command_of_a_tool_and_the_nearest_to_a_misspelt_one() {
        let text = overview(Tool::Ctl);
        for command in of_tool(Tool::Ctl) {
            assert!(
                text.contains(&format!("   {} ", command.name)),
                "{}",
                command.name
            );
        }
        assert!(unknown(Tool::Ctl, "lst_queues").contains("Did you mean 'list_queues'?"));
        assert!(unknown(Tool::Ctl, "zorkzork").contains("Available commands"));
        assert!(unknown(Tool::Plugins, "check_running").contains("Available commands"));
    }
}
