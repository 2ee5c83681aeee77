//! What the command line and the environment say, asked for by name and type.

use super::flag::Flag;
use super::parse::Given;
use super::table::by_long;
use crate::failure::Failure;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// The longest time that a flag may name: 100 years in seconds.
const LONGEST_S: f64 = 3_153_600_000.0;

/// Flags by their long names. A variable of the environment wins over the command line, as in PerfTest.
pub struct Settings<'a> {
    given: &'a Given,
    environment: &'a dyn Fn(&str) -> Option<String>,
    prefix: String,
    by_long: fn(&str) -> Option<&'static Flag>,
}

impl<'a> Settings<'a> {
    /// Those of `leveret perf`.
    pub fn new(given: &'a Given, environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self::of(given, environment, "RABBITMQ_PERF_TEST_ENV_PREFIX", by_long)
    }

    /// Those of another table of flags; the variable `prefix` says what the names of variables begin with.
    pub fn of(
        given: &'a Given,
        environment: &'a dyn Fn(&str) -> Option<String>,
        prefix: &str,
        by_long: fn(&str) -> Option<&'static Flag>,
    ) -> Self {
        let prefix = environment(prefix).unwrap_or_default();
        let prefix = match prefix.trim() {
            "" => String::new(),
            it if it.ends_with('_') => it.to_owned(),
            it => format!("{it}_"),
        };
        Self {
            given,
            environment,
            prefix,
            by_long,
        }
    }

    /// A variable that belongs to no flag.
    pub fn variable(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    /// Whether a flag without value is set; in the environment by `true`.
    pub fn has(&self, long: &str) -> bool {
        match self.of_environment(long) {
            Some(text) => text.eq_ignore_ascii_case("true"),
            None => self.given.flags.iter().any(|(flag, _)| flag.long == long),
        }
    }

    /// Whether anything was said of a flag.
    pub fn is_given(&self, long: &str) -> bool {
        self.of_environment(long).is_some() || self.given.flags.iter().any(|(flag, _)| flag.long == long)
    }

    /// A flag that is set by itself, or by `true`, and taken back by `false`.
    ///
    /// # Errors
    /// If there is anything else behind it.
    pub fn switch(&self, long: &str, default: bool) -> Result<bool, Failure> {
        match self.text(long) {
            None if self.is_given(long) => Ok(true),
            _ => self.boolean(long, default),
        }
    }

    /// A flag's value; the first one if it was given several times, as in PerfTest.
    pub fn text(&self, long: &str) -> Option<String> {
        self.of_environment(long)
            .or_else(|| self.on_command_line(long).next().cloned())
    }

    /// All values of a flag that may come several times; in the environment they are separated by commas.
    pub fn list(&self, long: &str) -> Vec<String> {
        match self.of_environment(long) {
            Some(text) => parts(&text),
            None => self.on_command_line(long).cloned().collect(),
        }
    }

    /// How a message names a setting: where it was made.
    pub fn name(&self, long: &str) -> String {
        match (self.of_environment(long), (self.by_long)(long)) {
            (Some(_), Some(flag)) => format!("the variable {}{}", self.prefix, flag.variable()),
            _ => format!("--{long}"),
        }
    }

    /// A refusal of a setting: what it is, and what to write.
    pub fn refuse(&self, long: &str, value: &str, write: impl Display) -> Failure {
        Failure::Usage(format!("{} is '{value}': write {write}.", self.name(long)))
    }

    /// A whole number.
    ///
    /// # Errors
    /// If it is none, or none of the range.
    pub fn whole<T>(&self, long: &str, default: T, range: RangeInclusive<T>) -> Result<T, Failure>
    where
        T: FromStr + PartialOrd + Display,
    {
        let Some(text) = self.text(long) else {
            return Ok(default);
        };
        match text.parse() {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => {
                let write = format!("a whole number from {} to {}", range.start(), range.end());
                Err(self.refuse(long, &text, write))
            }
        }
    }

    /// A whole number whose negative values all mean the same: nothing.
    ///
    /// # Errors
    /// If it is no number, or beyond the largest.
    pub fn if_not_negative(&self, long: &str, largest: u32) -> Result<Option<u32>, Failure> {
        let number = self.whole(long, -1, i64::MIN..=i64::from(largest))?;
        Ok(u32::try_from(number).ok())
    }

    /// A decimal number.
    ///
    /// # Errors
    /// If it is none, or not finite.
    pub fn decimal(&self, long: &str) -> Result<Option<f64>, Failure> {
        let Some(text) = self.text(long) else {
            return Ok(None);
        };
        match text.trim().parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            _ => Err(self.refuse(long, &text, "a number")),
        }
    }

