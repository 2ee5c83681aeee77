//! The exchange and the queues.

use super::MANY;
use crate::cli::settings::Settings;
use crate::cli::values;
use crate::failure::Failure;
use crate::plan::{Exchange, QueueNames, Queues};
use model::table::Table;

/// Streams are this large without `--max-length-bytes`, as from PerfTest.
const STREAM_BYTES: i64 = 20_000_000_000;
/// And their segments without `--stream-max-segment-size-bytes`.
const SEGMENT_BYTES: i64 = 500_000_000;
const LARGEST_SEGMENT_BYTES: i64 = 3_000_000_000;

/// The exchange is named like its type if nothing else is said.
pub fn exchange(settings: &Settings<'_>) -> Exchange {
    let kind = settings.text("type").unwrap_or_else(|| "direct".to_owned());
    let name = match settings.text("exchange") {
        None => kind.clone(),
        Some(name) if name == "amq.default" => String::new(),
        Some(name) => name,
    };
    Exchange { name, kind }
}

/// Whether the queues are quorum queues or streams, which brings persistence and takes auto-delete.
pub fn replicated(settings: &Settings<'_>) -> bool {
    settings.has("quorum-queue") || settings.has("stream-queue")
}

pub fn queues(settings: &Settings<'_>) -> Result<Queues, Failure> {
    Ok(Queues {
        names: names(settings)?,
        durable: super::producing::flags(settings)?.persistent,
        auto_delete: settings.boolean("auto-delete", true)? && !replicated(settings),
        exclusive: settings.has("exclusive"),
        arguments: arguments(settings)?,
        predeclared: settings.has("predeclared"),
        skip_binding: settings.has("skip-binding-queues"),
        delete_at_end: settings.has("delete-queues"),
    })
}

fn names(settings: &Settings<'_>) -> Result<QueueNames, Failure> {
    let pattern = settings.text("queue-pattern");
    let from = settings.if_not_negative("queue-pattern-from", i32::MAX.unsigned_abs())?;
    let to = settings.if_not_negative("queue-pattern-to", i32::MAX.unsigned_abs())?;
    let file = settings.text("queue-file");
    if file.is_some() && pattern.is_some() {
        return Err(Failure::Usage(
            "Too many ways to list queues, use only the queue file argument".to_owned(),
        ));
    }
    match (pattern, from, to) {
        (None, None, None) => {}
        (Some(_), Some(from), Some(to)) if from > to => {
            return Err(Failure::Usage(
                "'To' option should be more than or equals to 'from' option".to_owned(),
            ));
        }
        (Some(_), Some(from), Some(to)) if to - from >= MANY => {
            return Err(settings.refuse(
                "queue-pattern-to",
                &to.to_string(),
                format!("a number that gives at most {MANY} queues"),
            ));
        }
        (Some(pattern), Some(from), Some(to)) => {
            let names: Result<_, _> = (from..=to)
                .map(|number| values::numbered(&pattern, number))
                .collect();
            return Ok(QueueNames::Sequence(names?));
        }
        _ => {
            let text = "Queue pattern, from, and to options should all be set or none should be set";
            return Err(Failure::Usage(text.to_owned()));
        }
    }
    if let Some(file) = file {
        return of_file(&file);
    }
    let names: Vec<String> = settings
        .text("queue")
        .map(|list| {
            list.split(',')
                .filter(|name| !name.is_empty())
                .map(str::to_owned)
                .collect()
        })
        .unwrap_or_default();
    Ok(if names.is_empty() {
        QueueNames::ServerNamed
    } else {
        QueueNames::Fixed(names)
    })
}

/// Names from a file are dealt out in turn like those of a pattern, in PerfTest too.
fn of_file(file: &str) -> Result<QueueNames, Failure> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Failure::File(format!(
            "Queue file {file} does not exist or is not readable ({error}): write names into it, one a line."
        ))
    })?;
    let names: Vec<String> = text
        .lines()
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Err(Failure::File(format!(
            "Queue file {file} is empty: write names into it, one a line."
        )));
    }
    Ok(QueueNames::Sequence(names))
}

fn arguments(settings: &Settings<'_>) -> Result<Table, Failure> {
    let mut table = values::pairs("queue-args", &settings.list("queue-args"))?;
    let stream = settings.has("stream-queue");
    if stream && settings.has("quorum-queue") {
        return Err(Failure::Usage(
            "Use quorum queues or stream queues, not both.".to_owned(),
        ));
    }
    if replicated(settings) {
        table.insert("x-queue-type", if stream { "stream" } else { "quorum" });
    }
    let mut length = stream.then_some(STREAM_BYTES);
    if stream {
        table.insert("x-max-length-bytes", STREAM_BYTES);
        table.insert("x-stream-max-segment-size-bytes", SEGMENT_BYTES);
    }
    if let Some(text) = settings.text("max-length-bytes") {
        length = Some(values::bytes(&text)?).filter(|bytes| *bytes > 0);
        match length {
            Some(bytes) => table.insert("x-max-length-bytes", bytes),
            None => {
                table.remove("x-max-length-bytes");
            }
        }
    }
    if let Some(text) = settings.text("stream-max-segment-size-bytes") {
        let segment = values::bytes(&text)?;
        if segment > LARGEST_SEGMENT_BYTES {
            return Err(Failure::Usage(
                "The maximum segment size cannot be more than 3 GB".to_owned(),
            ));
        }
        if length.is_some_and(|length| length <= segment) {
            // PerfTest's spelling, which scripts may look for.
            return Err(Failure::Usage(
                "Max length bytes must be greather than stream max segment size".to_owned(),
            ));
        }
        table.insert("x-stream-max-segment-size-bytes", segment);
    }
    if let Some(text) = settings.text("max-age") {
        table.insert("x-max-age", values::max_age(&text)?);
    }
    if let Some(place) = settings.text("leader-locator") {
        if place != "client-local" && place != "balanced" {
            return Err(Failure::Usage(format!(
                "'{place}' is not a valid queue leader locator strategy. Valid values are client-local and balanced."
            )));
        }
        table.insert("x-queue-leader-locator", place);
    }
    Ok(table)
}
