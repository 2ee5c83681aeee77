//! The commands `leveret perf` and `leveret stream-perf`: which kind of run its first word asks for.

use crate::failure::complain;
use crate::subcommand;
use crate::{churn, cli, import, multi, phases, run, streams};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs `leveret perf` with the arguments behind its name. The exit code is 1 if the command line cannot be followed.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let arguments = match texts(arguments) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match arguments.split_first() {
        Some((first, rest)) if first == "churn" => churn::main(rest),
        Some((first, rest)) if first == "import" => import::main(rest),
        Some((first, rest)) if first == "multi" => multi::main(rest),
        Some((first, rest)) if first == "phases" => phases::main(rest),
        _ => load(&arguments),
    }
}

/// Runs `leveret stream-perf` with the arguments behind its name. The exit code is 2 if the command line cannot be followed.
pub fn stream_main(arguments: Vec<OsString>) -> ExitCode {
    match texts(arguments) {
        Ok(arguments) => streams::main(&arguments),
        Err(code) => code,
    }
}

fn texts(arguments: Vec<OsString>) -> Result<Vec<String>, ExitCode> {
    let arguments: Result<Vec<String>, OsString> = arguments.into_iter().map(OsString::into_string).collect();
    arguments.map_err(|odd| {
        complain(format_args!(
            "the argument {} is not UTF-8: write it in UTF-8.",
            odd.to_string_lossy()
        ));
        ExitCode::FAILURE
    })
}

fn load(arguments: &[String]) -> ExitCode {
    let read = cli::read(arguments, &|name| std::env::var(name).ok());
    let request = read.map(|(request, notes)| {
        for note in notes {
            complain(note);
        }
        request
    });
    subcommand::execute(request, |plan| Ok(run::execute(&plan)))
}
