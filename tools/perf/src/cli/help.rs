//! The texts that the table of flags is shown in.

use super::flag::{Flag, Group, Takes};
use super::table::flags;

/// How wide a line of help may be, in columns.
const WIDTH: usize = 100;
/// Where the explanations begin.
const COLUMN: usize = 40;

const USAGE: &str = "\
Usage: leveret perf [FLAGS]
       leveret perf churn --what WHAT [FLAGS]    how long single operations take; see churn --help
       leveret perf phases [FLAGS]               fill a queue, then drain it; see phases --help
       leveret perf import [FLAGS]               import definitions over HTTP; see import --help
       leveret perf multi SPEC RESULT            a file of PerfTestMulti; see multi --help

Puts an AMQP 0-9-1 broker under load and measures it. Command lines of PerfTest work unchanged; without
flags one producer publishes as fast as it can to one consumer on amqp://localhost, until Ctrl-C.
";

const AFTER: &str = "\
Each flag can also be set as an environment variable (see --environment-variables), which wins over the
command line. Long flags may be cut as long as they stay unique.

Exit codes: 0 the run went as asked; 1 it could not start, was cut short, or --verify found a fault;
130 and 143 it was ended by Ctrl-C or a termination signal.
";

/// `--help`.
pub fn help() -> String {
    let mut text = USAGE.to_owned();
    for group in Group::OF_A_RUN {
        append_group(&mut text, group);
    }
    text.push_str("\nThe flags about metrics are shown by --metrics-help (-mh).\n\n");
    text.push_str(AFTER);
    text
}

/// `--metrics-help`.
pub fn metrics_help() -> String {
    let mut text = "Usage: leveret perf [FLAGS]\n".to_owned();
    append_group(&mut text, Group::Metrics);
    text
}

/// `--environment-variables`, of the metrics flags or of all others.
pub fn environment(metrics: bool) -> String {
    let mut text = String::from(
        "Each flag as an environment variable; a variable wins over the command line. Flags without a value are\n\
         set by 'true'. Several values are separated by commas: VARIABLE_RATE='100:60,1000:10,500:15'.\n\n\
         RABBITMQ_PERF_TEST_ENV_PREFIX=PT    makes the names begin with PT_, as in PT_RATE\n\
         RABBITMQ_PERF_TEST_LOGGERS          read by PerfTest for its Java loggers; without effect here\n\n",
    );
    let mut chosen: Vec<&Flag> = flags().filter(|flag| !flag.is_no_variable()).collect();
    chosen.retain(|flag| (flag.group == Group::Metrics) == metrics);
    chosen.sort_by_key(|flag| flag.long);
    for flag in chosen {
        append(&mut text, &flag.variable(), flag);
    }
    text
}

/// `--version`.
pub fn version() -> String {
    format!(
        "leveret perf {} ({}, {}), a drop-in for RabbitMQ PerfTest 2.2x\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

fn append_group(text: &mut String, group: Group) {
    append_flags(text, group.heading(), flags().filter(|flag| flag.group == group));
}

/// `-r, --rate RATE`.
fn names(flag: &Flag) -> String {
    let short = if flag.short.is_empty() {
        "    ".to_owned()
    } else {
        format!("-{}, ", flag.short)
    };
    let value = match flag.takes {
        Takes::Optional(name) => format!(" [{name}]"),
        takes => takes.name().map_or(String::new(), |name| format!(" {name}")),
    };
    format!("{short}--{}{value}", flag.long)
}

/// A group of flags under its heading.
pub fn append_flags<'f>(text: &mut String, heading: &str, flags: impl Iterator<Item = &'f Flag>) {
    text.push('\n');
    text.push_str(heading);
    text.push_str(":\n");
    for flag in flags {
        append(text, &names(flag), flag);
    }
}

/// A flag's line or lines: its name, and the explanation from a fixed column on.
pub fn append(text: &mut String, name: &str, flag: &Flag) {
    let mut line = format!("  {name}");
    if line.chars().count() + 2 > COLUMN {
        text.push_str(&line);
        text.push('\n');
        line.clear();
    }
    let default = format!("[default: {}]", flag.default);
    let default = (!flag.default.is_empty()).then_some(default.as_str());
    let mut width = line.chars().count();
    for word in flag.text.split_whitespace().chain(default) {
        if width > COLUMN && width + 1 + word.chars().count() > WIDTH {
            text.push_str(&line);
            text.push('\n');
            line.clear();
            width = 0;
        }
        let gap = if width < COLUMN { COLUMN - width } else { 1 };
        line.push_str(&" ".repeat(gap));
        line.push_str(word);
        width += gap + word.chars().count();
    }
    text.push_str(&line);
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_shows_every_flag_once_in_lines_that_fit() {
        let shown = help() + &metrics_help();
        for flag in flags() {
            let long = format!("--{}", flag.long);
            let begins = |line: &&str| {
                let indent = line.len() - line.trim_start().len();
                (indent == 2 || indent == 6) && line.split_whitespace().take(2).any(|word| word == long)
            };
            let lines = shown.lines().filter(begins);
            assert_eq!(lines.count(), 1, "{long}");
        }
        for line in (shown + &environment(true) + &environment(false)).lines() {
            assert!(line.chars().count() <= 105, "{line}");
        }
    }

    #[test]
    fn defaults_and_groups_are_shown() {
        let shown = help();
        for part in [
            "[default: amqp://localhost]",
            "[default: -1]",
            "\nProducers:\n",
            "\nLeveret's own",
            "--metrics-help",
        ] {
            assert!(shown.contains(part), "{part}");
        }
        assert!(!shown.contains("--metrics-prometheus-port"));
        assert!(metrics_help().contains("[default: 8080]"));
    }

    #[test]
    fn the_page_for_users_names_every_flag() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/perf.md");
        let page = std::fs::read_to_string(page).expect("the page");
        for flag in flags() {
            let short = if flag.short.is_empty() {
                String::new()
            } else {
                format!("`-{}`, ", flag.short)
            };
            let row = format!("\n| {short}`--{}", flag.long);
            let ends = |rest: &str| rest.starts_with('`') || rest.starts_with(' ');
            assert!(
                page.split(&row).skip(1).any(ends),
                "docs/perf.md lacks the row {row}"
            );
        }
    }

    #[test]
    fn the_environment_form_shows_what_can_be_set() {
        let run = environment(false);
        for name in [
            "QUEUE_PATTERN_FROM",
            "PRODUCERS",
            "VERIFY",
            "RABBITMQ_PERF_TEST_ENV_PREFIX",
        ] {
            assert!(run.contains(name), "{name}");
        }
        assert!(!run.contains("METRICS_PROMETHEUS") && !run.contains("ENVIRONMENT_VARIABLES "));
        assert!(environment(true).contains("METRICS_PROMETHEUS_PORT"));
    }
}
