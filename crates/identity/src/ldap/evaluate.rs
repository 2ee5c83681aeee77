//! Answering a query, by asking a directory where that must be.

use super::facts::{Facts, Variable};
use super::query::{Case, Query, Text};
use super::search::{About, Scope, Search, SearchResult, Searcher};
use super::template::{Filled, Template};
use broker::access::Pattern;
use rasn_ldap::ResultCode;
use std::collections::HashSet;
use std::io::Result;

/// So many groups are looked at for one question.
const GROUPS: usize = 1_000;
/// No expression is longer, in bytes (RabbitMQ's limit).
const LONGEST_EXPRESSION: usize = 1_024;

/// What came of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    Yes,
    No,
    /// The directory does not say, with a reason if somebody should know. It is never a yes, and its opposite isn't
    /// either: a directory hides what one may not see, and says that it is not there.
    Unknown(Option<String>),
}

impl From<bool> for Truth {
    fn from(yes: bool) -> Self {
        match yes {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

/// The values of a text; `Err` if there are none.
type Values = std::result::Result<Vec<String>, Truth>;

/// Somebody who answers queries about one question.
pub struct Evaluation<'a> {
    pub facts: &'a Facts,
    pub searcher: &'a mut dyn Searcher,
    /// Where groups are looked for.
    pub groups: &'a str,
}

impl Evaluation<'_> {
    /// Answers a query. How deep it is was limited when it was read.
    ///
    /// # Errors
    /// The directory can't be asked.
    pub fn answer(&mut self, query: &Query) -> Result<Truth> {
        match query {
            Query::Constant(yes) => Ok((*yes).into()),
            Query::Exists(name) => self.there(name, About::Anything),
            Query::InGroup { group, attribute } => match self.facts.get(Variable::UserDn) {
                Some(user) => self.there(group, About::Equals(attribute, user)),
                None => Ok(Truth::Unknown(None)),
            },
            Query::InNestedGroup {
                group,
                attribute,
                deep,
            } => self.nested(group, attribute, *deep),
            Query::For(cases) => self.cases(cases),
            Query::Not(query) => Ok(match self.answer(query)? {
                Truth::Yes => Truth::No,
                Truth::No => Truth::Yes,
                unknown => unknown,
            }),
            Query::And(queries) => self.all(queries, &Truth::No, Truth::Yes),
            Query::Or(queries) => self.all(queries, &Truth::Yes, Truth::No),
            Query::Equals(one, other) => self.compare(one, other, Filled::Text, |one, other| one == other),
            Query::Match(text, expression) => self.compare(text, expression, Filled::Expression, fits),
        }
    }

    /// Until one of them is `decides`; if none is, `otherwise`, unless one of them is unknown.
    fn all(&mut self, queries: &[Query], decides: &Truth, otherwise: Truth) -> Result<Truth> {
        let mut all = otherwise;
        for query in queries {
            match self.answer(query)? {
                truth if truth == *decides => return Ok(truth),
                unknown @ Truth::Unknown(_) => all = unknown,
                _ => {}
            }
        }
        Ok(all)
    }

    fn cases(&mut self, cases: &[Case]) -> Result<Truth> {
        for case in cases {
            if self.facts.get(case.variable) == Some(case.value.as_str()) {
                return self.answer(&case.query);
            }
        }
        Ok(Truth::Unknown(Some(
            "none of the cases of a 'for' in its query fits".into(),
        )))
    }

    /// Is there an object of this name, of which this is true? If not, it must be seen that it isn't.
    fn there(&mut self, name: &Template, about: About<'_>) -> Result<Truth> {
        let Some(name) = self.facts_name(name) else {
            return Ok(Truth::Unknown(None));
        };
        let found = self.searcher.search(&Search {
            about,
            ..Search::of_object(&name)
        })?;
        match (found.end, about) {
            (ResultCode::Success, _) if !found.objects.is_empty() => Ok(Truth::Yes),
            (ResultCode::Success, About::Equals(..)) => self.not_in(&name),
            (ResultCode::Success, About::Anything) => Ok(Truth::Unknown(None)),
            _ => Ok(unknown(&found)),
        }
    }

    /// Nobody was found in this object: a no, if it can be seen at all.
    fn not_in(&mut self, name: &str) -> Result<Truth> {
        let found = self.searcher.search(&Search::of_object(name))?;
        Ok(match (found.end, found.objects.is_empty()) {
            (ResultCode::Success, false) => Truth::No,
            (ResultCode::Success, true) => Truth::Unknown(None),
            _ => unknown(&found),
        })
    }

    /// Is the user in a group, or in one that is in it, and so on?
    fn nested(&mut self, group: &Template, attribute: &str, deep: bool) -> Result<Truth> {
        let (Some(wanted), Some(user)) = (self.facts_name(group), self.facts.get(Variable::UserDn)) else {
            return Ok(Truth::Unknown(None));
        };
        let key_wanted = wanted.to_lowercase();
        let mut seen = HashSet::from([user.to_lowercase()]);
        let mut open = vec![user.to_owned()];
        let mut failed = None;
        while let Some(member) = open.pop() {
            let found = self.searcher.search(&Search {
                base: self.groups,
                scope: if deep { Scope::Below } else { Scope::RightBelow },
                about: About::Equals(attribute, &member),
                attribute: None,
                most: GROUPS,
            })?;
            if found.end != ResultCode::Success {
                failed = Some(unknown(&found));
            }
            for group in found.objects {
                let key = group.name.to_lowercase();
                if key == key_wanted {
                    return Ok(Truth::Yes);
                }
                // Groups may be in each other in a circle.
                if seen.insert(key) {
                    open.push(group.name);
                }
            }
            if seen.len() > GROUPS {
                return Ok(Truth::Unknown(Some(format!(
                    "they are in more than {GROUPS} groups"
                ))));
            }
        }
        match failed {
            Some(unknown) => Ok(unknown),
            None => self.not_in(&wanted),
        }
    }

    /// Is this true of one of the values of both? As in RabbitMQ, only one of them may have several.
    fn compare(
        &mut self,
        one: &Text,
        other: &Text,
        filled: Filled,
        holds: impl Fn(&str, &str) -> bool,
    ) -> Result<Truth> {
        let one = match self.values(one, Filled::Text)? {
            Ok(values) => values,
            Err(truth) => return Ok(truth),
        };
        let other = match self.values(other, filled)? {
            Ok(values) => values,
            Err(truth) => return Ok(truth),
        };
        if one.len() > 1 && other.len() > 1 {
            return Ok((filled == Filled::Text && one == other).into());
        }
        let mut pairs = one
            .iter()
            .flat_map(|one| other.iter().map(move |other| (one, other)));
        Ok(pairs.any(|(one, other)| holds(one, other)).into())
    }

    fn values(&mut self, text: &Text, filled: Filled) -> Result<Values> {
        match text {
            Text::Template(template) => {
                let text = template.fill(self.facts, filled);
                Ok(text.map(|text| vec![text]).ok_or(Truth::Unknown(None)))
            }
            Text::Attribute { of, attribute } => {
                let Some(name) = self.facts_name(of) else {
                    return Ok(Err(Truth::Unknown(None)));
                };
                let mut found = self.searcher.search(&Search {
                    attribute: Some(attribute),
                    ..Search::of_object(&name)
                })?;
                Ok(match (found.end, found.objects.pop()) {
                    (ResultCode::Success, Some(object)) if !object.values.is_empty() => Ok(object.values),
                    // What is not there equals nothing, and nothing fits it.
                    (ResultCode::Success, _) => Err(Truth::No),
                    _ => Err(unknown(&found)),
                })
            }
        }
    }

    fn facts_name(&self, name: &Template) -> Option<String> {
        name.fill(self.facts, Filled::Name)
    }
}

/// What it means for a query that its search ended with an error code: the truth of the query is unknown.
fn unknown(found: &SearchResult) -> Truth {
    let said = match found.end {
        // No such object: it does not matter who asks.
        ResultCode::NoSuchObject => return Truth::Unknown(None),
        ResultCode::Referral => "it refers to another directory, which is not asked".into(),
        ResultCode::SizeLimitExceeded => "it finds too much".into(),
        other => format!("it answers with {other:?}"),
    };
    Truth::Unknown(Some(said))
}

/// Does the expression fit somewhere in the text? One that is malformed fits nowhere.
fn fits(text: &str, expression: &str) -> bool {
    // The form of policies, in which nothing at all fits everywhere.
    expression.len() <= LONGEST_EXPRESSION
        && Pattern::of_policy(expression).is_ok_and(|pattern| pattern.matches(text))
}

#[cfg(test)]
mod tests {
    use super::super::facts::Occasion;
    use super::super::search::Object;
    use super::*;
    use std::io::Error;

