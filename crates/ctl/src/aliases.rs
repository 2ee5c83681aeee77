//! Names of an operator's own for commands, out of a file (`--aliases-file`, `RABBITMQ_CLI_ALIASES_FILE`): lines such as
//! `lq = list_queues -p shop name messages`.

/// The command line with an alias replaced by what it stands for; `None` if the file has no such name.
///
/// Words of the alias come where the name stood, so that options before and behind it hold too.
pub fn replaced(given: &[String], name: &str, file: &str) -> Option<Vec<String>> {
    let meant = file.lines().find_map(|line| {
        let (alias, meant) = line.trim().split_once('=')?;
        (alias.trim() == name && !alias.starts_with('#')).then(|| words(meant))
    })?;
    let at = given.iter().position(|word| word == name)?;
    let (before, behind) = given.split_at(at);
    let behind = behind.iter().skip(1);
    Some(
        before
            .iter()
            .cloned()
            .chain(meant)
            .chain(behind.cloned())
            .collect(),
    )
}

/// The words of a text; those in quotes keep their spaces.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.trim().chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# ours\nlq = list_queues -p 'the shop' name\n\nempty =\nfull=status --unit mb\n";

    fn given(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn an_alias_is_replaced_where_it_stands() {
        assert_eq!(
            replaced(&given("-q lq messages"), "lq", FILE).unwrap(),
            ["-q", "list_queues", "-p", "the shop", "name", "messages"]
        );
        assert_eq!(
            replaced(&given("full"), "full", FILE).unwrap(),
            given("status --unit mb")
        );
        assert_eq!(
            replaced(&given("empty"), "empty", FILE).unwrap(),
            Vec::<String>::new()
        );
        assert_eq!(replaced(&given("zork"), "zork", FILE), None);
        assert_eq!(replaced(&given("#"), "#", FILE), None);
    }
}
