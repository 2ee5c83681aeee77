//! One vocabulary: RabbitMQ's and the trade's. A word of the house's own that a broker engineer would have to learn is
//! retired; what is left of it in code and pages may only become less.

use crate::findings::Findings;
use crate::sources::Source;
use std::collections::BTreeMap;

/// A word that isn't used any more.
struct Retired {
    /// In all its forms, in lower case.
    forms: &'static [&'static str],
    /// What is said instead (`docs/STYLE.md`).
    instead: &'static str,
    /// How often it still stands in code, comments and pages.
    left: usize,
}

const fn retired(forms: &'static [&'static str], instead: &'static str, left: usize) -> Retired {
    Retired { forms, instead, left }
}

const RETIRED: &[Retired] = &[
    retired(&["bell", "bells"], "waker", 0),
    retired(&["buried"], "closed", 0),
    retired(&["desk", "desks"], "administration", 0),
    retired(&["door", "doors"], "listener, front end, API", 12),
    retired(&["hall", "halls"], "broker", 0),
    retired(&["oracle", "oracles", "dice"], "random source", 0),
    retired(&["overheard"], "observed", 5),
    retired(&["patience"], "timeout", 48),
    retired(&["porter", "porters"], "acceptor", 0),
    retired(&["relief", "reliefs"], "release of back-pressure", 11),
    retired(&["seat", "seats"], "slot", 19),
    retired(&["shelf", "shelves"], "segments, message store", 0),
    retired(&["sight"], "stats", 0),
    retired(&["survey", "surveys"], "overview", 0),
    retired(&["tally", "tallies"], "count, usage", 0),
    retired(&["witness", "witnesses"], "filter", 22),
];

pub fn check(sources: &[Source]) -> Findings {
    let counts = count(sources);
    let mut findings = Findings::default();
    for word in RETIRED {
        let name = word.forms[0];
        let (there, path) = word.forms.iter().fold((0, ""), |(sum, path), form| {
            counts
                .get(*form)
                .map_or((sum, path), |(count, first)| (sum + count, *first))
        });
        if there > word.left {
            findings.error(format!(
                "'{name}' is retired (say: {}), but stands in {there} places where {} are left to be reworded; one of them: {path}",
                word.instead, word.left
            ));
        } else if there < word.left {
            findings.remark(format!(
                "'{name}' stands in {there} places only: lower its {} in xtask/src/tidy/words.rs",
                word.left
            ));
        }
    }
    findings
}

/// How often each word stands in our code and pages, and the last file that has it. Decisions are never edited.
fn count(sources: &[Source]) -> BTreeMap<&'static str, (usize, &str)> {
    let mut counts: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for source in sources {
        let is_page = source.path.starts_with("docs/") && source.ending() == "md";
        let is_ours = (source.is_rust() && !source.path.starts_with("xtask/"))
            || (is_page && !source.path.starts_with("docs/decisions/") && source.path != "docs/STYLE.md");
        if !is_ours {
            continue;
        }
        let forms = RETIRED.iter().flat_map(|word| word.forms);
        let (text, path) = (source.text.to_ascii_lowercase(), source.path.to_ascii_lowercase());
        let forms: Vec<&'static str> = forms
            .copied()
            .filter(|form| text.contains(form) || path.contains(form))
            .collect();
        if forms.is_empty() {
            continue;
        }
        for form in forms {
            let there = occurrences(&source.text, &text, form) + occurrences(&source.path, &path, form);
            let entry = counts.entry(form).or_default();
            *entry = (entry.0 + there, &source.path);
        }
    }
    counts
}

/// How often a word stands in a text as a word, or as one of a `snake_case` or `CamelCase` name. `lower` is the text in lower case.
fn occurrences(text: &str, lower: &str, word: &str) -> usize {
    let text = text.as_bytes();
    let begins =
        |at: usize| at == 0 || !text[at - 1].is_ascii_alphanumeric() || text[at].is_ascii_uppercase();
    let ends = |end: usize| {
        text.get(end)
            .is_none_or(|next| !next.is_ascii_lowercase() && !next.is_ascii_digit())
    };
    let there = lower.match_indices(word);
    there
        .filter(|(at, _)| begins(*at) && ends(at + word.len()))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_names_and_comments_but_not_in_others() {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = [
            source(
                "crates/x/src/a.rs",
                "struct SideDoor;\nfn knock_at_door() {}\n// Doors. Indoors, doorway.\n",
            ),
            source("docs/decisions/0001-door.md", "A door."),
            source("docs/a.md", "The hall."),
        ];
        let counts = count(&sources);
        let of = |word: &str| counts.get(word).map_or(0, |(count, _)| *count);
        assert_eq!((of("door"), of("doors"), of("hall")), (2, 1, 1));
    }

    #[test]
    fn a_retired_word_more_than_are_left_is_refused() {
        let text = "// A bell.\n".repeat(RETIRED[0].left + 1);
        let sources = [Source {
            path: "crates/x/src/a.rs".to_owned(),
            text,
        }];
        let errors = check(&sources).errors;
        assert!(
            errors[0].starts_with("'bell' is retired (say: waker)"),
            "{errors:?}"
        );
    }
}
