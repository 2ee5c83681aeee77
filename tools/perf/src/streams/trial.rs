//! Plans for tests.

use super::options;
use super::plan::Plan;
use crate::subcommand::Request;

/// The plan of a command line.
pub fn plan(line: &str) -> Plan {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    match options::read(&words, &|_| None) {
        Ok((Request::Run(plan), _)) => *plan,
        other => panic!("{line}: {:?}", other.map(|_| ())),
    }
}
