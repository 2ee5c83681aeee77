//! The texts that the table of flags is shown in.

use super::table::{GROUPS, flags};
use crate::cli::flag::Flag;
use crate::cli::help::{append, append_flags};

const USAGE: &str = "\
Usage: leveret stream-perf [FLAGS]

Puts a broker under load over RabbitMQ's stream protocol and measures it. Command lines of
stream-perf-test work unchanged; without flags one producer publishes as fast as it can to the stream
'stream' on localhost, and one consumer reads it, until Ctrl-C.
";

const AFTER: &str = "
Examples:
  A producer and a consumer for half a minute, and how long confirms take:
    leveret stream-perf --time 30 --confirm-latency

  50,000 messages of 1 kB a second; latency counts from when each was due:
    leveret stream-perf --rate 50000 --size 1000 --time 60 --json run.json

  Did a million messages arrive once and in order?
    leveret stream-perf --verify --pmessages 1000000 --streams orders

  Ten readers of everything that is in a stream, and no producer:
    leveret stream-perf --producers 0 --consumers 10 --offset first --streams orders

  Sub-batches of 100 messages, compressed:
    leveret stream-perf --sub-entry-size 100 --compression lz4

Each flag can also be set as an environment variable (see --environment-variables), which wins over the
command line. A stream that does not exist is made; it stays unless --delete-streams is given.

Exit codes: 0 the run went as asked; 1 it could not start, was cut short, or --verify found a fault;
2 the command line is wrong; 130 and 143 it was ended by Ctrl-C or a termination signal.
";

/// `--help`.
pub fn help() -> String {
    let mut text = USAGE.to_owned();
    for (group, heading) in GROUPS {
        append_flags(&mut text, heading, flags().filter(|flag| flag.group == group));
    }
    text.push_str(AFTER);
    text
}

/// `--environment-variables`.
pub fn environment() -> String {
    let mut text = String::from(
        "Each flag as an environment variable; a variable wins over the command line. Flags that are on or off\n\
         are set by 'true'.\n\n\
         RABBITMQ_STREAM_PERF_TEST_ENV_PREFIX=SPT    makes the names begin with SPT_, as in SPT_RATE\n\n",
    );
    let mut chosen: Vec<&Flag> = flags().filter(|flag| !flag.is_no_variable()).collect();
    chosen.sort_by_key(|flag| flag.long);
    for flag in chosen {
        append(&mut text, &flag.variable(), flag);
    }
    text
}

/// `--version`.
pub fn version() -> String {
    format!(
        "leveret stream-perf {} ({}, {}), a drop-in for RabbitMQ Stream Perf Test 1.x\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_shows_every_flag_once_in_lines_that_fit() {
        let shown = help();
        let flags_of_help = shown.split("\nExamples:").next().unwrap();
        for flag in flags() {
            let long = format!("--{}", flag.long);
            let begins = |line: &&str| {
                let indent = line.len() - line.trim_start().len();
                (indent == 2 || indent == 6) && line.split_whitespace().take(2).any(|word| word == long)
            };
            assert_eq!(flags_of_help.lines().filter(begins).count(), 1, "{long}");
        }
        for line in (shown.clone() + &environment()).lines() {
            assert!(line.chars().count() <= 105, "{line}");
        }
    }

    #[test]
    fn the_page_for_users_names_every_flag() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/stream-perf.md");
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
                "docs/stream-perf.md lacks the row {row}"
            );
        }
    }

    #[test]
    fn the_environment_form_shows_what_can_be_set() {
        let shown = environment();
        for name in [
            "SUB_ENTRY_SIZE",
            "URIS",
            "VERIFY",
            "RABBITMQ_STREAM_PERF_TEST_ENV_PREFIX",
        ] {
            assert!(shown.contains(name), "{name}");
        }
        assert!(!shown.contains("  HELP") && !shown.contains("ENVIRONMENT_VARIABLES "));
    }
}
