//! Three to five nodes in one thread: each with its log, its groups and its copies of some replicated queues, on a
//! network that a seed delays, loses, doubles and cuts, while clients on the nodes publish, consume and acknowledge.
//! Nodes are killed, lose their power, stand still and come back; at the end everything heals, and all is looked at.
//!
//! What must hold is held against two books. [`history`] is what the groups agreed on: every committed record, as any
//! node told it, and what follows from these records by a model of its own. [`ledger`] is what clients were told. What
//! leaves a node must be in the history by then, and what the history takes from a client must have its reason there.
//!
//! Reading order: `network`, `node` (one node, and `observed`: what its groups tell), [`history`], [`ledger`],
//! `access` (a node's way to queues, wherever they are led), `declared` (what clients and policies say of queues), `terms`
//! (what these may do then), `policies` (they change), [`exercised`] (what of all that has happened), `clients` and `returns`
//! (what these give back), `letters` (dead letters), `theme`, `faults` and `aim` (what goes wrong), `rot` (what is found of it
//! later), `members` (who has copies), `nodes` (all of them together), [`run`] (what a seed does), `invariants`.

mod access;
mod aim;
mod clients;
pub mod coverage;
mod declared;
pub mod exercised;
mod faults;
pub mod history;
mod invariants;
pub mod ledger;
mod letters;
mod members;
mod mutant;
pub(crate) mod network;
mod node;
mod nodes;
mod observed;
mod policies;
mod returns;
mod rot;
pub mod run;
mod terms;
mod theme;

pub use ledger::Counts;
pub use mutant::Mutant;
pub use run::{Outcome, run, run_at, run_told};
pub use theme::Theme;
