//! Documents point only at what is there: links to files and headings, and paths written as code.

use crate::findings::Findings;
use crate::sources::Source;
use crate::workspace;
use std::collections::BTreeMap;
use std::path::Path;

/// Paths written as code are checked if they start with one of these.
const FOLDERS: [&str; 9] = [
    "crates/", "tools/", "docs/", "xtask/", "tests/", "fuzz/", "sim/", "ui/", ".ci/",
];

pub fn check(sources: &[Source], members: &[String]) -> Findings {
    let root = workspace::root();
    let exists = |path: &str| root.join(path).exists();
    let mut findings = check_links(sources, exists);
    findings.extend(check_members(sources, members));
    findings
}

/// Every crate of ours has its place on the architecture page.
fn check_members(sources: &[Source], members: &[String]) -> Findings {
    let mut findings = Findings::default();
    let Some(page) = sources.iter().find(|s| s.path == "docs/ARCHITECTURE.md") else {
        findings.error("docs/ARCHITECTURE.md is missing");
        return findings;
    };
    for member in members {
        if !page.text.contains(&format!("`{member}`")) {
            findings.error(format!("docs/ARCHITECTURE.md doesn't name `{member}`"));
        }
    }
    findings
}

fn check_links(sources: &[Source], exists: impl Fn(&str) -> bool) -> Findings {
    let mut findings = Findings::default();
    let pages: Vec<&Source> = sources.iter().filter(|s| s.ending() == "md").collect();
    let headings: BTreeMap<&str, Vec<String>> = pages
        .iter()
        .map(|page| (page.path.as_str(), headings(&page.text)))
        .collect();
    for page in &pages {
        for (number, line) in prose(&page.text) {
            for target in links(line) {
                if let Some(why) = dead(&page.path, target, &headings, &exists) {
                    findings.error(format!("{}:{number}: link to {target}: {why}", page.path));
                }
            }
            for path in paths_as_code(line) {
                if !exists(path) {
                    findings.error(format!("{}:{number}: `{path}` doesn't exist", page.path));
                }
            }
        }
    }
    findings
}

/// Lines outside of code blocks, with their numbers.
fn prose(text: &str) -> Vec<(usize, &str)> {
    let mut in_code = false;
    let mut lines = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            lines.push((i + 1, line));
        }
    }
    lines
}

fn links(line: &str) -> Vec<&str> {
    line.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .collect()
}

fn dead(
    page: &str,
    target: &str,
    headings: &BTreeMap<&str, Vec<String>>,
    exists: &impl Fn(&str) -> bool,
) -> Option<&'static str> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() {
        page.to_owned()
    } else {
        beside(page, file)
    };
    if !exists(&path) {
        return Some("no such file");
    }
    let known = headings.get(path.as_str());
    (!heading.is_empty() && known.is_some_and(|known| !known.iter().any(|h| h == heading)))
        .then_some("no such heading")
}

/// A path relative to the page's folder, made relative to the root.
fn beside(page: &str, file: &str) -> String {
    let mut parts: Vec<&str> = Path::new(page)
        .parent()
        .and_then(Path::to_str)
        .unwrap_or_default()
        .split('/')
        .collect();
    parts.retain(|part| !part.is_empty());
    for part in file.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// Headings as GitHub turns them into anchors: lower case, blanks to dashes, punctuation away.
fn headings(text: &str) -> Vec<String> {
    let heading = |line: &str| {
        let kept = line
            .trim_start_matches('#')
            .trim()
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.collect::<String>().to_lowercase().replace(' ', "-")
    };
    prose(text)
        .into_iter()
        .filter(|(_, line)| line.starts_with('#'))
        .map(|(_, line)| heading(line))
        .collect()
}

/// Inline code that is a path of ours without a placeholder.
fn paths_as_code(line: &str) -> Vec<&str> {
    line.split('`')
        .skip(1)
        .step_by(2)
        .map(|code| code.trim_end_matches('/'))
        .filter(|code| FOLDERS.iter().any(|folder| code.starts_with(folder)))
        .filter(|code| {
            code.chars()
                .all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c))
        })
        // `docs/decisions/NNNN-title.md` is a form, not a file.
        .filter(|code| !code.contains("NNNN"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(pages: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = pages
            .iter()
            .map(|(path, text)| Source {
                path: (*path).to_owned(),
                text: (*text).to_owned(),
            })
            .collect();
        let there = |path: &str| {
            sources
                .iter()
                .any(|s| s.path == path || s.path.starts_with(&format!("{path}/")))
        };
        check_links(&sources, there).errors
    }

    #[test]
    fn dead_links_are_found() {
        let pages = [
            (
                "README.md",
                "[a](docs/a.md) [b](docs/b.md)\n[c](docs/a.md#the-end-2) [d](docs/a.md#start)",
            ),
            (
                "docs/a.md",
                "# The end, 2\n[up](../README.md) [self](#the-end-2) [web](https://x.y/z) [bad](c.md)",
            ),
        ];
        assert_eq!(
            errors(&pages),
            [
                "README.md:1: link to docs/b.md: no such file",
                "README.md:2: link to docs/a.md#start: no such heading",
                "docs/a.md:2: link to c.md: no such file",
            ]
        );
    }

    #[test]
    fn dead_paths_are_found() {
        let pages = [(
            "docs/a.md",
            "`docs/a.md` `docs/` `docs/b.md` `crates/*/src` `docs/decisions/NNNN-title.md`\n```\n`docs/c.md`\n```",
        )];
        assert_eq!(errors(&pages), ["docs/a.md:1: `docs/b.md` doesn't exist"]);
    }

    #[test]
    fn every_room_is_on_the_page() {
        let page = Source {
            path: "docs/ARCHITECTURE.md".to_owned(),
            text: "`model` and queue".to_owned(),
        };
        let members = ["model".to_owned(), "queue".to_owned()];
        assert_eq!(
            check_members(&[page], &members).errors,
            ["docs/ARCHITECTURE.md doesn't name `queue`"]
        );
    }
}
