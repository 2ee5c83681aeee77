//! What becomes of a request: the catalog decides at once where this node turns it, and later where another node does.

use super::Done;
use catalog::{Answer, Refusal};
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What the catalog says to a request.
pub type Answered = Result<Done<Answer>, Refusal>;

/// The node that decides for the catalog, as it is seen from one that only applies its records.
pub trait CatalogLeader: Send + Sync {
    /// Asks for a decision about a request ([`catalog::Request::encode`]) of this user, if it is one's. Requests are
    /// decided in the order in which they were asked. The question is answered once, whatever happens: after everything
    /// that the answer speaks of has been applied here ([`crate::Broker::apply_catalog`]), or by a refusal if nobody
    /// can decide.
    fn ask(&self, user: Option<Arc<str>>, request: Vec<u8>, question: Arc<Question>);
}

/// A request that another node decides. Whoever asked is told of the answer.
#[derive(Default)]
pub struct Question {
    state: Mutex<State>,
    answered: Condvar,
}

#[derive(Default)]
enum State {
    /// Nobody has answered, nobody has said what becomes of the answer.
    #[default]
    Open,
    /// This is to be done with the answer.
    Followed(Box<dyn FnOnce(Answered) + Send>),
    Answered(Answered),
    /// Whoever asked has the answer.
    Over,
}

impl Question {
    /// The answer, which is applied and committed. Only the first one counts.
    pub fn answer(&self, answer: Result<Answer, Refusal>) {
        let answered = answer.map(|value| Done { value, durable: None });
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Open => {
                *state = State::Answered(answered);
                self.answered.notify_all();
            }
            State::Followed(act) => {
                drop(state);
                act(answered);
            }
            known => *state = known,
        }
    }

    fn then(&self, act: impl FnOnce(Answered) + Send + 'static) {
        let mut state = self.lock();
        match mem::replace(&mut *state, State::Over) {
            State::Answered(answered) => {
                drop(state);
                act(answered);
            }
            _ => *state = State::Followed(Box::new(act)),
        }
    }

    /// Nobody has answered yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.lock(), State::Open)
    }

    /// Waits for the answer, on a thread that may wait.
    pub(crate) fn wait(&self) -> Answered {
        let is_open = |state: &mut State| matches!(state, State::Open);
        let state = self.answered.wait_while(self.lock(), is_open);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, State::Over) {
            State::Answered(answered) => answered,
            _ => Err(no_answer()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where a request stands.
#[must_use]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every one is made, and goes no further than whoever asked"
)]
pub enum Decision {
    /// It is decided.
    Made(Answered),
    /// Another node decides, and the answer comes here.
    Awaited(Arc<Question>),
}

impl Decision {
    /// Has this done with the answer: at once if there is one, else on the thread that brings it.
    pub fn then(self, act: impl FnOnce(Answered) + Send + 'static) {
        match self {
            Self::Made(answered) => act(answered),
            Self::Awaited(question) => question.then(act),
        }
    }

    /// Waits for the answer, on a thread that may wait.
    pub fn wait(self) -> Answered {
        match self {
            Self::Made(answered) => answered,
            Self::Awaited(question) => question.wait(),
        }
    }
}

/// A defect: every request has an answer.
pub fn no_answer() -> Refusal {
    Refusal::Internal {
        reason: "the catalog gave no answer".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(answered: Answered) -> Option<Answer> {
        answered.ok().map(|done| done.value)
    }

    #[test]
    fn an_answer_reaches_whoever_asked_whether_it_comes_before_or_after_they_said_what_to_do_with_it() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let tell = |question: &Question| {
            let told = told.clone();
            question.then(move |answered| told.lock().unwrap().push(value(answered)));
        };
        let (early, late) = (Question::default(), Question::default());
        early.answer(Ok(Answer::Cleared(1)));
        early.answer(Ok(Answer::Cleared(7)));
        tell(&early);
        tell(&late);
        late.answer(Ok(Answer::Cleared(2)));
        late.answer(Ok(Answer::Cleared(7)));
        let expected = [Some(Answer::Cleared(1)), Some(Answer::Cleared(2))];
        assert_eq!(*told.lock().unwrap(), expected);
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "somebody has to wait while the answer comes"
    )]
    fn who_may_wait_waits_for_the_answer() {
        let question = Arc::new(Question::default());
        let waiting = question.clone();
        let thread = std::thread::spawn(move || value(Decision::Awaited(waiting).wait()));
        question.answer(Ok(Answer::Done));
        assert_eq!(thread.join().unwrap(), Some(Answer::Done));
    }
}
