//! How a node ends that waits for something while its power is cut.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// What unwinds the node when it waits for something and the power is cut.
pub(crate) struct PowerCut;

/// Calls `run`; `None` if the power was cut while it waited for something.
///
/// # Panics
/// If `run` does, for another reason.
pub fn until_power_cut<T>(run: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(value) => Some(value),
        Err(payload) if payload.is::<PowerCut>() => None,
        Err(payload) => resume_unwind(payload),
    }
}
