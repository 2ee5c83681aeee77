//! Comments stay narrow enough to be read without moving the eyes back over half the screen. `rustfmt` wraps code only.

use crate::findings::Findings;
use crate::sources::Source;

/// The most characters that a line of a comment may have.
const WIDTH: usize = 130;

pub fn check(sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    for source in sources.iter().filter(|source| source.is_rust()) {
        for (number, width) in wide(&source.text) {
            findings.error(format!(
                "{}:{number}: a comment {width} columns wide; {WIDTH} is the limit",
                source.path
            ));
        }
    }
    findings
}

/// The lines with nothing but a comment that are too wide, outside of examples: their numbers, from 1, and widths.
fn wide(text: &str) -> impl Iterator<Item = (usize, usize)> {
    let mut is_example = false;
    let lines = text.lines().enumerate().filter(move |(_, line)| {
        let Some(comment) = line.trim_start().strip_prefix("//") else {
            is_example = false;
            return false;
        };
        is_example ^= comment.trim_start_matches(['/', '!', ' ']).starts_with("```");
        !is_example
    });
    lines
        .map(|(at, line)| (at + 1, line.chars().count()))
        .filter(|(_, width)| *width > WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_that_are_too_wide_are_found_and_code_is_left_to_rustfmt() {
        let line = |start: &str, width: usize| format!("{start}{}\n", "ä".repeat(width - start.len()));
        let text = [
            line("// ", 130),
            line("    /// ", 131),
            line("let a = 1; // ", 300),
            line("//! ", 161),
            "/// ```text\n".to_owned(),
            line("/// ", 170),
            "/// ```\n".to_owned(),
        ];
        let source = Source {
            path: "a.rs".to_owned(),
            text: text.concat(),
        };
        let findings = check(&[source]);
        assert_eq!(
            findings.errors,
            [
                "a.rs:2: a comment 131 columns wide; 130 is the limit",
                "a.rs:4: a comment 161 columns wide; 130 is the limit"
            ]
        );
    }
}
