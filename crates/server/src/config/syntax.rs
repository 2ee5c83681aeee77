//! The grammar of `rabbitmq.conf`: text in, a list of settings out; what a key means is decided elsewhere.
//!
//! The rules are those of Cuttlefish, the parser RabbitMQ uses: one `key = value` a line, `#` opens a comment,
//! a value may stand in single quotes (and may then hold a `#`), a value in `'''` may run over several lines.
//! An unquoted value ends at the first `#` or at the end of the line and loses the blanks around it.

use std::fmt;

/// A dotted key, such as `listeners.tcp.default`. A dot inside one segment is written `\.`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    segments: Vec<String>,
}

impl Key {
    /// Reads a key; `None` if it is empty, has an empty segment or a character that keys can't have.
    pub fn parse(text: &str) -> Option<Self> {
        let mut segments = vec![String::new()];
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            match c {
                '.' => segments.push(String::new()),
                '\\' => match chars.next() {
                    Some('.') => segments.last_mut()?.push('.'),
                    _ => return None,
                },
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => segments.last_mut()?.push(c),
                _ => return None,
            }
        }
        segments
            .iter()
            .all(|s| !s.is_empty())
            .then_some(Self { segments })
    }

    /// The parts between the dots; never empty, and none of them is.
    pub fn segments(&self) -> &[String] {
        &self.segments
    }

    /// The last segment: the name in keys like `listeners.tcp.NAME`.
    pub fn name(&self) -> &str {
        self.segments.last().map_or("", String::as_str)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, segment) in self.segments.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            f.write_str(&segment.replace('.', "\\."))?;
        }
        Ok(())
    }
}

/// One `key = value`, with the line it starts on (from 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigLine {
    pub key: Key,
    pub value: String,
    pub number: usize,
}

/// What is wrong with a line, and which line it is (from 1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyntaxError {
    pub number: usize,
    pub what: &'static str,
}

/// Reads a whole file. Settings come in the order of the text; a key may come twice (the later one counts).
///
/// # Errors
/// The first line that doesn't follow the grammar.
pub fn parse(text: &str) -> Result<Vec<ConfigLine>, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = Vec::new();
    let mut rest = text.split('\n').enumerate();
    while let Some((at, raw)) = rest.next() {
        let number = at + 1;
        let err = |what| SyntaxError { number, what };
        let line = raw.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if line.split_whitespace().next() == Some("include") && !line.contains('=') {
            return Err(err("`include` is not supported: put all settings into one file"));
        }
        let (key, value) = line
            .split_once('=')
            .ok_or_else(|| err("expected `key = value`"))?;
        let key = Key::parse(key.trim_end()).ok_or_else(|| {
            err("a key is made of letters, digits, `_`, `-` and single dots (a dot in a name: `\\.`)")
        })?;
        let value = value.trim_start();
        let value = match value.strip_prefix("'''") {
            Some(first) => multi_line(first, &mut rest).map_err(err)?,
            None => single_line(value).map_err(err)?,
        };
        lines.push(ConfigLine { key, value, number });
    }
    Ok(lines)
}

/// A value on one line, quoted or not, with what may follow it.
fn single_line(value: &str) -> Result<String, &'static str> {
    if let Some((quoted, after)) = value.strip_prefix('\'').and_then(|v| v.split_once('\'')) {
        return only_comment(after).map(|()| quoted.to_owned());
    }
    // An opening quote that nothing closes is part of the value, as in RabbitMQ.
    let bare = value.split('#').next().unwrap_or_default().trim_end();
    if bare.is_empty() {
        return Err("the value is missing (an empty value is written '')");
    }
    Ok(bare.to_owned())
}

/// A value between `'''` and `'''`; line ends inside belong to it.
fn multi_line<'a>(
    first: &'a str,
    rest: &mut impl Iterator<Item = (usize, &'a str)>,
) -> Result<String, &'static str> {
    let mut value = String::new();
    let mut line = first;
    loop {
        if let Some((last, after)) = line.split_once("'''") {
            value.push_str(last);
            return only_comment(after).map(|()| value);
        }
        value.push_str(line);
        value.push('\n');
        line = rest.next().ok_or("the value opened with ''' is never closed")?.1;
    }
}

