//! Room storage: built in its own change.
