//! The queries that a directory is asked (`auth_ldap.queries.*`), of Erlang terms: RabbitMQ's language. What makes no
//! sense is refused here, so that nobody has to find out at a login.

use super::terms::{self, Mistake, Shape, Term};
use identity::{Case, Occasion, Query, Template, Text, Variable};

/// The attribute that has the members of a group, unless another is named.
const MEMBER: &str = "member";

/// Reads a query in which the variables that are known there may stand.
///
/// # Errors
/// It is none; a sentence that says where and why.
pub fn query(text: &str, asked: Occasion) -> Result<Query, Mistake> {
    Grammar { asked }.query(&terms::parse(text)?)
}

/// Reads the queries about tags: `[{administrator, QUERY}, …]`.
///
/// # Errors
/// It is none; a sentence that says where and why.
pub fn tags(text: &str) -> Result<Vec<(String, Query)>, Mistake> {
    let grammar = Grammar {
        asked: Occasion::AtLogin,
    };
    let term = terms::parse(text)?;
    let expected = "expected [{TAG, QUERY}, …]";
    let list = term.list().ok_or_else(|| term.mistake(expected))?;
    let mut tags = Vec::new();
    for term in list {
        let pair = term.tuple().unwrap_or_default();
        let [tag, query] = pair else {
            return Err(term.mistake(expected));
        };
        let name = tag.atom().or(tag.text()).ok_or_else(|| tag.mistake(expected))?;
        tags.push((name.to_owned(), grammar.query(query)?));
    }
    Ok(tags)
}

struct Grammar {
    asked: Occasion,
}

impl Grammar {
    fn query(&self, term: &Term) -> Result<Query, Mistake> {
        let Some(parts @ [name, ..]) = term.tuple() else {
            return Err(term.mistake("expected a query, such as {constant, true} or {in_group, \"cn=…\"}"));
        };
        let Some(name) = name.atom() else {
            return Err(name.mistake("expected the name of a query"));
        };
        match (name, &parts[1..]) {
            ("constant", [yes]) => match yes.atom() {
                Some("true") => Ok(Query::Constant(true)),
                Some("false") => Ok(Query::Constant(false)),
                _ => Err(yes.mistake("expected true or false")),
            },
            ("exists", [object]) => Ok(Query::Exists(self.template(object)?)),
            ("in_group", [group, rest @ ..]) if rest.len() <= 1 => Ok(Query::InGroup {
                group: self.template(group)?,
                attribute: attribute_or(rest.first(), MEMBER)?,
            }),
            ("in_group_nested", [group, rest @ ..]) if rest.len() <= 2 => Ok(Query::InNestedGroup {
                group: self.template(group)?,
                attribute: attribute_or(rest.first(), MEMBER)?,
                deep: rest.get(1).map_or(Ok(true), is_deep)?,
            }),
            ("for", [cases]) => self.cases(cases),
            ("not", [query]) => Ok(Query::Not(Box::new(self.query(query)?))),
            ("and", [queries]) => self.several(queries).map(Query::And),
            ("or", [queries]) => self.several(queries).map(Query::Or),
            ("equals", [one, other]) => Ok(Query::Equals(self.text(one)?, self.text(other)?)),
            ("match", [text, expression]) => Ok(Query::Match(self.text(text)?, self.text(expression)?)),
            ("string" | "attribute", _) => Err(term.mistake(format!(
                "'{name}' is a text, not a query: use it in equals or match"
            ))),
            (
                "constant" | "exists" | "in_group" | "in_group_nested" | "for" | "not" | "and" | "or" | "equals"
                | "match",
                rest,
            ) => Err(term.mistake(format!("'{name}' does not take {} parts", rest.len()))),
            _ => Err(term.mistake(format!(
                "'{name}' is not a query; constant, exists, in_group, in_group_nested, for, not, and, or, equals and match are"
            ))),
        }
    }

    fn several(&self, term: &Term) -> Result<Vec<Query>, Mistake> {
        let list = term
            .list()
            .ok_or_else(|| term.mistake("expected a list of queries"))?;
        list.iter().map(|query| self.query(query)).collect()
    }

    fn cases(&self, term: &Term) -> Result<Query, Mistake> {
        let expected =
            "expected [{VARIABLE, VALUE, QUERY}, …], such as {permission, write, {constant, true}}";
        let list = term.list().ok_or_else(|| term.mistake(expected))?;
        let mut cases = Vec::new();
        for term in list {
            let Some([variable, value, query]) = term.tuple() else {
                return Err(term.mistake(expected));
            };
            let name = variable.atom().ok_or_else(|| variable.mistake(expected))?;
            let said = value
                .atom()
                .or(value.text())
                .ok_or_else(|| value.mistake(expected))?;
            cases.push(Case {
                variable: Variable::named(name, self.asked).map_err(|why| variable.mistake(why))?,
                value: said.to_owned(),
                query: self.query(query)?,
            });
        }
        Ok(Query::For(cases))
    }

