//! The grammar of `rabbitmq-env.conf`, which RabbitMQ runs as a shell script: of such scripts, assignments are
//! understood. A value may stand in quotes and have `$NAME` and `${NAME}` in it; a command in it is never run.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

/// What a line of the script is.
#[derive(Debug, PartialEq, Eq)]
pub enum EnvLine {
    /// `NAME=VALUE`, the value as a shell has it.
    Assignment(String, String),
    /// Anything that a shell would have to do; for an assignment, to which name.
    NeedsShell(Option<String>),
}

/// The lines that are neither empty nor comments, with their numbers from 1. `variable` looks up what isn't assigned before.
pub fn lines(text: &str, variable: impl Fn(&str) -> Option<String>) -> Vec<(EnvLine, usize)> {
    let mut assigned: HashMap<String, String> = HashMap::new();
    let mut found = Vec::new();
    let mut rest = text.lines().enumerate();
    while let Some((at, line)) = rest.next() {
        let mut whole = line.trim().to_owned();
        while whole.ends_with('\\')
            && let Some((_, next)) = rest.next()
        {
            whole.pop();
            whole.push_str(next.trim());
        }
        let line = whole.strip_prefix("export ").unwrap_or(&whole).trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let name = line.split_once('=').filter(|(name, _)| is_name(name));
        let read = match name {
            None => EnvLine::NeedsShell(None),
            Some((name, value)) => {
                let look = |wanted: &str| assigned.get(wanted).cloned().or_else(|| variable(wanted));
                match word(value, look) {
                    Some(value) => EnvLine::Assignment(name.to_owned(), value),
                    None => EnvLine::NeedsShell(Some(name.to_owned())),
                }
            }
        };
        if let EnvLine::Assignment(name, value) = &read {
            assigned.insert(name.clone(), value.clone());
        }
        found.push((read, at + 1));
    }
    found
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    bytes
        .next()
        .is_some_and(|byte| plain(byte) && !byte.is_ascii_digit())
        && bytes.all(plain)
}

/// The first word of a text, as a shell reads it; nothing but a comment may follow. `None` if it takes more than that.
fn word(text: &str, variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => loop {
                match chars.next()? {
                    '\'' => break,
                    c => word.push(c),
                }
            },
            '"' => loop {
                match chars.next()? {
                    '"' => break,
                    '`' => return None,
                    '$' => word.push_str(&expanded(&mut chars, &variable)?),
                    '\\' => match chars.next()? {
                        c @ ('"' | '\\' | '$' | '`') => word.push(c),
                        c => word.extend(['\\', c]),
                    },
                    c => word.push(c),
                }
            },
            '\\' => word.push(chars.next()?),
            '$' => word.push_str(&expanded(&mut chars, &variable)?),
            '`' | '&' | '|' | '<' | '>' | '(' | ')' => return None,
            c if c.is_whitespace() || c == ';' => {
                let rest: String = chars.collect();
                let rest = rest.trim();
                return (rest.is_empty() || rest.starts_with('#')).then_some(word);
            }
            c => word.push(c),
        }
    }
    Some(word)
}

/// What stands for the variable whose name follows a `$`; one that isn't set is empty.
fn expanded(chars: &mut Peekable<Chars<'_>>, variable: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let is_braced = chars.next_if_eq(&'{').is_some();
    let mut name = String::new();
    while let Some(c) = chars.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        name.push(c);
    }
    if is_braced && chars.next() != Some('}') || !is_name(&name) {
        return None;
    }
    Some(variable(&name).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> EnvLine {
        let look = |name: &str| (name == "HOST").then(|| "here".to_owned());
        let mut found = lines(text, look);
        assert_eq!(found.len(), 1, "{text}");
        found.remove(0).0
    }

    #[test]
    fn values_are_those_of_a_shell() {
        for (text, value) in [
            ("A=rabbit@host", "rabbit@host"),
            ("export A=b # why", "b"),
            ("  A='b # $HOST'", "b # $HOST"),
            ("A=\"x ${HOST}\"", "x here"),
            ("A=rabbit@$HOST", "rabbit@here"),
            ("A=a\\ b", "a b"),
            ("A=", ""),
            ("A=$NOTHING", ""),
            ("A=\"-a \\\n -b\"", "-a -b"),
            ("A=b;", "b"),
        ] {
            assert_eq!(one(text), EnvLine::Assignment("A".into(), value.into()), "{text}");
        }
    }

    #[test]
    fn what_a_shell_would_have_to_run_is_told() {
        for text in [
            "A=$(hostname)",
            "A=`hostname`",
            "A=\"$(hostname -s)\"",
            "A='b",
            "A=${B:-c}",
            "A=b c",
        ] {
            assert_eq!(one(text), EnvLine::NeedsShell(Some("A".into())), "{text}");
        }
        for text in ["if true; then", "ulimit -n 65536", ". /etc/other"] {
            assert_eq!(one(text), EnvLine::NeedsShell(None), "{text}");
        }
    }

    #[test]
    fn lines_keep_their_numbers_and_later_ones_see_earlier_ones() {
        let text = "# comment\n\nA=1\nB=${A}\\\n2\nC=3\n";
        let found = lines(text, |_| None);
        let said = |name: &str, value: &str, number| (EnvLine::Assignment(name.into(), value.into()), number);
        assert_eq!(found, [said("A", "1", 3), said("B", "12", 4), said("C", "3", 6)]);
    }
}
