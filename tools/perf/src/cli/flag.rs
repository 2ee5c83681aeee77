//! What a flag is.

/// One row of the table that parsing, the helps and the environment form are made of.
#[derive(Debug)]
pub struct Flag {
    /// Behind one hyphen; several letters, as PerfTest has them. Empty: none.
    pub short: &'static str,
    /// Behind two hyphens; in upper snake the name of the environment variable.
    pub long: &'static str,
    pub takes: Takes,
    /// What holds without the flag; empty: nothing worth a word.
    pub default: &'static str,
    pub text: &'static str,
    pub group: Group,
}

/// What stands behind a flag. The name is what the help calls the value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    Nothing,
    One(&'static str),
    /// A value that may be missing.
    Optional(&'static str),
    /// One value or several, and the flag may come again.
    Many(&'static str),
}

impl Takes {
    /// What the help calls the value.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::One(name) | Self::Optional(name) | Self::Many(name) => Some(name),
        }
    }
}

/// Where a flag stands in the help, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    General,
    Connecting,
    Security,
    Topology,
    Producing,
    Messages,
    Consuming,
    Stopping,
    Reporting,
    Instances,
    Own,
    Metrics,
    Void,
}

impl Group {
    /// The groups of `--help`, in order.
    pub const OF_A_RUN: [Self; 12] = [
        Self::General,
        Self::Connecting,
        Self::Security,
        Self::Topology,
        Self::Producing,
        Self::Messages,
        Self::Consuming,
        Self::Stopping,
        Self::Reporting,
        Self::Instances,
        Self::Own,
        Self::Void,
    ];

    /// Its heading in the help.
    pub fn heading(self) -> &'static str {
        match self {
            Self::General => "General",
            Self::Connecting => "Connections",
            Self::Security => "TLS and OAuth 2",
            Self::Topology => "Exchange, queues, bindings",
            Self::Producing => "Producers",
            Self::Messages => "Messages",
            Self::Consuming => "Consumers",
            Self::Stopping => "When the run ends",
            Self::Reporting => "Output",
            Self::Instances => "Several instances at once",
            Self::Own => "Leveret's own (PerfTest has none of these)",
            Self::Metrics => "Metrics for others to collect",
            Self::Void => "Accepted for PerfTest's sake, without effect here",
        }
    }
}

impl Flag {
    /// The environment variable, without the prefix.
    pub fn variable(&self) -> String {
        self.long.replace('-', "_").to_ascii_uppercase()
    }

    /// Whether it is of the command line alone. PerfTest does not show these as variables either, and a variable
    /// `VERSION` is common.
    pub fn is_no_variable(&self) -> bool {
        matches!(self.long, "help" | "version" | "environment-variables")
    }

    /// The value's type, as long as everything that takes a value with this flag asks for it.
    pub fn accepts_value(&self) -> bool {
        self.takes != Takes::Nothing
    }
}
