//! What is told during a run and at its end.
