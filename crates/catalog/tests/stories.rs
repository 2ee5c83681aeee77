//! Runs the stories of `tests/stories/*.txt`.
//!
//! A story is a sentence after `==`, then requests (`>`) with the lines that must come out of them (`<`). There is a
//! virtual host `/` and a user `guest` with all permissions; requests come from connection 1 unless they begin with
//! `[2]`. With the environment variable `UPDATE_STORIES` set, what came out is written into the files instead.

#![allow(clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "stories are files")]

#[path = "support/stage.rs"]
mod stage;
#[path = "support/words.rs"]
mod words;

use stage::Stage;
use std::fmt::Write;
use std::fs;
use std::path::Path;

#[test]
fn all_stories_are_true() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut stories = 0;
    let mut failures = String::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        let (told, count) = tell(&text);
        stories += count;
        if told == text {
            continue;
        }
        if std::env::var_os("UPDATE_STORIES").is_some() {
            fs::write(&file, told).unwrap();
        } else {
            let name = file.file_name().unwrap().to_string_lossy();
            writeln!(failures, "{name}: {}", first_difference(&text, &told)).unwrap();
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(stories >= 20, "only {stories} stories were found");
}

/// The text as it ought to be, and how many stories it has.
fn tell(text: &str) -> (String, usize) {
    let mut told = String::new();
    let mut stage = Stage::new();
    let mut stories = 0;
    for line in text.lines() {
        if line.starts_with("== ") {
            stage = Stage::new();
            stories += 1;
        }
        if line.starts_with("< ") {
            continue;
        }
        told.push_str(line);
        told.push('\n');
        if let Some(request) = line.strip_prefix("> ") {
            for answer in stage.perform(request) {
                writeln!(told, "< {answer}").unwrap();
            }
        }
    }
    (told, stories)
}

fn first_difference(expected: &str, actual: &str) -> String {
    let mut story = "";
    let mut actual_lines = actual.lines();
    for (at, line) in expected.lines().enumerate() {
        story = line.strip_prefix("== ").unwrap_or(story);
        let found = actual_lines.next();
        if found != Some(line) {
            return format!(
                "line {}, \"{story}\"\n  expected: {line}\n  found:    {}",
                at + 1,
                found.unwrap_or("nothing")
            );
        }
    }
    format!(
        "\"{story}\"\n  unexpected: {}",
        actual_lines.next().unwrap_or("nothing")
    )
}
