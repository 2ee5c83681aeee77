//! Definitions: everything that was declared, as one document.

use super::member_of;
use crate::ask::Ask;
use crate::command::{Command, Section::Definitions};
use crate::failure::{BAD_VALUE, CANNOT_WRITE, Failure};
use crate::output::Output;
use crate::progress::Progress;
use serde_json::Value;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

pub const COMMANDS: &[Command] = &[
    Command::new(
        Definitions,
        "export_definitions",
        (1, 1),
        "<file_path | \"-\"> [--format <json | erlang>] [--timeout <timeout>]",
        export,
    )
    .about("Exports definitions to a file or to standard output")
    .options(&["format="]),
    Command::new(
        Definitions,
        "import_definitions",
        (0, 1),
        "<file_path> [--format <json | erlang>] [--skip-if-unchanged] [--on-unsupported <refuse | skip>] [--quorum-as <refuse | classic>] [--mirrored-as <mirrored | quorum>] [--classic-as <classic | quorum>] [--timeout <timeout>]",
        import,
    )
    .about("Imports definitions from a file or from standard input")
    .more("Existing objects stay as they are. If the node refuses an object, nothing is imported; check_definitions tells beforehand.")
    .options(&["format=", "skip-if-unchanged", "on-unsupported=", "quorum-as=", "mirrored-as=", "classic-as="]),
    Command::new(
        Definitions,
        "check_definitions",
        (0, 1),
        "<file_path> [--on-unsupported <refuse | skip>] [--quorum-as <refuse | classic>] [--mirrored-as <mirrored | quorum>] [--classic-as <classic | quorum>] [--timeout <timeout>]",
        check,
    )
    .about("Lists what an import of a file would refuse, convert, leave out or keep; changes nothing")
    .more("The exit code is 65 if the import would be refused. --formatter json prints the whole report.")
    .options(&["format=", "on-unsupported=", "quorum-as=", "mirrored-as=", "classic-as="]),
];

/// What the parts of the document are called when they are counted.
const PARTS: [&str; 10] = [
    "users",
    "vhosts",
    "permissions",
    "topic_permissions",
    "parameters",
    "global_parameters",
    "policies",
    "exchanges",
    "queues",
    "bindings",
];

fn check_format(ask: &Ask<'_>) -> Result<(), Failure> {
    match ask.line.value("format").map(str::to_ascii_lowercase).as_deref() {
        None | Some("json") => Ok(()),
        Some("erlang") => Err(Failure::argument(
            BAD_VALUE,
            "Bad argument: definitions in Erlang's external term format need Erlang; use --format json",
        )),
        Some(_) => Err(Failure::argument(
            BAD_VALUE,
            "Bad argument: Formatter should be either json or erlang",
        )),
    }
}

fn export(ask: &Ask<'_>) -> Result<Output, Failure> {
    check_format(ask)?;
    let file = ask.word(0);
    let folder = Path::new(file)
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| file != "-" && !folder.is_dir()) {
        let text = format!("Bad argument: Directory {} does not exist", folder.display());
        return Err(Failure::argument(BAD_VALUE, text));
    }
    if file != "-" {
        ask.say(format!(
            "Exporting definitions in JSON to a file at \"{file}\" ..."
        ));
    }
    let answer = ask.call("GET", "/definitions", None)?;
    if answer.status != 200 {
        return ask.accepted(&answer).map(|_| Output::Done);
    }
    let written = match file {
        "-" => {
            let mut out = io::stdout().lock();
            out.write_all(&answer.body).and_then(|()| out.write_all(b"\n"))
        }
        file => fs::write(file, &answer.body),
    };
    written
        .map_err(|error| Failure::plain(CANNOT_WRITE, format!("Error: {file} cannot be written: {error}")))?;
    Ok(Output::Done)
}

/// The document of the file that is named, or of standard input; `doing` says what is done with it.
fn read(ask: &Ask<'_>, doing: &str) -> Result<Value, Failure> {
    check_format(ask)?;
    let text = match ask.word(0) {
        "" | "-" => {
            ask.say(format!("{doing} definitions in JSON from standard input ..."));
            let mut text = Vec::new();
            io::stdin()
                .read_to_end(&mut text)
                .map_err(|error| Failure::argument(BAD_VALUE, format!("Bad argument: {error}")))?;
            text
        }
        file => {
            if !Path::new(file).exists() {
                let text = format!("Bad argument: File {file} does not exist");
                return Err(Failure::argument(BAD_VALUE, text));
            }
            ask.say(format!(
                "{doing} definitions in JSON from a file at \"{file}\" ..."
            ));
            fs::read(file)
                .map_err(|error| Failure::argument(BAD_VALUE, format!("Bad argument: {file}: {error}")))?
        }
    };
    serde_json::from_slice(&text)
        .map_err(|error| Failure::error(BAD_VALUE, format!("Failed to parse definitions: {error}")))
}

