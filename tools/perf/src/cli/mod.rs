//! The command line of `leveret perf`.
//!
//! Reading order: [`flag`] is what a flag is, [`table`] has all of them, [`parse`] reads arguments by it, [`settings`] joins
//! these with the environment, [`values`] reads the little languages of values, [`build`] makes the plan, [`help`] shows it.

mod build;
pub(crate) mod flag;
pub(crate) mod help;
pub(crate) mod parse;
#[cfg(test)]
mod published;
pub(crate) mod settings;
mod table;
pub(crate) mod values;

use crate::failure::Failure;
use crate::plan::Plan;
use crate::subcommand::Request;
use flag::{Flag, Group};
use parse::Given;
use settings::Settings;

/// The words that stand first for another kind of run.
pub const SUBCOMMANDS: [&str; 4] = ["churn", "import", "multi", "phases"];

/// Reads a command line (without the program's name) and the environment.
///
/// # Errors
/// [`Failure::Usage`] or [`Failure::File`], a line that says what to write instead.
pub fn plan(
    arguments: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Request<Plan>, Failure> {
    read(arguments, environment).map(|(request, _)| request)
}

/// The same with a line for each flag that was given and has no effect.
///
/// # Errors
/// As [`plan`]'s.
pub fn read(
    arguments: &[String],
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<(Request<Plan>, Vec<String>), Failure> {
    let given = parse::parse(arguments)?;
    let settings = Settings::new(&given, environment);
    let text = if settings.has("metrics-help") {
        Some(if settings.has("environment-variables") {
            help::environment(true)
        } else {
            help::metrics_help()
        })
    } else if settings.has("environment-variables") {
        Some(help::environment(false))
    } else if settings.has("help") {
        Some(help::help())
    } else {
        settings.has("version").then(help::version)
    };
    if let Some(text) = text {
        return Ok((Request::Print(text), Vec::new()));
    }
    if let Some(stray) = given
        .strays
        .iter()
        .find(|stray| SUBCOMMANDS.contains(&stray.as_str()))
    {
        return Err(Failure::Usage(format!(
            "{stray} is a command of its own: write it first, as in 'leveret perf {stray} …'."
        )));
    }
    let plan = build::build(&settings, arguments)?;
    let names_a_queue = settings.text("queue").is_some();
    let has_a_key = settings.text("routing-key").is_some() || settings.has("random-routing-key");
    if plan.exchange.name.is_empty()
        && names_a_queue
        && !has_a_key
        && settings.text("producers").as_deref() != Some("0")
    {
        // PerfTest fails here, too, as it tries to bind the queue.
        return Err(Failure::Usage(
            "the default exchange delivers to the queue that the routing key names: give --routing-key with the name of the queue.".into(),
        ));
    }
    Ok((Request::Run(Box::new(plan)), notes(&given, &settings)))
}

/// What was asked for and has no effect, a line each for flags and for stray arguments.
fn notes(given: &Given, settings: &Settings<'_>) -> Vec<String> {
    let mut notes = Vec::from_iter(note_of_the_jvm(settings));
    notes.extend(notes_of_what_is_missing(settings));
    let beside = [
        ("rate", "publishing-interval"),
        ("variable-rate", "publishing-interval"),
        ("rate", "variable-rate"),
    ];
    for (long, stronger) in beside {
        if settings.text(long).is_some() && settings.text(stronger).is_some() {
            let name = settings.name(long);
            notes.push(format!("{name} has no effect beside --{stronger}."));
        }
    }
    if !given.strays.is_empty() {
        let strays: Vec<_> = given.strays.iter().map(|stray| format!("'{stray}'")).collect();
        let strays = strays.join(", ");
        notes.push(format!("Ignored, since no flag stands before it: {strays}."));
    }
    notes
}

/// The flags that only a Java program can follow, in one line.
fn note_of_the_jvm(settings: &Settings<'_>) -> Option<String> {
    let void = |flag: &&Flag| {
        let of_the_jvm = matches!(
            flag.long,
            "metrics-class-loader" | "metrics-jvm-gc" | "metrics-jmx"
        );
        flag.group == Group::Void || of_the_jvm
    };
    let told: Vec<String> = table::flags()
        .filter(void)
        .filter(|flag| is_given(settings, flag.long))
        .map(|flag| {
            let text = flag.text.trim_start_matches("no effect: ");
            format!("--{} ({text})", flag.long)
        })
        .collect();
    let told = (!told.is_empty()).then(|| told.join(", "))?;
    Some(format!(
        "These have no effect, since this load generator is not a Java program: {told}."
    ))
}

/// The flags that have no effect without something else that was not given.
fn notes_of_what_is_missing(settings: &Settings<'_>) -> Vec<String> {
    let without: [(&str, &str); 5] = [
        ("oauth2-client-id", "oauth2-token-endpoint"),
        ("oauth2-client-secret", "oauth2-token-endpoint"),
        ("oauth2-grant-type", "oauth2-token-endpoint"),
        ("oauth2-parameters", "oauth2-token-endpoint"),
        ("servers-up-limit", "servers-startup-timeout"),
    ];
    let mut notes = Vec::new();
    for (long, needed) in without {
        if settings.text(long).is_some() && settings.text(needed).is_none() {
            let name = settings.name(long);
            notes.push(format!("{name} has no effect without --{needed}."));
        }
    }
    let instances = settings.text("expected-instances");
    if instances.is_none_or(|count| count == "0") {
        for long in ["instance-sync-namespace", "instance-sync-timeout"] {
            if is_given(settings, long) {
                notes.push(format!("--{long} has no effect without --expected-instances."));
            }
        }
    }
    let uris = ["uri", "uris"].map(|long| settings.text(long).unwrap_or_default());
    if !uris.iter().any(|uris| uris.contains("amqps://")) {
        for long in ["use-default-ssl-context", "server-name-indication"] {
            if is_given(settings, long) {
                notes.push(format!(
                    "--{long} has no effect without TLS: give an amqps:// URI."
                ));
            }
        }
    }
    notes
}

fn is_given(settings: &Settings<'_>, long: &str) -> bool {
    settings.has(long) || settings.text(long).is_some()
}
