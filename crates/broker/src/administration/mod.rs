//! What operators change and see.

pub mod administrator;
pub mod draft;
pub mod evenly;
pub mod new_vhost;
pub mod operations;
pub mod overview;
pub mod parameters;
pub mod policies;
pub mod rebalance;
pub mod replicas;
