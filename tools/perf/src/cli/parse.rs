//! Arguments to flags with values, by the rules of the parser that PerfTest uses (commons-cli's `DefaultParser`).
//!
//! Its rules in short: a long flag may be cut as long as it stays unique, and takes its value as the next argument or
//! behind `=`; one hyphen does for long names too; short flags may have several letters; `-r5` is `-r 5`; an argument that
//! is a negative number is a value where one is asked for.

use super::flag::{Flag, Takes};
use super::table::{by_long, by_short, flags};
use crate::failure::Failure;

/// What stood on the command line.
#[derive(Debug, Default)]
pub struct Given {
    /// Each flag with its values, as often as it was given, in order.
    pub flags: Vec<(&'static Flag, Vec<String>)>,
    /// What belongs to no flag; PerfTest ignores it.
    pub strays: Vec<String>,
}

/// Reads arguments.
///
/// # Errors
/// [`Failure::Usage`] for a flag that does not exist, is cut too short, or lacks its value.
pub fn parse(arguments: &[String]) -> Result<Given, Failure> {
    let mut given = Given::default();
    let mut only_strays = false;
    for token in arguments {
        if only_strays {
            given.strays.push(token.clone());
        } else if token == "--" {
            only_strays = true;
        } else if given.wants_value() && is_value(token) {
            given.value(unquoted(token));
        } else if token.starts_with("--") {
            given.long(token)?;
        } else if token.len() > 1 && token.starts_with('-') {
            given.short(token)?;
        } else {
            given.strays.push(token.clone());
        }
    }
    given.complete()?;
    Ok(given)
}

impl Given {
    /// Whether the last flag can take a further value.
    fn wants_value(&self) -> bool {
        self.flags.last().is_some_and(|(flag, values)| match flag.takes {
            Takes::Nothing => false,
            Takes::One(_) | Takes::Optional(_) => values.is_empty(),
            Takes::Many(_) => true,
        })
    }

    fn value(&mut self, text: &str) {
        if let Some((_, values)) = self.flags.last_mut() {
            values.push(text.to_owned());
        }
    }

    /// A new flag begins, so the one before must have what it needs.
    fn flag(&mut self, flag: &'static Flag) -> Result<(), Failure> {
        self.complete()?;
        self.flags.push((flag, Vec::new()));
        Ok(())
    }

