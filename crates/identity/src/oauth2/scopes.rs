//! What a token's scopes let its owner do: `read:VHOST/NAME[/KEY]` and so on, with `*` for anything and `{CLAIM}` for what the
//! token claims.

use super::token::Claims;
use broker::access::{ObjectKind, Rights, Verb};
use serde_json::Value;
use std::time::SystemTime;

/// Stands for the virtual host that is asked about.
const VHOST: &str = "{vhost}";

/// The scopes of one token.
#[derive(Debug)]
pub struct Scopes {
    grants: Vec<Grant>,
    /// Scopes with the virtual host in them: what they grant depends on which one is asked about.
    of_vhosts: Vec<String>,
    tags: Vec<String>,
    until: Option<SystemTime>,
}

#[derive(Debug)]
struct Grant {
    verb: Verb,
    vhost: Wildcard,
    name: Wildcard,
    key: Wildcard,
}

impl Scopes {
    /// Reads scopes without their prefix. Those that are none are left out, as in RabbitMQ: they may be somebody else's. Without
    /// `until` they hold as long as the connection does.
    pub fn parse(scopes: &[String], claims: &Claims, until: Option<SystemTime>) -> Self {
        let tags = scopes.iter().filter_map(|scope| scope.strip_prefix("tag:"));
        let tags = tags.map(str::to_owned).collect();
        let texts = scopes.iter().filter_map(|scope| expanded(scope, claims));
        let (of_vhosts, fixed): (Vec<_>, Vec<_>) = texts.partition(|text| text.contains(VHOST));
        Self {
            grants: fixed.iter().filter_map(|scope| Grant::parse(scope)).collect(),
            of_vhosts,
            tags,
            until,
        }
    }

    /// The user's tags.
    pub fn tags(&self) -> &[String] {
        &self.tags
    }

    /// True if a scope covers the virtual host and allows this there.
    fn any(&self, vhost: &str, allows: impl Fn(&Grant) -> bool) -> bool {
        if self.until.is_some_and(|until| until <= SystemTime::now()) {
            return false;
        }
        let allows = |grant: &Grant| grant.vhost.matches(vhost.as_bytes()) && allows(grant);
        let of_vhost = |scope: &String| Grant::parse(&scope.replace(VHOST, &literal(vhost)));
        self.grants.iter().any(allows)
            || self
                .of_vhosts
                .iter()
                .filter_map(of_vhost)
                .any(|grant| allows(&grant))
    }
}

/// A scope with the token's claims in the place of their names in braces; `None` if a brace is not closed. RabbitMQ
/// takes a name that the token does not claim for the text itself.
fn expanded(scope: &str, claims: &Claims) -> Option<String> {
    let mut text = String::new();
    let mut rest = scope;
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, behind) = behind.split_once('}')?;
        text.push_str(before);
        match claims.get(name).and_then(Value::as_str) {
            _ if name == "vhost" => text.push_str(VHOST),
            Some(value) => text.push_str(&literal(value)),
            None => text.push_str(name),
        }
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}

/// A text that matches itself only, whatever stands in it: whoever may choose a name must not choose a pattern.
fn literal(text: &str) -> String {
    let mut literal = String::new();
    for letter in text.chars() {
        match letter {
            '%' | '*' | '/' | '{' | '}' => literal.push_str(&format!("%{:02X}", u32::from(letter))),
            _ => literal.push(letter),
        }
    }
    literal
}

impl Grant {
    fn parse(scope: &str) -> Option<Self> {
        let (verb, pattern) = scope.split_once(':')?;
        let verb = match verb {
            "configure" => Verb::Configure,
            "write" => Verb::Write,
            "read" => Verb::Read,
            _ => return None,
        };
        let mut parts = pattern.split('/');
        let (vhost, name) = (parts.next()?, parts.next()?);
        // Without a key, every key is meant.
        let key = parts.next().unwrap_or("*");
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            verb,
            vhost: Wildcard::parse(vhost)?,
            name: Wildcard::parse(name)?,
            key: Wildcard::parse(key)?,
        })
    }
}

impl Rights for Scopes {
    fn enter(&self, vhost: &str) -> bool {
        self.any(vhost, |_| true)
    }

    fn may(&self, vhost: &str, verb: Verb, _: ObjectKind, name: &str) -> bool {
        self.any(vhost, |grant| {
            grant.verb == verb && grant.name.matches(name.as_bytes())
        })
    }

    fn may_with_key(&self, vhost: &str, verb: Verb, exchange: &str, key: &[u8]) -> bool {
        self.any(vhost, |grant| {
            grant.verb == verb && grant.name.matches(exchange.as_bytes()) && grant.key.matches(key)
        })
    }

    fn until(&self) -> Option<SystemTime> {
        self.until
    }
}

