//! What is counted and timed.
