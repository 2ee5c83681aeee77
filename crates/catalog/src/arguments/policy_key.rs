//! What a policy may say under a key, and RabbitMQ's words for a value that is not that.

use super::retry_delay::retry_delay;
use super::stream::age_ms;
use model::table::Value;

/// What a key's value must be.
pub(crate) enum KeyRule {
    /// Any text.
    Text,
    /// A whole number from this one on.
    From(i64),
    /// The same; of a user's and an operator's the higher counts.
    AtLeast(i64),
    /// A whole number; a negative one is no limit.
    Limit,
    /// One of these words.
    Word(&'static [&'static str]),
    /// 1 or 2.
    Version,
    /// See [`retry_delay`].
    Retry,
    /// See [`age_ms`].
    Age,
    /// A whole number between these two.
    Between(i64, i64),
    /// Nothing is asked: it is looked at elsewhere.
    Anything,
}

/// A key of definitions.
pub(crate) struct PolicyKey {
    pub(crate) name: &'static str,
    pub(crate) rule: KeyRule,
    /// What RabbitMQ says a bad value isn't.
    pub(crate) wanted: &'static str,
    /// Operators' policies may have it.
    pub(crate) operators: bool,
}

/// A key of users' policies.
pub(crate) const fn key(name: &'static str, rule: KeyRule, wanted: &'static str) -> PolicyKey {
    PolicyKey {
        name,
        rule,
        wanted,
        operators: false,
    }
}

/// A key that operators' policies may have as well, to bound what users ask for.
pub(crate) const fn bound(name: &'static str, rule: KeyRule, wanted: &'static str) -> PolicyKey {
    PolicyKey {
        operators: true,
        ..key(name, rule, wanted)
    }
}

impl KeyRule {
    pub(crate) fn allows(&self, value: &Value) -> bool {
        match self {
            Self::Text => value.as_str().is_some(),
            Self::From(least) | Self::AtLeast(least) => value.as_integer().is_some_and(|it| it >= *least),
            Self::Limit => value.as_integer().is_some(),
            Self::Word(words) => value.as_str().is_some_and(|it| words.contains(&it)),
            Self::Version => matches!(value.as_integer(), Some(1 | 2)),
            Self::Retry => retry_delay(value).is_ok(),
            Self::Age => value.as_str().and_then(age_ms).is_some(),
            Self::Between(least, most) => value
                .as_integer()
                .is_some_and(|it| (*least..=*most).contains(&it)),
            Self::Anything => true,
        }
    }
}