    fn text(&self, term: &Term) -> Result<Text, Mistake> {
        if term.text().is_some() {
            return self.template(term).map(Text::Template);
        }
        let parts = term.tuple().unwrap_or_default();
        match (parts.first().and_then(Term::atom), parts) {
            (Some("string"), [_, text]) => self.template(text).map(Text::Template),
            (Some("attribute"), [_, of, attribute]) => Ok(Text::Attribute {
                of: self.template(of)?,
                attribute: attribute_or(Some(attribute), MEMBER)?,
            }),
            _ => {
                Err(term
                    .mistake("expected a \"text\", {string, \"text\"} or {attribute, \"cn=…\", \"name\"}"))
            }
        }
    }

    fn template(&self, term: &Term) -> Result<Template, Mistake> {
        let text = term.text().ok_or_else(|| term.mistake("expected a \"text\""))?;
        Template::parse(text, self.asked).map_err(|why| term.mistake(why))
    }
}

/// The name of an attribute.
fn attribute_or(term: Option<&Term>, otherwise: &str) -> Result<String, Mistake> {
    let Some(term) = term else {
        return Ok(otherwise.to_owned());
    };
    let name = term.text().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| term.mistake("expected the name of an attribute, such as \"member\""))?;
    Ok(name.to_owned())
}

fn is_deep(scope: &Term) -> Result<bool, Mistake> {
    match &scope.shape {
        Shape::Atom(name) if name == "subtree" => Ok(true),
        // All of these names mean the same in RabbitMQ.
        Shape::Atom(name)
            if matches!(
                name.as_str(),
                "singlelevel" | "single_level" | "onelevel" | "one_level"
            ) =>
        {
            Ok(false)
        }
        _ => Err(scope.mistake("expected subtree or single_level")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        match query(text, Occasion::ForResource) {
            Ok(_) => "good".into(),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn all_queries_of_rabbitmq_are_read() {
        for text in [
            "{constant, true}",
            r#"{exists, "cn=${name},dc=example"}"#,
            r#"{in_group, "cn=${vhost}-users,dc=example"}"#,
            r#"{in_group, "cn=x", "uniqueMember"}."#,
            r#"{in_group_nested, "cn=x"}"#,
            r#"{in_group_nested, "cn=x", "member", one_level}"#,
            r#"{for, [{permission, configure, {in_group, "cn=a"}}, {permission, write, {for, [{resource, queue, {constant, true}}]}}]}"#,
            r#"{'not', {'and', [{'or', []}, {constant, false}]}}"#,
            r#"{match, {string, "${name}"}, {string, "^${username}-.*"}}"#,
            r#"{equals, "${username}", {attribute, "${user_dn}", "uid"}}"#,
            r#"{match, {attribute, "${user_dn}", "description"}, <<"^x">>}"#,
        ] {
            assert_eq!(read(text), "good", "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_place() {
        for (text, said) in [
            ("true", "line 1, column 1: expected a query"),
            ("{constant, maybe}", "line 1, column 12: expected true or false"),
            (r#"{in_grp, "x"}"#, "line 1, column 1: 'in_grp' is not a query"),
            ("{in_group, x}", "line 1, column 12: expected a \"text\""),
            (
                r#"{in_group, "a", "b", "c"}"#,
                "line 1, column 1: 'in_group' does not take 3 parts",
            ),
            (
                r#"{in_group_nested, "a", "b", deep}"#,
                "line 1, column 29: expected subtree",
            ),
            (
                r#"{attribute, "a", "b"}"#,
                "line 1, column 1: 'attribute' is a text",
            ),
            ("{'and',\n [x]}", "line 2, column 3: expected a query"),
            (
                r#"{for, [{tag, x, {constant, true}}]}"#,
                "line 1, column 9: 'tag' is not known here",
            ),
            (
                r#"{exists, "cn=${routing_key}"}"#,
                "line 1, column 10: 'routing_key' is not known here",
            ),
            (
                r#"{equals, "a", {constant, true}}"#,
                "line 1, column 15: expected a \"text\"",
            ),
            (
                "{constant, true",
                "line 1, column 1: this bracket is never closed",
            ),
        ] {
            assert!(read(text).starts_with(said), "{text}: {}", read(text));
        }
    }

    #[test]
    fn tags_have_a_query_each() {
        let read =
            tags(r#"[{administrator, {in_group, "cn=a"}}, {"night shift", {constant, true}}]"#).unwrap();
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["administrator", "night shift"]);
        assert_eq!(tags("[]").unwrap(), []);
        assert!(tags("{constant, true}").is_err());
        assert!(tags(r#"[{administrator, {exists, "cn=${vhost}"}}]"#).is_err());
    }
}
