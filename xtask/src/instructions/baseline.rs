//! What the cases cost when somebody last said that this is right: `xtask/instructions.txt`.

use crate::workspace;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A case may cost so much more than its baseline, as a share of it.
const TOLERANCE: f64 = 0.03;

/// And so many instructions a message: where a thread happened to find another one's lock taken.
const SLACK: f64 = 5.0;

/// With so much less than the baseline, as a share of it, a new baseline should be written: else the gain may be lost unnoticed.
const GAIN: f64 = 0.05;

/// The instructions that each case may cost, and the compiler that made them.
#[derive(Debug, PartialEq)]
pub struct Baseline {
    /// As `rustc --version` says it.
    pub compiler: String,
    /// Instructions a message.
    cases: BTreeMap<String, f64>,
}

/// How a case compares.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// Instructions a message, if the case is known.
    pub baseline: Option<f64>,
    change: Change,
}

#[derive(Debug, PartialEq)]
enum Change {
    Unknown,
    Dearer,
    Alike,
    Cheaper,
}

impl Verdict {
    /// True unless the gate must fail.
    pub fn holds(&self) -> bool {
        matches!(self.change, Change::Alike | Change::Cheaper)
    }

    /// What stands behind the case's line.
    pub fn remark(&self) -> &'static str {
        match self.change {
            Change::Alike => "",
            Change::Dearer => "  DEARER",
            Change::Cheaper => "  cheaper: keep the gain with --accept",
            Change::Unknown => "  NEW: add it with --accept",
        }
    }
}

impl Baseline {
    pub fn new(compiler: String, cases: impl IntoIterator<Item = (String, f64)>) -> Self {
        Self {
            compiler,
            cases: cases.into_iter().collect(),
        }
    }

    /// Compares what a case costs now.
    pub fn judge(&self, case: &str, now: f64) -> Verdict {
        let Some(baseline) = self.cases.get(case).copied() else {
            return Verdict {
                baseline: None,
                change: Change::Unknown,
            };
        };
        let change = if now > baseline * (1.0 + TOLERANCE) + SLACK {
            Change::Dearer
        } else if now < baseline * (1.0 - GAIN) - SLACK {
            Change::Cheaper
        } else {
            Change::Alike
        };
        Verdict {
            baseline: Some(baseline),
            change,
        }
    }

    /// The committed one.
    ///
    /// # Errors
    /// The file can't be read or understood.
    pub fn read() -> Result<Self, String> {
        let path = path();
        let text = std::fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        Self::parse(&text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Replaces the committed one.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn write(&self) -> Result<(), String> {
        let path = path();
        let text = self.text();
        std::fs::write(&path, &text).map_err(|e| format!("{}: {e}", path.display()))?;
        print!("{text}");
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = format!(
            "# Instructions a message, x86_64. Written by `cargo xtask instructions --accept`; docs/instructions.md explains it.\n\
             # Another compiler makes other code: after a change of compiler, accept anew before anything else is changed.\n\
             compiler {}\n",
            self.compiler
        );
        for (case, count) in &self.cases {
            text.push_str(&format!("{case} {count:.1}\n"));
        }
        text
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut baseline = Self::new(String::new(), []);
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            match line.split_once(' ') {
                Some(("compiler", compiler)) => baseline.compiler = compiler.to_owned(),
                Some((case, count)) => {
                    let count = count.parse().map_err(|e| format!("{line:?}: {e}"))?;
                    baseline.cases.insert(case.to_owned(), count);
                }
                None => return Err(format!("{line:?} is no case and its count")),
            }
        }
        Ok(baseline)
    }
}

fn path() -> PathBuf {
    workspace::root().join("xtask/instructions.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn baseline() -> Baseline {
        Baseline::new(
            "rustc 1".to_owned(),
            [("T1".to_owned(), 400.0), ("T4".to_owned(), 9000.0)],
        )
    }

    #[test]
    fn what_is_written_can_be_read() {
        assert_eq!(Baseline::parse(&baseline().text()), Ok(baseline()));
        assert!(Baseline::parse("T1").is_err() && Baseline::parse("T1 many").is_err());
    }

    #[test]
    fn only_what_exceeds_tolerance_and_slack_fails() {
        let baseline = baseline();
        assert!(baseline.judge("T1", 417.0).holds());
        assert!(!baseline.judge("T1", 417.1).holds());
        assert!(!baseline.judge("T4", 9280.0).holds());
        assert!(baseline.judge("T4", 100.0).holds());
        assert!(!baseline.judge("T7", 1.0).holds());
    }

    #[test]
    fn a_gain_is_pointed_out() {
        assert_eq!(baseline().judge("T1", 399.0).remark(), "");
        assert!(baseline().judge("T1", 300.0).remark().contains("--accept"));
    }
}