    /// A time in seconds, 0 and decimals allowed; below 0 it is as if not given, which PerfTest's defaults of -1 mean.
    ///
    /// # Errors
    /// If it is no number, or more than 100 years.
    pub fn seconds(&self, long: &str) -> Result<Option<Duration>, Failure> {
        match self.decimal(long)? {
            None => Ok(None),
            Some(number) if number < 0.0 => Ok(None),
            Some(number) if number <= LONGEST_S => Ok(Some(Duration::from_secs_f64(number))),
            Some(number) => Err(self.refuse(
                long,
                &number.to_string(),
                "a time in seconds of at most 100 years",
            )),
        }
    }

    /// `true` or `false`. PerfTest takes whatever is not `true` for `false`, so that a typing error turns a flag round.
    ///
    /// # Errors
    /// If it is anything else.
    pub fn boolean(&self, long: &str, default: bool) -> Result<bool, Failure> {
        match self.text(long) {
            None => Ok(default),
            Some(text) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(text) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(text) => Err(self.refuse(long, &text, "true or false")),
        }
    }

    fn on_command_line(&self, long: &str) -> impl Iterator<Item = &'a String> {
        let long = long.to_owned();
        self.given
            .flags
            .iter()
            .filter(move |(flag, _)| flag.long == long)
            .flat_map(|(_, values)| values.iter())
    }

    fn of_environment(&self, long: &str) -> Option<String> {
        let flag: &Flag = (self.by_long)(long).filter(|flag| !flag.is_no_variable())?;
        (self.environment)(&format!("{}{}", self.prefix, flag.variable()))
    }
}

/// The parts of a list with commas, blanks around them removed, empty ones left out.
pub fn parts(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    fn with<T>(arguments: &[&str], variables: &[(&str, &str)], ask: impl FnOnce(&Settings<'_>) -> T) -> T {
        let arguments: Vec<String> = arguments.iter().map(|it| (*it).to_owned()).collect();
        let given = parse(&arguments).expect("arguments that can be read");
        let environment = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, it)| (*it).to_owned())
        };
        ask(&Settings::new(&given, &environment))
    }

    #[test]
    fn the_environment_wins_and_its_prefix_is_completed() {
        with(&["-r", "5"], &[("RATE", "7")], |it| {
            assert_eq!(it.text("rate").as_deref(), Some("7"))
        });
        let prefixed = [
            ("RABBITMQ_PERF_TEST_ENV_PREFIX", "PT"),
            ("PT_RATE", "8"),
            ("RATE", "9"),
            ("PT_AUTOACK", "TRUE"),
        ];
        with(&[], &prefixed, |it| {
            assert_eq!(it.text("rate").as_deref(), Some("8"));
            assert!(it.has("autoack"));
            assert_eq!(it.name("rate"), "the variable PT_RATE");
        });
        with(&["-a"], &[("AUTOACK", "no")], |it| assert!(!it.has("autoack")));
        with(&[], &[("VERSION", "true"), ("HELP", "true")], |it| {
            assert!(!it.has("version") && !it.has("help"))
        });
        with(&[], &[("VARIABLE_SIZE", "10:9,20:9")], |it| {
            assert_eq!(it.list("variable-size"), ["10:9", "20:9"])
        });
    }

    #[test]
    fn the_first_of_several_values_counts() {
        with(&["-r", "5", "-r", "6"], &[], |it| {
            assert_eq!(it.text("rate").as_deref(), Some("5"))
        });
    }

    #[test]
    fn a_value_of_the_wrong_type_is_refused_by_the_name_it_was_given_under() {
        let told = with(&["-x", "abc"], &[], |it| {
            it.whole("producers", 1, 0..=9).unwrap_err().to_string()
        });
        assert_eq!(told, "--producers is 'abc': write a whole number from 0 to 9.");
        let told = with(&[], &[("AUTO_DELETE", "yes")], |it| {
            it.boolean("auto-delete", true).unwrap_err().to_string()
        });
        assert_eq!(told, "the variable AUTO_DELETE is 'yes': write true or false.");
        let told = with(&["-z", "NaN"], &[], |it| {
            it.seconds("time").unwrap_err().to_string()
        });
        assert_eq!(told, "--time is 'NaN': write a number.");
        assert!(with(&["-z", "1e300"], &[], |it| it.seconds("time").is_err()));
        assert_eq!(
            with(&["-prsd", "-1"], &[], |it| it
                .seconds("producer-random-start-delay")),
            Ok(None)
        );
    }
}
