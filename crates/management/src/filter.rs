//! Which messages are meant: conditions on what they carry, all of which must hold. The same words mean the same in the
//! address of a search and in the body of a request that does something with what is found.

use crate::json;
use crate::messages::shown_properties;
use crate::moment;
use crate::refusal::Refusal;
use broker::{Seen, Standing};
use model::{Limits, Timestamp};
use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

/// How large a compiled expression may be, in bytes.
const PATTERN_BYTES: usize = 1024 * 1024;

/// What a filter may ask for, besides `header.NAME` and `property.NAME`.
const WORDS: &str =
    "text, body, routing_key, exchange, header.NAME, property.NAME, state, redelivered, since, until";

/// Conditions.
#[derive(Debug, Default)]
pub struct Filter {
    conditions: Vec<Condition>,
    /// Some look at properties.
    reads_properties: bool,
}

#[derive(Debug)]
enum Condition {
    /// Anything of the message.
    Text(Regex),
    Body(Regex),
    RoutingKey(Regex),
    Exchange(Regex),
    /// The path to a value in the message's properties.
    Property(Vec<String>, Regex),
    State(Standing),
    Redelivered(bool),
    /// In milliseconds since the Unix epoch.
    Since(u64),
    Until(u64),
}

/// The name by which a filter and an answer call a message's standing.
pub fn state(standing: Standing) -> &'static str {
    match standing {
        Standing::Ready => "ready",
        Standing::Held => "unacked",
        Standing::Waiting => "waiting",
        Standing::Leaving => "leaving",
    }
}

impl Filter {
    /// Reads conditions; names that no filter has are passed over if `strict` is false, because an address has others too.
    ///
    /// # Errors
    /// A name or a value that makes no sense.
    pub fn of<'p>(
        pairs: impl Iterator<Item = (&'p str, &'p str)> + Clone,
        now_ms: u64,
        strict: bool,
    ) -> Result<Self, Refusal> {
        let is_regex = pairs.clone().any(|pair| pair == ("use_regex", "true"));
        let mut filter = Self::default();
        for (name, value) in pairs {
            match Condition::of(name, value, is_regex, now_ms)? {
                Some(condition) => filter.add(condition),
                None if strict && name != "use_regex" => {
                    return Err(Refusal::bad_request(format!(
                        "a filter has no '{name}'; it has {WORDS}, use_regex"
                    )));
                }
                None => {}
            }
        }
        Ok(filter)
    }

    /// Nothing passes but ready messages, unless the filter itself asks for a state.
    pub fn only_ready(&mut self) {
        let asks = |it: &Condition| matches!(it, Condition::State(_));
        if !self.conditions.iter().any(asks) {
            self.add(Condition::State(Standing::Ready));
        }
    }

    /// Nothing passes that came later, in milliseconds since the Unix epoch.
    pub fn until(&mut self, ms: u64) {
        self.add(Condition::Until(ms));
    }

    /// Nothing passes that came before.
    pub fn since(&mut self, time: Timestamp) {
        self.add(Condition::Since(time.0));
    }

    fn add(&mut self, condition: Condition) {
        self.reads_properties |= matches!(condition, Condition::Property(..) | Condition::Text(_));
        self.conditions.push(condition);
    }

    /// True if a message is meant.
    pub fn passes(&self, seen: &Seen<'_>, limits: &Limits) -> bool {
        if self.conditions.is_empty() {
            return true;
        }
        let properties = match self.reads_properties {
            true => shown_properties(seen.message.properties, limits),
            false => Value::Null,
        };
        self.conditions.iter().all(|it| it.holds(seen, &properties))
    }
}

