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

/// An argument without the logins of addresses in it: `amqp://user:password@host` becomes `amqp://***@host`, also in the
/// middle of a command line in one argument.
pub fn masked(argument: &str) -> String {
    let mut parts = argument.split("://");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("://");
        let end = part
            .find(|letter: char| letter.is_whitespace() || letter == ',')
            .unwrap_or(part.len());
        let (address, rest) = part.split_at(end);
        match address.rsplit_once('@') {
            Some((_, place)) => text.extend(["***@", place]),
            None => text.push_str(address),
        }
        text.push_str(rest);
    }
    text
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

    #[test]
    fn no_password_is_kept() {
        for (argument, shown) in [
            ("amqp://u:p/@ss@h/%2F", "amqp://***@h/%2F"),
            ("--uri=amqp://u:p@h", "--uri=amqp://***@h"),
            (
                "a: --uris amqp://u:p@x,amqps://y until empty",
                "a: --uris amqp://***@x,amqps://y until empty",
            ),
            (
                "-x 1 --uri 'amqp://u:p@h' -y 1@2",
                "-x 1 --uri 'amqp://***@h' -y 1@2",
            ),
            ("--queue q@x", "--queue q@x"),
        ] {
            assert_eq!(masked(argument), shown);
        }
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
