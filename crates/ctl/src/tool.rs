//! The names under which the command line is called.

use std::fmt;

/// One of RabbitMQ's command line tools. `leveret ctl` has the commands of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// `leveret ctl`.
    Leveret,
    /// `rabbitmqctl`.
    Ctl,
    /// `rabbitmq-diagnostics`.
    Diagnostics,
    /// `rabbitmq-queues`.
    Queues,
    /// `rabbitmq-streams`.
    Streams,
    /// `rabbitmq-plugins`.
    Plugins,
    /// `rabbitmq-upgrade`.
    Upgrade,
}

/// All tools that RabbitMQ has.
pub const TOOLS: [Tool; 6] = [
    Tool::Ctl,
    Tool::Diagnostics,
    Tool::Queues,
    Tool::Streams,
    Tool::Plugins,
    Tool::Upgrade,
];

impl Tool {
    /// The tool whose name a program was called by.
    pub fn called(name: &str) -> Option<Self> {
        TOOLS.into_iter().find(|tool| tool.name() == name)
    }

    /// What a user types.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leveret => "leveret ctl",
            Self::Ctl => "rabbitmqctl",
            Self::Diagnostics => "rabbitmq-diagnostics",
            Self::Queues => "rabbitmq-queues",
            Self::Streams => "rabbitmq-streams",
            Self::Plugins => "rabbitmq-plugins",
            Self::Upgrade => "rabbitmq-upgrade",
        }
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
