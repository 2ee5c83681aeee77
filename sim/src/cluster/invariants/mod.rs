//! What must hold, one file each.

pub mod acks;
pub mod agreed;
pub mod answers;
pub mod deliveries;
pub mod hands;
pub mod healed;
pub mod leaders;
pub mod lost;
pub mod order;
pub mod reasons;