    /// A directory of objects with members and descriptions, and what was asked of it.
    struct Small {
        objects: Vec<(&'static str, Vec<(&'static str, &'static str)>)>,
        asked: usize,
        broken: bool,
    }

    impl Searcher for Small {
        fn search(&mut self, search: &Search<'_>) -> Result<SearchResult> {
            self.asked += 1;
            if self.broken {
                return Err(Error::other("gone"));
            }
            let there = |name: &str| match search.scope {
                Scope::There => name == search.base,
                Scope::RightBelow => name.split_once(',').is_some_and(|(_, rest)| rest == search.base),
                Scope::Below => name.ends_with(search.base),
            };
            let known = self.objects.iter().any(|(name, _)| name.ends_with(search.base));
            let fits = |values: &[(&str, &str)]| match search.about {
                About::Anything => true,
                About::Equals(attribute, value) => values.contains(&(attribute, value)),
            };
            let wanted = |values: &[(&str, &str)]| {
                let values = values.iter().filter(|(name, _)| search.attribute == Some(name));
                values.map(|(_, value)| (*value).to_owned()).collect()
            };
            let found = self
                .objects
                .iter()
                .filter(|(name, values)| there(name) && fits(values));
            Ok(SearchResult {
                objects: found
                    .map(|(name, values)| Object {
                        name: (*name).into(),
                        values: wanted(values),
                    })
                    .collect(),
                end: match (known, search.base) {
                    (_, "cn=elsewhere") => ResultCode::Referral,
                    (true, _) => ResultCode::Success,
                    (false, _) => ResultCode::NoSuchObject,
                },
            })
        }
    }

