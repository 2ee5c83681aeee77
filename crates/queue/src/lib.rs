//! The machines that hold messages. Now one: [`fifo`], the classic queue; and [`seen`], which knows what has passed an exchange that
//! lets nothing pass twice.
//!
//! This room has no I/O, no clock, no randomness, no thread, no async. It never sees a frame, a socket, a file or
//! a client: what the host ties to requests ([`fifo::Ends`]) is carried through and never looked into.
//!
//! Reading order: [`fifo::request`], [`fifo::record`], [`fifo::effect`] (the grammar), then `contents` (which
//! messages exist; journaled) and `dispatch` (who gets them; never journaled), and `fifo` itself.

pub mod fifo;
pub mod seen;