/// What is to be done about what the node does not have, as a query.
fn options(ask: &Ask<'_>) -> Result<String, Failure> {
    let mut query = String::new();
    for (option, name, usual, word) in [
        ("on-unsupported", "on_unsupported", "refuse", "skip"),
        ("quorum-as", "quorum_as", "refuse", "classic"),
        ("mirrored-as", "mirrored_as", "mirrored", "quorum"),
        ("classic-as", "classic_as", "classic", "quorum"),
    ] {
        match ask.line.value(option) {
            None => {}
            Some(given) if given == usual || given == word => {
                let sign = if query.is_empty() { '?' } else { '&' };
                query.push_str(&format!("{sign}{name}={given}"));
            }
            Some(given) => {
                let text = format!("Bad argument: --{option} can be {usual} or {word}, not {given}");
                return Err(Failure::argument(BAD_VALUE, text));
            }
        }
    }
    Ok(query)
}

fn check(ask: &Ask<'_>) -> Result<Output, Failure> {
    let query = options(ask)?;
    let document = read(ask, "Checking")?;
    let answer = ask.call(
        "POST",
        &format!("/leveret/definitions/check{query}"),
        Some(&document),
    )?;
    let report = ask.accepted(&answer)?;
    let lines = told(&report).join("\n");
    if report["importable"] == true {
        return Ok(Output::Told(lines, report));
    }
    if ask
        .line
        .value("formatter")
        .is_some_and(|form| form.starts_with("json"))
    {
        // Programs read the report where they read it if all is well.
        println!("{report}");
        return Err(Failure::plain(BAD_VALUE, "The import would be refused"));
    }
    Err(Failure::plain(BAD_VALUE, lines))
}

/// A report as lines: remarks, counts, and the outcome.
fn told(report: &Value) -> Vec<String> {
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or_default().to_owned();
    let mut lines = Vec::new();
    for row in report["remarks"].as_array().into_iter().flatten() {
        let part = |name: &str, before: &str, after: &str| match row.get(name).and_then(Value::as_str) {
            Some(text) => format!("{before}{text}{after}"),
            None => String::new(),
        };
        lines.push(format!(
            "{}: {} '{}'{}{}: {}{}{}",
            text(row, "outcome"),
            text(row, "class"),
            text(row, "name"),
            part("destination", " to '", "'"),
            part("vhost", " in virtual host '", "'"),
            part("field", "", ": "),
            text(row, "reason"),
            part("instead", " (", ")"),
        ));
    }
    if let Some(more) = report["omitted"].as_u64().filter(|more| *more > 0) {
        lines.push(format!("and {more} more remarks"));
    }
    let mut refused = 0;
    for (class, counts) in report["counts"].as_object().into_iter().flatten() {
        let parts = ["new", "known", "converted", "skipped", "refused"];
        let parts = parts.iter().filter_map(|part| {
            let count = counts[*part].as_u64().filter(|count| *count > 0)?;
            Some(format!("{count} {part}"))
        });
        let parts: Vec<String> = parts.collect();
        if !parts.is_empty() {
            lines.push(format!("{class}: {}", parts.join(", ")));
        }
        refused += counts["refused"].as_u64().unwrap_or(0);
    }
    lines.push(match refused {
        0 => "The definitions can be imported".into(),
        1 => "1 object is refused: nothing would be imported".into(),
        refused => format!("{refused} objects are refused: nothing would be imported"),
    });
    lines
}

fn import(ask: &Ask<'_>) -> Result<Output, Failure> {
    let query = options(ask)?;
    let document = read(ask, "Importing")?;
    if ask.line.has("skip-if-unchanged") && is_unchanged(ask, &document)? {
        return Ok(Output::text(
            "The node already has these definitions; nothing was imported",
        ));
    }
    let count: usize = PARTS
        .iter()
        .filter_map(|part| document.get(part)?.as_array().map(Vec::len))
        .sum();
    let mut progress = Progress::new("importing; objects", count);
    progress.step();
    let outcome = ask.call("POST", &format!("/definitions{query}"), Some(&document));
    progress.end();
    ask.accepted(&outcome?)?;
    Ok(Output::text(format!("Successfully imported {count} definitions")))
}

/// True if the node has every object of the document as it stands there.
fn is_unchanged(ask: &Ask<'_>, document: &Value) -> Result<bool, Failure> {
    let node = ask.get("/definitions")?;
    Ok(PARTS.iter().all(|part| {
        let (wanted, found) = (member_of(document, part), member_of(&node, part));
        let found = found.as_array().map(Vec::as_slice).unwrap_or_default();
        let mut known: Vec<String> = found.iter().map(Value::to_string).collect();
        known.sort_unstable();
        let mut wanted = wanted.as_array().into_iter().flatten();
        wanted.all(|object| known.binary_search(&object.to_string()).is_ok())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_report_is_told_line_by_line() {
        let report = json!({
            "importable": false, "omitted": 2,
            "counts": {"queues": {"total": 3, "new": 2, "known": 0, "converted": 0, "skipped": 0, "refused": 1}, "users": {"refused": 0}},
            "remarks": [{"outcome": "refused", "cause": "unsupported", "class": "queues", "index": 0, "vhost": "/", "name": "s",
                "field": "type", "reason": "streams are not built yet", "instead": "leave it out"}],
        });
        assert_eq!(
            told(&report),
            [
                "refused: queues 's' in virtual host '/': type: streams are not built yet (leave it out)",
                "and 2 more remarks",
                "queues: 2 new, 1 refused",
                "1 object is refused: nothing would be imported",
            ]
        );
    }
}
