//! What must hold, one file each.

pub mod acks;
pub mod active;
pub mod counts;
pub mod dead;
pub mod expired;
pub mod invented;
pub mod lost;
pub mod order;
pub mod space;
