//! Cached answers of backends (RabbitMQ's `rabbitmq_auth_backend_cache`).
//!
//! No password is kept: an entry is found by a keyed hash of the question, and the key lives as long as the process.

use crate::backend::Backend;
use crate::question::{AccessQuestion, Action, Person};
use crate::verdict::{Admitted, Denied};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use broker::access::Attempt;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many answers are kept at the most. When there are more, none is added until some have ended.
const ANSWERS: usize = 10_000;

/// What is kept, and for how long (`auth_cache.*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// `cached_backend`: whose answers.
    pub of: Option<Backend>,
    /// `cache_ttl`.
    pub ttl: Duration,
    /// `cache_refusals`: also those that let nobody in.
    pub refusals: bool,
}

impl Default for CacheSettings {
    /// RabbitMQ's defaults.
    fn default() -> Self {
        Self {
            of: None,
            ttl: Duration::from_secs(15),
            refusals: false,
        }
    }
}

/// An answer.
type Verdict = Result<Admitted, Denied>;

/// The answers.
pub struct Cache {
    of: Backend,
    settings: CacheSettings,
    key: hmac::Key,
    kept: Mutex<HashMap<[u8; 32], (Instant, Verdict)>>,
}

impl Cache {
    /// An empty one.
    ///
    /// # Errors
    /// The setting that is missing, or the system has no randomness.
    pub fn open(settings: CacheSettings) -> Result<Self, String> {
        let of = settings
            .of
            .ok_or("auth_cache.cached_backend must be set: it says whose answers are kept")?;
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        Ok(Self {
            of,
            settings,
            key: key.map_err(|_| "the system gives no random numbers")?,
            kept: Mutex::new(HashMap::new()),
        })
    }

    /// Whose answers are kept.
    pub fn of(&self) -> Backend {
        self.of
    }

    /// The answer that is kept, if it still counts.
    pub fn get(&self, of: &impl CacheKey, now: Instant) -> Option<Verdict> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, verdict) = kept.get(&self.place(of))?;
        (*until > now).then(|| verdict.clone())
    }

    /// Keeps an answer, if it is one of those that are kept. That a server is silent never is.
    pub fn keep(&self, of: &impl CacheKey, verdict: &Verdict, now: Instant) {
        match verdict {
            Ok(_) => {}
            Err(Denied::Refused(_)) if self.settings.refusals => {}
            Err(_) => return,
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= ANSWERS {
            kept.retain(|_, (until, _)| *until > now);
        }
        if kept.len() < ANSWERS {
            let until = now + self.settings.ttl;
            kept.insert(self.place(of), (until, verdict.clone()));
        }
    }

    /// Forgets all answers.
    pub fn clear(&self) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn place(&self, of: &impl CacheKey) -> [u8; 32] {
        let mut code = hmac::Context::with_key(&self.key);
        of.tell(&mut |part| {
            code.update(&(part.len() as u64).to_be_bytes());
            code.update(part);
        });
        let mut place = [0; 32];
        place.copy_from_slice(code.sign().as_ref());
        place
    }
}

/// What a cached answer is found by: the login or the question that it answers.
pub trait CacheKey {
    /// Says all of its parts.
    fn tell(&self, say: &mut dyn FnMut(&[u8]));
}

impl CacheKey for Attempt {
    fn tell(&self, say: &mut dyn FnMut(&[u8])) {
        say(b"login");
        say(self.user.as_bytes());
        if let Some(password) = &self.password {
            say(password);
        }
    }
}

impl CacheKey for (&Person, &AccessQuestion) {
    fn tell(&self, say: &mut dyn FnMut(&[u8])) {
        let (person, question) = self;
        say(person.name.as_bytes());
        say(person.tags.join(" ").as_bytes());
        say(question.vhost.as_bytes());
        match &question.action {
            Action::Enter => say(person.peer.to_string().as_bytes()),
            Action::Object { verb, kind, name } => {
                [verb.to_string(), kind.to_string()]
                    .iter()
                    .for_each(|part| say(part.as_bytes()));
                say(name.as_bytes());
            }
            Action::Key { verb, exchange, key } => {
                [&verb.to_string(), "topic", exchange]
                    .iter()
                    .for_each(|part| say(part.as_bytes()));
                say(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(user: &str, password: &str) -> Attempt {
        Attempt {
            user: user.into(),
            password: Some(password.into()),
            peer: [127, 0, 0, 1].into(),
        }
    }

    fn cache(refusals: bool) -> Cache {
        let ttl = Duration::from_secs(10);
        Cache::open(CacheSettings {
            of: Some(Backend::Http),
            ttl,
            refusals,
        })
        .unwrap()
    }

    #[test]
    fn an_answer_counts_for_its_user_and_password_until_it_ends() {
        let (cache, now) = (cache(false), Instant::now());
        let jane = Admitted::from(vec!["management".to_owned()]);
        cache.keep(&attempt("jane", "x"), &Ok(jane.clone()), now);
        assert_eq!(cache.get(&attempt("jane", "x"), now), Some(Ok(jane)));
        for other in [attempt("jane", "y"), attempt("janex", ""), attempt("bob", "x")] {
            assert_eq!(cache.get(&other, now), None);
        }
        let later = now + Duration::from_secs(10);
        assert_eq!(cache.get(&attempt("jane", "x"), later), None);
    }

    #[test]
    fn answers_that_are_cleared_are_asked_for_again() {
        let (cache, now) = (cache(false), Instant::now());
        cache.keep(&attempt("jane", "x"), &Ok(Admitted::default()), now);
        cache.clear();
        assert_eq!(cache.get(&attempt("jane", "x"), now), None);
    }

    #[test]
    fn refusals_are_kept_if_that_is_said_and_silence_never_is() {
        let now = Instant::now();
        let (refused, silent) = (Denied::Refused("no".into()), Denied::Unanswered("?".into()));
        for keeps in [false, true] {
            let cache = cache(keeps);
            cache.keep(&attempt("a", "x"), &Err(refused.clone()), now);
            cache.keep(&attempt("b", "x"), &Err(silent.clone()), now);
            assert_eq!(cache.get(&attempt("a", "x"), now).is_some(), keeps);
            assert_eq!(cache.get(&attempt("b", "x"), now), None);
        }
    }

    #[test]
    fn a_storm_of_names_takes_no_more_memory_than_a_limit() {
        let (cache, now) = (cache(true), Instant::now());
        for number in 0..ANSWERS + 100 {
            cache.keep(&attempt(&number.to_string(), "x"), &Ok(Admitted::default()), now);
        }
        assert_eq!(cache.kept.lock().unwrap().len(), ANSWERS);
        let later = now + Duration::from_secs(11);
        cache.keep(&attempt("new", "x"), &Ok(Admitted::default()), later);
        assert_eq!(cache.kept.lock().unwrap().len(), 1);
    }
}
