//! The little language of `--phase`: a name, PerfTest's flags, and until when.

use crate::churn::words;
use std::time::Duration;

/// The longest time that may be named: 100 years in seconds.
const LONGEST_S: f64 = 3_153_600_000.0;

/// A phase as it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    pub name: String,
    /// PerfTest's flags of this phase; they win over the common ones.
    pub flags: Vec<String>,
    pub until: Until,
}

/// When a phase is over: at whatever comes first.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Until {
    pub depth: Option<Depth>,
    pub time: Option<Duration>,
}

/// How many messages are ready in the queues, all together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// At this depth, from wherever it started.
    Is(u64),
    AtLeast(u64),
    AtMost(u64),
}

impl Depth {
    /// Which way it goes: up where nobody consumes, down where nobody publishes, else as `start`, the depth at the start, says.
    pub fn directed(self, producers: usize, consumers: usize, start: u64) -> Self {
        match self {
            Self::Is(depth) if consumers == 0 || (producers > 0 && start < depth) => Self::AtLeast(depth),
            Self::Is(depth) => Self::AtMost(depth),
            directed => directed,
        }
    }

    /// Whether this is a depth it asks for.
    pub fn is_met(self, depth: u64) -> bool {
        match self {
            Self::Is(wanted) => depth == wanted,
            Self::AtLeast(wanted) => depth >= wanted,
            Self::AtMost(wanted) => depth <= wanted,
        }
    }

    /// The number itself.
    pub fn messages(self) -> u64 {
        let (Self::Is(depth) | Self::AtLeast(depth) | Self::AtMost(depth)) = self;
        depth
    }
}

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.depth {
            Some(Depth::Is(depth)) => write!(f, "until depth {depth}")?,
            Some(Depth::AtLeast(depth)) => write!(f, "until depth >= {depth}")?,
            Some(Depth::AtMost(0)) => write!(f, "until empty")?,
            Some(Depth::AtMost(depth)) => write!(f, "until depth <= {depth}")?,
            None => {}
        }
        if let Some(time) = self.time {
            let space = if self.depth.is_some() { ", " } else { "" };
            write!(f, "{space}for {} s", time.as_secs_f64())?;
        }
        Ok(())
    }
}

impl Phase {
    /// Reads `NAME: FLAGS… [until depth [>=|<=] N | until empty] [for TIME]`.
    ///
    /// # Errors
    /// A line that says what to write.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refuse = |why: &str| format!("--phase '{text}': {why}");
        let (name, rest) = text.split_once(':').ok_or_else(|| {
            refuse("begin with a name and a colon, as in 'fill: --consumers 0 until depth 100000'")
        })?;
        let name = name.trim();
        if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
            return Err(refuse(
                "begin with a name of one word and a colon, as in 'fill: …'",
            ));
        }
        let mut words = words::split(rest).map_err(|why| refuse(&why))?;
        let mut until = Until::default();
        while condition(&mut words, &mut until).map_err(|why| refuse(&why))? {}
        if let Some(word) = words
            .iter()
            .find(|word| ["until", "for"].contains(&word.as_str()))
        {
            let why = format!(
                "what stands behind '{word}' is not a condition: write it last, as 'until depth N', 'until empty' or 'for 10s'"
            );
            return Err(refuse(&why));
        }
        Ok(Self {
            name: name.to_owned(),
            flags: words,
            until,
        })
    }
}

/// Takes a condition off the end; false if there is none.
fn condition(words: &mut Vec<String>, until: &mut Until) -> Result<bool, String> {
    let parts: Vec<&str> = words.iter().map(String::as_str).collect();
    let (used, depth, time) = match parts[..] {
        [.., "until", "empty"] => (2, Some(Depth::AtMost(0)), None),
        [.., "until", "depth", number] => (3, Some(Depth::Is(whole(number)?)), None),
        [.., "until", "depth", comparison, number] => {
            let number = whole(number)?;
            let depth = match comparison {
                ">=" => Depth::AtLeast(number),
                ">" => Depth::AtLeast(number.saturating_add(1)),
                "<=" => Depth::AtMost(number),
                "<" => Depth::AtMost(number.saturating_sub(1)),
                other => return Err(format!("'{other}' is not a comparison: write >=, >, <= or <")),
            };
            (4, Some(depth), None)
        }
        [.., "for", text] => (2, None, Some(time_of(text)?)),
        _ => return Ok(false),
    };
    if (depth.is_some() && until.depth.is_some()) || (time.is_some() && until.time.is_some()) {
        return Err("there are two conditions of the same kind: leave one of them out".into());
    }
    until.depth = until.depth.or(depth);
    until.time = until.time.or(time);
    words.truncate(words.len() - used);
    Ok(true)
}

