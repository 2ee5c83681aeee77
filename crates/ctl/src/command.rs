//! What a command is.

use crate::ask::Ask;
use crate::failure::Failure;
use crate::line::Takes;
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

    /// What may stand on its line.
    pub fn takes(&self) -> Takes {
        let Self { words, options, .. } = *self;
        Takes { words, options }
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
