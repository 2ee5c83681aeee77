//! The threads that drive all connections.
