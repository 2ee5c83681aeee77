//! A permission's regular expression.
//!
//! RabbitMQ matches with PCRE, unanchored. Most patterns need nothing that the `regex` crate does not have, and that
//! one is linear in the name's length; look-around and back references fall back to `fancy-regex` with a limit on
//! backtracking. A match that exceeds the limit counts as none: access is refused, never granted by mistake. What a pattern
//! may cost altogether is limited too: what it said of a name is remembered, and one that exceeded the limit often is not
//! tried on other names any more.

use crate::Refusal;
use std::collections::BTreeMap;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU32, Ordering},
};

/// How many steps a match may backtrack before it counts as no match: a fraction of a millisecond.
const BACKTRACK_LIMIT: usize = 10_000;
/// So many matches of a pattern may exceed the limit.
const EXCESSES: u32 = 50;
/// Of so many names it is remembered whether they match.
const REMEMBERED: usize = 10_000;
/// How large a compiled pattern may become, in bytes.
const COMPILED_BYTES: usize = 1 << 20;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Pattern {
    source: String,
    compiled: Compiled,
}

#[derive(Debug, Clone)]
enum Compiled {
    /// The empty pattern, which RabbitMQ takes for `^$`: permission for nothing.
    Nothing,
    /// `.*` and `^.*$`, what nearly all users have.
    Everything,
    Plain(regex::Regex),
    Backtracking(Arc<Backtracking>),
}

/// A pattern that may take long, and what it cost.
#[derive(Debug)]
struct Backtracking {
    compiled: fancy_regex::Regex,
    known: Mutex<BTreeMap<Box<str>, bool>>,
    /// How many matches exceeded the limit.
    excesses: AtomicU32,
    /// Somebody was told that it is not tried any more.
    told: AtomicBool,
}

impl Backtracking {
    fn new(compiled: fancy_regex::Regex) -> Self {
        Self {
            compiled,
            known: Mutex::default(),
            excesses: AtomicU32::new(0),
            told: AtomicBool::new(false),
        }
    }

    fn matches(&self, name: &str) -> bool {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = known.get(name) {
            return *answer;
        }
        if self.excesses.load(Ordering::Relaxed) >= EXCESSES {
            return false;
        }
        let answer = self.compiled.is_match(name).unwrap_or_else(|_| {
            self.excesses.fetch_add(1, Ordering::Relaxed);
            false
        });
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(name.into(), answer);
        answer
    }
}

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// [`Refusal::InvalidPattern`] with the reason.
    pub fn new(source: &str) -> Result<Self, Refusal> {
        let compiled = match source {
            "" => Compiled::Nothing,
            ".*" | "^.*$" | "^.*" | ".*$" => Compiled::Everything,
            _ => match regex::RegexBuilder::new(source)
                .size_limit(COMPILED_BYTES)
                .build()
            {
                Ok(compiled) => Compiled::Plain(compiled),
                Err(error @ regex::Error::CompiledTooBig(_)) => return Err(refusal(source, &error)),
                Err(_) => fancy_regex::RegexBuilder::new(source)
                    .backtrack_limit(BACKTRACK_LIMIT)
                    .delegate_size_limit(COMPILED_BYTES)
                    .build()
                    .map(|compiled| Compiled::Backtracking(Arc::new(Backtracking::new(compiled))))
                    .map_err(|error| refusal(source, &error))?,
            },
        };
        Ok(Self {
            source: source.into(),
            compiled,
        })
    }

    /// Compiles the pattern of a policy: the empty one matches every name.
    ///
    /// # Errors
    /// [`Refusal::InvalidPattern`] with the reason.
    pub fn of_policy(source: &str) -> Result<Self, Refusal> {
        match source {
            "" => Ok(Self {
                source: String::new(),
                compiled: Compiled::Everything,
            }),
            _ => Self::new(source),
        }
    }

    /// True if the pattern matches somewhere in `name`.
    pub fn matches(&self, name: &str) -> bool {
        match &self.compiled {
            Compiled::Nothing => name.is_empty(),
            Compiled::Everything => true,
            Compiled::Plain(compiled) => compiled.is_match(name),
            Compiled::Backtracking(pattern) => pattern.matches(name),
        }
    }

    /// How many matches took more steps than they may.
    pub fn excesses(&self) -> u32 {
        match &self.compiled {
            Compiled::Backtracking(pattern) => pattern.excesses.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// True for the first who asks after so many matches took too many steps that the pattern is tried on no further name.
    pub fn was_just_given_up(&self) -> bool {
        match &self.compiled {
            Compiled::Backtracking(pattern) => {
                pattern.excesses.load(Ordering::Relaxed) >= EXCESSES
                    && !pattern.told.swap(true, Ordering::Relaxed)
            }
            _ => false,
        }
    }

    /// As it was written.
    pub fn source(&self) -> &str {
        &self.source
    }
}

fn refusal(source: &str, error: &dyn std::error::Error) -> Refusal {
    Refusal::InvalidPattern {
        pattern: source.into(),
        reason: error.to_string(),
    }
}

/// Permission for nothing.
impl Default for Pattern {
    fn default() -> Self {
        Self {
            source: String::new(),
            compiled: Compiled::Nothing,
        }
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Pattern {}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, name: &str) -> bool {
        Pattern::new(pattern).unwrap().matches(name)
    }

    #[test]
    fn patterns_are_not_anchored() {
        assert!(matches("log", "my-logs"));
        assert!(!matches("^log$", "logs"));
        assert!(matches("^(app|log)-", "app-1"));
        assert!(matches(".*", ""));
    }

    #[test]
    fn the_empty_pattern_permits_nothing() {
        assert!(!matches("", "q"));
        assert!(!matches("^$", "q"));
    }

    #[test]
    fn look_around_works_as_in_pcre() {
        assert!(matches(r"^(?!amq\.).*$", "q"));
        assert!(!matches(r"^(?!amq\.).*$", "amq.topic"));
        assert!(matches(r"^(a+)\1$", "aaaa"));
    }

    #[test]
    fn endless_backtracking_is_no_match() {
        assert!(!matches(r"^(?=a)(?:(a|aa)+)+\1b$", &"a".repeat(200)));
    }

    #[test]
    fn a_pattern_that_takes_too_long_again_and_again_is_not_tried_any_more() {
        let pattern = Pattern::new(r"^(?=a)(?:(a|aa)+)+\1b$").unwrap();
        assert!(pattern.matches("aab"));
        let mut told = Vec::new();
        for at in 0..3_000 {
            let name = format!("{}{at}", "a".repeat(200));
            assert!(!pattern.matches(&name) && !pattern.matches(&name));
            if pattern.was_just_given_up() {
                told.push(at);
            }
        }
        assert_eq!((pattern.excesses(), told), (EXCESSES, vec![EXCESSES - 1]));
        assert!(pattern.matches("aab"), "what is known stays known");
    }

    #[test]
    fn nonsense_is_refused_with_its_reason() {
        let refusal = Pattern::new("(").unwrap_err();
        assert!(
            refusal
                .to_string()
                .starts_with("invalid regular expression '(': "),
            "{refusal}"
        );
        assert!(Pattern::new(r"a{1000}{1000}").is_err());
    }
}
