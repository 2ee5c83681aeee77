//! Permissions that another server is asked for one by one, when they are needed. Its answers are remembered until the connection
//! ends or something is refused (RabbitMQ remembers twelve answers a channel).

use crate::question::{AccessQuestion, Action, Authorizer, Person};
use crate::verdict::Denied;
use crate::workers::Workers;
use broker::access::{Known, ObjectKind, Rights, Verb};
use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// So many permissions are remembered before they are asked for again.
const REMEMBERED: usize = 1_024;
/// So many questions are asked at a time; more are noted when these are answered.
const OPEN: usize = 64;
/// A question that has waited for so long is answered with no: its connection must go on.
const STALE: Duration = Duration::from_secs(30);

/// What somebody may do, by the word of a server that is asked when something is not known yet.
pub struct AskedRights {
    /// Shared with the threads that ask.
    shared: Arc<Shared>,
    workers: Arc<Workers>,
}

struct Shared {
    person: Person,
    authorizer: Arc<dyn Authorizer>,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    permitted: HashSet<AccessQuestion>,
    /// Refused since the last operation was decided.
    refused: HashSet<AccessQuestion>,
    /// Met and not known.
    open: Vec<AccessQuestion>,
}

impl AskedRights {
    /// Nothing is known yet.
    pub fn new(person: Person, authorizer: Arc<dyn Authorizer>, workers: Arc<Workers>) -> Self {
        let answers = Mutex::default();
        let shared = Arc::new(Shared {
            person,
            authorizer,
            answers,
        });
        Self { shared, workers }
    }

    fn known(&self, vhost: &str, action: Action) -> bool {
        let vhost = vhost.to_owned();
        self.shared.answers().look_up(AccessQuestion { vhost, action })
    }
}

impl Answers {
    /// What is known. What is not is noted, and no for now.
    fn look_up(&mut self, question: AccessQuestion) -> bool {
        if self.permitted.contains(&question) {
            return true;
        }
        let noted = self.refused.contains(&question) || self.open.contains(&question);
        if !noted && self.open.len() < OPEN {
            self.open.push(question);
        }
        false
    }

    fn learn(&mut self, question: AccessQuestion, permitted: bool) {
        if !permitted {
            self.refused.insert(question);
            return;
        }
        if self.permitted.len() >= REMEMBERED {
            self.permitted.clear();
        }
        self.permitted.insert(question);
    }
}

impl Shared {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody could be asked in time, so it is a no.
    fn too_late(&self, question: &AccessQuestion) -> bool {
        tracing::error!(
            area = "connection",
            "user '{}' is refused {question}: whoever is asked about permissions is slow, and too many wait",
            self.person.name
        );
        false
    }

    /// Asks the server, and takes silence for a no.
    fn ask(&self, question: &AccessQuestion) -> bool {
        let Err(denied) = self.authorizer.may(&self.person, question) else {
            return true;
        };
        if let Denied::Unanswered(why) = &denied {
            tracing::error!(
                area = "connection",
                "user '{}' is refused {question}: {why}",
                self.person.name
            );
        }
        false
    }
}

impl Rights for AskedRights {
    fn enter(&self, vhost: &str) -> bool {
        self.known(vhost, Action::Enter)
    }

    fn may(&self, vhost: &str, verb: Verb, kind: ObjectKind, name: &str) -> bool {
        let name = name.to_owned();
        self.known(vhost, Action::Object { verb, kind, name })
    }

    fn may_with_key(&self, vhost: &str, verb: Verb, exchange: &str, key: &[u8]) -> bool {
        let (exchange, key) = (exchange.to_owned(), key.to_vec());
        self.known(vhost, Action::Key { verb, exchange, key })
    }

    fn until(&self) -> Option<SystemTime> {
        None
    }

    fn ask(&self, known: Known) -> bool {
        let open = std::mem::take(&mut self.shared.answers().open);
        if open.is_empty() {
            // What was refused is refused; whoever tries again later is told anew.
            *self.shared.answers() = Answers::default();
            return false;
        }
        // The last of those who answer tells it; so does whoever drops work that can't be done.
        let told = Arc::new(Told(Some(known)));
        let since = Instant::now();
        for question in open {
            let (shared, told, asked) = (self.shared.clone(), told.clone(), question.clone());
            let work = move || {
                let permitted = match since.elapsed() <= STALE {
                    true => shared.ask(&asked),
                    false => shared.too_late(&asked),
                };
                shared.answers().learn(asked, permitted);
                drop(told);
            };
            if self.workers.give(Box::new(work)).is_err() {
                let permitted = self.shared.too_late(&question);
                self.shared.answers().learn(question, permitted);
            }
        }
        true
    }

