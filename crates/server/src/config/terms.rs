//! The grammar of `advanced.config` and of queries: Erlang terms in text; what they mean is decided elsewhere.
//!
//! Atoms, texts (`"a"`, `<<"a">>`), numbers, tuples and lists are read, with comments (`%`) and a dot at the end. What
//! else Erlang has in such files (maps, functions) is refused where it stands.

use std::fmt;
use std::iter::Peekable;
use std::str::CharIndices;

/// Terms within terms within terms: more is no configuration.
const DEEPEST: usize = 64;

/// A place in a text; both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextPosition {
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for TextPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// What a term is.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// `true`, `'and'`.
    Atom(String),
    /// `"text"` and `<<"text">>`.
    Text(String),
    /// A whole number.
    Number(i64),
    /// A number with a point.
    Fraction(f64),
    /// `{…}`.
    Tuple(Vec<Term>),
    /// `[…]`.
    List(Vec<Term>),
}

/// A term, where it begins, and which part of the text it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    pub shape: Shape,
    pub place: TextPosition,
    pub from: usize,
    pub to: usize,
}

impl Term {
    /// The name of an atom.
    pub fn atom(&self) -> Option<&str> {
        match &self.shape {
            Shape::Atom(name) => Some(name),
            _ => None,
        }
    }

    /// The text of a text; an empty list is one, too.
    pub fn text(&self) -> Option<&str> {
        match &self.shape {
            Shape::Text(text) => Some(text),
            Shape::List(list) if list.is_empty() => Some(""),
            _ => None,
        }
    }

    /// The terms of a tuple.
    pub fn tuple(&self) -> Option<&[Self]> {
        match &self.shape {
            Shape::Tuple(terms) => Some(terms),
            _ => None,
        }
    }

    /// The terms of a list; an empty text is one, too.
    pub fn list(&self) -> Option<&[Self]> {
        match &self.shape {
            Shape::List(terms) => Some(terms),
            Shape::Text(text) if text.is_empty() => Some(&[]),
            _ => None,
        }
    }

    /// A mistake at this term.
    pub fn mistake(&self, what: impl Into<String>) -> Mistake {
        Mistake {
            place: self.place,
            what: what.into(),
        }
    }
}

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    pub place: TextPosition,
    pub what: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Reads the one term of a text. The dot behind it may be missing.
///
/// # Errors
/// The first thing in the text that belongs to no term.
pub fn parse(text: &str) -> Result<Term, Mistake> {
    let mut reader = Reader {
        text,
        chars: text.char_indices().peekable(),
        place: TextPosition { line: 1, column: 1 },
        depth: 0,
    };
    let term = reader.term()?;
    reader.skip();
    if reader.next_is('.') {
        reader.take();
        reader.skip();
    }
    match reader.peek() {
        None => Ok(term),
        Some(_) => Err(reader.mistake("nothing may follow the term")),
    }
}

struct Reader<'a> {
    text: &'a str,
    chars: Peekable<CharIndices<'a>>,
    place: TextPosition,
    depth: usize,
}

