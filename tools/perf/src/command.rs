//! The command `leveret perf`: which kind of run its first word asks for.

use crate::failure::complain;
use crate::subcommand;
use crate::{churn, cli, import, multi, phases, run};
use std::ffi::OsString;
use std::process::ExitCode;

/// Runs `leveret perf` with the arguments behind its name. The exit code is 1 if the command line cannot be followed.
pub fn main(arguments: Vec<OsString>) -> ExitCode {
    let arguments: Result<Vec<String>, OsString> = arguments.into_iter().map(OsString::into_string).collect();
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(odd) => {
            complain(format_args!(
                "the argument {} is not UTF-8: write it in UTF-8.",
                odd.to_string_lossy()
            ));
            return ExitCode::FAILURE;
        }
    };
    match arguments.split_first() {
        Some((first, rest)) if first == "churn" => churn::main(rest),
        Some((first, rest)) if first == "import" => import::main(rest),
        Some((first, rest)) if first == "multi" => multi::main(rest),
        Some((first, rest)) if first == "phases" => phases::main(rest),
        _ => load(&arguments),
    }
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
