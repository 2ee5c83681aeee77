//! A command line in one argument, cut into words as a shell does.

/// Cuts at white space; quotes keep words together, a backslash takes the next character as it is.
///
/// # Errors
/// If a quote is not closed.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_default();
                quoted(&mut letters, quote, word)
                    .ok_or_else(|| format!("a {quote} is not closed in: {line}"))?;
            }
            '\\' => word.get_or_insert_default().extend(letters.next()),
            space if space.is_whitespace() => words.extend(word.take()),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Ok(words)
}

/// Up to the closing quote. Between double quotes a backslash still counts before a quote or another backslash.
fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Option<()> {
    loop {
        match letters.next()? {
            letter if letter == quote => return Some(()),
            '\\' if quote == '"' => match letters.next()? {
                letter @ ('"' | '\\') => word.push(letter),
                letter => word.extend(['\\', letter]),
            },
            letter => word.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_are_cut_as_a_shell_cuts_them() {
        for (line, words) in [
            ("", &[][..]),
            ("  -x 1\t-y 2 ", &["-x", "1", "-y", "2"]),
            ("--queue 'a b'", &["--queue", "a b"]),
            (r#"a"b c"'d'e\ f"#, &["ab cde f"]),
            (r#""say \"no\\\"" '' "\n""#, &[r#"say "no\""#, "", r"\n"]),
        ] {
            assert_eq!(split(line).unwrap(), words, "{line}");
        }
        assert!(split("--queue 'a").unwrap_err().contains("not closed"));
        assert!(split(r#"a "b\"#).is_err());
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd_and_quoted_words_come_through(line: String, words in proptest::collection::vec("[^']*", 0..5)) {
            let _ = split(&line);
            let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            prop_assert_eq!(split(&quoted.join(" ")).unwrap(), words);
        }
    }
}
