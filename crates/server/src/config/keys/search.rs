//! Which rule a key has, and which key was meant by a misspelt one.

use super::super::keys_identity::IDENTITY;
use super::super::keys_oauth2::OAUTH2;
use super::super::keys_pages::PAGES;
use super::super::syntax::Key;
use super::{KEYS, Rule};

/// All keys, also those about who decides about logins, and those of the pages.
fn all() -> impl Iterator<Item = &'static (&'static str, Rule)> {
    KEYS.iter().chain(PAGES).chain(IDENTITY).chain(OAUTH2)
}

/// The rule of a key, if anybody knows the key.
pub fn rule(key: &Key) -> Option<&'static Rule> {
    all()
        .find(|(pattern, _)| matches(pattern, key.segments()))
        .map(|(_, rule)| rule)
}

fn matches(pattern: &str, mut segments: &[String]) -> bool {
    for part in pattern.split('.') {
        match (part, segments) {
            ("**", rest) => return !rest.is_empty(),
            ("*", [_, rest @ ..]) => segments = rest,
            (part, [first, rest @ ..]) if part == first => segments = rest,
            _ => return false,
        }
    }
    segments.is_empty()
}

/// The known key that is spelt most like this unknown one; `None` if none comes close.
pub fn nearest(key: &Key) -> Option<String> {
    let text = key.to_string();
    // No key is nearly that long, and comparing takes time by the square of the length.
    if text.len() > 100 {
        return None;
    }
    let spelling = |(pattern, _): &(&str, Rule)| {
        let candidate = like(pattern, key.segments());
        let distance = strsim::damerau_levenshtein(&text, &candidate);
        // What stars stand for is equal by construction, so only the rest of the pattern may excuse slips.
        let slips = (pattern.replace('*', "").len() / 3).max(2);
        (distance <= slips).then_some((distance, candidate))
    };
    all()
        .filter_map(spelling)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The pattern with its stars filled from the key, or named where the key has nothing for them.
fn like(pattern: &str, segments: &[String]) -> String {
    let mut filled = Vec::new();
    for (i, part) in pattern.split('.').enumerate() {
        match part {
            "*" => filled.push(segments.get(i).map_or("NAME", String::as_str)),
            "**" => match segments.get(i..) {
                Some(rest) if !rest.is_empty() => filled.extend(rest.iter().map(String::as_str)),
                _ => filled.push("NAME"),
            },
            part => filled.push(part),
        }
    }
    filled.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    #[test]
    fn stars_match_segments() {
        for (pattern, text, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a", false),
            ("a", "a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.*", "a", false),
            ("a.**", "a.b.c", true),
            ("a.**", "a", false),
            ("a.*.c", "a.b.c", true),
        ] {
            assert_eq!(
                matches(pattern, key(text).segments()),
                expected,
                "{pattern} {text}"
            );
        }
    }

    #[test]
    fn slips_of_the_pen_are_understood() {
        for (wrong, right) in [
            ("hearbeat", "heartbeat"),
            ("listener.tcp.default", "listeners.tcp.default"),
            ("managment.tcp.port", "management.tcp.port"),
            ("default_password", "default_pass"),
            (
                "vm_memory_high_watermark.relativ",
                "vm_memory_high_watermark.relative",
            ),
            ("log.consol.level", "log.console.level"),
            ("chanel_max", "channel_max"),
        ] {
            assert!(
                rule(&key(wrong)).is_none() || wrong.starts_with("log."),
                "{wrong}"
            );
            assert_eq!(nearest(&key(wrong)).as_deref(), Some(right), "{wrong}");
        }
        assert_eq!(nearest(&key("completely.different.thing.altogether")), None);
    }

    #[test]
    fn no_rule_hides_another() {
        for (i, (pattern, _)) in all().enumerate() {
            let example = like(pattern, &[]);
            let found = all().position(|(p, _)| matches(p, key(&example).segments()));
            assert_eq!(found, Some(i), "{pattern}");
        }
    }
}
