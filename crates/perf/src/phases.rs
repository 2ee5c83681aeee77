//! Fill, then drain.
