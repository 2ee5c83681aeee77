//! What the subcommands of `leveret perf` have in common: their own flags are read by `clap`, and told of as PerfTest's are.

use crate::failure::{Failure, complain};
use clap::Parser;
use clap::error::ErrorKind;
use jiff::Zoned;
use std::io::Write;
use std::process::ExitCode;

/// What a command line asks for.
#[derive(Debug)]
pub enum Request<T> {
    Run(Box<T>),
    /// A text for standard output.
    Print(String),
}

/// Reads the arguments behind the name of a subcommand.
///
/// # Errors
/// [`Failure::Usage`], a line with what to write instead.
pub fn read<T: Parser>(name: &str, arguments: &[String]) -> Result<Request<T>, Failure> {
    let words = std::iter::once(format!("leveret perf {name}")).chain(arguments.iter().cloned());
    match T::try_parse_from(words) {
        Ok(options) => Ok(Request::Run(Box::new(options))),
        Err(error) if error.kind() == ErrorKind::DisplayHelp => Ok(Request::Print(error.to_string())),
        Err(error) => {
            let text = error.to_string();
            let told = text.split("\n\nUsage:").next().unwrap_or(&text);
            let told = told.trim_start_matches("error: ").split_whitespace();
            let line = told.collect::<Vec<_>>().join(" ");
            Err(Failure::Usage(format!(
                "{line}; see 'leveret perf {name} --help'."
            )))
        }
    }
}

/// Runs what was asked for; a failure is one line on standard error.
pub fn execute<T>(
    request: Result<Request<T>, Failure>,
    run: impl FnOnce(T) -> Result<ExitCode, Failure>,
) -> ExitCode {
    let done = match request {
        Ok(Request::Run(options)) => run(*options),
        Ok(Request::Print(text)) => {
            // Whoever reads may stop reading.
            let _ = std::io::stdout().write_all(text.as_bytes());
            return ExitCode::SUCCESS;
        }
        Err(failure) => Err(failure),
    };
    done.unwrap_or_else(|failure| {
        complain(&failure);
        ExitCode::FAILURE
    })
}

/// The id of a run that was given none: the time of its start.
pub fn own_id() -> String {
    let now = Zoned::now();
    format!("test-{}-{:03}", now.strftime("%H%M%S"), now.millisecond())
}
