//! Options of Erlang's machine (`RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS`): `-rabbit heartbeat 10` sets what
//! `advanced.config` sets by `[{rabbit, [{heartbeat, 10}]}].`; everything else tunes a machine that isn't there.

use crate::config::advanced::{self, Advanced};
use crate::config::error::{ConfigError, Origin};
use std::path::Path;

/// The settings among the options, and a warning that names the others.
///
/// # Errors
/// A setting that `advanced.config` couldn't have either.
pub fn settings(name: &str, value: &str, origin: &Origin) -> Result<(Advanced, Option<String>), ConfigError> {
    let mut found = Advanced::default();
    let mut others = Vec::new();
    // As RabbitMQ's script does: quotes mean nothing here, they are part of a term.
    let mut words = value.split_ascii_whitespace().peekable();
    while let Some(option) = words.next() {
        let application = option.strip_prefix('-').filter(|name| name.starts_with("rabbit"));
        let mut values = Vec::new();
        while let Some(word) = words.next_if(|word| !word.starts_with(['-', '+'])) {
            values.push(word);
        }
        let Some(application) = application else {
            others.push(option);
            continue;
        };
        for pair in values.chunks(2) {
            let [key, term] = pair else {
                let what = format!("-{application} {}: the value is missing", pair.join(" "));
                return Err(wrong(origin, what));
            };
            let text = format!("[{{{application},[{{{key},{term}}}]}}].");
            let read = advanced::text_of_file(&text, Path::new(name));
            let mut read =
                read.map_err(|error| wrong(origin, format!("-{application} {key}: {}", reason(&error))))?;
            for setting in &mut read.settings {
                setting.origin = origin.clone();
            }
            found.join(read);
        }
    }
    let others = (!others.is_empty()).then(|| {
        let others = others.join(", ");
        format!("{origin}: {others}: no effect: Leveret has no Erlang runtime to tune")
    });
    Ok((found, others))
}

fn wrong(origin: &Origin, what: String) -> ConfigError {
    ConfigError::Query {
        origin: origin.clone(),
        what,
    }
}

/// What is wrong, without a place in a text that nobody has written.
fn reason(error: &ConfigError) -> String {
    match error {
        ConfigError::Query { what, .. } => match what.split_once(": ") {
            Some((column, what)) if column.starts_with("column ") => what.to_owned(),
            _ => what.clone(),
        },
        error => error.to_string(),
    }
}
