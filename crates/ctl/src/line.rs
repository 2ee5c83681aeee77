//! A command line, taken apart as RabbitMQ's tools do: options may stand anywhere, before the command's name too.

use crate::failure::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// Options that every command takes, as `long|s` and, if a value follows, `=`, or `=#` if that is a whole number.
pub const GLOBAL: &[&str] = &[
    "node|n=",
    "quiet|q",
    "silent|s",
    "longnames|l",
    "timeout|t=",
    "vhost|p=",
    "formatter=",
    "printer=",
    "file=",
    "no-table-headers",
    "table-headers",
    "help|?",
    "version",
    "dry-run",
    "data-dir=",
    "url=",
    "username=",
    "password=",
    "ca-certificate=",
    "script-name=",
    "print-stacktrace",
    "erlang-cookie=",
    "enabled-plugins-file=",
    "rabbitmq-home=",
    "plugins-dir=",
    "aliases-file=",
];

/// What may stand on a command's line besides the options of all.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// How many words, from and to.
    pub words: (usize, usize),
    /// Options of its own, in the form of [`GLOBAL`].
    pub options: &'static [&'static str],
}

/// What stands on a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandLine {
    /// Everything as it was given, without the program's name.
    pub given: Vec<String>,
    /// What is no option, without the command's name.
    pub words: Vec<String>,
    options: BTreeMap<&'static str, String>,
    /// Flags that were said not to hold.
    taken_back: BTreeSet<&'static str>,
    unknown: Vec<String>,
    /// Options whose values are no numbers, with these.
    wrong: Vec<String>,
}

/// An option of a list such as [`GLOBAL`].
#[derive(Clone, Copy, Debug)]
struct Known {
    long: &'static str,
    short: Option<&'static str>,
    takes_value: bool,
    is_number: bool,
}

fn known(spec: &'static str) -> Known {
    let is_number = spec.ends_with("=#");
    let spec = spec.trim_end_matches('#');
    let takes_value = spec.ends_with('=');
    let spec = spec.trim_end_matches('=');
    let (long, short) = match spec.split_once('|') {
        Some((long, short)) => (long, Some(short)),
        None => (spec, None),
    };
    Known {
        long,
        short,
        takes_value,
        is_number,
    }
}

/// The long names of options, for help and completion.
pub fn long_names(specs: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    specs.iter().map(|spec| known(spec).long)
}

/// Finds the command's name: the first word that is neither an option nor the value of a global one.
pub fn name(given: &[String]) -> Option<&str> {
    let mut rest = given.iter();
    while let Some(word) = rest.next() {
        match split(word) {
            None => return Some(word),
            Some((name, None)) if find(name, GLOBAL).is_some_and(|option| option.takes_value) => {
                rest.next();
            }
            Some(_) => {}
        }
    }
    None
}

/// Takes a command line apart.
pub fn parse(given: &[String], command: Option<Takes>) -> CommandLine {
    let own = command.map_or(&[][..], |command| command.options);
    let mut line = CommandLine {
        given: given.to_vec(),
        ..CommandLine::default()
    };
    let mut rest = given.iter();
    let mut only_words = false;
    while let Some(word) = rest.next() {
        let (name, value) = match split(word) {
            Some(option) if !only_words => option,
            _ if word == "--" && !only_words => {
                only_words = true;
                continue;
            }
            _ => {
                line.words.push(word.clone());
                continue;
            }
        };
        let lookup = |name: &str| find(name, own).or_else(|| find(name, GLOBAL));
        let Some(option) = lookup(name) else {
            match taken_back(name).and_then(|name| lookup(&name)) {
                Some(flag) if !flag.takes_value && value.is_none() => line.take_back(flag.long),
                _ => line.unknown.push(word.clone()),
            }
            continue;
        };
        let value = match (option.takes_value, value) {
            (true, None) => match rest.next() {
                Some(value) => value.clone(),
                None => {
                    line.wrong.push(format!("{name} : "));
                    continue;
                }
            },
            (false, Some("false")) => {
                line.take_back(option.long);
                continue;
            }
            (false, Some(other)) if other != "true" => {
                line.wrong.push(format!("{name} : {other}"));
                continue;
            }
            (_, value) => value.unwrap_or_default().to_owned(),
        };
        line.taken_back.remove(option.long);
        if option.is_number && value.parse::<i64>().is_err() {
            line.wrong.push(format!("{name} : {value}"));
        }
        line.options.insert(option.long, value);
    }
    if command.is_some() && !line.words.is_empty() {
        line.words.remove(0);
    }
    line
}

/// An option's name with its dashes, and what stands behind an equals sign. A minus before a digit starts a number, and
/// a minus alone is a file's name.
fn split(word: &str) -> Option<(&str, Option<&str>)> {
    let dashed = word.strip_prefix('-')?;
    let is_number = dashed.starts_with(|c: char| c.is_ascii_digit());
    if dashed.is_empty() || word == "--" || is_number {
        return None;
    }
    Some(match word.split_once('=') {
        Some((name, value)) if word.starts_with("--") => (name, Some(value)),
        _ => (word, None),
    })
}

/// The flag that `--no-flag` takes back.
fn taken_back(name: &str) -> Option<String> {
    name.strip_prefix("--no-").map(|flag| format!("--{flag}"))
}

