//! A call that waits for other nodes, such as the start of a broker that is one of several. It has a thread of its own, which
//! only ever runs while whoever has begun it stands still: so it does the same each time, as if it were called and came back
//! in the middle.

use crate::power_cut::{PowerCut, until_power_cut};
use std::cell::RefCell;
use std::panic::resume_unwind;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Who runs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Caller,
    Aside,
    /// The call is over.
    Over,
}

struct Baton {
    turn: Mutex<(Turn, bool)>,
    passed: Condvar,
}

thread_local! {
    static OWN: RefCell<Option<Arc<Baton>>> = const { RefCell::new(None) };
}

/// The call that runs on this thread waits: whoever has begun it goes on until it has this one go on. False if this thread has no
/// such call. Unwinds if the call is given up.
pub fn gives_way() -> bool {
    let Some(baton) = OWN.with_borrow(Clone::clone) else {
        return false;
    };
    // What is unwound waits for nobody else.
    if std::thread::panicking() {
        return false;
    }
    baton.pass(Turn::Caller);
    if baton.await_aside() {
        resume_unwind(Box::new(PowerCut));
    }
    true
}

impl Baton {
    fn lock(&self) -> MutexGuard<'_, (Turn, bool)> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pass(&self, to: Turn) {
        self.lock().0 = to;
        self.passed.notify_all();
    }

    /// Whether it is given up by then.
    fn await_aside(&self) -> bool {
        let waits = |it: &mut (Turn, bool)| it.0 != Turn::Aside;
        let turn = self.passed.wait_while(self.lock(), waits);
        turn.unwrap_or_else(PoisonError::into_inner).1
    }
}

/// Whatever becomes of the call, the caller goes on.
struct Ends(Arc<Baton>);

impl Drop for Ends {
    fn drop(&mut self) {
        OWN.set(None);
        self.0.pass(Turn::Over);
    }
}

/// A call that has begun.
pub struct Aside<T> {
    baton: Arc<Baton>,
    thread: Option<JoinHandle<Option<T>>>,
}

impl<T: Send + 'static> Aside<T> {
    /// Nothing of it runs before it is told to go on.
    ///
    /// # Errors
    /// The system gives no thread.
    pub fn begin(call: impl FnOnce() -> T + Send + 'static) -> std::io::Result<Self> {
        let baton = Arc::new(Baton {
            turn: Mutex::new((Turn::Caller, false)),
            passed: Condvar::new(),
        });
        let own = baton.clone();
        let run = move || {
            let _ends = Ends(own.clone());
            if own.await_aside() {
                return None;
            }
            OWN.set(Some(own));
            until_power_cut(call)
        };
        let thread = std::thread::Builder::new().spawn(run)?;
        Ok(Self {
            baton,
            thread: Some(thread),
        })
    }

    /// It goes on until it waits again. What came of it, if it is over: nothing, if the power was cut meanwhile.
    ///
    /// # Panics
    /// If the call does.
    pub fn go_on(&mut self) -> Option<Option<T>> {
        self.baton.pass(Turn::Aside);
        let waits = |it: &mut (Turn, bool)| it.0 == Turn::Aside;
        let turn = self.baton.passed.wait_while(self.baton.lock(), waits);
        let is_over = turn.unwrap_or_else(PoisonError::into_inner).0 == Turn::Over;
        if !is_over {
            return None;
        }
        let ended = self.thread.take().map(JoinHandle::join);
        match ended {
            Some(Ok(came)) => Some(came),
            Some(Err(panicked)) => resume_unwind(panicked),
            None => Some(None),
        }
    }
}

impl<T> Drop for Aside<T> {
    /// It is given up, as by a process that is killed.
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.baton.lock().1 = true;
            self.baton.pass(Turn::Aside);
            // Whatever it unwinds with, nobody waits for it.
            drop(thread.join());
        }
    }
}