    const JANE: &str = "cn=jane,o=x";

    fn small() -> Small {
        Small {
            objects: vec![
                (JANE, vec![("description", "night"), ("mail", "a"), ("mail", "b")]),
                ("cn=staff,ou=groups,o=x", vec![("member", JANE)]),
                ("cn=All,ou=groups,o=x", vec![("member", "cn=staff,ou=groups,o=x")]),
                ("cn=staff2,ou=deep,ou=groups,o=x", vec![("member", JANE)]),
                (
                    "cn=ring,ou=groups,o=x",
                    vec![("member", "cn=gnir,ou=groups,o=x"), ("member", JANE)],
                ),
                ("cn=gnir,ou=groups,o=x", vec![("member", "cn=ring,ou=groups,o=x")]),
                ("cn=orders-users,o=x", vec![("uniqueMember", JANE)]),
            ],
            asked: 0,
            broken: false,
        }
    }

    fn template(text: &str) -> Template {
        Template::parse(text, Occasion::ForTopic).unwrap()
    }

    fn text(it: &str) -> Text {
        Text::Template(template(it))
    }

    fn attribute(of: &str, attribute: &str) -> Text {
        let (of, attribute) = (template(of), attribute.to_owned());
        Text::Attribute { of, attribute }
    }

    fn group(name: &str, attribute: &str) -> Query {
        let (group, attribute) = (template(name), attribute.to_owned());
        Query::InGroup { group, attribute }
    }

    fn nested(name: &str, deep: bool) -> Query {
        let (group, attribute) = (template(name), "member".to_owned());
        Query::InNestedGroup {
            group,
            attribute,
            deep,
        }
    }

    fn not(query: Query) -> Query {
        Query::Not(Box::new(query))
    }

    /// What is said about jane, who writes to the queue `jane-1` of the virtual host `orders`.
    fn asked(directory: &mut Small, query: &Query) -> Result<Truth> {
        let question = crate::question::AccessQuestion {
            vhost: "orders".into(),
            action: crate::question::Action::Object {
                verb: broker::access::Verb::Write,
                kind: broker::access::ObjectKind::Queue,
                name: "jane-1".into(),
            },
        };
        let facts = Facts::of_user("jane").known_as(JANE).about(&question).unwrap();
        let mut evaluation = Evaluation {
            facts: &facts,
            searcher: directory,
            groups: "ou=groups,o=x",
        };
        evaluation.answer(query)
    }

    fn truth(query: &Query) -> Truth {
        asked(&mut small(), query).unwrap()
    }

    #[test]
    fn objects_and_groups_are_asked_for() {
        use Truth::{No, Unknown, Yes};
        for (query, expected) in [
            (Query::Exists(template("${user_dn}")), Yes),
            (Query::Exists(template("cn=${vhost}-users,o=x")), Yes),
            (Query::Exists(template("cn=nothing,o=y")), Unknown(None)),
            (group("cn=${vhost}-users,o=x", "uniqueMember"), Yes),
            (group("cn=${vhost}-users,o=x", "member"), No),
            (group("cn=staff,ou=groups,o=x", "member"), Yes),
            (group("cn=All,ou=groups,o=x", "member"), No),
            (nested("cn=all,ou=groups,o=x", true), Yes),
            (nested("cn=staff2,ou=deep,ou=groups,o=x", true), Yes),
            (nested("cn=staff2,ou=deep,ou=groups,o=x", false), No),
            (nested("cn=orders-users,o=x", true), No),
            (nested("cn=other,ou=groups,o=x", true), Unknown(None)),
        ] {
            assert_eq!(truth(&query), expected, "{query:?}");
        }
        let mut directory = small();
        assert_eq!(
            asked(&mut directory, &nested("cn=none,o=x", true)).unwrap(),
            Unknown(None),
            "groups that are in each other"
        );
        assert!(directory.asked <= 8, "{}", directory.asked);
    }

