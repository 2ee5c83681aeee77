//! Where messages go: exchanges as naively as they can be told.

use model::table::Table;
use storage::faulty::Random;

/// What publishers and bindings speak of.
pub type Colour = &'static str;

/// All of them.
pub const COLOURS: [Colour; 3] = ["red", "green", "blue"];

/// An exchange that is there from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exchange {
    Direct,
    Fanout,
    Topic,
    Headers,
}

impl Exchange {
    /// One of them; the fanout, which floods all queues, less often.
    pub fn choose(random: &mut Random) -> Self {
        match random.below(8) {
            0..=2 => Self::Direct,
            3..=4 => Self::Topic,
            5..=6 => Self::Headers,
            _ => Self::Fanout,
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "amq.direct",
            Self::Fanout => "amq.fanout",
            Self::Topic => "amq.topic",
            Self::Headers => "amq.headers",
        }
    }

    /// The key and the arguments of a binding for a colour.
    pub fn binding(self, colour: Colour) -> (String, Table) {
        let headers = Table::new().with("x-match", "all").with("colour", colour);
        match self {
            Self::Direct | Self::Fanout => (colour.to_owned(), Table::new()),
            Self::Topic if colour == "red" => ("red.*".to_owned(), Table::new()),
            Self::Topic if colour == "green" => ("*.green".to_owned(), Table::new()),
            Self::Topic => (format!("#.{colour}.#"), Table::new()),
            Self::Headers => (String::new(), headers),
        }
    }

    /// The key of a message of two colours.
    pub fn key(self, first: Colour, second: Colour) -> String {
        match self {
            Self::Topic => format!("{first}.{second}"),
            _ => first.to_owned(),
        }
    }

    /// Whether a binding for `bound` takes such a message.
    pub fn takes(self, bound: Colour, first: Colour, second: Colour) -> bool {
        match self {
            Self::Fanout => true,
            Self::Direct | Self::Headers => bound == first,
            Self::Topic => match bound {
                "red" => first == bound,
                "green" => second == bound,
                _ => first == bound || second == bound,
            },
        }
    }
}
