//! A catalog that another node decides, for tests: its answers come when the test says so.

use crate::broker::Broker;
use crate::topology::{CatalogLeader, Question, no_answer};
use catalog::{Answer, Catalog, Effect, Record, Refusal, Request};
use model::{Index, Journaled, Machine, Outcome, Timestamp};
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The other node.
pub struct LateCatalog {
    inner: Mutex<Inner>,
    asked: Condvar,
}

struct Inner {
    machine: Catalog<()>,
    /// How many records it has made.
    index: Index,
    waiting: VecDeque<(Vec<u8>, Arc<Question>)>,
}

/// What a decision brings: records as they come over the network, and the answer.
struct Decided {
    records: Vec<(Index, Vec<u8>)>,
    answer: Result<Answer, Refusal>,
}

impl LateCatalog {
    /// Another node that knows what exists on this one, and decides for it from now on.
    pub fn of(broker: &Broker) -> Arc<Self> {
        let inner = Inner {
            machine: Catalog::of((*broker.view()).clone()),
            index: 0,
            waiting: VecDeque::new(),
        };
        let late = Arc::new(Self {
            inner: Mutex::new(inner),
            asked: Condvar::new(),
        });
        broker.follow_catalog(late.clone());
        late
    }

    /// Decides what was asked first: the broker applies the records, then whoever asked has the answer. False if
    /// nothing was asked.
    pub fn decide_next(&self, broker: &Broker) -> bool {
        let mut inner = self.lock();
        let Some((request, question)) = inner.waiting.pop_front() else {
            return false;
        };
        let decided = inner.decide(&request);
        drop(inner);
        let records = decided.records.into_iter();
        broker.apply_catalog(
            records.filter_map(|(index, record)| Record::decode(&record).map(|record| (index, record))),
        );
        question.answer(decided.answer);
        true
    }

    /// Nobody decides the next request for too long.
    pub fn give_up_next(&self) -> bool {
        let Some((_, question)) = self.lock().waiting.pop_front() else {
            return false;
        };
        let reason = "nobody decides".into();
        question.answer(Err(Refusal::Internal { reason }));
        true
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.len()
    }

    /// Waits until something was asked.
    pub fn wait(&self) {
        let is_idle = |inner: &mut Inner| inner.waiting.is_empty();
        drop(self.asked.wait_while(self.lock(), is_idle));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn decide(&mut self, request: &[u8]) -> Decided {
        let mut answer = Err(no_answer());
        let mut outcome = Outcome::default();
        if let Some(request) = Request::decode(request) {
            self.machine
                .handle(Timestamp(0), request.asked_by(()), &mut outcome);
        }
        let Outcome {
            records,
            effects,
            promises,
        } = outcome;
        for effect in effects.into_iter().chain(promises) {
            if let Effect::Reply((), given) = effect {
                answer = given;
            }
        }
        let records = records.iter().map(|record| {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            self.index += 1;
            (self.index, bytes)
        });
        Decided {
            records: records.collect(),
            answer,
        }
    }
}

impl CatalogLeader for LateCatalog {
    fn ask(&self, _user: Option<Arc<str>>, request: Vec<u8>, question: Arc<Question>) {
        self.lock().waiting.push_back((request, question));
        self.asked.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Binding, ChannelId, DeclareQueue, Deleting, Event, Options, Outbox, PolicyKind, PutPolicy,
        QueueDeclared, QueueDeleted, Session,
    };
    use model::properties::Properties;
    use model::table::Table;
    use model::{Message, RouteBuf};
    use std::task::Waker;

    const CHANNEL: ChannelId = ChannelId(1);

    struct Stage {
        broker: Arc<Broker>,
        late: Arc<LateCatalog>,
        session: Arc<Session>,
        outbox: Arc<Outbox>,
        _dir: tempfile::TempDir,
    }

    impl Stage {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let broker = Broker::open(Options::new(dir.path())).unwrap();
            let late = LateCatalog::of(&broker);
            let user = broker
                .authenticate("guest", b"guest", "127.0.0.1".parse().unwrap())
                .unwrap();
            let outbox = Arc::new(Outbox::new());
            let session = broker.connect(user, "/", outbox.clone()).unwrap();
            Self {
                broker,
                late,
                session,
                outbox,
                _dir: dir,
            }
        }

        /// True if the client may try again.
        fn is_permitted(&self) -> bool {
            let mut events = Vec::new();
            self.outbox.take_now(&mut events);
            matches!(events[..], [Event::Permitted])
        }

        /// Takes a step of a client: it waits, the other node decides, and it is taken again.
        fn step<T: std::fmt::Debug>(&self, step: impl Fn() -> Result<T, Refusal>) -> Result<T, Refusal> {
            for _ in 0..2 {
                assert!(matches!(step(), Err(Refusal::Undecided)));
                assert!(self.session.must_ask() && !self.is_permitted());
            }
            assert_eq!(self.late.waiting(), 1, "it is asked once");
            assert!(self.late.decide_next(&self.broker) && self.is_permitted());
            let answer = step();
            assert!(!self.session.must_ask());
            answer
        }

        fn declare(&self, queue: DeclareQueue) -> Result<QueueDeclared, Refusal> {
            let declare = || self.session.declare_queue(CHANNEL, queue.clone());
            self.step(declare).map(|done| done.value)
        }

