//! The exchange, the queues and the bindings of a run.