fn find(name: &str, specs: &'static [&'static str]) -> Option<Known> {
    specs.iter().map(|spec| known(spec)).find(|option| {
        let long = name.strip_prefix("--").map(|name| name.replace('_', "-"));
        match long {
            Some(long) => long == option.long,
            None => name.strip_prefix('-') == option.short,
        }
    })
}

impl CommandLine {
    fn take_back(&mut self, flag: &'static str) {
        self.options.remove(flag);
        self.taken_back.insert(flag);
    }

    /// What was said of a flag, if it was given: `--flag`, `--flag=true`, `--no-flag` or `--flag=false`.
    pub fn flag(&self, option: &str) -> Option<bool> {
        match self.taken_back.contains(option) {
            true => Some(false),
            false => self.has(option).then_some(true),
        }
    }

    /// True if the option was given.
    pub fn has(&self, option: &str) -> bool {
        self.options.contains_key(option)
    }

    /// An option's number, if it was given; see [`CommandLine::check`].
    pub fn number(&self, option: &str) -> Option<i64> {
        self.value(option)?.parse().ok()
    }

    /// An option's value, if it was given.
    pub fn value(&self, option: &str) -> Option<&str> {
        self.options.get(option).map(String::as_str)
    }

    /// The words are as many as the command takes, no option is unknown, and numbers are numbers.
    ///
    /// # Errors
    /// What is wrong, with the nearest option to each that is not known.
    pub fn check(&self, command: Takes) -> Result<(), Failure> {
        if !self.unknown.is_empty() || !self.wrong.is_empty() {
            let lines = self.unknown.iter().map(|word| unknown(word, command));
            let lines: Vec<String> = lines.chain(self.wrong.iter().cloned()).collect();
            let text = format!("Invalid options for this command:\n{}", lines.join("\n"));
            return Err(Failure::usage(text));
        }
        let (least, most) = command.words;
        if self.words.len() < least {
            Err(Failure::usage("not enough arguments."))
        } else if self.words.len() > most {
            Err(Failure::usage("too many arguments."))
        } else {
            Ok(())
        }
    }
}

fn unknown(word: &str, command: Takes) -> String {
    let name = split(word).map_or(word, |(name, _)| name);
    let options = long_names(command.options).chain(long_names(GLOBAL));
    let wanted = name.trim_start_matches('-');
    let near = options
        .map(|option| (strsim::damerau_levenshtein(option, wanted), option))
        .min()
        .filter(|(distance, _)| *distance <= 2);
    match near {
        Some((_, option)) => format!("{name} : did you mean --{option}?"),
        None => format!("{name} : "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands;

    fn parsed(text: &str) -> CommandLine {
        let given: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let command = commands::find(name(&given).unwrap()).unwrap().takes();
        parse(&given, Some(command))
    }

    #[test]
    fn options_stand_before_and_behind_the_name_of_the_command() {
        let line = parsed("-n a@b -q list_queues -p v name --formatter=json messages -t 5");
        assert_eq!(line.words, ["name", "messages"]);
        assert_eq!(
            (line.value("node"), line.value("vhost")),
            (Some("a@b"), Some("v"))
        );
        assert_eq!(
            (line.value("formatter"), line.has("quiet"), line.has("silent")),
            (Some("json"), true, false)
        );
    }

    #[test]
    fn what_looks_like_an_option_may_be_a_word() {
        assert_eq!(parsed("add_user bob -- -secret").words, ["bob", "-secret"]);
        assert_eq!(parsed("export_definitions -").words, ["-"]);
        assert_eq!(parsed("await_online_nodes -1").words, ["-1"]);
    }

    #[test]
    fn a_misspelt_option_is_told_the_nearest_one() {
        let command = commands::find("list_queues").unwrap().takes();
        let failure = parsed("list_queues --formater json").check(command).unwrap_err();
        assert_eq!((failure.code, failure.with_usage), (64, true));
        assert!(
            failure.text.ends_with("--formater : did you mean --formatter?"),
            "{}",
            failure.text
        );
        let failure = parsed("list_queues --zork").check(command).unwrap_err();
        assert!(failure.text.ends_with("--zork : "), "{}", failure.text);
    }

    #[test]
    fn a_number_that_is_none_is_told_with_the_name_it_was_given_by() {
        let command = commands::find("log_tail").unwrap().takes();
        assert_eq!(parsed("log_tail -N 7").number("number"), Some(7));
        let failure = parsed("log_tail -N abc").check(command).unwrap_err();
        assert!(failure.text.ends_with("\n-N : abc"), "{}", failure.text);
    }

    #[test]
    fn a_flag_can_be_taken_back() {
        let line = parsed("list_queues -q --silent --no-quiet --silent=false --no-table-headers");
        assert_eq!(
            (
                line.has("quiet"),
                line.has("silent"),
                line.has("no-table-headers")
            ),
            (false, false, true)
        );
        let command = commands::find("list_queues").unwrap().takes();
        for wrong in ["--no-zork", "--no-vhost", "--vhost"] {
            let failure = parsed(&format!("list_queues {wrong}"))
                .check(command)
                .unwrap_err();
            assert!(failure.text.ends_with(&format!("{wrong} : ")), "{}", failure.text);
        }
    }

    #[test]
    fn words_are_counted() {
        for (text, expected) in [("add_vhost", "not enough"), ("add_vhost a b", "too many")] {
            let command = commands::find("add_vhost").unwrap().takes();
            let failure = parsed(text).check(command).unwrap_err();
            assert!(
                failure.text.contains(expected) && failure.code == 64,
                "{}",
                failure.text
            );
        }
    }
}
