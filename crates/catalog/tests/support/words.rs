//! The words of a story's line.

use model::table::{Table, Value};

/// Splits at blanks that stand outside of single quotes; the quotes stay.
pub fn split(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        quoted ^= letter == '\'';
        match (letter, words.last_mut()) {
            (' ', _) if !quoted => words.push(String::new()),
            (letter, Some(word)) => word.push(letter),
            (_, None) => {}
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// A word without its quotes; `\r`, `\n` and `N*LETTER` (a letter N times) are understood.
pub fn bare(word: &str) -> String {
    let word = word.trim_matches('\'').replace("\\r", "\r").replace("\\n", "\n");
    match word.split_once('*') {
        Some((count, letter)) if letter.len() == 1 && count.parse::<usize>().is_ok() => {
            letter.repeat(count.parse().unwrap())
        }
        _ => word,
    }
}

/// Takes `word` out of `words` if it is there.
pub fn flag(words: &mut Vec<String>, word: &str) -> bool {
    let before = words.len();
    words.retain(|known| known != word);
    words.len() < before
}

/// Takes all `name=value` out of `words`.
pub fn table(words: &mut Vec<String>) -> Table {
    let mut table = Table::new();
    words.retain(|word| match word.split_once('=') {
        Some((name, text)) if !word.starts_with('\'') => {
            table.push(name, value(text));
            false
        }
        _ => true,
    });
    table
}

/// `5` is a 32-bit integer, `5L` a 64-bit one, `'5'` text, `5s` a timestamp; `1.5`, `true` and `void` are what they say.
fn value(text: &str) -> Value {
    match text {
        "true" | "false" => Value::Bool(text == "true"),
        "void" => Value::Void,
        _ if text.starts_with('\'') => Value::LongStr(bare(text).into_bytes()),
        _ => {
            if let Some(number) = text.strip_suffix('L') {
                Value::Long(number.parse().unwrap())
            } else if let Some(number) = text.strip_suffix('s') {
                Value::Timestamp(number.parse().unwrap())
            } else if text.contains('.') {
                Value::Double(text.parse().unwrap())
            } else {
                Value::SignedInt(text.parse().unwrap())
            }
        }
    }
}
