//! What a command is, and the table of all.

use crate::ask::Ask;
use crate::commands;
use crate::failure::Failure;
use crate::output::Output;
use crate::tool::Tool;

/// What answers a command.
pub type Run = fn(&Ask<'_>) -> Result<Output, Failure>;

/// A command of one tool or several.
#[derive(Clone, Copy, Debug)]
pub struct Command {
    /// What a user types.
    pub name: &'static str,
    /// The heading that help lists it under.
    pub section: Section,
    /// The tools that have it, besides `leveret ctl`.
    pub tools: &'static [Tool],
    /// How many words may follow, from and to.
    pub words: (usize, usize),
    /// The words and options that follow, as help shows them.
    pub usage: &'static str,
    /// What it does, in one sentence without a stop.
    pub about: &'static str,
    /// What is good to know besides: arguments, an example.
    pub more: &'static str,
    /// Its own options, in the form of `line::GLOBAL`.
    pub options: &'static [&'static str],
    /// What answers it.
    pub run: Run,
}

/// A heading of help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    Help,
    Nodes,
    Cluster,
    Users,
    Access,
    Monitoring,
    Parameters,
    Policies,
    Vhosts,
    Configuration,
    Definitions,
    Flags,
    Queues,
    Operations,
    Plugins,
    Erlang,
}

/// The headings in the order of help.
pub const SECTIONS: [(Section, &str); 16] = [
    (Section::Help, "Help"),
    (Section::Nodes, "Nodes"),
    (Section::Cluster, "Cluster"),
    (Section::Users, "Users"),
    (Section::Access, "Access Control"),
    (Section::Monitoring, "Monitoring, observability and health checks"),
    (Section::Parameters, "Parameters"),
    (Section::Policies, "Policies"),
    (Section::Vhosts, "Virtual hosts"),
    (Section::Configuration, "Configuration and Environment"),
    (Section::Definitions, "Definitions"),
    (Section::Flags, "Feature flags"),
    (Section::Queues, "Queues"),
    (Section::Operations, "Operations"),
    (Section::Plugins, "Plugins"),
    (Section::Erlang, "Not with this broker"),
];

impl Command {
    /// A command of `rabbitmqctl`.
    pub const fn new(
        section: Section,
        name: &'static str,
        words: (usize, usize),
        usage: &'static str,
        run: Run,
    ) -> Self {
        Self {
            name,
            section,
            tools: &[Tool::Ctl],
            words,
            usage,
            about: "",
            more: "",
            options: &[],
            run,
        }
    }

    /// With this description.
    pub const fn about(self, about: &'static str) -> Self {
        Self { about, ..self }
    }

    /// With this to be known besides.
    pub const fn more(self, more: &'static str) -> Self {
        Self { more, ..self }
    }

    /// With options of its own.
    pub const fn options(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// As a command of these tools instead.
    pub const fn of(self, tools: &'static [Tool]) -> Self {
        Self { tools, ..self }
    }

    /// The line that says how it is called.
    pub fn usage_line(&self, tool: Tool) -> String {
        let line = format!(
            "{tool} [--node <node>] [--longnames] [--quiet] {} {}",
            self.name, self.usage
        );
        line.trim_end().to_owned()
    }
}

/// All commands of a tool.
pub fn of_tool(tool: Tool) -> impl Iterator<Item = &'static Command> {
    let commands = commands::ALL.iter().copied().flatten();
    commands.filter(move |command| tool == Tool::Leveret || command.tools.contains(&tool))
}

/// The command of this name among all.
#[cfg(test)]
pub fn find(name: &str) -> Option<&'static Command> {
    of_tool(Tool::Leveret).find(|command| command.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::line;
    use crate::tool::TOOLS;

    /// Every command of RabbitMQ's tools with its options, recorded from 4.3.6.
    const RECORDED: &str = include_str!("../../../tests/operating/recorded/commands.txt");

    #[test]
    fn every_command_of_rabbitmqs_tools_is_known_with_all_of_its_options() {
        let mut lacking = Vec::new();
        for row in RECORDED.lines() {
            let mut words = row.split(' ').map(str::to_owned);
            let (tool, name) = (words.next().unwrap(), words.next().unwrap());
            let tool = Tool::called(&tool).unwrap();
            let Some(command) = of_tool(tool).find(|command| command.name == name) else {
                lacking.push(row.to_owned());
                continue;
            };
            // Each option by each of its names, with a value if it takes one.
            let mut given = vec![name];
            for option in words {
                let (names, kind) = option.split_once('=').unwrap_or((&option, ""));
                for name in names.split('|') {
                    given.push(name.to_owned());
                    given.extend((kind == "N").then(|| "7".to_owned()));
                    given.extend((kind == "TEXT").then(|| "text".to_owned()));
                }
            }
            let line = line::parse(&given, Some(command));
            let known = line.check(&Command {
                words: (0, 0),
                ..*command
            });
            lacking.extend(known.err().map(|failure| format!("{row}: {}", failure.text)));
        }
        assert!(lacking.is_empty(), "{}", lacking.join("\n"));
        assert!(RECORDED.lines().count() > 250);
    }

    #[test]
    fn each_tool_has_a_command_once_and_each_command_is_described() {
        for tool in TOOLS {
            let names: Vec<_> = of_tool(tool).map(|command| command.name).collect();
            for (at, name) in names.iter().enumerate() {
                assert!(!names[..at].contains(name), "{tool} has {name} twice");
            }
        }
        for command in of_tool(Tool::Leveret) {
            assert!(
                !command.about.is_empty() && !command.about.ends_with('.'),
                "{}",
                command.name
            );
            assert!(command.words.0 <= command.words.1, "{}", command.name);
        }
    }
}