    fn settle(&self) {
        self.shared.answers().refused.clear();
    }
}

/// Says that everything is known, at its end.
struct Told(Option<Known>);

impl Drop for Told {
    fn drop(&mut self) {
        if let Some(known) = self.0.take() {
            known();
        }
    }
}

impl fmt::Debug for AskedRights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rights of '{}'", self.shared.person.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Permits what is about `good`, and counts.
    struct Good(Mutex<Vec<String>>);

    impl Authorizer for Good {
        fn may(&self, person: &Person, question: &AccessQuestion) -> Result<(), Denied> {
            assert_eq!(person.name, "jane");
            let text = question.to_string();
            self.0.lock().unwrap().push(text.clone());
            match text.contains("good") {
                true => Ok(()),
                false => Err(Denied::Refused("no".into())),
            }
        }
    }

    fn rights() -> (AskedRights, Arc<Good>) {
        let authorizer = Arc::new(Good(Mutex::default()));
        let person = Person {
            name: "jane".into(),
            tags: vec![],
            peer: [127, 0, 0, 1].into(),
            directory_user: None,
        };
        let workers = Arc::new(Workers::start().unwrap());
        (AskedRights::new(person, authorizer.clone(), workers), authorizer)
    }

    fn asks(rights: &AskedRights) -> bool {
        let (sender, receiver) = mpsc::channel();
        let asked = rights.ask(Box::new(move || sender.send(()).unwrap()));
        asked && receiver.recv().is_ok()
    }

    fn reads(rights: &AskedRights, name: &str) -> bool {
        rights.may("/", Verb::Read, ObjectKind::Queue, name)
    }

    #[test]
    fn what_is_permitted_is_asked_for_once_and_refusals_until_the_operation_is_decided() {
        let (rights, authorizer) = rights();
        assert!(
            !reads(&rights, "good") && !reads(&rights, "bad"),
            "nobody has been asked"
        );
        assert!(asks(&rights));
        assert!(reads(&rights, "good") && !reads(&rights, "bad"));
        rights.settle();
        assert!(reads(&rights, "good") && !reads(&rights, "bad"));
        assert!(asks(&rights), "a refusal counts for one operation");
        assert!(!reads(&rights, "bad") && !asks(&rights), "refused");
        let mut asked = authorizer.0.lock().unwrap().clone();
        asked.sort();
        let bad = "read on queue 'bad' in vhost '/'".to_owned();
        assert_eq!(
            asked,
            [bad.clone(), bad, "read on queue 'good' in vhost '/'".to_owned()]
        );
    }

    #[test]
    fn after_a_refusal_everything_is_asked_for_again() {
        let (rights, _) = rights();
        assert!(!rights.enter("good") && asks(&rights) && rights.enter("good"));
        assert!(!asks(&rights), "nothing was open");
        assert!(!rights.enter("good") && asks(&rights) && rights.enter("good"));
    }

    #[test]
    fn each_deed_is_a_question_of_its_own() {
        let (rights, _) = rights();
        assert!(!rights.may_with_key("/", Verb::Write, "t", b"good.x") && asks(&rights));
        assert!(rights.may_with_key("/", Verb::Write, "t", b"good.x"));
        assert!(!rights.may_with_key("/", Verb::Read, "t", b"good.x"));
        assert!(!rights.may_with_key("/", Verb::Write, "t", b"other"));
        assert!(!rights.may_with_key("v", Verb::Write, "t", b"good.x"));
    }

    #[test]
    fn no_storm_of_names_takes_more_memory_than_a_limit() {
        let (rights, authorizer) = rights();
        for number in 0..OPEN + 10 {
            reads(&rights, &number.to_string());
        }
        assert!(asks(&rights));
        assert_eq!(authorizer.0.lock().unwrap().len(), OPEN);
        let mut answers = rights.shared.answers();
        for number in 0..REMEMBERED + 10 {
            let (vhost, action) = (number.to_string(), Action::Enter);
            answers.learn(AccessQuestion { vhost, action }, true);
        }
        assert!(answers.permitted.len() <= REMEMBERED);
    }
}
