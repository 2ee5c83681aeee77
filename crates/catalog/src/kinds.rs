//! Kinds of queue: the one table that says what each is called, and which policies are for it.
//!
//! What may be said of a queue of some kind is the other half: the table of [`crate::arguments`]. Front ends, policies,
//! management, definitions and the command line ask these two and know no kind by name.

/// What a queue is. Clients declare the first three by `x-queue-type`; the others belong to exchanges. One that a policy mirrors
/// (`ha-*`) is a classic queue. The numbers stand in records; 3 was never written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueKind {
    /// On one node.
    #[default]
    Classic,
    /// Replicated by consensus.
    Quorum,
    /// A replicated log that consumers read without taking from it.
    Stream,
    /// The messages that wait for their time in a delayed exchange.
    Delayed = 4,
    /// The keys that a deduplication exchange remembers, and the messages that other nodes have sent there and that have not gone
    /// on.
    Deduplication,
    /// A second kind of queue, for tests: it keeps its newest message only.
    #[cfg(feature = "second-kind")]
    Newest,
}

/// A line of the table.
struct Row {
    kind: QueueKind,
    /// `x-queue-type`, and `type` in the HTTP API. None for what no client declares.
    name: Option<&'static str>,
    /// RabbitMQ's module, by which it names the kind in errors, events and metrics.
    module: &'static str,
    /// The word of policies for this kind alone.
    apply_to: Option<&'static str>,
    /// How many nodes have it.
    is_replicated: bool,
    /// It outlives everything but its deletion, and has a name that a client gave it.
    is_lasting: bool,
}

const CLASSIC: &str = "rabbit_classic_queue";

const ROWS: &[Row] = &[
    Row {
        kind: QueueKind::Classic,
        name: Some("classic"),
        module: CLASSIC,
        apply_to: Some("classic_queues"),
        is_replicated: false,
        is_lasting: false,
    },
    Row {
        kind: QueueKind::Quorum,
        name: Some("quorum"),
        module: "rabbit_quorum_queue",
        apply_to: Some("quorum_queues"),
        is_replicated: true,
        is_lasting: true,
    },
    Row {
        kind: QueueKind::Stream,
        name: Some("stream"),
        module: "rabbit_stream_queue",
        apply_to: Some("streams"),
        is_replicated: true,
        is_lasting: true,
    },
    Row {
        kind: QueueKind::Delayed,
        name: None,
        module: CLASSIC,
        apply_to: None,
        is_replicated: false,
        is_lasting: false,
    },
    Row {
        kind: QueueKind::Deduplication,
        name: None,
        module: CLASSIC,
        apply_to: None,
        is_replicated: false,
        is_lasting: false,
    },
    #[cfg(feature = "second-kind")]
    Row {
        kind: QueueKind::Newest,
        name: Some("newest"),
        module: "leveret_newest_queue",
        apply_to: Some("newest_queues"),
        is_replicated: false,
        is_lasting: false,
    },
];

impl QueueKind {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        ROWS.iter().map(|row| row.kind)
    }

    /// The kind that clients mean by this value of `x-queue-type`; an empty one means classic queues, as in RabbitMQ.
    pub fn from_name(name: &str) -> Option<Self> {
        if name.is_empty() {
            return Some(Self::default());
        }
        let mut rows = ROWS.iter();
        rows.find(|row| row.name == Some(name)).map(|row| row.kind)
    }

    /// The same, where a name may also be that of RabbitMQ's module, such as `rabbit_quorum_queue`: in settings and definitions.
    pub fn from_any_name(name: &str) -> Option<Self> {
        let short = name
            .strip_prefix("rabbit_")
            .and_then(|it| it.strip_suffix("_queue"));
        Self::from_name(short.unwrap_or(name))
    }

    /// Those that clients declare, by their names.
    pub fn declared() -> impl Iterator<Item = Self> {
        ROWS.iter().filter(|row| row.name.is_some()).map(|row| row.kind)
    }

    /// The first kind that policies mean by this word alone.
    pub fn from_apply_to(word: &str) -> Option<Self> {
        let mut rows = ROWS.iter();
        rows.find(|row| row.apply_to == Some(word)).map(|row| row.kind)
    }

    /// What clients call it; what an exchange keeps for itself has no name of its own.
    pub fn name(self) -> &'static str {
        self.row().name.unwrap_or_else(|| Self::default().name())
    }

    /// RabbitMQ's module for it.
    pub fn module(self) -> &'static str {
        self.row().module
    }

    /// True if several nodes have a copy.
    pub fn is_replicated(self) -> bool {
        self.row().is_replicated
    }

    /// True if a queue of this kind may be what is asked for: RabbitMQ's are either of any sort or last.
    pub fn is_compatible(self, durable: bool, exclusive: bool, auto_delete: bool) -> bool {
        !self.row().is_lasting || durable && !exclusive && !auto_delete
    }

    /// False if a client must name it.
    pub fn may_be_unnamed(self) -> bool {
        !self.row().is_lasting
    }

    /// False if `exclusive` means nothing to its consumers: RabbitMQ's quorum queues and streams have single active ones instead.
    pub fn has_exclusive_consumers(self) -> bool {
        !self.row().is_lasting
    }

    /// True if `basic.get` may take what the single active consumer would get, as from RabbitMQ's classic queues.
    pub fn gives_beside_active(self) -> bool {
        !self.row().is_lasting
    }

    /// True for queues that clients declare and see; false for what an exchange keeps for itself.
    pub fn is_of_clients(self) -> bool {
        self.row().apply_to.is_some()
    }

    /// The word by which policies mean this kind alone; no policy is for what an exchange keeps for itself.
    pub fn apply_to(self) -> Option<&'static str> {
        self.row().apply_to
    }

    /// The number that stands for it in records; never another one's.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind of this number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::all().find(|kind| kind.number() == number)
    }

    fn row(self) -> &'static Row {
        // The table has every kind in its place; a test says so.
        &ROWS[match self {
            Self::Classic | Self::Quorum | Self::Stream => self as usize,
            // No kind has the number 3.
            _ => self as usize - 1,
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_every_kind_in_its_place() {
        let numbers: Vec<u8> = ROWS.iter().map(|row| row.kind.number()).collect();
        assert_eq!(numbers[..5], [0, 1, 2, 4, 5], "as in records");
        for row in ROWS {
            assert_eq!(row.kind.row().kind, row.kind);
            assert_eq!(QueueKind::from_number(row.kind.number()), Some(row.kind));
        }
        assert_eq!(QueueKind::from_number(3), None);
        assert_eq!(QueueKind::from_number(ROWS.len() as u8 + 1), None);
    }

    #[test]
    fn clients_name_a_kind_by_its_short_name_alone() {
        for kind in [QueueKind::Classic, QueueKind::Quorum, QueueKind::Stream] {
            assert_eq!(QueueKind::from_name(kind.name()), Some(kind));
            assert_eq!(QueueKind::from_name(kind.module()), None);
        }
        assert_eq!(QueueKind::from_name(""), Some(QueueKind::Classic));
        assert_eq!(QueueKind::from_name("mirrored"), None);
    }
}
