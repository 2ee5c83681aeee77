//! What must hold, one file each.

pub mod acks;
pub mod invented;
pub mod lost;
pub mod order;
pub mod space;
