//! The machines that hold messages. Now one: [`fifo`], the classic queue; and [`seen`], which knows what has passed an exchange that
//! lets nothing pass twice. Beside them [`store`], which knows where the bytes of messages are.
//!
//! This crate has no I/O, no clock, no randomness, no thread, no async. It never sees a frame, a socket, a file or
//! a client: what the host ties to requests ([`fifo::Ends`]) is carried through and never looked into.
//!
//! Reading order: [`fifo::request`], [`fifo::record`], [`fifo::effect`] (the grammar), then `contents` (what is known of
//! messages; journaled) and `dispatch` (who gets them; never journaled), and `fifo` itself; then [`store::grammar`] and `store`.

mod encoding;
pub mod fifo;
pub mod seen;
mod seq_set;
pub mod store;
