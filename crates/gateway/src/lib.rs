//! Room gateway: built in its own change.
