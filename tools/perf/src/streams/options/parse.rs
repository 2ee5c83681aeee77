//! Arguments to flags with values, by the rules of the parser that stream-perf-test uses (picocli).
//!
//! Short flags have one letter or several, and are never joined; a value is the next argument or stands behind `=`; a flag that
//! is on or off may have `true` or `false` behind it. Unlike PerfTest's, this parser refuses what it does not understand.

use super::table::{by_long, by_short, flags};
use crate::cli::flag::{Flag, Takes};
use crate::cli::parse::Given;
use crate::failure::Failure;

/// Reads arguments.
///
/// # Errors
/// [`Failure::Usage`] for what is no flag, comes twice, or lacks its value.
pub fn parse(arguments: &[String]) -> Result<Given, Failure> {
    let mut given = Given::default();
    let mut arguments = arguments.iter().enumerate().peekable();
    while let Some((at, argument)) = arguments.next() {
        let (name, joined) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument.as_str(), None),
        };
        let flag = named(name).ok_or_else(|| unknown(at, name))?;
        if given.flags.iter().any(|(known, _)| known.long == flag.long) {
            let text = format!("option '--{}' should be specified only once.", flag.long);
            return Err(Failure::Usage(text));
        }
        let value = match (flag.takes, joined) {
            (Takes::Nothing, Some(_)) => {
                let text = format!("--{} takes no value; see --help.", flag.long);
                return Err(Failure::Usage(text));
            }
            (_, Some(value)) => Some(value),
            (Takes::Nothing, None) => None,
            (Takes::Optional(_), None) => arguments
                .next_if(|(_, next)| is_boolean(next))
                .map(|(_, it)| it.clone()),
            (Takes::One(_) | Takes::Many(_), None) => {
                let next = arguments.next_if(|(_, next)| named(next).is_none());
                Some(next.ok_or_else(|| missing(flag))?.1.clone())
            }
        };
        given.flags.push((flag, Vec::from_iter(value)));
    }
    Ok(given)
}

/// The flag that is written so.
fn named(text: &str) -> Option<&'static Flag> {
    match text.strip_prefix("--") {
        Some(long) => by_long(long),
        None => by_short(text.strip_prefix('-')?),
    }
}

fn is_boolean(text: &str) -> bool {
    text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

fn missing(flag: &Flag) -> Failure {
    let name = flag.takes.name().unwrap_or("VALUE");
    let long = flag.long;
    Failure::Usage(format!(
        "Missing required parameter for option '--{long}': write --{long} {name}; see --help."
    ))
}

/// Tells of what is no flag, and which one may have been meant. What stands behind `=` may be a secret.
fn unknown(at: usize, name: &str) -> Failure {
    if !name.starts_with('-') {
        return Failure::Usage(format!(
            "Unmatched argument at index {at}: '{name}', since no flag that takes a value stands before it; see --help."
        ));
    }
    let bare = name.trim_start_matches('-');
    let nearest = flags()
        .map(|flag| (strsim::damerau_levenshtein(bare, flag.long), flag.long))
        .min()
        .filter(|(distance, _)| *distance <= bare.len() / 2);
    let meant = nearest.map_or(String::new(), |(_, long)| format!(" Did you mean --{long}?"));
    Failure::Usage(format!(
        "Unknown option: '{name}'.{meant} See --help for all flags."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> String {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&words) {
            Ok(given) => {
                let flags = given.flags.iter();
                let told: Vec<_> = flags
                    .map(|(flag, values)| format!("{}={}", flag.long, values.join("|")))
                    .collect();
                told.join(" ")
            }
            Err(failure) => failure.to_string(),
        }
    }

    #[test]
    fn arguments_read_as_by_picocli() {
        for (line, wanted) in [
            ("-x 5 --rate -1", "producers=5 rate=-1"),
            ("--rate=5 -sc=10", "rate=5 stream-count=10"),
            ("-ds -se 3", "delete-streams= store-every=3"),
            (
                "-ds false -sac TRUE",
                "delete-streams=false single-active-consumer=TRUE",
            ),
            (
                "-cc simple -ccbc 3 -c 1",
                "codec=simple tracking-consumers-by-connection=3 confirms=1",
            ),
            ("-pn %s-%d", "producer-names=%s-%d"),
            ("-h", "help="),
        ] {
            assert_eq!(read(line), wanted, "{line}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_told_with_what_to_do() {
        for (line, wanted) in [
            (
                "--raet 5",
                "Unknown option: '--raet'. Did you mean --rate? See --help for all flags.",
            ),
            (
                "--xyzzyxyzzy=secret",
                "Unknown option: '--xyzzyxyzzy'. See --help for all flags.",
            ),
            (
                "-x -y 1",
                "Missing required parameter for option '--producers': write --producers N; see --help.",
            ),
            ("-x 1 -x 2", "option '--producers' should be specified only once."),
            ("--help=1", "--help takes no value; see --help."),
        ] {
            assert_eq!(read(line), wanted, "{line}");
        }
        assert!(read("-ds yes").starts_with("Unmatched argument at index 1: 'yes'"));
    }

    proptest::proptest! {
        #[test]
        fn no_arguments_make_it_panic(arguments in proptest::collection::vec("(-|--|)[a-zµ=\"?0-9-]{0,6}|\\PC{0,8}", 0..8)) {
            let _ = parse(&arguments);
        }
    }
}
