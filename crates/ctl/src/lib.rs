//! The command line: `leveret ctl`, and RabbitMQ's tools when the program is called by their names.
//!
//! This crate speaks HTTP and nothing else: to the admin socket of the node of this machine, or to a node's HTTP API. It knows no
//! queue, no log and no file of the broker, and decides nothing that the node decides. What it shows, and the exit codes, are
//! RabbitMQ's.
//!
//! Reading order: [`tool`] (the names), `failure` (the exit codes), `line` (a command line taken apart), `aliases`,
//! `output` (the forms), `endpoint` and `http` (the node), `ask` (what a command sees), `columns` (of lists), `command`
//! (what a command is), `commands` (all of them, by what they are about, help and completions among them). Each imports
//! only from those before it. [`admin`] stands apart: `rabbitmqadmin` has a grammar of its own.

pub mod admin;
mod aliases;
mod ask;
mod columns;
mod command;
mod commands;
pub mod encoded;
mod endpoint;
mod failure;
mod http;
mod line;
mod output;
mod progress;
mod prompt;
pub mod tool;

use ask::Ask;
use command::Command;
use commands::help;
use endpoint::Endpoint;
use failure::{Failure, USAGE};
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
pub use tool::Tool;

/// What the tools are part of.
#[derive(Clone, Debug)]
pub struct Product {
    /// The version of RabbitMQ that they stand in for.
    pub version: String,
    /// RabbitMQ's plugins whose features are built in, with what they are.
    pub plugins: &'static [(&'static str, &'static str)],
}

/// Runs a command line. Answers go to standard output, mistakes to standard error.
pub fn main(tool: Tool, product: &Product, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let given: Result<Vec<String>, OsString> = args.into_iter().map(OsString::into_string).collect();
    let outcome = match given {
        Ok(given) => run(tool, product, &given),
        Err(word) => Err(Failure::plain(
            USAGE,
            format!("Error: {} is not valid UTF-8", word.display()),
        )),
    };
    match outcome {
        Ok(text) => match io::stdout().write_all(text.as_bytes()) {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever read has seen enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(_) => ExitCode::from(failure::CANNOT_WRITE),
        },
        Err(failure) => {
            let _ = writeln!(io::stderr(), "{}", failure.text);
            ExitCode::from(failure.code)
        }
    }
}

/// The text for standard output.
fn run(called: Tool, product: &Product, given: &[String]) -> Result<String, Failure> {
    let general = line::parse(given, None);
    let tool = scope(called, &general)?;
    let Some(name) = line::name(given) else {
        return match (general.has("version"), general.has("help")) {
            (true, _) => Ok(format!("{}\n", product.version)),
            (_, true) => Ok(format!("{}\n", help::overview(tool))),
            _ => Err(Failure::plain(USAGE, help::overview(tool))),
        };
    };
    let find = |name: &str| commands::of_tool(tool).find(|command| command.name == name);
    if let Some(command) = find(name) {
        return run_command(tool, product, command, given);
    }
    let unknown = || Failure::plain(USAGE, help::unknown(tool, name));
    let given = aliased(&general, name, given).ok_or_else(unknown)?;
    let command = line::name(&given).and_then(find).ok_or_else(unknown)?;
    run_command(tool, product, command, &given)
}

/// The command line that an alias stands for. A file that can't be read has none.
fn aliased(line: &line::CommandLine, name: &str, given: &[String]) -> Option<Vec<String>> {
    let file = line.value("aliases-file").map(str::to_owned);
    let file = file.or_else(|| std::env::var("RABBITMQ_CLI_ALIASES_FILE").ok())?;
    aliases::replaced(given, name, &std::fs::read_to_string(file).ok()?)
}