    fn complete(&self) -> Result<(), Failure> {
        match self.flags.last() {
            Some((flag, values)) if values.is_empty() => match flag.takes {
                Takes::One(name) | Takes::Many(name) => {
                    let given = if flag.short.is_empty() {
                        flag.long
                    } else {
                        flag.short
                    };
                    let text = format!(
                        "Missing argument for option: {given}. Write --{} {name}; see --help.",
                        flag.long
                    );
                    Err(Failure::Usage(text))
                }
                Takes::Nothing | Takes::Optional(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// `--long`, `--long=value`, `--lo`; also with one hyphen.
    fn long(&mut self, token: &str) -> Result<(), Failure> {
        let (name, value) = token
            .split_once('=')
            .map_or((token, None), |(name, value)| (name, Some(value)));
        let flag = long_flag(name.trim_start_matches('-'), token)?.ok_or_else(|| unknown(token))?;
        if value.is_some() && !flag.accepts_value() {
            let text = format!(
                "Unrecognized option: {token}. --{} takes no value; see --help.",
                flag.long
            );
            return Err(Failure::Usage(text));
        }
        self.flag(flag)?;
        if let Some(value) = value {
            self.value(value);
        }
        Ok(())
    }

    /// `-r 5`, `-r5`, `-r=5`, `-qpf 1`, `-qpf=1` (which PerfTest refuses), `-rate 5`, `-rate5`, `-aK`.
    fn short(&mut self, token: &str) -> Result<(), Failure> {
        let text = &token[1..];
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        if let Some(flag) = by_short(name)
            && (value.is_none() || flag.accepts_value())
        {
            self.flag(flag)?;
            if let Some(value) = value {
                self.value(value);
            }
            return Ok(());
        }
        if value.is_some() && name.chars().count() == 1 {
            return Err(unknown(token));
        }
        if value.is_some() || long_flag(text, token)?.is_some() {
            return self.long(token);
        }
        if let Some((flag, value)) = long_with_value(text) {
            self.flag(flag)?;
            self.value(value);
            return Ok(());
        }
        self.letters(text, token)
    }

    /// One-letter flags one behind the other, the last of which may have its value behind it.
    fn letters(&mut self, text: &str, token: &str) -> Result<(), Failure> {
        for (at, letter) in text.char_indices() {
            let after = &text[at + letter.len_utf8()..];
            let flag = by_short(&text[at..at + letter.len_utf8()]).ok_or_else(|| unknown(token))?;
            self.flag(flag)?;
            if flag.accepts_value() && !after.is_empty() {
                self.value(unquoted(after));
                return Ok(());
            }
        }
        Ok(())
    }
}

/// The flag whose long name this is or, if it is only one, begins with this.
fn long_flag(name: &str, token: &str) -> Result<Option<&'static Flag>, Failure> {
    if let Some(flag) = by_long(name) {
        return Ok(Some(flag));
    }
    let matching: Vec<_> = flags()
        .filter(|flag| !name.is_empty() && flag.long.starts_with(name))
        .collect();
    match matching[..] {
        [] => Ok(None),
        [flag] => Ok(Some(flag)),
        _ => {
            let names: Vec<_> = matching.iter().map(|flag| format!("--{}", flag.long)).collect();
            let text = format!(
                "Ambiguous option: '{token}' (could be: {}). Write more of it; see --help.",
                names.join(", ")
            );
            Err(Failure::Usage(text))
        }
    }
}

/// `rate5`: the longest long name that the text begins with.
fn long_with_value(text: &str) -> Option<(&'static Flag, &str)> {
    flags()
        .filter(|flag| flag.accepts_value() && text.len() > flag.long.len() && text.starts_with(flag.long))
        .max_by_key(|flag| flag.long.len())
        .map(|flag| (flag, &text[flag.long.len()..]))
}

/// Whether an argument is a value where one is asked for, rather than a flag.
fn is_value(token: &str) -> bool {
    if !token.starts_with('-') || token.len() == 1 || token.parse::<f64>().is_ok() {
        return true;
    }
    let name = token.split_once('=').map_or(token, |(name, _)| name);
    let name = name.trim_start_matches('-');
    let long = flags().any(|flag| !name.is_empty() && flag.long.starts_with(name));
    if token.starts_with("--") {
        return !long;
    }
    let letter = name.chars().next().map(String::from).unwrap_or_default();
    !(long || by_short(name).is_some() || by_short(&letter).is_some() || long_with_value(name).is_some())
}

/// A value without the quotes around it, which a script may have left.
fn unquoted(text: &str) -> &str {
    match text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inner) if !inner.contains('"') => inner,
        _ => text,
    }
}

/// Tells of a flag that does not exist, and which one may have been meant. What stands behind `=` may be a secret.
fn unknown(token: &str) -> Failure {
    let written = token.split_once('=').map_or(token, |(name, _)| name);
    let name = written.trim_start_matches('-');
    let nearest = flags()
        .map(|flag| (strsim::damerau_levenshtein(name, flag.long), flag.long))
        .min()
        .filter(|(distance, _)| *distance <= name.len() / 2);
    let meant = nearest.map_or(String::new(), |(_, long)| format!(" Did you mean --{long}?"));
    Failure::Usage(format!(
        "Unrecognized option: {written}.{meant} See --help for all flags."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn read(line: &str) -> String {
        match parse(&words(line)) {
            Ok(given) => {
                let mut told: Vec<_> = given
                    .flags
                    .iter()
                    .map(|(flag, values)| format!("{}={}", flag.long, values.join("|")))
                    .collect();
                told.extend(given.strays.iter().map(|stray| format!("stray:{stray}")));
                told.join(" ")
            }
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn arguments_read_as_by_perftests_parser() {
        let table = [
            ("--rate 5", "rate=5"),
            ("--rate=5", "rate=5"),
            ("-r 5", "rate=5"),
            ("-r5", "rate=5"),
            ("-r=5", "rate=5"),
            ("-rate 5", "rate=5"),
            ("-rate5", "rate=5"),
            ("-qpf 1 -qpt 2", "queue-pattern-from=1 queue-pattern-to=2"),
            ("-qpf=1", "queue-pattern-from=1"),
            ("-c -1", "confirm=-1"),
            ("-c=-1", "confirm=-1"),
            ("--autoa", "autoack="),
            ("-ad false -a", "auto-delete=false autoack="),
            ("-aK -x2", "autoack= random-routing-key= producers=2"),
            ("-ax 3", "autoack= producers=3"),
            (
                "-vs 10:900 -vs 100:900",
                "variable-size=10:900 variable-size=100:900",
            ),
            ("-vs 10:900 100:900 -a", "variable-size=10:900|100:900 autoack="),
            ("-e -a", "exchange= autoack="),
            ("-e name", "exchange=name"),
            ("-k -gold", "routing-key=-gold"),
            ("-k --gold", "routing-key=--gold"),
            ("-u \"a\"", "queue=a"),
            ("a -x 1 b", "producers=1 stray:a stray:b"),
            ("-x 1 -- -y 2", "producers=1 stray:-y stray:2"),
            ("--verbose", "verbose="),
            ("-u -", "queue=-"),
        ];
        for (line, wanted) in table {
            assert_eq!(read(line), wanted, "{line}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_told_with_what_to_do() {
        let table = [
            (
                "--raet 5",
                "Unrecognized option: --raet. Did you mean --rate? See --help for all flags.",
            ),
            (
                "--producer-channel-cuont 5",
                "Unrecognized option: --producer-channel-cuont. Did you mean --producer-channel-count? See --help for all \
                 flags.",
            ),
            (
                "--xyzzyxyzzy=secret",
                "Unrecognized option: --xyzzyxyzzy. See --help for all flags.",
            ),
            (
                "-r",
                "Missing argument for option: r. Write --rate RATE; see --help.",
            ),
            (
                "--json",
                "Missing argument for option: json. Write --json FILE; see --help.",
            ),
            (
                "-r -x 1",
                "Missing argument for option: r. Write --rate RATE; see --help.",
            ),
            (
                "--autoack=1",
                "Unrecognized option: --autoack=1. --autoack takes no value; see --help.",
            ),
            (
                "--auto 1",
                "Ambiguous option: '--auto' (could be: --auto-delete, --autoack). Write more of it; see --help.",
            ),
        ];
        for (line, wanted) in table {
            assert_eq!(read(line), wanted, "{line}");
        }
        assert!(read("-a9").starts_with("Unrecognized option: -a9."));
    }

    proptest::proptest! {
        #[test]
        fn no_arguments_make_it_panic(arguments in proptest::collection::vec("(-|--|)[a-zµ=\"?0-9-]{0,6}|\\PC{0,8}", 0..8)) {
            let _ = parse(&arguments);
        }
    }
}