/// A number of messages; `_` and `,` may stand between digits.
pub fn whole(text: &str) -> Result<u64, String> {
    let digits: String = text
        .chars()
        .filter(|letter| !matches!(letter, '_' | ','))
        .collect();
    let refuse = |_| format!("'{text}' is not a number of messages: write a whole number, as in 2000000");
    digits.parse().map_err(refuse)
}

/// `10`, `10s`, `500ms`, `5m`, `1h`; seconds without a unit.
pub fn time_of(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3_600.0)];
    let cut = |&(unit, seconds): &(&str, f64)| text.strip_suffix(unit).map(|number| (number, seconds));
    let (number, unit_s) = units.iter().find_map(cut).unwrap_or((text, 1.0));
    let seconds = number.trim().parse::<f64>().ok().map(|number| number * unit_s);
    seconds
        .filter(|&seconds| seconds > 0.0 && seconds <= LONGEST_S)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("'{text}' is not a time: write seconds, or 500ms, 10s, 5m, 1h"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn until(depth: Option<Depth>, seconds: Option<f64>) -> Until {
        Until {
            depth,
            time: seconds.map(Duration::from_secs_f64),
        }
    }

    #[test]
    fn conditions_stand_behind_the_flags() {
        for (text, name, flags, expected) in [
            (
                "fill: --producers 3 --consumers 0 until depth 2000000",
                "fill",
                &["--producers", "3", "--consumers", "0"][..],
                until(Some(Depth::Is(2_000_000)), None),
            ),
            (
                "drain:-x 3 until depth < 1,000",
                "drain",
                &["-x", "3"],
                until(Some(Depth::AtMost(999)), None),
            ),
            (
                "a: until depth >= 1_0",
                "a",
                &[],
                until(Some(Depth::AtLeast(10)), None),
            ),
            (
                "a: until depth > 9 for 5m",
                "a",
                &[],
                until(Some(Depth::AtLeast(10)), Some(300.0)),
            ),
            (
                "a: for 500ms until empty",
                "a",
                &[],
                until(Some(Depth::AtMost(0)), Some(0.5)),
            ),
            (
                "steady: -r 10 for 10",
                "steady",
                &["-r", "10"],
                until(None, Some(10.0)),
            ),
            ("b: --pmessages 5", "b", &["--pmessages", "5"], until(None, None)),
        ] {
            let phase = Phase::parse(text).unwrap();
            assert_eq!(
                (phase.name.as_str(), &phase.flags[..], phase.until),
                (
                    name,
                    &flags.iter().map(|&it| it.to_owned()).collect::<Vec<_>>()[..],
                    expected
                ),
                "{text}"
            );
        }
    }

    #[test]
    fn a_mistake_is_told_with_what_to_write() {
        for (text, says) in [
            ("--producers 3 until empty", "a name and a colon"),
            (": until empty", "a name of one word"),
            ("two words: until empty", "a name of one word"),
            ("a: until depth many", "whole number"),
            ("a: until depth == 5", ">=, >, <= or <"),
            ("a: until full", "until depth N"),
            ("a: until empty --producers 3", "write it last"),
            ("a: for ever", "not a time"),
            ("a: for -5s", "not a time"),
            ("a: for 1e300h", "not a time"),
            ("a: for 5s for 6s", "two conditions"),
            ("a: until empty until depth 5", "two conditions"),
            ("a: --queue 'b", "not closed"),
        ] {
            let why = Phase::parse(text).unwrap_err();
            assert!(
                why.starts_with("--phase '") && why.contains(says),
                "{text}: {why}"
            );
        }
    }

    #[test]
    fn a_depth_without_a_direction_goes_where_the_phase_goes() {
        let depth = Depth::Is(1_000);
        for (producers, consumers, start, expected) in [
            (3, 0, 5_000, Depth::AtLeast(1_000)),
            (3, 0, 0, Depth::AtLeast(1_000)),
            (0, 3, 0, Depth::AtMost(1_000)),
            (3, 3, 5_000, Depth::AtMost(1_000)),
            (3, 3, 0, Depth::AtLeast(1_000)),
        ] {
            assert_eq!(depth.directed(producers, consumers, start), expected);
        }
        assert_eq!(Depth::AtMost(1).directed(3, 0, 0), Depth::AtMost(1));
        assert!(Depth::AtMost(1_000).is_met(1_000) && !Depth::AtLeast(1_000).is_met(999));
    }

    #[test]
    fn what_is_told_of_a_condition_can_be_read_again() {
        for text in [
            "until depth 5",
            "until depth >= 5",
            "until empty",
            "until depth <= 7, for 2.5 s",
            "for 3 s",
        ] {
            let written = text.replace(',', "").replace(" s", "s");
            assert_eq!(
                Phase::parse(&format!("a: {written}")).unwrap().until.to_string(),
                text
            );
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_refused(text: String, tail in "(a: )?(until|for|depth|empty|>=|[0-9]{0,25}|[a-z]| ){0,8}") {
            let _ = Phase::parse(&text);
            let _ = Phase::parse(&tail);
        }
    }
}
