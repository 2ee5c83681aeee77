//! Settings to a plan.
//!
//! Each file makes one part and refuses what is wrong in it; [`check`] refuses what does not go together.

mod check;
mod connecting;
mod consuming;
mod exporting;
mod message;
mod producing;
mod queues;

use super::settings::{Settings, parts};
use crate::failure::Failure;
use crate::plan::{ExitWhen, Routing};
use crate::plan::{Format, Instances, LatencyFrom, Plan, Reporting, Stopping, Verbose};
use crate::subcommand;
use crate::uri::Uri;
use std::path::PathBuf;
use std::time::Duration;

/// Connections, queues and instances are counted up to this; beyond it is a typing error.
const MANY: u32 = 1_000_000;

/// Makes the plan of a run.
///
/// # Errors
/// [`Failure::Usage`] for a value that makes no sense or combinations that cannot be; [`Failure::File`] for files that are
/// missing.
pub fn build(settings: &Settings<'_>, arguments: &[String]) -> Result<Plan, Failure> {
    let message = message::plan(settings)?;
    let plan = Plan {
        id: settings.text("id").unwrap_or_else(subcommand::own_id),
        arguments: masked(arguments),
        uris: uris(settings)?,
        declare_uri: settings
            .text("declare-uri")
            .map(|uri| Uri::parse(&uri))
            .transpose()?,
        allocation: connecting::allocation(settings)?,
        connection: connecting::connecting(settings)?,
        exchange: queues::exchange(settings),
        queues: queues::queues(settings)?,
        routing: Routing {
            key: settings.text("routing-key"),
            random: settings.has("random-routing-key"),
            cache: settings.whole("routing-key-cache-size", 0, 0..=MANY)? as usize,
        },
        producing: producing::producing(settings)?,
        message,
        consuming: consuming::consuming(settings)?,
        stopping: stopping(settings)?,
        report: reporting(settings)?,
        exporter: exporting::exporting(settings)?,
        instances: instances(settings)?,
        threads: settings.whole("threads", half_of_the_cores(), 1..=1024)?,
        max_in_flight: match settings.text("max-in-flight") {
            None => None,
            Some(_) => Some(settings.whole("max-in-flight", 1, 1..=u64::from(u32::MAX))?),
        },
        verify: settings.has("verify"),
    };
    check::check(&plan, settings)?;
    Ok(plan)
}

fn uris(settings: &Settings<'_>) -> Result<Vec<Uri>, Failure> {
    let list = match settings.text("uris") {
        Some(list) => parts(&list),
        None => vec![
            settings
                .text("uri")
                .unwrap_or_else(|| "amqp://localhost".to_owned()),
        ],
    };
    if list.is_empty() {
        return Err(settings.refuse("uris", "", "at least one address"));
    }
    list.iter().map(|uri| Uri::parse(uri)).collect()
}

fn half_of_the_cores() -> usize {
    std::thread::available_parallelism()
        .map_or(1, |cores| cores.get() / 2)
        .max(1)
}

fn stopping(settings: &Settings<'_>) -> Result<Stopping, Failure> {
    let exit_when = match settings.text("exit-when").as_deref() {
        None => None,
        Some("empty") => Some(ExitWhen::Empty),
        Some("idle") => Some(ExitWhen::Idle),
        Some(_) => {
            return Err(Failure::Usage(
                "--exit-when must be 'empty' or 'idle'.".to_owned(),
            ));
        }
    };
    Ok(Stopping {
        time: settings.seconds("time")?.filter(|time| !time.is_zero()),
        exit_when,
        shutdown_timeout: settings
            .seconds("shutdown-timeout")?
            .unwrap_or(Duration::from_secs(5)),
    })
}

fn reporting(settings: &Settings<'_>) -> Result<Reporting, Failure> {
    let interval = settings.seconds("interval")?.unwrap_or(Duration::from_secs(1));
    if interval < Duration::from_millis(10) {
        let text = settings.text("interval").unwrap_or_default();
        return Err(settings.refuse("interval", &text, "a time in seconds of at least 0.01"));
    }
    let format = match settings.text("metrics-format").as_deref() {
        None | Some("default") => Format::Default,
        Some("compact") => Format::Compact,
        Some(other) => {
            let text = format!(
                "Unknown metrics formatter: {other}. Possible values are compact, default: write one of them behind --metrics-format."
            );
            return Err(Failure::Usage(text));
        }
    };
    Ok(Reporting {
        interval,
        format,
        csv: settings.text("output-file").map(PathBuf::from),
        json: settings.text("json").map(PathBuf::from),
        hdr: settings.text("hdr").map(PathBuf::from),
        millis: settings.has("use-millis"),
        verbose: match (settings.has("verbose-full"), settings.has("verbose")) {
            (true, _) => Verbose::Full,
            (false, true) => Verbose::Sampled,
            (false, false) => Verbose::No,
        },
    })
}

fn instances(settings: &Settings<'_>) -> Result<Option<Instances>, Failure> {
    let expected = settings.whole("expected-instances", 0, 0..=MANY)?;
    if expected == 0 {
        return Ok(None);
    }
    if settings.text("id").is_none() {
        return Err(Failure::Usage(
            "A test ID is mandatory when instance synchronization is activated: give all instances the same --id.".to_owned(),
        ));
    }
    Ok(Some(Instances {
        expected: expected as usize,
        namespace: settings
            .text("instance-sync-namespace")
            .or_else(|| settings.variable("MY_POD_NAMESPACE")),
        timeout: settings
            .seconds("instance-sync-timeout")?
            .unwrap_or(Duration::from_secs(600)),
    }))
}

/// `--latency-from`.
fn latency_from(settings: &Settings<'_>) -> Result<LatencyFrom, Failure> {
    match settings.text("latency-from").as_deref() {
        None | Some("intended") => Ok(LatencyFrom::Intended),
        Some("sent") => Ok(LatencyFrom::Sent),
        Some(other) => Err(settings.refuse("latency-from", other, "intended or sent")),
    }
}

/// The arguments without the logins in their addresses.
fn masked(arguments: &[String]) -> Vec<String> {
    arguments
        .iter()
        .map(|argument| {
            argument
                .split(',')
                .map(without_login)
                .collect::<Vec<_>>()
                .join(",")
        })
        .collect()
}

/// `amqp://user:password@host` becomes `amqp://***@host`; what has no login stays.
fn without_login(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, place)) => format!("{scheme}://***@{place}"),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_kept_without_logins() {
        let given = [
            "--uri",
            "amqp://u:p@ss@h/%2F",
            "--uris=amqp://a:b@x,amqps://y",
            "-k",
            "a@b",
        ]
        .map(str::to_owned);
        let wanted = [
            "--uri",
            "amqp://***@h/%2F",
            "--uris=amqp://***@x,amqps://y",
            "-k",
            "a@b",
        ];
        assert_eq!(masked(&given), wanted);
    }
}
