//! Valgrind: brought in if it is missing, and called so that it counts the same on every machine.

use crate::child::run_command;
use std::path::Path;
use std::process::{Command, Stdio};

/// The C library picks its copying by what the processor can; without these it picks the same on all of them.
const PLAIN_PROCESSOR: &str = "glibc.cpu.hwcaps=-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-ERMS,-FSRM";

/// Sees to it that valgrind is there, like the black-box tests see to what they need.
///
/// # Errors
/// It is missing and the system's package tool can't install it.
pub fn install() -> Result<(), String> {
    let there = |program: &str| {
        let call = Command::new(program)
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        call.is_ok_and(|status| status.success())
    };
    if there("valgrind") {
        return Ok(());
    }
    println!("instructions: installing valgrind");
    let apt = |words: &[&str]| {
        let mut command = if there("sudo") {
            let mut command = Command::new("sudo");
            command.args(["-n", "apt-get"]);
            command
        } else {
            Command::new("apt-get")
        };
        run_command(command.args(words).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let tried = apt(&["install", "-y", "-qq", "valgrind"])
        .or_else(|_| apt(&["update", "-qq"]).and_then(|()| apt(&["install", "-y", "-qq", "valgrind"])));
    match tried {
        Ok(()) if there("valgrind") => Ok(()),
        Ok(()) => Err("valgrind was installed and does not run".to_owned()),
        Err(why) => Err(format!("valgrind is missing; install it. ({why})")),
    }
}

/// Callgrind that counts what happens inside `function` only, on the thread that called it; a program with its arguments
/// follows.
pub fn callgrind(function: &str, profile: &Path) -> Command {
    let mut command = Command::new("valgrind");
    command
        .env("GLIBC_TUNABLES", PLAIN_PROCESSOR)
        .args(["--quiet", "--tool=callgrind", "--collect-atstart=no"])
        .arg(format!("--toggle-collect={function}"))
        .arg(format!("--callgrind-out-file={}", profile.display()));
    command
}

/// The instructions that a profile counts.
pub fn total(profile: &str) -> Option<u64> {
    let of = |word: &str| {
        let rest = profile.lines().find_map(|line| line.strip_prefix(word))?;
        rest.trim().parse().ok()
    };
    of("totals:").or_else(|| of("summary:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_stands_at_the_end_of_a_profile() {
        assert_eq!(
            total("version: 1\nsummary: 0\nfn=(1)\n1 5\ntotals: 1234\n"),
            Some(1234)
        );
        assert_eq!(total("version: 1\n"), None);
    }
}