fn only_comment(after: &str) -> Result<(), &'static str> {
    let after = after.trim_start();
    if after.is_empty() || after.starts_with('#') {
        Ok(())
    } else {
        Err("nothing but a comment may follow a quoted value")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse(text)
            .unwrap()
            .into_iter()
            .map(|l| (l.key.to_string(), l.value))
            .collect()
    }

    fn one(text: &str) -> String {
        let mut all = pairs(text);
        assert_eq!(all.len(), 1, "{text}");
        all.remove(0).1
    }

    #[test]
    fn settings_comments_and_blank_lines() {
        let text = "# comment\n\n  a.b = 1 \r\nc=2\n\t# more\n  d-e_F  =  x y  # why\n";
        let lines = parse(text).unwrap();
        let got: Vec<_> = lines
            .iter()
            .map(|l| (l.key.to_string(), l.value.as_str(), l.number))
            .collect();
        assert_eq!(
            got,
            [
                ("a.b".into(), "1", 3),
                ("c".into(), "2", 4),
                ("d-e_F".into(), "x y", 6)
            ] as [(String, _, _); 3]
        );
    }

    #[test]
    fn quoting_is_that_of_cuttlefish() {
        // Each case was put to Cuttlefish 3.9.1, the parser of RabbitMQ 4.3.6.
        assert_eq!(one("a = 'quoted # value'  # trailing"), "quoted # value");
        assert_eq!(one("a = ''"), "");
        assert_eq!(one("a = 'x"), "'x");
        assert_eq!(one("a = b'c'"), "b'c'");
        assert_eq!(one("a = \"x # y\""), "\"x");
        assert_eq!(one("a =   x = y"), "x = y");
        assert_eq!(one("a = \\# 4"), "\\");
        assert_eq!(one("a = '''x\ny'''"), "x\ny");
    }

    #[test]
    fn what_follows_a_multi_line_value_is_read_on() {
        let lines = parse("a = '''x\n\n # y\n''' # done\nb = 2").unwrap();
        assert_eq!(lines[0].value, "x\n\n # y\n");
        assert_eq!((lines[1].key.to_string().as_str(), lines[1].number), ("b", 5));
    }

    #[test]
    fn bad_lines_are_named() {
        for (text, line) in [
            ("a", 1),
            ("\n\na b = 1", 3),
            ("= 3", 1),
            ("a = # c", 1),
            ("a = ", 1),
            ("a = 'x' y", 1),
            ("a.$x = 1", 1),
            ("a.[b] = 1", 1),
            ("a..b = 1", 1),
            (".a = 1", 1),
            ("a. = 1", 1),
            ("ä = 1", 1),
            ("a = '''x\nb = 1\n", 1),
            ("x = 1\ninclude conf.d/*.conf", 2),
        ] {
            assert_eq!(parse(text).map_err(|e| e.number), Err(line), "{text:?}");
        }
    }

    #[test]
    fn dots_in_names_are_escaped() {
        let lines = parse("loopback_users.jane\\.doe = false").unwrap();
        assert_eq!(lines[0].key.segments(), ["loopback_users", "jane.doe"]);
        assert_eq!(lines[0].key.name(), "jane.doe");
        assert_eq!(lines[0].key.to_string(), "loopback_users.jane\\.doe");
    }

    #[test]
    fn a_byte_order_mark_is_skipped() {
        assert_eq!(one("\u{feff}a = 1"), "1");
    }

    proptest! {
        #[test]
        fn quoted_values_come_back(key in "[a-z]{1,8}(\\.[a-z0-9_-]{1,8}){0,3}", value in "[^'\n]*") {
            let text = format!("{key} = '{value}'");
            // Three quotes in a row open a multi-line value, which an empty one-line value can't start.
            prop_assume!(!text.contains("'''"));
            let lines = parse(&text).unwrap();
            prop_assert_eq!(&lines[0].value, &value);
            prop_assert_eq!(lines[0].key.to_string(), key);
        }

        #[test]
        fn no_text_is_too_strange(text in "\\PC{0,200}") {
            let _ = parse(&text);
        }
    }
}