fn run_command(
    tool: Tool,
    product: &Product,
    command: &Command,
    given: &[String],
) -> Result<String, Failure> {
    let line = line::parse(given, Some(command.takes()));
    if line.has("help") {
        return Ok(format!("{}\n", help::of_command(tool, command)));
    }
    // Before anything is done.
    let outcome = file(&line).and_then(|file| {
        let text = answer(tool, product, command, &line)?;
        printed(text, file)
    });
    outcome.map_err(|failure| match failure.with_usage {
        true => {
            let usage = help::usage(tool, command, given);
            Failure::plain(failure.code, format!("{}\n{usage}", failure.text))
        }
        false => failure,
    })
}

/// The file that the answer goes to, if it does (`--printer file --file F`).
fn file(line: &line::CommandLine) -> Result<Option<&str>, Failure> {
    match (line.value("printer"), line.value("file")) {
        (None | Some("std_io" | "std_io_raw"), _) => Ok(None),
        (Some("file"), Some(file)) => Ok(Some(file)),
        (Some("file"), None) => Err(Failure::usage("--printer file needs --file <path>")),
        (Some(other), _) => Err(Failure::usage(format!(
            "unknown printer '{other}'. Supported printers: std_io, std_io_raw, file"
        ))),
    }
}

/// The text for standard output: nothing if it was written to a file.
fn printed(text: String, file: Option<&str>) -> Result<String, Failure> {
    let Some(file) = file else {
        return Ok(text);
    };
    match std::fs::write(file, text) {
        Ok(()) => Ok(String::new()),
        Err(error) => {
            let text = format!("Error: {file} can't be written: {error}");
            Err(Failure::plain(failure::CANNOT_WRITE, text))
        }
    }
}

/// A script may say that it is another tool than it was called.
fn scope(called: Tool, line: &line::CommandLine) -> Result<Tool, Failure> {
    match line.value("script-name") {
        None => Ok(called),
        Some(name) => Tool::called(name)
            .ok_or_else(|| Failure::plain(USAGE, format!("Error: unknown tool {name:?} (--script-name)"))),
    }
}

fn answer(
    tool: Tool,
    product: &Product,
    command: &Command,
    line: &line::CommandLine,
) -> Result<String, Failure> {
    line.check(command.takes())?;
    let form = output::form(line)?;
    let variable = |name: &str| std::env::var(name).ok();
    let endpoint = Endpoint::find(line, variable)?;
    let ask = Ask {
        line,
        tool,
        version: &product.version,
        plugins: product.plugins,
        credentials: credentials(line, &endpoint, variable),
        endpoint,
        timeout: timeout(line)?,
    };
    // Of most commands nothing is done; some say what they would do.
    if line.has("dry-run") && !command.options.contains(&"dry-run") {
        return Ok(String::new());
    }
    let answer = (command.run)(&ask)?;
    Ok(output::render(&answer, form, line))
}

/// Who asks. An operator at the admin socket names nobody; over the network it is RabbitMQ's default user unless
/// another is named.
fn credentials(
    line: &line::CommandLine,
    endpoint: &Endpoint,
    variable: impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    let given = |option: &str, name: &str| line.value(option).map(str::to_owned).or_else(|| variable(name));
    let user = given("username", "LEVERET_USERNAME");
    let password = given("password", "LEVERET_PASSWORD");
    match endpoint {
        Endpoint::Socket(_) => Some((user?, password.unwrap_or_default())),
        Endpoint::Web { .. } => {
            let usual = || "guest".to_owned();
            Some((user.unwrap_or_else(usual), password.unwrap_or_else(usual)))
        }
    }
}

/// The longest day that anybody waits, so that a huge number does not overflow.
const LONGEST: f64 = 86_400.0 * 365.0;

fn timeout(line: &line::CommandLine) -> Result<Option<Duration>, Failure> {
    match line.value("timeout") {
        None | Some("infinity" | "0") => Ok(None),
        Some(text) => match text.parse::<f64>() {
            Ok(seconds) if seconds > 0.0 => Ok(Some(Duration::from_secs_f64(seconds.min(LONGEST)))),
            _ => Err(Failure::usage(format!(
                "Invalid options for this command:\n--timeout : {text}"
            ))),
        },
    }
}
