//! How many instructions a message costs, against a baseline that is committed: the gate that noise cannot trip.
//!
//! The cases are tests of the gateway (`crates/gateway/src/amqp/connection/instructions.rs`), built as a release is, run
//! under callgrind one by one. [`baseline`] is what they are held against. Reading order: [`check`], then `Case`.

mod baseline;
mod valgrind;

use crate::workspace;
use baseline::{Baseline, Verdict};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the cases are.
const MODULE: &str = "amqp::connection::instructions::";

/// The function whose instructions are counted, everything that it calls included.
const COUNTED: &str = "gateway::amqp::connection::instructions::counted*";

/// What a case has cost.
struct Counted {
    /// As people call it: `T1`.
    case: String,
    /// Instructions a message.
    now: f64,
    /// What callgrind wrote about it.
    profile: PathBuf,
}

/// Counts all cases and compares. With `accept` what was counted becomes the baseline.
///
/// # Errors
/// A case costs more than the baseline and the tolerance allow, or something can't be run.
pub fn check(accept: bool) -> Result<(), String> {
    if std::env::consts::ARCH != "x86_64" {
        println!("instructions: the baseline is for x86_64; nothing is counted on this processor");
        return Ok(());
    }
    valgrind::install()?;
    let program = build()?;
    let folder = workspace::root().join("target/instructions");
    std::fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut counted = Vec::new();
    for test in tests(&program)? {
        counted.push(count(&program, &test, &folder)?);
    }
    let compiler = compiler()?;
    if accept {
        return Baseline::new(compiler, counted.iter().map(|c| (c.case.clone(), c.now))).write();
    }
    let baseline = Baseline::read()?;
    let verdicts: Vec<_> = counted.iter().map(|c| baseline.judge(&c.case, c.now)).collect();
    print!("{}", table(&counted, &verdicts));
    if baseline.compiler != compiler {
        println!(
            "instructions: note: the baseline is of {}, this is {compiler}; another compiler makes other code",
            baseline.compiler
        );
    }
    let dearer: Vec<_> = counted
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| !verdict.holds())
        .map(|(c, _)| format!("{}  callgrind_annotate {}", c.case, c.profile.display()))
        .collect();
    if dearer.is_empty() {
        return Ok(());
    }
    Err(format!(
        "instructions: these cases cost more than the baseline allows; see where with the command beside each. If it is worth \
         its price, `cargo xtask instructions --accept` writes the new baseline, and the commit says why.\n  {}",
        dearer.join("\n  ")
    ))
}

/// Builds the gateway's tests like a release; returns the program.
fn build() -> Result<PathBuf, String> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--release", "--locked", "-p", "leveret-gateway", "--lib"])
        .args(["--no-run", "--message-format=json-render-diagnostics"])
        .current_dir(workspace::root())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("can't run cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("the gateway's tests can't be built: {}", output.status));
    }
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message.pointer("/target/name") == Some(&Value::from("gateway")))
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)))
        .ok_or_else(|| "cargo names no program with the gateway's tests".to_owned())
}

/// The names of the cases' tests, in order.
fn tests(program: &Path) -> Result<Vec<String>, String> {
    let output = Command::new(program)
        .args(["--list", "--format=terse", MODULE])
        .output()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let mut tests: Vec<_> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| line.strip_suffix(": test"))
        .map(str::to_owned)
        .collect();
    tests.sort();
    if tests.is_empty() {
        return Err(format!("no test is called {MODULE}…"));
    }
    Ok(tests)
}

fn count(program: &Path, test: &str, folder: &Path) -> Result<Counted, String> {
    let case = case_of(test);
    let profile = folder.join(format!("{case}.callgrind"));
    let output = valgrind::callgrind(COUNTED, &profile)
        .arg(program)
        .args([test, "--exact", "--nocapture", "--test-threads=1"])
        .current_dir(workspace::root().join("crates/gateway"))
        .output()
        .map_err(|e| format!("valgrind: {e}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!(
            "{test} fails under valgrind: {}\n{said}{errors}",
            output.status
        ));
    }
    let messages =
        messages(&said).ok_or_else(|| format!("{test} does not say how many messages it counted"))?;
    let text = std::fs::read_to_string(&profile).map_err(|e| format!("{}: {e}", profile.display()))?;
    let total = valgrind::total(&text)
        .filter(|total| *total > 0)
        .ok_or_else(|| format!("callgrind found no function {COUNTED}"))?;
    Ok(Counted {
        case,
        now: total as f64 / messages as f64,
        profile,
    })
}

/// `…::t1_transient_…` is case T1.
fn case_of(test: &str) -> String {
    let name = test.strip_prefix(MODULE).unwrap_or(test);
    name.split('_').next().unwrap_or(name).to_uppercase()
}

/// How many messages a case says it counted.
fn messages(said: &str) -> Option<u64> {
    let (_, rest) = said.split_once("counted messages: ")?;
    rest.split_whitespace().next()?.parse().ok().filter(|n| *n > 0)
}

fn compiler() -> Result<String, String> {
    let output = Command::new("rustc")
        .arg("--version")
        .current_dir(workspace::root())
        .output()
        .map_err(|e| format!("can't run rustc: {e}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn table(counted: &[Counted], verdicts: &[Verdict]) -> String {
    let mut text = format!("{:<8}{:>10}{:>10}{:>10}\n", "case", "now", "baseline", "change");
    for (Counted { case, now, .. }, verdict) in counted.iter().zip(verdicts) {
        let (baseline, change) = match verdict.baseline {
            Some(baseline) => (
                format!("{baseline:.1}"),
                format!("{:+.1} %", (now / baseline - 1.0) * 100.0),
            ),
            None => ("none".to_owned(), String::new()),
        };
        text.push_str(&format!(
            "{case:<8}{now:>10.1}{baseline:>10}{change:>10}{}\n",
            verdict.remark()
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_a_case_and_says_how_much_it_counted() {
        assert_eq!(case_of(&format!("{MODULE}t1_small_messages")), "T1");
        assert_eq!(
            messages("running 1 test\ncounted messages: 200\ntest … ok"),
            Some(200)
        );
        assert_eq!(messages("counted messages: 0\n"), None);
        assert_eq!(messages("running 0 tests"), None);
    }

    #[test]
    fn the_table_shows_the_change_of_each_case() {
        let counted = [("T1", 404.0), ("T9", 7.0)].map(|(case, now)| Counted {
            case: case.to_owned(),
            now,
            profile: PathBuf::new(),
        });
        let baseline = Baseline::new("rustc 1".to_owned(), [("T1".to_owned(), 400.0)]);
        let verdicts: Vec<_> = counted.iter().map(|c| baseline.judge(&c.case, c.now)).collect();
        let table = table(&counted, &verdicts);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(lines[1], "T1           404.0     400.0    +1.0 %");
        assert!(
            lines[2].starts_with("T9             7.0      none"),
            "{}",
            lines[2]
        );
    }
}
