//! The contract between the machines that decide and the hosts that act.
//!
//! A machine is deterministic: no I/O, no clock, no randomness, no await, fixed iteration order. Everything it
//! needs comes in with a request. It answers with
//!
//! - **records**, past tense: what is now so. The host appends them to the machine's journal. A machine that
//!   is given the same records by [`Machine::apply`], in order, comes to hold the same contents: records are
//!   outcomes, never requests, so replaying them needs no decision.
//! - **effects**, imperative: what the host shall do at once (deliver, load, cancel).
//! - **promises**: effects that the host may carry out only once every record of the same turn is durable
//!   (confirm to a publisher, answer a declaration).
//!
//! `handle` has applied its own records when it returns, so the next request of the same turn sees them.

/// Milliseconds since the Unix epoch. The host passes it in; machines have no clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// The number of a record in its machine's journal, from 1. The journal gives it out. Numbers rise, but not always by
/// one: a journal that several nodes keep has entries of its own between a machine's records, so nothing may be
/// concluded from a number that is missing.
pub type Index = u64;

/// What a machine asks of its host: three lists that the host empties after each turn and hands in again.
#[derive(Debug)]
pub struct Outcome<R, E> {
    /// To be appended to the journal, in this order.
    pub records: Vec<R>,
    /// To be carried out at once, in this order.
    pub effects: Vec<E>,
    /// To be carried out once all `records` of this outcome are durable, in this order.
    pub promises: Vec<E>,
}

impl<R, E> Default for Outcome<R, E> {
    fn default() -> Self {
        Self {
            records: Vec::new(),
            effects: Vec::new(),
            promises: Vec::new(),
        }
    }
}

/// A record as bytes: what a journal keeps, and what other members of a journal are sent.
pub trait Journaled: Sized {
    /// Appends the record's bytes.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads back what [`Journaled::encode`] wrote; `None` if the bytes are not a record of a known version. Everything
    /// is checked, and nothing is allocated for what is not there.
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// A deterministic state machine, turned by a host, remembered by a journal.
///
/// Its life: it is made empty and applies what its journal has. Then it either decides ([`Machine::recovered`]) or goes
/// on applying what another one decides ([`Machine::follow`]), until it is called to decide as well. A machine that
/// shall decide no longer is dropped, since it may have decided what never became so; its successor applies the journal
/// from the beginning.
pub trait Machine {
    /// Imperative: what somebody wants.
    type Request;
    /// Past tense: what is now so.
    type Record: Journaled;
    /// Imperative, to the host.
    type Effect;
    /// What the host shows of it after each turn.
    type Status;

    /// Decides. Afterwards all pushed records are applied and stand in `outcome.records`.
    fn handle(
        &mut self,
        now: Timestamp,
        request: Self::Request,
        outcome: &mut Outcome<Self::Record, Self::Effect>,
    );

    /// Takes over a record, at start-up or where somebody else has decided: changes contents only, decides nothing.
    /// What `outcome` asks for is this node's matter; it has no records.
    fn apply(
        &mut self,
        index: Index,
        record: Self::Record,
        outcome: &mut Outcome<Self::Record, Self::Effect>,
    );

    /// Everything on record has been applied, and this machine decides from now on. `closed` if whoever decided before
    /// ended in good order: all that it did is on record.
    fn recovered(&mut self, closed: bool);

    /// Replay is over, and this machine goes on applying what is decided elsewhere.
    fn follow(&mut self);

    /// When it wants to be turned although nobody asks for anything, in milliseconds since the Unix epoch; `u64::MAX` for never.
    fn wakes_at_ms(&self) -> u64;

    /// Its numbers. All are kept as they change; asking costs nothing.
    fn status(&self) -> Self::Status;
}
