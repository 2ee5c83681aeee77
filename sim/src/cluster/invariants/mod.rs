//! What must hold, one file each.

pub mod acks;
pub mod active;
pub mod agreed;
pub mod answers;
pub mod bounded;
pub mod contents;
pub mod counts;
pub mod dead;
pub mod deliveries;
pub mod deposed;
pub mod hands;
pub mod hangs;
pub mod healed;
pub mod leaders;
pub mod levels;
pub mod limits;
pub mod lost;
pub mod members;
pub mod order;
pub mod reasons;
pub mod unused;
pub mod waits;
