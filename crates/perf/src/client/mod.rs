//! A blocking client of the broker: login, set-up, single operations.
