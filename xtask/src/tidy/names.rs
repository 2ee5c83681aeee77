//! Names say what a thing is. The banned words say only that somebody had no name.

use crate::findings::Findings;
use crate::sources::Source;
use syn::visit::{self, Visit};

/// Words that no file, folder, module or type has in its name.
const BANNED: [&str; 8] = [
    "manager", "managers", "helper", "helpers", "util", "utils", "misc", "common",
];
/// Words that are banned as whole names of files, folders and modules.
const BANNED_ALONE: [&str; 2] = ["data", "info"];

pub fn check(sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    for source in sources {
        for part in source.path.split('/') {
            let name = part.split('.').next().unwrap_or_default();
            if let Some(word) = banned(name, true) {
                findings.error(format!("{}: {name} says nothing ({word})", source.path));
            }
        }
        if source.is_rust() {
            check_items(source, &mut findings);
        }
    }
    findings
}

fn check_items(source: &Source, findings: &mut Findings) {
    // A file that doesn't parse is reported by the check of functions.
    let Ok(file) = syn::parse_file(&source.text) else {
        return;
    };
    let mut finder = Finder { names: Vec::new() };
    finder.visit_file(&file);
    for (name, is_module) in finder.names {
        let ident = name.to_string();
        if let Some(word) = banned(&ident, is_module) {
            findings.error(format!(
                "{}:{}: {ident} says nothing ({word})",
                source.path,
                name.span().start().line
            ));
        }
    }
}

struct Finder {
    /// Names, and whether they are modules'.
    names: Vec<(proc_macro2::Ident, bool)>,
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.names.push((item.ident.clone(), true));
        visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.names.push((item.ident.clone(), false));
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.names.push((item.ident.clone(), false));
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.names.push((item.ident.clone(), false));
        visit::visit_item_trait(self, item);
    }
}

/// The banned word in a name, if there is one.
fn banned(name: &str, alone: bool) -> Option<&'static str> {
    if alone && let Some(word) = BANNED_ALONE.iter().find(|word| name == **word) {
        return Some(word);
    }
    let words = words(name);
    BANNED
        .iter()
        .copied()
        .find(|banned| words.iter().any(|word| word == banned))
}

/// The words of `snake_case`, `kebab-case` and `CamelCase` names, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            words.push(String::new());
            continue;
        }
        if c.is_ascii_uppercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart() {
        assert_eq!(
            words("QueueManager_two-three"),
            ["queue", "manager", "two", "three"]
        );
    }

    #[test]
    fn empty_names_are_found_in_paths_and_code() {
        let source = |path: &str, text: &str| Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        let sources = [
            source("crates/x/src/queue_utils.rs", ""),
            source("crates/x/data/a.txt", ""),
            source(
                "crates/x/src/a.rs",
                "mod common;\nstruct QueueManager;\nstruct DataFrame;\nmod metadata {}\n",
            ),
            source("docs/commonly.md", ""),
        ];
        assert_eq!(
            check(&sources).errors,
            [
                "crates/x/src/queue_utils.rs: queue_utils says nothing (utils)",
                "crates/x/data/a.txt: data says nothing (data)",
                "crates/x/src/a.rs:1: common says nothing (common)",
                "crates/x/src/a.rs:2: QueueManager says nothing (manager)",
            ]
        );
    }
}
