//! Whether somebody who writes to the log and to segments has been closed. What he began before ends before the one who closes
//! him goes on; what he would do afterwards is left undone: by then another one may bear his name.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// See the module. All clones are of one.
#[derive(Clone, Debug, Default)]
pub struct Closed(Arc<Mutex<bool>>);

impl Closed {
    /// From now on he is. Waits for what he does just now.
    pub fn close(&self) {
        *self.lock() = true;
    }

    /// Whether he is.
    pub fn is_closed(&self) -> bool {
        *self.lock()
    }

    /// Does this, unless he is; it ends before he is closed, so it waits for no disk and for no lock under which one is closed.
    pub fn unless<T>(&self, act: impl FnOnce() -> T) -> Option<T> {
        let closed = self.lock();
        (!*closed).then(act)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