/// A pattern in which `*` stands for any bytes. Other bytes may be written as in addresses of the web: `%2F` is a slash.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wildcard {
    /// What stands between the stars.
    pieces: Vec<Vec<u8>>,
}

impl Wildcard {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let pieces = text.split('*').map(decoded).collect::<Option<Vec<_>>>()?;
        Some(Self { pieces })
    }

    /// Each piece is looked for behind the one before, so this takes no more than text × pattern.
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        let [first, middle @ .., last] = &self.pieces[..] else {
            return self.pieces.first().is_some_and(|only| only == text);
        };
        let Some(text) = text.strip_prefix(&first[..]) else {
            return false;
        };
        let Some(mut rest) = text.strip_suffix(&last[..]) else {
            return false;
        };
        for piece in middle.iter().filter(|piece| !piece.is_empty()) {
            match rest.windows(piece.len()).position(|found| found == &piece[..]) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
        true
    }
}

fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, behind) = rest.split_at_checked(2)?;
        let digit = |digit: u8| char::from(digit).to_digit(16);
        bytes.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
        rest = behind;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn scopes(texts: &[&str]) -> Scopes {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let claims = serde_json::json!({"sub": "jane", "star": "*", "number": 7});
        let claims = claims.as_object().unwrap();
        Scopes::parse(
            &texts,
            claims,
            Some(SystemTime::now() + Duration::from_secs(1000)),
        )
    }

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, matches) in [
            ("*", "", true),
            ("*", "a", true),
            ("", "", true),
            ("", "a", false),
            ("a*", "ab", true),
            ("a*", "ba", false),
            ("*a", "ba", true),
            ("a*c", "abc", true),
            ("a*a", "a", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("a*bb*b", "abb", false),
            ("**", "x", true),
            ("%2F", "/", true),
            ("%2a", "*", true),
            ("%2a", "x", false),
        ] {
            let wildcard = Wildcard::parse(pattern).unwrap();
            assert_eq!(wildcard.matches(text.as_bytes()), matches, "{pattern} {text}");
        }
        for bad in ["%", "%2", "%zz"] {
            assert_eq!(Wildcard::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_scope_gives_one_verb_in_its_virtual_hosts() {
        let scopes = scopes(&[
            "read:shop/orders*",
            "write:%2F/*",
            "tag:monitoring",
            "tag:administrator",
            "nonsense",
            "read:a/b/c/d",
        ]);
        assert_eq!(scopes.tags(), ["monitoring", "administrator"]);
        assert!(scopes.enter("shop") && scopes.enter("/") && !scopes.enter("other"));
        let may = |vhost, verb, name| scopes.may(vhost, verb, ObjectKind::Queue, name);
        assert!(may("shop", Verb::Read, "orders.1") && !may("shop", Verb::Read, "bills"));
        assert!(!may("shop", Verb::Write, "orders.1") && !may("shop", Verb::Configure, "orders.1"));
        assert!(may("/", Verb::Write, "amq.default") && !may("/", Verb::Read, "amq.default"));
    }

    #[test]
    fn keys_are_asked_about_where_a_scope_has_them() {
        let scopes = scopes(&["write:*/ex/a.*", "read:*/ex"]);
        let may = |verb, key: &str| scopes.may_with_key("/", verb, "ex", key.as_bytes());
        assert!(may(Verb::Write, "a.b") && !may(Verb::Write, "b.a"));
        assert!(may(Verb::Read, "anything"));
        assert!(!scopes.may_with_key("/", Verb::Write, "other", b"a.b"));
    }

    #[test]
    fn an_expired_token_gives_nothing() {
        let until = |until| Scopes::parse(&["read:*/*".into()], &Claims::new(), until);
        let scopes = until(Some(SystemTime::now()));
        assert!(!scopes.enter("/") && !scopes.may("/", Verb::Read, ObjectKind::Queue, "q"));
        assert!(until(None).enter("/"), "a token without an end");
    }

    #[test]
    fn braces_stand_for_claims_and_for_the_virtual_host() {
        let scopes = scopes(&[
            "read:*/{sub}-*",
            "write:{vhost}/of-{vhost}",
            "configure:*/{star}",
            "configure:v/{absent}",
            "read:open/{sub",
            "configure:n/{number}",
        ]);
        let may = |vhost, verb, name| scopes.may(vhost, verb, ObjectKind::Queue, name);
        assert!(may("v", Verb::Read, "jane-1") && !may("v", Verb::Read, "bob-1"));
        assert!(
            may("a", Verb::Write, "of-a") && may("/", Verb::Write, "of-/") && !may("a", Verb::Write, "of-b")
        );
        assert!(
            may("x", Verb::Configure, "*") && !may("x", Verb::Configure, "any"),
            "a star that is claimed is not a pattern"
        );
        assert!(may("v", Verb::Configure, "absent") && may("n", Verb::Configure, "number"));
        assert!(!may("open", Verb::Read, "jane"));
    }
}
