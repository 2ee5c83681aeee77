//! A text with variables in it: `cn=${username},dc=example`. What stands for a variable never changes what the text
//! around it means.

use super::facts::{Facts, Occasion, Variable};

/// The text, in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(Variable),
}

/// What the filled text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// A name in the directory.
    Name,
    /// Just text.
    Text,
    /// A regular expression.
    Expression,
}

impl Template {
    /// Reads a text in which the variables that are known there may stand.
    ///
    /// # Errors
    /// Another one does; a sentence about it. RabbitMQ would leave it as it is, and the text would mean nothing.
    pub fn parse(text: &str, asked: Occasion) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, name, after)) = variable(rest) {
            if !before.is_empty() {
                pieces.push(Piece::Text(before.to_owned()));
            }
            pieces.push(Piece::Variable(Variable::named(name, asked)?));
            rest = after;
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.to_owned()));
        }
        Ok(Self { pieces })
    }

    /// Just this variable.
    pub fn of(variable: Variable) -> Self {
        let pieces = vec![Piece::Variable(variable)];
        Self { pieces }
    }

    /// The text with its values; `None` if one of them has none.
    pub fn fill(&self, facts: &Facts, filled: Filled) -> Option<String> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(it) => text.push_str(it),
                Piece::Variable(variable) => {
                    let value = facts.get(*variable)?;
                    match filled {
                        // This one is a whole name, not a part of one.
                        Filled::Name if *variable == Variable::UserDn => text.push_str(value),
                        Filled::Name => escape_part(value, &mut text),
                        Filled::Text => text.push_str(value),
                        Filled::Expression => escape_expression(value, &mut text),
                    }
                }
            }
        }
        Some(text)
    }

    /// The name of a user: part of a name in the directory if the text is one, else as it is (`${username}@example.com`).
    pub fn name_of_user(&self, facts: &Facts) -> Option<String> {
        let is_name = |piece: &Piece| matches!(piece, Piece::Text(text) if text.contains('='));
        match self.pieces.iter().any(is_name) {
            true => self.fill(facts, Filled::Name),
            false => self.fill(facts, Filled::Text),
        }
    }

    /// True if this variable stands in it.
    pub fn has(&self, variable: Variable) -> bool {
        self.pieces.contains(&Piece::Variable(variable))
    }
}

/// The text before the first variable, its name, and what comes behind it.
fn variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// A value within a name of the directory: what would end its part there is escaped (RFC 4514).
fn escape_part(value: &str, into: &mut String) {
    let last = value.chars().count().saturating_sub(1);
    for (at, c) in value.chars().enumerate() {
        match c {
            '\0' => into.push_str("\\00"),
            ' ' if at == 0 || at == last => into.push_str("\\ "),
            '#' if at == 0 => into.push_str("\\#"),
            '"' | '+' | ',' | ';' | '<' | '>' | '\\' | '=' => into.extend(['\\', c]),
            _ => into.push(c),
        }
    }
}

/// A value within a regular expression stands for itself. RabbitMQ takes it as a part of the expression, so that a user
/// called `.*` has the permissions of everybody.
fn escape_expression(value: &str, into: &mut String) {
    for c in value.chars() {
        if "\\.+*?()|[]{}^$#&-~".contains(c) {
            into.push('\\');
        }
        into.push(c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, user: &str, filled: Filled) -> String {
        let template = Template::parse(text, Occasion::AtLogin).unwrap();
        let facts = Facts::of_user(user).known_as("uid=jane,dc=example");
        template.fill(&facts, filled).unwrap()
    }

    #[test]
    fn a_value_stays_within_its_part_of_a_directory_name() {
        let name = |user: &str| filled("cn=${username},dc=example", user, Filled::Name);
        assert_eq!(name("jane"), "cn=jane,dc=example");
        assert_eq!(name("jane,dc=evil"), "cn=jane\\,dc\\=evil,dc=example");
        assert_eq!(name(" #a\\b "), "cn=\\ #a\\\\b\\ ,dc=example");
        assert_eq!(name("#x"), "cn=\\#x,dc=example");
        assert_eq!(name("ja\0ne"), "cn=ja\\00ne,dc=example");
        assert_eq!(name(""), "cn=,dc=example");
        assert_eq!(
            filled("cn=me,${user_dn}", "x", Filled::Name),
            "cn=me,uid=jane,dc=example"
        );
    }

    #[test]
    fn a_value_stands_for_itself_in_an_expression() {
        assert_eq!(
            filled("^${username}-.*$", ".*(a|b)-c", Filled::Expression),
            "^\\.\\*\\(a\\|b\\)\\-c-.*$"
        );
        assert_eq!(filled("^${username}", ".*", Filled::Text), "^.*");
    }

    #[test]
    fn a_value_that_looks_like_a_variable_is_none() {
        assert_eq!(
            filled("${username} ${user_dn}", "${user_dn}", Filled::Text),
            "${user_dn} uid=jane,dc=example"
        );
    }

    #[test]
    fn a_variable_without_a_value_makes_no_text() {
        let template = Template::parse("${ad_user}@${ad_domain}.example", Occasion::ForName).unwrap();
        assert_eq!(template.name_of_user(&Facts::of_user("jane")), None);
        let facts = Facts::of_user("SHOP\\jane+x");
        assert_eq!(
            template.name_of_user(&facts).as_deref(),
            Some("jane+x@SHOP.example")
        );
    }

    #[test]
    fn an_unknown_variable_is_refused() {
        assert!(Template::parse("cn=${vhost}", Occasion::AtLogin).is_err());
        assert!(Template::parse("cn=${usrname}", Occasion::ForTopic).is_err());
        let odd = Template::parse("a$b ${ c", Occasion::AtLogin).unwrap();
        assert_eq!(
            odd.fill(&Facts::default(), Filled::Text).as_deref(),
            Some("a$b ${ c")
        );
    }
}