impl Reader<'_> {
    fn mistake(&self, what: &str) -> Mistake {
        Mistake {
            place: self.place,
            what: what.to_owned(),
        }
    }

    fn peek(&mut self) -> Option<char> {
        self.chars.peek().map(|(_, c)| *c)
    }

    fn next_is(&mut self, c: char) -> bool {
        self.peek() == Some(c)
    }

    /// Where in the text the next character is.
    fn at(&mut self) -> usize {
        self.chars.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn take(&mut self) -> Option<char> {
        let (_, c) = self.chars.next()?;
        match c {
            '\n' => {
                self.place.line += 1;
                self.place.column = 1;
            }
            _ => self.place.column += 1,
        }
        Some(c)
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let mut taken = String::new();
        while let Some(c) = self.peek().filter(|c| wanted(*c)) {
            taken.push(c);
            self.take();
        }
        taken
    }

    /// Blanks and comments.
    fn skip(&mut self) {
        loop {
            self.take_while(char::is_whitespace);
            if !self.next_is('%') {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn term(&mut self) -> Result<Term, Mistake> {
        self.skip();
        let (place, from) = (self.place, self.at());
        let shape = match self.peek() {
            None => return Err(self.mistake("a term is missing")),
            Some('{') => Shape::Tuple(self.several('}')?),
            Some('[') => Shape::List(self.several(']')?),
            Some('"') => Shape::Text(self.texts()?),
            Some('<') => Shape::Text(self.binary()?),
            Some('\'') => Shape::Atom(self.quoted('\'')?),
            Some('a'..='z') => Shape::Atom(self.take_while(|c| c.is_alphanumeric() || c == '_' || c == '@')),
            Some('0'..='9' | '-' | '+') => self.number()?,
            Some(_) => {
                return Err(self.mistake("expected an atom, a \"text\", a number, a {tuple} or a [list]"));
            }
        };
        let to = self.at();
        Ok(Term {
            shape,
            place,
            from,
            to,
        })
    }

    /// Terms with commas between them, from one bracket to the other.
    fn several(&mut self, end: char) -> Result<Vec<Term>, Mistake> {
        let opened = self.mistake("this bracket is never closed");
        self.take();
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.mistake("this is too deep within other terms"));
        }
        let mut terms = Vec::new();
        self.skip();
        if !self.next_is(end) {
            loop {
                terms.push(self.term()?);
                self.skip();
                match self.peek() {
                    Some(',') => self.take(),
                    Some(c) if c == end => break,
                    Some(_) => return Err(self.mistake(&format!("expected , or {end}"))),
                    None => return Err(opened),
                };
            }
        }
        self.take();
        self.depth -= 1;
        Ok(terms)
    }

    /// Texts one after the other are one.
    fn texts(&mut self) -> Result<String, Mistake> {
        let mut text = String::new();
        loop {
            text.push_str(&self.quoted('"')?);
            let (chars, place) = (self.chars.clone(), self.place);
            self.skip();
            if !self.next_is('"') {
                (self.chars, self.place) = (chars, place);
                return Ok(text);
            }
        }
    }

    /// `<<"text">>`, also with `/utf8`.
    fn binary(&mut self) -> Result<String, Mistake> {
        let expected = "expected <<\"text\">>";
        self.exactly("<<", expected)?;
        self.skip();
        let mut text = String::new();
        if self.next_is('"') {
            text = self.texts()?;
            if self.next_is('/') {
                self.exactly("/utf8", expected)?;
            }
            self.skip();
        }
        self.exactly(">>", expected)?;
        Ok(text)
    }

    fn exactly(&mut self, wanted: &str, expected: &str) -> Result<(), Mistake> {
        for c in wanted.chars() {
            if !self.next_is(c) {
                return Err(self.mistake(expected));
            }
            self.take();
        }
        Ok(())
    }

    fn quoted(&mut self, quote: char) -> Result<String, Mistake> {
        let opened = self.mistake("this quote is never closed");
        self.take();
        let mut text = String::new();
        loop {
            match self.take() {
                None => return Err(opened),
                Some(c) if c == quote => return Ok(text),
                Some('\\') => text.push(self.escaped()?),
                Some(c) => text.push(c),
            }
        }
    }

    /// The character that a backslash and what follows it stand for.
    fn escaped(&mut self) -> Result<char, Mistake> {
        let wrong = self.mistake("this escape is none: \\\\ is a backslash");
        Ok(match self.take() {
            Some('n') => '\n',
            Some('t') => '\t',
            Some('r') => '\r',
            Some('s') => ' ',
            Some('x') => {
                let braced = self.next_is('{');
                if braced {
                    self.take();
                }
                let digits = match braced {
                    true => self.take_while(|c| c.is_ascii_hexdigit()),
                    false => [self.take(), self.take()].into_iter().flatten().collect(),
                };
                if braced && self.take() != Some('}') {
                    return Err(wrong);
                }
                u32::from_str_radix(&digits, 16)
                    .ok()
                    .and_then(char::from_u32)
                    .ok_or(wrong)?
            }
            Some(c) if !c.is_ascii_alphanumeric() => c,
            _ => return Err(wrong),
        })
    }

    fn number(&mut self) -> Result<Shape, Mistake> {
        let wrong = self.mistake("this is not a number");
        let mut digits = String::new();
        if let Some(sign) = self.peek().filter(|c| matches!(c, '-' | '+')) {
            digits.push(sign);
            self.take();
        }
        digits += &self.take_while(|c| c.is_ascii_digit() || c == '_');
        // A dot that no digit follows ends the text.
        let mut ahead = self.chars.clone();
        ahead.next();
        let goes_on = ahead.next().is_some_and(|(_, c)| c.is_ascii_digit());
        if self.next_is('.') && goes_on {
            self.take();
            digits = format!(
                "{digits}.{}",
                self.take_while(|c| c.is_ascii_alphanumeric() || c == '-')
            );
            return digits.parse().map(Shape::Fraction).map_err(|_| wrong);
        }
        digits
            .replace('_', "")
            .parse()
            .map(Shape::Number)
            .map_err(|_| wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The term in a form that is short to compare.
    fn shown(term: &Term) -> String {
        let several = |terms: &[Term]| terms.iter().map(shown).collect::<Vec<_>>().join(" ");
        match &term.shape {
            Shape::Atom(name) => name.clone(),
            Shape::Text(text) => format!("{text:?}"),
            Shape::Number(number) => number.to_string(),
            Shape::Fraction(number) => number.to_string(),
            Shape::Tuple(terms) => format!("{{{}}}", several(terms)),
            Shape::List(terms) => format!("[{}]", several(terms)),
        }
    }

    fn read(text: &str) -> String {
        match parse(text) {
            Ok(term) => shown(&term),
            Err(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn a_configuration_is_read_with_its_comments() {
        let text = "%% why\n[\n  {rabbit, [{heartbeat, 10}, % ten\n   {f, 0.4}]},\n  {'an app', []}\n].\n";
        assert_eq!(read(text), "[{rabbit [{heartbeat 10} {f 0.4}]} {an app []}]");
    }

    #[test]
    fn texts_are_read_as_erlang_does() {
        for (text, shape) in [
            (r#""a" "b""#, r#""ab""#),
            (r#"<<"ä\n">>"#, r#""ä\n""#),
            (r#"<<"a"/utf8>>"#, r#""a""#),
            ("<<>>", r#""""#),
            (r#""\x41\x{42}\"\\""#, r#""AB\"\\""#),
            ("'and'", "and"),
            ("-12.", "-12"),
            ("1_000", "1000"),
            ("[]", "[]"),
            ("{}", "{}"),
        ] {
            assert_eq!(read(text), shape, "{text}");
        }
        assert_eq!(parse("[]").unwrap().text(), Some(""));
        assert_eq!(parse("\"\"").unwrap().list(), Some(&[][..]));
    }

    #[test]
    fn a_mistake_has_its_line_and_column() {
        for (text, said) in [
            ("", "line 1, column 1: a term is missing"),
            ("[a,\n {b c}]", "line 2, column 5: expected , or }"),
            ("[a,\n  {b", "line 2, column 3: this bracket is never closed"),
            ("[a,\n  \"b", "line 2, column 3: this quote is never closed"),
            ("a. b", "line 1, column 4: nothing may follow the term"),
            ("Abc", "line 1, column 1: expected an atom"),
            ("[#{}]", "line 1, column 2: expected an atom"),
            ("<<1,2>>", "line 1, column 3: expected <<\"text\">>"),
            ("16#ff", "line 1, column 3: nothing may follow"),
            ("\"\\q\"", "line 1, column 3: this escape is none"),
            ("99999999999999999999", "line 1, column 1: this is not a number"),
        ] {
            assert!(read(text).starts_with(said), "{text}: {}", read(text));
        }
    }

    #[test]
    fn a_term_knows_its_part_of_the_text() {
        let text = "[{k, {in_group, \"x\" } }].";
        let term = parse(text).unwrap();
        let inner = &term.list().unwrap()[0].tuple().unwrap()[1];
        assert_eq!(&text[inner.from..inner.to], "{in_group, \"x\" }");
        assert_eq!(inner.place, TextPosition { line: 1, column: 6 });
    }

    #[test]
    fn depth_has_an_end() {
        assert!(read(&"[".repeat(100_000)).contains("too deep"));
        let fits = format!("{}{}", "[".repeat(DEEPEST), "]".repeat(DEEPEST));
        assert!(parse(&fits).is_ok());
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "[\\[\\]{}<>\"'a-c0-9.,%\\\\x \n_-]{0,64}|\\PC{0,64}") {
            let _ = parse(&text);
        }
    }
}
