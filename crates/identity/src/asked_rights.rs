//! Rights that another server is asked for, one by one, as they are needed: what it said is remembered as long as the connection
//! lasts and nothing is refused (RabbitMQ remembers twelve answers a channel).

use crate::denied::Denied;
use crate::ldap::Standing;
use crate::workers::Workers;
use broker::access::{Known, ObjectKind, Rights, Verb};
use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

/// So many permissions are remembered before they are asked for again.
const REMEMBERED: usize = 1_024;
/// So many questions are asked at a time; more are noted when these are answered.
const OPEN: usize = 64;
/// A question that stood in line for so long is answered with no: its connection must go on.
const STALE: Duration = Duration::from_secs(30);

/// Something that somebody wants to do.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Deed {
    /// Enter the virtual host.
    Enter,
    /// Do this to an object of this name.
    Object {
        verb: Verb,
        kind: ObjectKind,
        name: String,
    },
    /// Do this with this routing key of a topic exchange.
    Key {
        verb: Verb,
        exchange: String,
        key: Vec<u8>,
    },
}

/// What is asked: about a virtual host, and perhaps something in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Question {
    /// The virtual host.
    pub vhost: String,
    /// What they want to do there.
    pub deed: Deed,
}

/// Who wants to do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// Their name.
    pub name: String,
    /// Their tags.
    pub tags: Vec<String>,
    /// Where they come from.
    pub peer: IpAddr,
    /// Their place in a directory, if one is asked.
    pub standing: Option<Standing>,
}

/// A routing key, for servers that are asked in text.
///
/// # Errors
/// It is none.
pub fn text_of_key(key: &[u8]) -> Result<&str, Denied> {
    std::str::from_utf8(key).map_err(|_| {
        Denied::Refused("the routing key is not UTF-8, so the server cannot be asked about it".into())
    })
}

/// Answers questions; may take its time.
pub trait Oracle: Send + Sync {
    /// May they?
    ///
    /// # Errors
    /// No, or nobody knows.
    fn may(&self, person: &Person, question: &Question) -> Result<(), Denied>;
}

/// What somebody may do, by the word of a server that is asked when something is not known yet.
pub struct AskedRights {
    /// Shared with whoever is asking.
    book: Arc<Book>,
    workers: Arc<Workers>,
}

struct Book {
    person: Person,
    oracle: Arc<dyn Oracle>,
    answers: Mutex<Answers>,
}

#[derive(Default)]
struct Answers {
    permitted: HashSet<Question>,
    /// Refused since the last operation was decided.
    refused: HashSet<Question>,
    /// Met and not known.
    open: Vec<Question>,
}

impl AskedRights {
    /// Nothing is known yet.
    pub fn new(person: Person, oracle: Arc<dyn Oracle>, workers: Arc<Workers>) -> Self {
        let answers = Mutex::default();
        let book = Arc::new(Book {
            person,
            oracle,
            answers,
        });
        Self { book, workers }
    }

    fn known(&self, vhost: &str, deed: Deed) -> bool {
        let vhost = vhost.to_owned();
        self.book.answers().look_up(Question { vhost, deed })
    }
}

impl Answers {
    /// What is known. What is not is noted, and no for now.
    fn look_up(&mut self, question: Question) -> bool {
        if self.permitted.contains(&question) {
            return true;
        }
        let noted = self.refused.contains(&question) || self.open.contains(&question);
        if !noted && self.open.len() < OPEN {
            self.open.push(question);
        }
        false
    }

    fn learn(&mut self, question: Question, permitted: bool) {
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

impl Book {
    fn answers(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nobody could be asked in time, so it is a no.
    fn too_late(&self, question: &Question) -> bool {
        tracing::error!(
            area = "connection",
            "user '{}' is refused {question}: whoever is asked about permissions is slow, and too many wait",
            self.person.name
        );
        false
    }

    /// Asks the server, and takes silence for a no.
    fn ask(&self, question: &Question) -> bool {
        let Err(denied) = self.oracle.may(&self.person, question) else {
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
        self.known(vhost, Deed::Enter)
    }

    fn may(&self, vhost: &str, verb: Verb, kind: ObjectKind, name: &str) -> bool {
        let name = name.to_owned();
        self.known(vhost, Deed::Object { verb, kind, name })
    }

    fn may_with_key(&self, vhost: &str, verb: Verb, exchange: &str, key: &[u8]) -> bool {
        let (exchange, key) = (exchange.to_owned(), key.to_vec());
        self.known(vhost, Deed::Key { verb, exchange, key })
    }

    fn until(&self) -> Option<SystemTime> {
        None
    }

    fn ask(&self, known: Known) -> bool {
        let open = std::mem::take(&mut self.book.answers().open);
        if open.is_empty() {
            // What was refused is refused; whoever tries again later is told anew.
            *self.book.answers() = Answers::default();
            return false;
        }
        // The last of those who answer tells it; so does whoever drops work that can't be done.
        let told = Arc::new(Told(Some(known)));
        let since = Instant::now();
        for question in open {
            let (book, told, asked) = (self.book.clone(), told.clone(), question.clone());
            let work = move || {
                let permitted = match since.elapsed() <= STALE {
                    true => book.ask(&asked),
                    false => book.too_late(&asked),
                };
                book.answers().learn(asked, permitted);
                drop(told);
            };
            if self.workers.give(Box::new(work)).is_err() {
                let permitted = self.book.too_late(&question);
                self.book.answers().learn(question, permitted);
            }
        }
        true
    }

    fn settle(&self) {
        self.book.answers().refused.clear();
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
        write!(f, "rights of '{}'", self.book.person.name)
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let vhost = &self.vhost;
        match &self.deed {
            Deed::Enter => write!(f, "access to vhost '{vhost}'"),
            Deed::Object { verb, kind, name } => write!(f, "{verb} on {kind} '{name}' in vhost '{vhost}'"),
            Deed::Key { verb, exchange, key } => {
                let key = String::from_utf8_lossy(key);
                write!(
                    f,
                    "{verb} with key '{key}' on exchange '{exchange}' in vhost '{vhost}'"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Permits what is about `good`, and counts.
    struct Teller(Mutex<Vec<String>>);

    impl Oracle for Teller {
        fn may(&self, person: &Person, question: &Question) -> Result<(), Denied> {
            assert_eq!(person.name, "jane");
            let text = question.to_string();
            self.0.lock().unwrap().push(text.clone());
            match text.contains("good") {
                true => Ok(()),
                false => Err(Denied::Refused("no".into())),
            }
        }
    }

    fn rights() -> (AskedRights, Arc<Teller>) {
        let teller = Arc::new(Teller(Mutex::default()));
        let person = Person {
            name: "jane".into(),
            tags: vec![],
            peer: [127, 0, 0, 1].into(),
            standing: None,
        };
        let workers = Arc::new(Workers::start().unwrap());
        (AskedRights::new(person, teller.clone(), workers), teller)
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
        let (rights, teller) = rights();
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
        let mut asked = teller.0.lock().unwrap().clone();
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
        let (rights, teller) = rights();
        for number in 0..OPEN + 10 {
            reads(&rights, &number.to_string());
        }
        assert!(asks(&rights));
        assert_eq!(teller.0.lock().unwrap().len(), OPEN);
        let mut answers = rights.book.answers();
        for number in 0..REMEMBERED + 10 {
            let (vhost, deed) = (number.to_string(), Deed::Enter);
            answers.learn(Question { vhost, deed }, true);
        }
        assert!(answers.permitted.len() <= REMEMBERED);
    }
}
