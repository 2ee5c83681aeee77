//! Many requests as one: all of them, or none.

use super::{Catalog, Turn};
use crate::{Answer, Refusal, Request};
use std::marker::PhantomData;

impl<R> Catalog<R> {
    /// Does all of it. At the first refusal everything is as it was, and nothing of it goes on record.
    pub(super) fn all(
        &mut self,
        of: Option<u64>,
        requests: Vec<Request>,
        turn: &mut Turn<R>,
    ) -> Result<Answer, Refusal> {
        if of.is_some_and(|of| of != self.view.generation()) {
            return Ok(Answer::Outdated);
        }
        let before = self.copy();
        let (records, effects) = (turn.records.len(), turn.effects.len());
        for request in requests {
            let done = match request {
                Request::All { .. } => Err(Refusal::Internal {
                    reason: "many requests as one are not part of another such request".to_owned(),
                }),
                request => request.check().and_then(|()| self.decide(request, turn)),
            };
            if let Err(refusal) = done {
                *self = before;
                turn.records.truncate(records);
                turn.effects.truncate(effects);
                return Err(refusal);
            }
        }
        Ok(Answer::Done)
    }

    /// The same catalog once more. What exists is shared; the indexes are copied, some bytes for each queue.
    fn copy(&self) -> Self {
        Self {
            view: self.view.clone(),
            queues: self.queues.clone(),
            transient: self.transient.clone(),
            homes: self.homes.clone(),
            copies: self.copies.clone(),
            next_queue: self.next_queue,
            deferred: self.deferred.clone(),
            replies: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DeclareQueue, Effect, Incarnation, NodeConnection, NodeId};
    use model::{Machine, Outcome, Timestamp};

    fn vhost(name: &str) -> Request {
        Request::CreateVhost { name: name.into() }
    }

    fn queue(vhost: &str, name: &str) -> Request {
        Request::DeclareQueue {
            vhost: vhost.into(),
            declare: DeclareQueue {
                name: name.into(),
                durable: true,
                ..DeclareQueue::default()
            },
            by: NodeConnection::of_node(Incarnation {
                node: NodeId(1),
                number: 1,
            }),
            unique: [7; 16],
        }
    }

    fn ask(
        catalog: &mut Catalog<()>,
        of: Option<u64>,
        requests: Vec<Request>,
    ) -> (Result<Answer, Refusal>, usize, usize) {
        let mut turn = Outcome::default();
        catalog.handle(
            Timestamp(0),
            Request::All { of, requests }.asked_by(()),
            &mut turn,
        );
        let (mut answer, mut orders) = (None, 0);
        for effect in turn.effects.into_iter().chain(turn.promises) {
            match effect {
                Effect::Reply((), said) => answer = Some(said),
                _ => orders += 1,
            }
        }
        (answer.unwrap(), turn.records.len(), orders)
    }

    #[test]
    fn all_is_done_or_nothing_and_nothing_of_what_is_refused_goes_on_record() {
        let mut catalog = Catalog::new();
        let (said, records, orders) = ask(
            &mut catalog,
            None,
            vec![vhost("a"), queue("a", "q"), queue("a", "r")],
        );
        assert_eq!(said, Ok(Answer::Done));
        assert!(records > 2 && orders >= 2, "{records} {orders}");
        let (before, next) = (catalog.view().generation(), catalog.next_queue());
        let refused = vec![vhost("b"), queue("b", "q"), queue("nope", "q"), vhost("c")];
        let (said, records, orders) = ask(&mut catalog, None, refused);
        assert!(matches!(said, Err(Refusal::NoVhost { .. })), "{said:?}");
        assert_eq!((records, orders), (0, 0));
        assert!(catalog.view().vhost("b").is_none());
        assert_eq!(
            (catalog.view().generation(), catalog.next_queue()),
            (before, next)
        );
        let within = Request::All {
            of: None,
            requests: vec![vhost("d")],
        };
        assert!(ask(&mut catalog, None, vec![vhost("d"), within]).0.is_err());
        assert!(catalog.view().vhost("d").is_none());
    }

    #[test]
    fn nothing_is_done_to_another_generation_than_was_said() {
        let mut catalog = Catalog::new();
        let first = catalog.view().generation();
        assert_eq!(
            ask(&mut catalog, Some(first), vec![vhost("a")]).0,
            Ok(Answer::Done)
        );
        let (said, records, _) = ask(&mut catalog, Some(first), vec![vhost("b")]);
        assert_eq!((said, records), (Ok(Answer::Outdated), 0));
        assert!(catalog.view().vhost("b").is_none());
    }

    #[test]
    fn many_have_bytes_and_none_is_read_that_has_many_in_it() {
        let all = |requests| Request::All {
            of: Some(7),
            requests,
        };
        let request = all(vec![vhost("a"), queue("a", "q")]);
        let bytes = request.encode().unwrap();
        assert_eq!(Request::decode(&bytes), Some(request.clone()));
        for length in 0..bytes.len() {
            let cut = Request::decode(&bytes[..length]);
            // Cut between two of them it is fewer.
            assert!(
                cut.is_none_or(|cut| matches!(cut, Request::All { requests, .. } if requests.len() < 2)),
                "{length}"
            );
        }
        assert_eq!(all(vec![request]).encode(), None);
        assert_eq!(
            Request::decode(&all(Vec::new()).encode().unwrap()),
            Some(all(Vec::new()))
        );
        let mut deep = vec![2, 26, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        deep.extend((bytes.len() as u32).to_le_bytes());
        deep.extend(&bytes);
        assert_eq!(Request::decode(&deep), None);
    }
}
