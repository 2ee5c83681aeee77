//! What a node asks that has no link: one question, one answer, on a connection of its own that is over then.

use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

/// The most bytes of a question and of an answer.
pub const QUESTION_LIMIT: usize = 64 << 10;

/// Where the answer to a question is put. It may be given on any thread; if it is dropped there is none.
#[derive(Debug)]
pub struct Reply(Arc<Awaited>);

/// An answer that is waited for.
#[derive(Debug, Default)]
pub(crate) struct Awaited(Mutex<Slot>);

#[derive(Debug, Default)]
struct Slot {
    answer: Option<Bytes>,
    is_over: bool,
    waker: Option<Waker>,
}

impl Reply {
    /// A place for an answer, and where it is looked for.
    pub(crate) fn new() -> (Self, Arc<Awaited>) {
        let awaited = Arc::<Awaited>::default();
        (Self(awaited.clone()), awaited)
    }

    /// Gives the answer, of at most [`QUESTION_LIMIT`] bytes.
    pub fn give(self, answer: Bytes) {
        self.0.lock().answer = Some(answer);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let mut slot = self.0.lock();
        slot.is_over = true;
        if let Some(waker) = slot.waker.take() {
            waker.wake();
        }
    }
}

impl Awaited {
    fn lock(&self) -> MutexGuard<'_, Slot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer, or that there is none; `None` while it is waited for, and `waker` is woken.
    pub fn look(&self, waker: &Waker) -> Option<Option<Bytes>> {
        let mut slot = self.lock();
        if !slot.is_over {
            slot.waker = Some(waker.clone());
            return None;
        }
        Some(slot.answer.take())
    }
}
