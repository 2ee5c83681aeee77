//! Every development task: `cargo xtask TASK`. Nothing of the product imports this crate.
//!
//! Reading order: [`gate`] (what CI runs), [`layers`] (what may import what), [`tidy`] (sizes, names, dead
//! links), [`licences`], [`instructions`] (what a message costs), [`numbers`], [`fuzz`].

mod child;
mod findings;
mod fuzz;
mod gate;
mod instructions;
mod layers;
mod licences;
mod numbers;
mod sources;
mod tidy;
mod workspace;

use std::process::ExitCode;

const USAGE: &str = "cargo xtask TASK

  ci        the one gate: format, lints, imports, tidiness, licences, all tests
  fix       format, and let clippy repair what it can
  layers    who may import whom, among the crates and inside them
  tidy      sizes, names, leftovers, dead links in the documents
  licences  every dependency under a licence that deny.toml allows
  instructions [--accept]
            what a message costs, in instructions, against xtask/instructions.txt; --accept writes that file anew
  numbers   lines, functions, tests and dependencies by crate
  fuzz TARGET [--runs N]
            run one fuzz target of fuzz/ (nightly compiler, cargo-fuzz)
  fuzz      list the fuzz targets
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["ci"] => gate::ci(),
        ["fix"] => gate::fix(),
        ["layers"] => layers::check().and_then(|f| f.report("layers")),
        ["tidy"] => tidy::check().and_then(|f| f.report("tidy")),
        ["licences"] => licences::check().and_then(|f| f.report("licences")),
        ["instructions"] => instructions::check(false),
        ["instructions", "--accept"] => instructions::check(true),
        ["numbers"] => numbers::print(),
        ["fuzz"] => fuzz::list(),
        ["fuzz", target] => fuzz::run(target, fuzz::RUNS),
        ["fuzz", target, "--runs", runs] => match runs.parse() {
            Ok(runs) => fuzz::run(target, runs),
            Err(_) => Err(format!("--runs takes a number, not {runs:?}")),
        },
        _ => Err(USAGE.to_owned()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{}", message.trim_end());
            ExitCode::FAILURE
        }
    }
}
