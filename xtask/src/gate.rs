//! The one gate: everything that must hold before a change lands, each step with its time.

use crate::child::run_command;
use crate::{instructions, layers, licences, tidy, workspace};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// One step of the gate.
struct Step {
    name: &'static str,
    run: fn() -> Result<(), String>,
}

const STEPS: &[Step] = &[
    Step {
        name: "format",
        run: || cargo(&["fmt", "--all", "--check"]),
    },
    Step {
        name: "layers",
        run: || layers::check()?.report("layers"),
    },
    Step {
        name: "tidy",
        run: || tidy::check()?.report("tidy"),
    },
    Step {
        name: "licences",
        run: || licences::check()?.report("licences"),
    },
    Step {
        name: "lints",
        run: || {
            cargo(&[
                "clippy",
                "--workspace",
                "--all-targets",
                "--locked",
                "--",
                "-D",
                "warnings",
            ])
        },
    },
    // Unit tests, stories, properties and faults; their sizes are bounded where they are written.
    Step {
        name: "tests",
        run: || cargo(&["test", "--workspace", "--exclude", "leveret-sim", "--locked"]),
    },
    // Thousands of seeds are worth another build of what they run through.
    Step {
        name: "simulation",
        run: || {
            cargo(&[
                "test",
                "--config",
                "sim/optimised.toml",
                "-p",
                "leveret-sim",
                "--locked",
            ])
        },
    },
    Step {
        name: "instructions",
        run: || instructions::check(false),
    },
    Step {
        name: "fuzz targets compile",
        run: fuzz_targets,
    },
];

/// Runs every step, even after a failure, and prints a table of them.
///
/// # Errors
/// The names of the steps that failed.
pub fn ci() -> Result<(), String> {
    let mut results = Vec::new();
    for step in STEPS {
        println!("\n== {}", step.name);
        let start = Instant::now();
        let result = (step.run)();
        let took = start.elapsed();
        match &result {
            Ok(()) => println!("== {}: ok in {}", step.name, seconds(took)),
            Err(why) => println!(
                "== {}: FAILED in {}: {}",
                step.name,
                seconds(took),
                why.trim_end()
            ),
        }
        results.push((step.name, result.is_ok(), took));
    }
    println!("\n{}", table(&results));
    let failed: Vec<_> = results
        .iter()
        .filter(|(_, ok, _)| !ok)
        .map(|(name, ..)| *name)
        .collect();
    if failed.is_empty() {
        Ok(())
    } else {
        Err(format!("failed: {}", failed.join(", ")))
    }
}

/// Formats, and applies clippy's suggestions.
///
/// # Errors
/// The first command that fails.
pub fn fix() -> Result<(), String> {
    cargo(&[
        "clippy",
        "--workspace",
        "--all-targets",
        "--fix",
        "--allow-dirty",
        "--allow-staged",
    ])?;
    cargo(&["fmt", "--all"])
}

/// The fuzz targets are a workspace of their own, so the other steps don't see them; stable compiles them.
fn fuzz_targets() -> Result<(), String> {
    if !Path::new(&workspace::root()).join("fuzz/Cargo.toml").exists() {
        return Ok(());
    }
    cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"])?;
    cargo(&[
        "check",
        "--manifest-path",
        "fuzz/Cargo.toml",
        // Most of what they need has just been checked for the lints, with the same settings.
        "--target-dir",
        &std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned()),
        "--all-targets",
        // Their lock file is a second one, which a change of dependencies easily leaves behind.
        "--locked",
    ])
}

fn table(results: &[(&str, bool, Duration)]) -> String {
    let mut lines = vec![format!("{:<24}{:<8}{:>8}", "step", "result", "time")];
    for (name, ok, took) in results {
        lines.push(format!(
            "{name:<24}{:<8}{:>8}",
            if *ok { "ok" } else { "FAILED" },
            seconds(*took)
        ));
    }
    let all = results.iter().map(|(.., took)| *took).sum();
    lines.push(format!("{:<24}{:<8}{:>8}", "all", "", seconds(all)));
    lines.join("\n")
}

fn seconds(took: Duration) -> String {
    format!("{:.1} s", took.as_secs_f64())
}

fn cargo(args: &[&str]) -> Result<(), String> {
    run_command(
        Command::new(env!("CARGO"))
            .args(args)
            .current_dir(workspace::root()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_what_failed() {
        let table = table(&[
            ("format", true, Duration::from_millis(1500)),
            ("tests", false, Duration::from_secs(60)),
        ]);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[1], "format                  ok         1.5 s");
        assert_eq!(lines[2], "tests                   FAILED    60.0 s");
        assert!(lines[3].ends_with("61.5 s"));
    }
}
