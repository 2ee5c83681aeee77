//! Room catalog: built in its own change.
