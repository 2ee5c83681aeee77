//! What is done with messages: publishing, consuming, dead letters, browsing.

pub mod browse;
pub mod carbon_copies;
pub mod consume;
pub mod dead_letters;
pub mod own_exchanges;
pub mod publish;
pub mod streams;
pub mod unconfirmed;
pub mod x_death;
