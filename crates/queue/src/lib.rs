//! Room queue: built in its own change.