impl Condition {
    fn of(name: &str, value: &str, is_regex: bool, now_ms: u64) -> Result<Option<Self>, Refusal> {
        let whole = |value: &str| match is_regex {
            true => pattern(value),
            false => pattern(&format!(r"\A(?:{})\z", regex::escape(value))),
        };
        let part = |flags: &str, value: &str| match is_regex {
            true => pattern(value),
            false => pattern(&format!("{flags}{}", regex::escape(value))),
        };
        let time = || {
            let refusal = || Refusal::bad_request(format!("{name}: '{value}' is not a time"));
            moment::parse(value, now_ms).ok_or_else(refusal)
        };
        Ok(Some(match name {
            "text" => Self::Text(part("(?i)", value)?),
            "body" => Self::Body(part("", value)?),
            "routing_key" => Self::RoutingKey(whole(value)?),
            "exchange" => Self::Exchange(whole(value)?),
            "since" => Self::Since(time()?),
            "until" => Self::Until(time()?),
            "redelivered" => Self::Redelivered(flag(name, value)?),
            "state" => Self::State(standing(value)?),
            _ => match name.split_once('.') {
                Some(("header", header)) if !header.is_empty() => {
                    Self::Property(vec!["headers".into(), header.into()], any_or(whole, value)?)
                }
                Some(("property", property)) if !property.is_empty() => {
                    Self::Property(vec![property.into()], any_or(whole, value)?)
                }
                _ => return Ok(None),
            },
        }))
    }

    fn holds(&self, seen: &Seen<'_>, properties: &Value) -> bool {
        let message = &seen.message;
        match self {
            Self::Text(pattern) => {
                pattern.is_match(message.exchange())
                    || pattern.is_match(message.routing_key())
                    || contains(properties, pattern)
                    || pattern.is_match(message.body)
            }
            Self::Body(pattern) => pattern.is_match(message.body),
            Self::RoutingKey(pattern) => pattern.is_match(message.routing_key()),
            Self::Exchange(pattern) => pattern.is_match(message.exchange()),
            Self::Property(path, pattern) => {
                find(properties, path).is_some_and(|value| pattern.is_match(json::plain(value).as_bytes()))
            }
            Self::State(standing) => seen.standing == *standing,
            Self::Redelivered(wanted) => seen.redelivered == *wanted,
            Self::Since(ms) => seen.received.0 >= *ms,
            Self::Until(ms) => seen.received.0 <= *ms,
        }
    }
}

/// An empty value asks only that something is there.
fn any_or(whole: impl Fn(&str) -> Result<Regex, Refusal>, value: &str) -> Result<Regex, Refusal> {
    if value.is_empty() {
        pattern("")
    } else {
        whole(value)
    }
}

fn pattern(text: &str) -> Result<Regex, Refusal> {
    RegexBuilder::new(text)
        .size_limit(PATTERN_BYTES)
        .build()
        .map_err(|error| Refusal::bad_request(format!("not a regular expression: {error}")))
}

fn flag(name: &str, value: &str) -> Result<bool, Refusal> {
    value
        .parse()
        .map_err(|_| Refusal::bad_request(format!("{name} is 'true' or 'false', not '{value}'")))
}

fn standing(value: &str) -> Result<Standing, Refusal> {
    let all = [
        Standing::Ready,
        Standing::Held,
        Standing::Waiting,
        Standing::Leaving,
    ];
    all.into_iter().find(|it| state(*it) == value).ok_or_else(|| {
        let names = all.map(state).join(", ");
        Refusal::bad_request(format!("state is one of {names}, not '{value}'"))
    })
}

/// A value below a value: by its name, or by the parts of a dotted path, in which numbers count the members of a list.
fn find<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    let Some((name, rest)) = path.split_first() else {
        return Some(value);
    };
    if let Some(found) = value.get(name) {
        return find(found, rest);
    }
    let mut value = value;
    for part in name.split('.') {
        value = match value {
            Value::Array(items) => items.get(part.parse::<usize>().ok()?)?,
            other => other.get(part)?,
        };
    }
    find(value, rest)
}

