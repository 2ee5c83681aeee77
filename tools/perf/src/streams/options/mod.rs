//! The command line of `leveret stream-perf`.
//!
//! Reading order: [`table`] has all flags, [`parse`] reads arguments by it, [`values`] reads the little languages of values,
//! [`build`] makes the plan, [`help`] shows it.

mod build;
mod help;
mod parse;
mod table;
mod values;

use super::plan::Plan;
use crate::cli::flag::Group;
use crate::cli::settings::Settings;
use crate::failure::Failure;
use crate::subcommand::Request;

/// The variable that says what the names of variables begin with.
const PREFIX: &str = "RABBITMQ_STREAM_PERF_TEST_ENV_PREFIX";

/// Reads a command line (without the program's name) and the environment; with a line for each flag that was given and has no
/// effect.
///
/// # Errors
/// [`Failure::Usage`], a line that says what to write instead.
pub fn read(
    arguments: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Request<Plan>, Vec<String>), Failure> {
    let given = parse::parse(arguments)?;
    let settings = Settings::of(&given, environment, PREFIX, table::by_long);
    let text = if settings.has("help") {
        Some(help::help())
    } else if settings.switch("environment-variables", false)? {
        Some(help::environment())
    } else {
        settings.switch("version", false)?.then(help::version)
    };
    if let Some(text) = text {
        return Ok((Request::Print(text), Vec::new()));
    }
    let plan = build::build(&settings, arguments)?;
    Ok((Request::Run(Box::new(plan)), notes(&settings)))
}

/// The command line as metrics show it: without where the brokers are and what is about metrics, as stream-perf-test leaves
/// that out.
pub fn shown(arguments: &[String]) -> String {
    const HIDDEN: [&str; 5] = [
        "uris",
        "amqp-uri",
        "prometheus",
        "metrics-tags",
        "metrics-command-line-arguments",
    ];
    let given = parse::parse(arguments).unwrap_or_default();
    let told = given
        .flags
        .iter()
        .filter(|(flag, _)| !HIDDEN.contains(&flag.long));
    let told = told.map(|(flag, values)| {
        std::iter::once(format!("--{}", flag.long))
            .chain(values.iter().cloned())
            .collect::<Vec<_>>()
            .join(" ")
    });
    told.collect::<Vec<_>>().join(" ")
}

/// What was asked for and has no effect, a line each.
fn notes(settings: &Settings<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    let void: Vec<String> = table::flags()
        .filter(|flag| flag.group == Group::Void && settings.is_given(flag.long))
        .map(|flag| {
            format!(
                "--{} ({})",
                flag.long,
                flag.text.trim_start_matches("no effect: ")
            )
        })
        .collect();
    if !void.is_empty() {
        let void = void.join(", ");
        notes.push(format!(
            "These have no effect, since this load generator is not a Java program: {void}."
        ));
    }
    for (flags, has_effect, why) in conditions(settings) {
        for long in flags.iter().filter(|long| !has_effect && settings.is_given(long)) {
            notes.push(format!("{} has no effect {why}.", settings.name(long)));
        }
    }
    notes
}

/// Flags, whether they have an effect beside what else was given, and if not, why.
fn conditions(settings: &Settings<'_>) -> [(&'static [&'static str], bool, &'static str); 11] {
    let is = |long: &str| settings.switch(long, false).unwrap_or(false);
    let other_than = |long: &str, value: &str| settings.text(long).is_some_and(|text| text != value);
    let instances = other_than("expected-instances", "0");
    let tls = settings.text("uris").is_some_and(|uris| uris.contains("+tls"));
    let stores = is("single-active-consumer") || other_than("store-every", "0");
    let gathers = !settings.switch("dynamic-batch-size", true).unwrap_or(true);
    let rate = settings.decimal("rate").ok().flatten();
    let metrics: &[&str] = &[
        "monitoring-port",
        "metrics-tags",
        "metrics-command-line-arguments",
    ];
    let super_streams = "without --expected-instances: super streams are made over the stream protocol";
    [
        (&["amqp-uri"], instances, super_streams),
        (
            &["instance-sync-timeout", "instance-sync-namespace"],
            instances,
            "without --expected-instances",
        ),
        (
            &["server-name-indication"],
            tls,
            "without TLS: give a rabbitmq-stream+tls:// URI",
        ),
        (
            &["compression"],
            other_than("sub-entry-size", "1"),
            "without --sub-entry-size: only sub-batches are compressed",
        ),
        (
            &["consumer-names"],
            stores,
            "without --store-every or --single-active-consumer",
        ),
        (
            &["batch-publishing-delay"],
            gathers,
            "without --dynamic-batch-size false",
        ),
        (
            &["super-stream-partitions"],
            is("super-streams"),
            "without --super-streams",
        ),
        (metrics, is("prometheus"), "without --prometheus"),
        (
            &["initial-credits"],
            settings.text("credits").is_none(),
            "beside --credits",
        ),
        (
            &["latency-from"],
            rate.is_some_and(|rate| rate > 0.0),
            "without --rate: a message is due when it is sent",
        ),
        (&["no-dev-mode"], !is("load-balancer"), "with --load-balancer"),
    ]
}

#[cfg(test)]
mod tests;
