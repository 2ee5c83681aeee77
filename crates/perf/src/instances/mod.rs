//! Waiting until as many instances are there as were expected.
