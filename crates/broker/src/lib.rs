//! Room broker: built in its own change.
