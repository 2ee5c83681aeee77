//! The flags of a scenario: a line of words as one would type them, with `{placeholders}` that a sweep fills in.

use std::collections::BTreeMap;

/// Values by the names of their placeholders.
pub type Values = BTreeMap<String, Value>;

/// What a placeholder stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Number(f64),
    Text(String),
}

impl Value {
    /// As it stands on a command line: no more digits than needed.
    pub fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            // PerfTest's flags are whole numbers nearly all, and a rate of 33.333 is near enough.
            Self::Number(number) => format!("{}", (number * 1000.0).round() / 1000.0),
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

/// Splits a line into words as a shell does: at blanks, except within single or double quotes.
///
/// # Errors
/// A quote is open at the end.
pub fn words(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("{line:?} has a quote {open} that is never closed"));
    }
    words.extend(word);
    Ok(words)
}

/// A word as a shell takes it for one.
pub fn quoted(word: &str) -> String {
    let safe = |c: char| c.is_ascii_alphanumeric() || "-_=.,:/%+@".contains(c);
    if !word.is_empty() && word.chars().all(safe) {
        return word.to_owned();
    }
    // No shell has a way to write a single quote within single quotes.
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Puts values in place of `{name}`, `{name/2}`, `{10000/name}`, `{a*b}`, `{a-1}`, `{a+1}`; names in `keep` stay as they are.
///
/// # Errors
/// A placeholder has no value, or does not compute.
pub fn fill(text: &str, values: &Values, keep: &[&str]) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (inside, tail) = after
            .split_once('}')
            .ok_or_else(|| format!("{text:?} has a brace that is never closed"))?;
        if keep.contains(&inside) {
            out.push_str(&format!("{{{inside}}}"));
        } else {
            out.push_str(
                &compute(inside, values)
                    .map_err(|e| format!("{text:?}: {e}"))?
                    .shown(),
            );
        }
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn compute(expression: &str, values: &Values) -> Result<Value, String> {
    // A name may contain a hyphen only where the expression as a whole is a name.
    if let Some(value) = values.get(expression.trim()) {
        return Ok(value.clone());
    }
    for operator in ['/', '*', '+', '-'] {
        if let Some((left, right)) = expression.split_once(operator) {
            let (a, b) = (operand(left, values)?, operand(right, values)?);
            let result = match operator {
                '/' => a / b,
                '*' => a * b,
                '+' => a + b,
                _ => a - b,
            };
            if !result.is_finite() {
                return Err(format!("{{{expression}}} does not compute"));
            }
            return Ok(Value::Number(result));
        }
    }
    Err(format!("nothing is known of {{{expression}}}"))
}

fn operand(text: &str, values: &Values) -> Result<f64, String> {
    let text = text.trim();
    let value = values.get(text).and_then(Value::number);
    value
        .or_else(|| text.parse().ok())
        .ok_or_else(|| format!("{text:?} is neither a number nor the name of one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        let pairs = [
            ("x", Value::Number(10.0)),
            ("rate", Value::Number(50_000.0)),
            ("type", Value::Text("topic".to_owned())),
        ];
        pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    #[test]
    fn quotes_keep_words_together() {
        let split = words("--a 1  --b 'two words' --c \"x='y'\" ''").unwrap();
        assert_eq!(split, ["--a", "1", "--b", "two words", "--c", "x='y'", ""]);
        assert!(words("--a 'open").unwrap_err().contains("never closed"));
    }

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let shown = ["-x", "q-%d", "two words", "", "it's"].map(quoted);
        assert_eq!(shown, ["-x", "q-%d", "'two words'", "''", r"'it'\''s'"]);
        assert_eq!(
            words(&shown[..4].join(" ")).unwrap(),
            ["-x", "q-%d", "two words", ""]
        );
    }

    #[test]
    fn placeholders_are_filled_in_and_computed() {
        let filled = fill(
            "-x {x} -r {rate/x} -t {type} --to {x-1} --total {x*3}",
            &values(),
            &[],
        )
        .unwrap();
        assert_eq!(filled, "-x 10 -r 5000 -t topic --to 9 --total 30");
        assert_eq!(fill("{rate/3}", &values(), &[]).unwrap(), "16666.667");
        assert_eq!(
            fill("q-{visit}-{x}", &values(), &["visit"]).unwrap(),
            "q-{visit}-10"
        );
    }

    #[test]
    fn an_unknown_placeholder_is_refused() {
        assert!(fill("-x {y}", &values(), &[]).unwrap_err().contains("{y}"));
        assert!(fill("-x {type*2}", &values(), &[]).is_err());
        assert!(fill("-x {rate/0}", &values(), &[]).is_err());
        assert!(
            fill("-x {x", &values(), &[])
                .unwrap_err()
                .contains("never closed")
        );
    }
}