    #[test]
    fn silence_is_never_a_yes_and_neither_is_its_opposite() {
        let hidden = || Query::Exists(template("cn=nothing,o=y"));
        let (yes, no) = (|| Query::Constant(true), || Query::Constant(false));
        for query in [
            not(hidden()),
            not(Query::And(vec![yes(), hidden()])),
            not(Query::Or(vec![hidden(), no()])),
            Query::And(vec![hidden(), yes()]),
            Query::Or(vec![no(), hidden()]),
        ] {
            assert_eq!(truth(&query), Truth::Unknown(None), "{query:?}");
        }
        assert_eq!(truth(&Query::And(vec![hidden(), no()])), Truth::No);
        assert_eq!(truth(&Query::Or(vec![hidden(), yes()])), Truth::Yes);
        let elsewhere = Query::Exists(template("cn=elsewhere"));
        let said = truth(&not(elsewhere));
        assert!(
            matches!(&said, Truth::Unknown(Some(why)) if why.contains("another directory")),
            "{said:?}"
        );
        let mut gone = Small {
            broken: true,
            ..small()
        };
        assert!(asked(&mut gone, &not(group(JANE, "member"))).is_err());
        assert_eq!(asked(&mut gone, &Query::Constant(true)).unwrap(), Truth::Yes);
    }

    #[test]
    fn logic_asks_no_more_than_it_must() {
        let mut directory = small();
        let exists = || Query::Exists(template(JANE));
        let query = Query::Or(vec![Query::Constant(true), exists()]);
        assert_eq!(asked(&mut directory, &query).unwrap(), Truth::Yes);
        let query = Query::And(vec![Query::Constant(false), exists()]);
        assert_eq!(asked(&mut directory, &query).unwrap(), Truth::No);
        assert_eq!(directory.asked, 0);
        assert_eq!(truth(&Query::And(vec![])), Truth::Yes);
        assert_eq!(truth(&Query::Or(vec![])), Truth::No);
    }

    #[test]
    fn the_first_case_that_fits_decides() {
        let case = |variable, value: &str, query| Case {
            variable,
            value: value.into(),
            query,
        };
        let cases = |values: &[(&str, bool)]| {
            let case = |(value, yes): &(&str, bool)| case(Variable::Permission, value, Query::Constant(*yes));
            Query::For(values.iter().map(case).collect())
        };
        assert_eq!(truth(&cases(&[("read", false), ("write", true)])), Truth::Yes);
        assert_eq!(truth(&cases(&[("write", false), ("write", true)])), Truth::No);
        assert!(matches!(
            truth(&cases(&[("read", true)])),
            Truth::Unknown(Some(_))
        ));
        let of_kind = Query::For(vec![case(Variable::Resource, "queue", Query::Constant(true))]);
        assert_eq!(truth(&of_kind), Truth::Yes);
    }

    #[test]
    fn texts_are_compared_with_one_of_several_values() {
        use Truth::{No, Unknown, Yes};
        let equals = |one, other| Query::Equals(one, other);
        let fits = |one, other| Query::Match(one, other);
        for (query, expected) in [
            (equals(text("${username}"), text("jane")), Yes),
            (equals(text("${username}"), text("Jane")), No),
            (equals(attribute("${user_dn}", "mail"), text("b")), Yes),
            (equals(text("c"), attribute("${user_dn}", "mail")), No),
            (equals(attribute("${user_dn}", "none"), text("b")), No),
            (not(equals(attribute("${user_dn}", "none"), text("b"))), Yes),
            (
                not(equals(attribute("cn=nobody,o=y", "mail"), text("b"))),
                Unknown(None),
            ),
            (fits(text("${name}"), text("^${username}-[0-9]$")), Yes),
            (fits(text("${name}"), text("^-${username}")), No),
            (fits(text("${name}"), text("(")), No),
            (fits(text("${name}"), text("")), Yes),
            (
                fits(text("night shift"), attribute("${user_dn}", "description")),
                Yes,
            ),
            (fits(attribute("${user_dn}", "mail"), text("^b$")), Yes),
            (
                fits(attribute("${user_dn}", "mail"), attribute("${user_dn}", "mail")),
                No,
            ),
            (
                equals(attribute("${user_dn}", "mail"), attribute("${user_dn}", "mail")),
                Yes,
            ),
            (fits(text("a"), text(&"a?".repeat(600))), No),
            (equals(text("${ad_user}"), text("jane")), Unknown(None)),
        ] {
            assert_eq!(truth(&query), expected, "{query:?}");
        }
    }
}
