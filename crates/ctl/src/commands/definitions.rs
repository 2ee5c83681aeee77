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
        "<file_path> [--format <json | erlang>] [--skip-if-unchanged] [--timeout <timeout>]",
        import,
    )
    .about("Imports definitions from a file or from standard input")
    .more("Existing objects stay as they are. The first object that the node refuses ends the import and is named \
     in the error.")
    .options(&["format=", "skip-if-unchanged"]),
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

fn import(ask: &Ask<'_>) -> Result<Output, Failure> {
    check_format(ask)?;
    let text = match ask.word(0) {
        "" | "-" => {
            ask.say("Importing definitions in JSON from standard input ...");
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
                "Importing definitions in JSON from a file at \"{file}\" ..."
            ));
            fs::read(file)
                .map_err(|error| Failure::argument(BAD_VALUE, format!("Bad argument: {file}: {error}")))?
        }
    };
    let document: Value = serde_json::from_slice(&text)
        .map_err(|error| Failure::error(BAD_VALUE, format!("Failed to parse definitions: {error}")))?;
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
    let outcome = ask.call("POST", "/definitions", Some(&document));
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
