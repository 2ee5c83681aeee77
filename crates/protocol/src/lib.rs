//! Room protocol: built in its own change.
