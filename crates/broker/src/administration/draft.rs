//! Many changes at once: tried on a copy of the catalog first, then made all together or not at all.

use crate::administration::administrator::Administrator;
use crate::topology::no_answer;
use catalog::{Answer, Catalog, Effect, Record, Refusal, Request, View};
use model::{Machine, Outcome, Timestamp};
use std::sync::{Mutex, PoisonError};

/// How often a draft is made anew because somebody else has changed something meanwhile.
const ROUNDS: usize = 16;

/// Changes that are only tried so far, and what would exist with them.
pub struct Draft {
    catalog: Catalog<()>,
    outcome: Outcome<Record, Effect<()>>,
    requests: Vec<Request>,
    /// The generation of what it is a copy of.
    begun: u64,
    now: Timestamp,
}

/// A place in a draft to come back to.
pub struct Mark {
    view: View,
    requests: usize,
}

impl Draft {
    fn new(view: View, now: Timestamp) -> Self {
        Self {
            begun: view.generation(),
            catalog: Catalog::of(view),
            outcome: Outcome::default(),
            requests: Vec::new(),
            now,
        }
    }

    /// What would exist.
    pub fn view(&self) -> View {
        self.catalog.view()
    }

    /// Where it is now.
    pub fn mark(&self) -> Mark {
        Mark {
            view: self.view(),
            requests: self.requests.len(),
        }
    }

    /// True if something was changed since then.
    pub fn has_changed(&self, mark: &Mark) -> bool {
        self.requests.len() > mark.requests
    }

    /// Takes back what came after a mark.
    pub fn back_to(&mut self, mark: Mark) {
        if self.has_changed(&mark) {
            self.requests.truncate(mark.requests);
            self.catalog = Catalog::of(mark.view);
        }
    }

    /// Tries a request. One that changes nothing is not kept.
    pub(crate) fn try_out(&mut self, request: Request) -> Result<Answer, Refusal> {
        let kept = request.clone();
        self.catalog
            .handle(self.now, request.asked_by(()), &mut self.outcome);
        let Outcome {
            records,
            effects,
            promises,
        } = &mut self.outcome;
        let is_change = !records.is_empty();
        records.clear();
        let mut answer = None;
        for effect in effects.drain(..).chain(promises.drain(..)) {
            if let Effect::Reply(_, given) = effect {
                answer = Some(given);
            }
        }
        let answer = answer.unwrap_or_else(|| Err(no_answer()))?;
        if is_change {
            self.requests.push(kept);
        }
        Ok(answer)
    }
}

impl Administrator<'_> {
    /// Makes a draft, and then what it says: all of it at once, or nothing if `draw` says so. It is drawn anew if
    /// somebody else has changed something before it could be made. What `draw` does with the administrator it gets is
    /// only tried.
    ///
    /// # Errors
    /// What `draw` says, or that the log failed.
    pub fn all_or_nothing<T, E: From<Refusal>>(
        &self,
        mut draw: impl FnMut(&Administrator<'_>, &Mutex<Draft>) -> Result<T, E>,
    ) -> Result<T, E> {
        for _ in 0..ROUNDS {
            let draft = self.draft();
            let drawn = draw(&self.on(&draft), &draft)?;
            let draft = draft.into_inner().unwrap_or_else(PoisonError::into_inner);
            if self.make(draft)? {
                self.broker().make_durable()?;
                return Ok(drawn);
            }
        }
        let reason = "others change what exists all the time: try again".to_owned();
        Err(Refusal::Internal { reason }.into())
    }

    /// A copy of what exists, to try changes on.
    pub fn draft(&self) -> Mutex<Draft> {
        let view = self.broker().view();
        Mutex::new(Draft::new((*view).clone(), self.broker().node().now()))
    }

    /// Makes what a draft says. False if it says it of what exists no more; then nothing was changed.
    fn make(&self, draft: Draft) -> Result<bool, Refusal> {
        let (mut limited, mut weak) = (Vec::new(), Vec::new());
        for request in &draft.requests {
            match request {
                Request::SetLimits { of, .. } => limited.push(of.clone()),
                Request::PutUser {
                    name,
                    password: Some(hash),
                    ..
                } if hash.algorithm().is_weak() => weak.push(name.clone()),
                _ => {}
            }
        }
        let topology = self.broker().topology();
        if !topology.enact(self.name(), draft.begun, draft.requests)? {
            return Ok(false);
        }
        limited.iter().for_each(|of| self.follow_limits(of));
        weak.iter().for_each(|name| Self::warn_of_weakness(name));
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::broker::Broker;
    use crate::{DeclareQueue, Options};
    use catalog::QuotaOf;
    use std::sync::Arc;

    fn open() -> (tempfile::TempDir, Arc<Broker>) {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        (dir, broker)
    }

    fn queue(name: &str) -> DeclareQueue {
        DeclareQueue {
            name: name.into(),
            durable: true,
            ..DeclareQueue::default()
        }
    }

    #[test]
    fn a_draft_that_is_refused_leaves_nothing_and_one_that_is_not_makes_everything() {
        let (_dir, broker) = open();
        let by = broker.administrator("guest");
        let draw = |last: &'static str| {
            by.all_or_nothing(|by, _| {
                by.create_vhost("shop")?;
                by.set_limit(QuotaOf::Vhost("shop".into()), "max-queues", Some(2))?;
                by.install_queue("shop", queue("a"))?;
                assert!(by.view().queue("shop", "a").is_some());
                by.install_queue(last, queue("b"))
            })
        };
        assert!(matches!(draw("nope"), Err(Refusal::NoVhost { .. })));
        assert!(broker.view().vhost("shop").is_none());
        draw("shop").unwrap();
        let view = broker.view();
        assert!(view.queue("shop", "a").is_some() && view.queue("shop", "b").is_some());
        let id = view.queue("shop", "a").unwrap().id;
        assert!(broker.queues().get(id).is_some());
        assert!(by.install_queue("shop", queue("c")).is_err());
        broker.close();
    }

    #[test]
    fn a_draft_is_drawn_anew_when_somebody_else_was_first() {
        let (_dir, broker) = open();
        let by = broker.administrator("guest");
        let mut rounds = 0;
        by.all_or_nothing(|draft, _| {
            rounds += 1;
            if rounds == 1 {
                by.create_vhost("shop").unwrap();
            }
            assert_eq!(draft.view().vhost("shop").is_some(), rounds == 2);
            draft.create_vhost("shop")?;
            draft.install_queue("shop", queue("a"))
        })
        .unwrap();
        assert_eq!(rounds, 2);
        assert!(broker.view().queue("shop", "a").is_some());
        broker.close();
    }

    #[test]
    fn what_came_after_a_mark_is_taken_back() {
        let (_dir, broker) = open();
        let by = broker.administrator("guest");
        by.all_or_nothing(|by, draft| {
            by.create_vhost("shop")?;
            let mark = draft.lock().unwrap().mark();
            by.create_vhost("shop")?;
            assert!(!draft.lock().unwrap().has_changed(&mark));
            by.install_queue("shop", queue("a"))?;
            draft.lock().unwrap().back_to(mark);
            by.install_queue("shop", queue("b"))
        })
        .unwrap();
        let view = broker.view();
        assert!(view.queue("shop", "a").is_none() && view.queue("shop", "b").is_some());
        broker.close();
    }
}
