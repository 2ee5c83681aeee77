//! What the broker knows of clients, and how it speaks with them: users and what they may do, what is told to a
//! connection, and what slows publishers down.

pub mod access;
pub mod alarms;
pub mod close_reason;
pub mod outbox;
pub mod pressure;
