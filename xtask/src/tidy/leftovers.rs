//! What must not stay behind: notes to oneself, unfinished code, naps instead of events, paths of one machine.

use crate::findings::Findings;
use crate::sources::Source;

/// Notes to oneself, as whole words. Put together here so that this file doesn't find itself.
const NOTES: [&str; 3] = [concat!("FIX", "ME"), concat!("X", "XX"), concat!("TO", "DO")];
/// Code that isn't there.
const UNFINISHED: [&str; 2] = [concat!("todo", "!("), concat!("unimplemented", "!(")];
/// A test that waits for a time instead of an event fails on a slow machine and wastes it on a fast one.
const NAP: &str = concat!("sleep", "(");
/// In the product, a sleeping thread serves nobody. A timer of the runtime is no nap.
const THREAD_NAP: &str = concat!("thread::sle", "ep(");
/// Where our crates are.
const CRATES: [&str; 2] = ["crates/", "tools/"];
/// Folders of the machine that somebody worked on.
const MACHINE: [&str; 3] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

pub fn check(sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    // Lock files name packages and hashes, which may contain anything.
    for source in sources
        .iter()
        .filter(|s| !["lock", "sum"].contains(&s.ending()) && !s.name().ends_with("-lock.json"))
    {
        for (i, line) in source.text.lines().enumerate() {
            for what in found(source, line) {
                findings.error(format!("{}:{}: {what}", source.path, i + 1));
            }
        }
    }
    findings
}

fn found(source: &Source, line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for note in NOTES {
        if has_word(line, note) {
            all.push(format!("a note to oneself ({note}): do it or file it"));
        }
    }
    for unfinished in UNFINISHED {
        if source.is_rust() && line.contains(unfinished) {
            all.push(format!("unfinished code ({unfinished})"));
        }
    }
    let in_crates = source.is_rust() && CRATES.iter().any(|folder| source.path.starts_with(folder));
    let nap = if source.path.contains("/tests/") {
        NAP
    } else {
        THREAD_NAP
    };
    if in_crates && !source.path.contains("/examples/") && line.contains(nap) {
        all.push(format!("{nap}…): wait for the event instead"));
    }
    for folder in MACHINE {
        if line.contains(folder) {
            all.push(format!("a path of one machine ({folder})"));
        }
    }
    all
}

fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    line.match_indices(word).any(|(at, _)| {
        !inside(line[..at].chars().next_back()) && !inside(line[at + word.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(path: &str, text: &str) -> Vec<String> {
        check(&[Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }])
        .errors
    }

    #[test]
    fn leftovers_are_found() {
        for (path, text) in [
            ("a.md", NOTES[0]),
            ("a.py", "# XY\n# see TO".replace("TO", NOTES[2]).as_str()),
            ("crates/x/src/a.rs", UNFINISHED[0]),
            ("crates/x/tests/a.rs", &format!("time::{NAP}x)")),
            ("crates/x/src/a.rs", &format!("thread::{NAP}x)")),
            ("tools/x/src/a.rs", &format!("thread::{NAP}x)")),
            ("Makefile", &format!("cd {}main", MACHINE[0])),
        ] {
            assert_eq!(errors(path, text).len(), 1, "{path}: {text}");
        }
    }

    #[test]
    fn what_only_looks_like_one_is_left_alone() {
        for (path, text) in [
            (
                "a.rs",
                "let name = \"aXXXb\";"
                    .replace("aXXXb", &format!("a{}b", NOTES[1]))
                    .as_str(),
            ),
            ("tests/run.py", &format!("time.{NAP}1)")),
            ("crates/x/src/a.rs", &format!("time::{NAP}x)")),
            ("Cargo.lock", NOTES[1]),
            ("ui/package-lock.json", NOTES[1]),
        ] {
            assert_eq!(errors(path, text), Vec::<String>::new(), "{path}: {text}");
        }
    }
}
