//! When messages are due.
