//! What a value must be, and RabbitMQ's words for one that is not.

use super::retry_delay::retry_delay;
use super::stream::age_ms;
use crate::kinds::QueueKind;
use model::table::Value;

/// What an argument must be.
pub(super) enum Rule {
    /// An integer from the given least value on.
    Number(i64),
    /// Milliseconds: an integer from the given least value up to ten years.
    Time(i64),
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str], Complaint),
    /// A classic queue version: 1 or 2.
    Version,
    /// The name of a kind of queue, or nothing.
    Kind,
    /// An integer from 0 to this.
    AtMost(i64),
    /// An integer; a negative one is no limit.
    Limit,
    /// See [`retry_delay`].
    Retry,
    /// The name of a header: text that is not empty.
    Name,
    /// True or false.
    Bool,
    /// See [`age_ms`].
    Age,
}

/// How RabbitMQ complains about a word.
pub(super) enum Complaint {
    Term(&'static str),
    /// Text, with the word at the end.
    Text(&'static str),
}

impl Rule {
    /// The complaint if the value breaks the rule: an Erlang term, as RabbitMQ prints it.
    pub(super) fn check(&self, value: &Value) -> Result<(), String> {
        match self {
            Self::Number(least) => number(value, *least).map(drop),
            Self::Time(least) => match number(value, *least)? {
                ms if ms.cast_unsigned() > model::LONGEST_MS => Err(format!("{{value_too_large,{ms}}}")),
                _ => Ok(()),
            },
            Self::Text => text(value).map(drop),
            Self::Word(words, complaint) => one_of(text(value)?, words, complaint),
            Self::Version => match number(value, 0)? {
                // RabbitMQ before 4.0 had both; here neither makes a difference.
                1 | 2 => Ok(()),
                other => Err(format!("\"unsupported queue version '{other}'\"")),
            },
            Self::Kind => {
                let named = text(value)?;
                match QueueKind::from_name(named).is_some() {
                    true => Ok(()),
                    false => Err(format!("\"unsupported queue type '{named}'\"")),
                }
            }
            Self::Age => {
                let named = text(value)?;
                age_ms(named).map(drop).ok_or_else(|| "invalid_max_age".into())
            }
            Self::AtMost(most) => match number(value, 0)? {
                it if it > *most => Err(format!("{{max_value_exceeded,{it}}}")),
                _ => Ok(()),
            },
            Self::Limit => integer(value).map(drop),
            Self::Retry => retry_delay(value).map(drop),
            Self::Name => match text(value)? {
                "" => Err("empty_name".into()),
                _ => Ok(()),
            },
            Self::Bool => match value {
                Value::Bool(_) => Ok(()),
                other => Err(format!("{{unacceptable_type,{}}}", other.type_name())),
            },
        }
    }
}

/// An integer, at least this one.
pub(super) fn number(value: &Value, least: i64) -> Result<i64, String> {
    match integer(value)? {
        it if it < 0 => Err(format!("{{value_negative,{it}}}")),
        it if it < least => Err(format!("{{value_zero,{it}}}")),
        it => Ok(it),
    }
}

/// Any integer.
pub(super) fn integer(value: &Value) -> Result<i64, String> {
    let complaint = || format!("\"expected integer, got {}\"", value.type_name());
    value.as_integer().ok_or_else(complaint)
}

fn text(value: &Value) -> Result<&str, String> {
    match value {
        Value::LongStr(_) => Ok(value.as_str().unwrap_or("not UTF-8")),
        other => Err(format!("{{unacceptable_type,{}}}", other.type_name())),
    }
}

fn one_of(word: &str, words: &[&str], complaint: &Complaint) -> Result<(), String> {
    if words.contains(&word) {
        return Ok(());
    }
    Err(match complaint {
        Complaint::Term(term) => term.to_string(),
        Complaint::Text(text) => format!("\"{text} '{word}'\""),
    })
}
