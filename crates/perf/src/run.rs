//! One run from beginning to end.
