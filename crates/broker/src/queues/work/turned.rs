//! Something that is turned by whoever brings it something, unless somebody does: then they find it in the mailbox.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// A state, and what was brought for it. Nobody ever waits for the one who turns it.
#[derive(Debug)]
pub(super) struct Turned<S, M> {
    state: Mutex<S>,
    mailbox: Mutex<Vec<M>>,
    mail: AtomicBool,
}

impl<S, M> Turned<S, M> {
    pub fn new(state: S) -> Self {
        Self {
            state: Mutex::new(state),
            mailbox: Mutex::default(),
            mail: AtomicBool::new(false),
        }
    }

    /// Puts this into the mailbox; [`Turned::turn`] is due.
    pub fn put(&self, brought: M) {
        self.mailbox().push(brought);
        self.knock();
    }

    /// There is something to look at, though nothing in the mailbox; [`Turned::turn`] is due.
    pub fn knock(&self) {
        self.mail.store(true, Ordering::SeqCst);
    }

    /// Hands `turn` what was brought, until there is nothing more; or leaves that to the one who does so already.
    pub fn turn(&self, mut turn: impl FnMut(&mut S, Vec<M>)) {
        while self.mail.load(Ordering::SeqCst) {
            // Whoever has it looks at the mail after letting go.
            let mut state = match self.state.try_lock() {
                Ok(state) => state,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return,
            };
            self.mail.store(false, Ordering::SeqCst);
            let brought = std::mem::take(&mut *self.mailbox());
            turn(&mut state, brought);
        }
    }

    /// Whether nobody turns it, nothing is brought, and the state is as asked. As long as nobody can bring anything, it stays so.
    /// If not, [`Turned::turn`] is due where something [`is left`](Turned::is_left).
    pub fn is(&self, asked: impl FnOnce(&S) -> bool) -> bool {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        !self.mail.load(Ordering::SeqCst) && asked(&state)
    }

    /// Something was brought that nobody has turned yet: whoever did may have left that to one who only looked.
    pub fn is_left(&self) -> bool {
        self.mail.load(Ordering::SeqCst)
    }

    /// What is found in the state, between two turns. [`Turned::turn`] is due: who brought something meanwhile has left it to
    /// whoever looks.
    pub fn look<T>(&self, look: impl FnOnce(&S) -> T) -> T {
        look(&self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn mailbox(&self) -> MutexGuard<'_, Vec<M>> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_brought_in_a_turn_has_the_next_one_and_a_knock_has_one_without_anything() {
        let turned = Turned::new(Vec::new());
        turned.put(3_u64);
        turned.turn(|seen: &mut Vec<u64>, brought| {
            for count in brought {
                seen.push(count);
                if count > 0 {
                    turned.put(count - 1);
                    turned.turn(|_, _| unreachable!("somebody has it"));
                    assert!(!turned.is(|_| true), "it is being turned");
                }
            }
        });
        assert!(turned.is(|seen| *seen == [3, 2, 1, 0]));
        assert!(!turned.is(|_| {
            turned.put(7);
            turned.turn(|_, _| unreachable!("somebody looks at it"));
            false
        }));
        assert!(turned.is_left(), "nobody else looks at it");
        turned.turn(|seen, brought| seen.extend(brought));
        assert!(turned.is(|seen| seen.last() == Some(&7)) && !turned.is_left());
        turned.knock();
        assert!(!turned.is(|_| true), "there is something to look at");
        turned.turn(|seen, brought| seen.push(8 + brought.len() as u64));
        assert!(turned.is(|seen| seen.last() == Some(&8)));
    }
}
