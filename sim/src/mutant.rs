//! What a broken node would look like from outside: each of these must be found, or the invariants see nothing.

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// The log tells that it is durable without having synced.
    NoSync,
    /// A message is confirmed as soon as it is published.
    EarlyConfirm,
    /// Acknowledgements go nowhere.
    LostSettle,
    /// Messages that were delivered before are not marked.
    Unmarked,
    /// A queue is declared to the client and to nobody else.
    LostDeclaration,
    /// A message is put into the queue twice.
    Doubled,
}

impl Mutant {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::NoSync,
        Self::EarlyConfirm,
        Self::LostSettle,
        Self::Unmarked,
        Self::LostDeclaration,
        Self::Doubled,
    ];
}
