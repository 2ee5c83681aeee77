//! What a session has asked the catalog while another node decides: its client takes no further step until the answer
//! is here, then the same step again, which finds the answer.

use crate::clients::outbox::{ChannelId, Event, Outbox};
use crate::topology::{Answered, Decision};
use catalog::Refusal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The step of a session that waits for the catalog, if one does.
#[derive(Default)]
pub struct Undecided {
    step: Mutex<Option<Step>>,
    /// Whoever takes the steps may wait for the catalog.
    waits: AtomicBool,
}

struct Step {
    /// Whose step it is: one of another channel was given up.
    channel: ChannelId,
    answered: Arc<Mutex<Option<Answered>>>,
    /// The session was told to wait, and has not been asked why.
    is_news: bool,
}

impl Undecided {
    /// From now on steps are taken on threads that may wait, and come back decided.
    pub fn wait(&self) {
        self.waits.store(true, Ordering::Relaxed);
    }

    /// What the catalog decided, or [`Refusal::Undecided`] if that comes later: the outbox is told then.
    pub fn answer(&self, outbox: &Arc<Outbox>, channel: ChannelId, decision: Decision) -> Answered {
        let awaited = match decision {
            Decision::Made(answered) => return answered,
            awaited if self.waits.load(Ordering::Relaxed) => return awaited.wait(),
            awaited => awaited,
        };
        let answered = Arc::<Mutex<Option<Answered>>>::default();
        *self.lock() = Some(Step {
            channel,
            answered: answered.clone(),
            is_news: true,
        });
        let outbox = outbox.clone();
        awaited.then(move |answer| {
            *answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
            outbox.send(Event::Permitted);
        });
        Err(Refusal::Undecided)
    }

    /// The answer to a step that is taken again; `None` if it is taken for the first time.
    pub fn resume(&self, channel: ChannelId) -> Option<Answered> {
        let mut waiting = self.lock();
        let mut step = waiting.take().filter(|step| step.channel == channel)?;
        let answered = step
            .answered
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        Some(answered.unwrap_or_else(|| {
            step.is_news = true;
            *waiting = Some(step);
            Err(Refusal::Undecided)
        }))
    }

    /// After a refusal: true if it was none, because the catalog has not decided yet.
    pub fn is_news(&self) -> bool {
        let mut waiting = self.lock();
        waiting
            .as_mut()
            .is_some_and(|step| std::mem::take(&mut step.is_news))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Step>> {
        self.step.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
