//! Metrics that others collect.