/// True if some name or value in it matches.
fn contains(value: &Value, pattern: &Regex) -> bool {
    match value {
        Value::Object(map) => map
            .iter()
            .any(|(name, value)| pattern.is_match(name.as_bytes()) || contains(value, pattern)),
        Value::Array(items) => items.iter().any(|item| contains(item, pattern)),
        Value::Null => false,
        other => pattern.is_match(json::plain(other).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::properties::{Properties, PropertiesBuilder};
    use model::table::{Table, Value as Field};
    use model::{Message, RouteBuf};

    fn passes(pairs: &[(&str, &str)]) -> bool {
        let death = Table::new().with("queue", "orders").with("count", 3);
        let headers = Table::new()
            .with("tenant", "north")
            .with("a.b", 7)
            .with("x-death", Field::Array(vec![Field::Table(death)]));
        let properties = PropertiesBuilder::new()
            .content_type("text/plain")
            .priority(5)
            .headers(&headers)
            .encode();
        let route = RouteBuf::new(b"ex", b"key.one");
        let seen = Seen {
            seq: 9,
            standing: Standing::Held,
            redelivered: true,
            returns: 1,
            received: Timestamp(5000),
            persistent: true,
            message: Message {
                route: route.as_route(),
                properties: Properties::amqp091(&properties),
                body: b"Hello \xff\x00 (World)",
                flags: 0,
            },
        };
        let filter = Filter::of(pairs.iter().copied(), 10_000, true).unwrap();
        filter.passes(&seen, &Limits::default())
    }

    #[test]
    fn all_conditions_must_hold() {
        assert!(passes(&[]));
        assert!(passes(&[("header.tenant", "north"), ("body", "(World")]));
        assert!(!passes(&[("header.tenant", "north"), ("body", "world")]));
    }

    #[test]
    fn headers_and_properties_are_equal_and_bodies_contain() {
        for (name, value) in [
            ("header.tenant", "north"),
            ("header.tenant", ""),
            ("header.a.b", "7"),
            ("header.x-death.0.queue", "orders"),
            ("header.x-death.0.count", "3"),
            ("property.content_type", "text/plain"),
            ("property.priority", "5"),
            ("routing_key", "key.one"),
            ("exchange", "ex"),
            ("body", "Hello"),
            ("text", "hello"),
            ("text", "NORTH"),
            ("text", "orders"),
            ("text", "x-death"),
            ("state", "unacked"),
            ("redelivered", "true"),
            ("since", "5000"),
            ("since", "5s"),
            ("until", "5000"),
        ] {
            assert!(passes(&[(name, value)]), "{name}={value}");
        }
        for (name, value) in [
            ("header.tenant", "nort"),
            ("header.none", ""),
            ("header.x-death.1.queue", "orders"),
            ("property.content_type", "text"),
            ("routing_key", "key"),
            ("exchange", ""),
            ("text", "south"),
            ("state", "ready"),
            ("redelivered", "false"),
            ("since", "5001"),
            ("until", "4999"),
        ] {
            assert!(!passes(&[(name, value)]), "{name}={value}");
        }
    }

    #[test]
    fn expressions_are_looked_for_anywhere() {
        let regex = ("use_regex", "true");
        assert!(passes(&[("header.tenant", "^n.*h$"), regex]));
        assert!(passes(&[("body", r"(?-u)\xff\x00"), regex]));
        assert!(!passes(&[("routing_key", "^one"), regex]));
    }

    #[test]
    fn nonsense_is_refused() {
        for (name, value) in [
            ("zork", "1"),
            ("header.", "1"),
            ("state", "zork"),
            ("redelivered", "maybe"),
            ("since", "soon"),
        ] {
            assert!(
                Filter::of([(name, value)].into_iter(), 0, true).is_err(),
                "{name}"
            );
        }
        let broken = [("body", "("), ("use_regex", "true")];
        assert!(Filter::of(broken.into_iter(), 0, true).is_err());
        let huge = [("body", r"\w{900}{900}"), ("use_regex", "true")];
        assert!(Filter::of(huge.into_iter(), 0, true).is_err());
        let passed_over = Filter::of([("count", "5")].into_iter(), 0, false).unwrap();
        assert!(passed_over.conditions.is_empty());
    }
}