        /// Deletes a queue: it waits for its queue, then for the other node.
        fn delete(&self, name: &str) -> Result<QueueDeleted, Refusal> {
            let mut deleting = self.session.delete_queue(CHANNEL, name, false, false)?;
            for is_decided in [false, true] {
                let Deleting::Asked(deletion) = deleting else {
                    panic!("{deleting:?}")
                };
                assert_eq!(is_decided, self.late.decide_next(&self.broker));
                let mut events = Vec::new();
                self.outbox.take_now(&mut events);
                let answer = events.into_iter().find_map(|event| match event {
                    Event::Answer { question, answer, .. } if question == deletion.question() => Some(answer),
                    _ => None,
                });
                let answer = answer.expect("what was asked is answered");
                deleting = self.session.go_on_deleting(CHANNEL, deletion, answer)?;
            }
            match deleting {
                Deleting::Done(deleted) => Ok(deleted),
                Deleting::Asked(deletion) => panic!("{deletion:?}"),
            }
        }

        fn publish(&self, key: &str) {
            let mut publisher = self.session.publisher(CHANNEL, 1);
            let route = RouteBuf::new(b"amq.direct", key.as_bytes());
            publisher
                .publish(
                    &Message::new(route.as_route(), Properties::amqp091(b""), b"body"),
                    None,
                )
                .unwrap();
            publisher.flush();
        }
    }

    fn queue(name: &str) -> DeclareQueue {
        DeclareQueue {
            name: name.into(),
            durable: true,
            ..DeclareQueue::default()
        }
    }

    fn binding() -> Binding<'static> {
        Binding {
            source: "amq.direct",
            destination: "q",
            routing_key: b"k",
            arguments: Table::new(),
        }
    }

    #[test]
    fn what_is_declared_bound_and_deleted_is_so_when_the_other_node_has_decided_and_not_before() {
        let stage = Stage::new();
        assert_eq!(stage.declare(queue("q")).unwrap().name, "q");
        stage
            .step(|| stage.session.bind_queue(CHANNEL, binding()))
            .unwrap();
        stage.publish("k");
        assert_eq!(stage.declare(queue("q")).unwrap().ready, 1);
        stage
            .step(|| stage.session.unbind_queue(CHANNEL, binding()))
            .unwrap();
        stage.publish("k");
        assert_eq!(stage.delete("q").unwrap().ready, 1);
        assert!(stage.broker.view().queue("/", "q").is_none());
        stage.broker.close();
    }

    #[test]
    fn a_refusal_comes_as_late_as_an_answer_and_a_made_up_name_stays_the_same() {
        let stage = Stage::new();
        let refused = stage
            .step(|| stage.session.bind_queue(CHANNEL, binding()))
            .unwrap_err();
        assert!(matches!(refused, Refusal::NoQueue { .. }));
        let named = stage.declare(queue("")).unwrap().name;
        assert!(stage.broker.view().queue("/", &named).is_some());
        stage.broker.close();
    }

    #[test]
    fn the_answer_to_a_step_that_was_given_up_is_not_taken_for_another_one_s() {
        let stage = Stage::new();
        let declare = |channel, name| stage.session.declare_queue(ChannelId(channel), queue(name));
        assert!(declare(1, "first").is_err());
        assert!(stage.session.must_ask());
        // That channel is closed meanwhile.
        assert!(stage.late.decide_next(&stage.broker));
        assert!(matches!(declare(2, "second"), Err(Refusal::Undecided)));
        assert!(stage.late.decide_next(&stage.broker));
        assert_eq!(declare(2, "second").unwrap().value.name, "second");
        stage.broker.close();
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "somebody has to wait while the answer comes"
    )]
    fn queues_follow_a_policy_that_another_node_has_decided_and_who_put_it_waits_for_that() {
        let stage = Stage::new();
        stage.declare(queue("q")).unwrap();
        stage
            .step(|| stage.session.bind_queue(CHANNEL, binding()))
            .unwrap();
        let policy = PutPolicy {
            pattern: "^q$".into(),
            apply_to: "queues".into(),
            priority: 0,
            definition: Table::new().with("max-length", 1),
        };
        std::thread::scope(|scope| {
            let administrator = stage.broker.administrator("guest");
            let put = scope.spawn(move || administrator.put_policy("/", PolicyKind::User, "one", policy));
            stage.late.wait();
            assert!(!put.is_finished() && stage.broker.view().vhost("/").unwrap().policies().is_empty());
            assert!(stage.late.decide_next(&stage.broker));
            put.join().unwrap().unwrap();
        });
        stage.publish("k");
        stage.publish("k");
        assert_eq!(stage.declare(queue("q")).unwrap().ready, 1);
        stage.broker.close();
    }

    #[test]
    #[allow(
        clippy::disallowed_methods,
        reason = "somebody has to wait while the answer comes"
    )]
    fn whoever_may_wait_is_told_what_was_decided_and_takes_no_step_twice() {
        let stage = Stage::new();
        stage.session.may_wait();
        std::thread::scope(|scope| {
            let declared = scope.spawn(|| stage.session.declare_queue(CHANNEL, queue("q")));
            stage.late.wait();
            assert!(stage.late.decide_next(&stage.broker));
            assert_eq!(declared.join().unwrap().unwrap().value.name, "q");
        });
        assert!(!stage.session.must_ask());
        stage.broker.close();
    }

    #[test]
    fn a_connection_is_closed_once_the_other_node_has_ended_its_exclusive_queues() {
        let stage = Stage::new();
        for name in ["mine", "mine too"] {
            let exclusive = true;
            let queue = queue(name);
            stage.declare(DeclareQueue { exclusive, ..queue }).unwrap();
        }
        let closing = stage.session.close().unwrap();
        assert!(!closing.poll(Waker::noop()));
        assert!(stage.late.give_up_next());
        stage.late.wait();
        assert!(!closing.poll(Waker::noop()), "others are asked again");
        assert!(stage.late.decide_next(&stage.broker));
        // The pager hears of it from the log.
        while !closing.poll(Waker::noop()) {
            std::thread::yield_now();
        }
        assert_eq!(stage.broker.view().queues("/").count(), 0);
        stage.broker.close();
    }
}
