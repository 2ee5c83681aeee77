//! One vocabulary: RabbitMQ's and the trade's. A word that only this project would use, so that a broker engineer would have
//! to learn it, is refused in code and pages.

use crate::findings::Findings;
use crate::sources::Source;

/// Words that aren't used, in all their forms and in lower case, and what is said instead (`docs/STYLE.md`).
const RETIRED: &[(&[&str], &str)] = &[
    (&["bell", "bells"], "waker"),
    (&["buried"], "closed"),
    (&["desk", "desks"], "administration"),
    (&["door", "doors"], "listener, front end, API"),
    (&["hall", "halls"], "broker"),
    (&["oracle", "oracles", "dice"], "random source"),
    (&["overheard"], "observed"),
    (&["patience"], "timeout"),
    (&["porter", "porters"], "acceptor"),
    (&["relief", "reliefs"], "release of back-pressure"),
    (&["seat", "seats"], "slot"),
    (&["shelf", "shelves"], "segments, message store"),
    (&["sight"], "stats"),
    (&["survey", "surveys"], "overview"),
    (&["tally", "tallies"], "count, usage"),
    (&["witness", "witnesses"], "filter"),
];

pub fn check(sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    for source in sources.iter().filter(|source| is_ours(source)) {
        let lower = source.text.to_ascii_lowercase();
        let lower_path = source.path.to_ascii_lowercase();
        for (forms, instead) in RETIRED {
            for form in *forms {
                let there =
                    occurrences(&source.text, &lower, form) + occurrences(&source.path, &lower_path, form);
                if there > 0 {
                    findings.error(format!(
                        "{}: '{form}' is retired (say: {instead}), but stands there {there} times",
                        source.path
                    ));
                }
            }
        }
    }
    findings
}

/// Code and pages. Decisions are never edited; the page on style and this check name the words.
fn is_ours(source: &Source) -> bool {
    let is_page = source.path.starts_with("docs/") && source.ending() == "md";
    (source.is_rust() && !source.path.starts_with("xtask/src/tidy/"))
        || (is_page && !source.path.starts_with("docs/decisions/") && source.path != "docs/STYLE.md")
}

/// How often a word stands in a text as a word, or as one of a `snake_case` or `CamelCase` name. `lower` is the text in
/// lower case.
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

    fn errors(path: &str, text: &str) -> Vec<String> {
        let source = Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        check(&[source]).errors
    }

    #[test]
    fn retired_words_are_refused_in_names_and_comments_but_not_inside_others() {
        let text = "struct SideDoor;\nfn knock_at_door() {}\n// Indoors, doorway.\n";
        assert_eq!(
            errors("crates/x/src/a.rs", text),
            [
                "crates/x/src/a.rs: 'door' is retired (say: listener, front end, API), but stands there 2 times"
            ]
        );
        assert_eq!(errors("docs/a.md", "The hall.").len(), 1);
        assert_eq!(errors("crates/x/src/desk.rs", "").len(), 1);
    }

    #[test]
    fn decisions_and_the_page_on_style_may_name_them() {
        assert!(errors("docs/decisions/0001-door.md", "A door.").is_empty());
        assert!(errors("docs/STYLE.md", "Never *door*.").is_empty());
    }
}
