//! Runs the fuzz targets of `fuzz/`, a workspace of its own: it needs the nightly compiler and `cargo-fuzz`.

use crate::child::run_command;
use crate::workspace;
use std::fs;
use std::process::Command;

/// Executions of a target if the caller names no number: a minute or so for a quick decoder.
pub const RUNS: u64 = 1_000_000;

/// Prints the targets.
///
/// # Errors
/// There is no fuzz folder.
pub fn list() -> Result<(), String> {
    for target in targets()? {
        println!("{target}");
    }
    Ok(())
}

/// Runs one target for a number of executions; it stops at the first failure.
///
/// # Errors
/// An unknown target, a tool that can't be installed, or a failing input.
pub fn run(target: &str, runs: u64) -> Result<(), String> {
    let targets = targets()?;
    if !targets.iter().any(|t| t == target) {
        return Err(format!(
            "no fuzz target {target}; there are: {}",
            targets.join(", ")
        ));
    }
    install()?;
    let root = workspace::root();
    // Release mode with debug assertions: overflow and index errors count as findings. What a sanitizer looks for, code without
    // `unsafe` cannot do; it would take most of the time.
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fuzz", "run", "--sanitizer", "none", target, "--"])
        .arg(format!("-runs={runs}"));
    command.args(["-max_len=65536", "-rss_limit_mb=2048", "-timeout=10"]);
    run_command(command.current_dir(root))
}

fn targets() -> Result<Vec<String>, String> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            entry
                .ok()?
                .file_name()
                .into_string()
                .ok()?
                .strip_suffix(".rs")
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    Ok(names)
}

fn install() -> Result<(), String> {
    let there = Command::new("cargo")
        .args(["fuzz", "--version"])
        .output()
        .is_ok_and(|o| o.status.success());
    if there {
        return Ok(());
    }
    println!("installing cargo-fuzz");
    run_command(Command::new("cargo").args(["install", "--locked", "cargo-fuzz"]))
}
