//! What the top-level modules of a crate import of each other, read from its sources.
//!
//! A module is what the crate's root file declares, with everything below it. Tests are left out: a test may look
//! wherever it likes. A name that the root re-exports counts as an import of the module that it comes from.

use crate::sources::Source;
use proc_macro2::{Span, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};

/// What the root file itself is called, when its own items are imported.
pub const ROOT: &str = "lib.rs";

/// Who imports whom, and the first line of the sources that does.
pub type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// Reads the crate in `folder` (`crates/ctl`).
///
/// # Errors
/// A file can't be parsed, or the crate has no root file.
pub fn arrows(folder: &str, sources: &[Source]) -> Result<Arrows, String> {
    let find = |name: &str| {
        let path = format!("{folder}/src/{name}");
        sources.iter().find(|source| source.path == path)
    };
    let root = find("lib.rs").or_else(|| find("main.rs"));
    let root = root.ok_or_else(|| format!("{folder} has neither lib.rs nor main.rs"))?;
    let file = parse(root)?;
    let mut reader = Reader {
        sources,
        folder: format!("{folder}/src"),
        file: root.path.clone(),
        module: Vec::new(),
        modules: file.items.iter().filter_map(module_name).collect(),
        exported: BTreeMap::new(),
        arrows: Arrows::new(),
        failed: None,
    };
    reader.exported = exported(&file, &reader.modules);
    reader.visit_file(&file);
    match reader.failed {
        Some(error) => Err(error),
        None => Ok(reader.arrows),
    }
}

fn parse(source: &Source) -> Result<syn::File, String> {
    syn::parse_file(&source.text).map_err(|e| format!("{}: {e}", source.path))
}

fn module_name(item: &syn::Item) -> Option<String> {
    match item {
        syn::Item::Mod(module) if !for_tests(&module.attrs) => Some(module.ident.to_string()),
        _ => None,
    }
}

/// The names that the root file imports or re-exports, with the modules that they come from.
fn exported(file: &syn::File, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    for item in &file.items {
        let syn::Item::Use(item) = item else {
            continue;
        };
        for (path, name) in flattened(&item.tree) {
            let from = path
                .iter()
                .find(|part| !matches!(part.as_str(), "crate" | "self"));
            if let Some(from) = from.filter(|from| modules.contains(*from)) {
                names.insert(name, from.clone());
            }
        }
    }
    names
}

/// Every path of an import, with the name that it has afterwards.
fn flattened(tree: &syn::UseTree) -> Vec<(Vec<String>, String)> {
    match tree {
        syn::UseTree::Path(path) => {
            let mut below = flattened(&path.tree);
            for (path_below, _) in &mut below {
                path_below.insert(0, path.ident.to_string());
            }
            below
        }
        syn::UseTree::Name(name) => vec![(vec![name.ident.to_string()], name.ident.to_string())],
        syn::UseTree::Rename(name) => vec![(vec![name.ident.to_string()], name.rename.to_string())],
        syn::UseTree::Group(group) => group.items.iter().flat_map(flattened).collect(),
        _ => vec![(Vec::new(), "*".to_owned())],
    }
}

fn for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let condition = |list: &syn::MetaList| list.tokens.to_string() == "test";
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(condition)
    })
}

struct Reader<'a> {
    sources: &'a [Source],
    /// Where the crate's sources lie.
    folder: String,
    /// The file that is read.
    file: String,
    /// The path of the module that is read, from the root.
    module: Vec<String>,
    /// The names of the top-level modules.
    modules: BTreeSet<String>,
    exported: BTreeMap<String, String>,
    arrows: Arrows,
    failed: Option<String>,
}

impl Reader<'_> {
    /// A path stands in the sources.
    fn found(&mut self, path: &[String], at: Span) {
        let Some(to) = self.target(path) else {
            return;
        };
        let from = self.module.first().map_or(ROOT, String::as_str);
        if from != to {
            let place = format!("{}:{}", self.file, at.start().line);
            let arrows = self.arrows.entry(from.to_owned()).or_default();
            arrows.entry(to).or_insert(place);
        }
    }

    /// The top-level module, or the root, that a path leads to. None: it leads out of the crate, or stays below the
    /// module that it stands in.
    fn target(&self, path: &[String]) -> Option<String> {
        let mut depth = self.module.len();
        let mut rest = path;
        let mut relative = true;
        while let Some((first, after)) = rest.split_first() {
            match first.as_str() {
                "crate" => depth = 0,
                "self" => {}
                "super" => depth = depth.checked_sub(1)?,
                _ => break,
            }
            relative = false;
            rest = after;
        }
        if depth > 0 {
            return None;
        }
        let name = rest.first().map_or("*", String::as_str);
        if self.modules.contains(name) {
            return Some(name.to_owned());
        }
        match self.exported.get(name) {
            Some(module) => Some(module.clone()),
            None => (!relative).then(|| ROOT.to_owned()),
        }
    }

    fn file_of(&self, name: &str) -> Option<&Source> {
        let below: String = self.module.iter().map(|part| format!("/{part}")).collect();
        let stem = format!("{}{below}/{name}", self.folder);
        let paths = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
        self.sources.iter().find(|source| paths.contains(&source.path))
    }

    /// Reads the file of a module that is declared in the file that is read.
    fn enter(&mut self, name: &str) -> Result<(), String> {
        let missing = || format!("{}: module {name} has no file", self.file);
        let source = self.file_of(name).ok_or_else(missing)?;
        let (file, path) = (parse(source)?, source.path.clone());
        let outer = std::mem::replace(&mut self.file, path);
        self.module.push(name.to_owned());
        self.visit_file(&file);
        self.module.pop();
        self.file = outer;
        Ok(())
    }

    /// The paths between the tokens of a macro, which nobody has parsed.
    fn scan(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        path.clear();
                    }
                    path.push(name.to_string());
                    colons = 0;
                    // The path as far as it goes: a longer one leads to the same module.
                    if path.len() > 1 && matches!(path[0].as_str(), "crate" | "super" | "self") {
                        self.found(&path, name.span());
                    }
                }
                TokenTree::Punct(mark) if mark.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    path.clear();
                    self.scan(group.stream());
                }
                _ => path.clear(),
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if for_tests(&item.attrs) {
            return;
        }
        let name = item.ident.to_string();
        if item.content.is_some() {
            self.module.push(name);
            visit::visit_item_mod(self, item);
            self.module.pop();
        } else if let Err(error) = self.enter(&name) {
            self.failed.get_or_insert(error);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // What the root only hands on is no import of its own.
        let hands_on = self.module.is_empty() && !matches!(item.vis, syn::Visibility::Inherited);
        if hands_on || for_tests(&item.attrs) {
            return;
        }
        for (path, _) in flattened(&item.tree) {
            self.found(&path, item.use_token.span);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if !for_tests(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if let Some(first) = path.segments.first() {
            self.found(&parts, first.ident.span());
        }
        visit::visit_path(self, path);
    }

    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {
        // `pub(super)` says who may import, and imports nothing.
    }

    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}

    fn visit_macro(&mut self, macro_called: &'ast syn::Macro) {
        visit::visit_macro(self, macro_called);
        self.scan(macro_called.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, text: &str) -> Source {
        Source {
            path: format!("crates/shop/src/{path}"),
            text: text.to_owned(),
        }
    }

    /// Each arrow as `from to`.
    fn read(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<Source> = files.iter().map(|(path, text)| source(path, text)).collect();
        let arrows = arrows("crates/shop", &sources).unwrap();
        let line = |(from, to): (&String, &BTreeMap<String, String>)| {
            to.keys().map(|to| format!("{from} {to}")).collect::<Vec<_>>()
        };
        arrows.iter().flat_map(line).collect()
    }

    #[test]
    fn imports_and_paths_are_arrows_from_one_top_level_module_to_another() {
        let found = read(&[
            ("lib.rs", "mod till; mod stock; mod price; pub struct Shop;"),
            ("till.rs", "mod drawer; use crate::{stock::{Rack, Box}, price};"),
            (
                "till/drawer.rs",
                "use super::super::stock; use super::Till; fn f() -> crate::Shop { g() }",
            ),
            ("stock.rs", "fn f() { std::mem::drop(crate::price::of(1)) }"),
            ("price.rs", "use self::tax::Tax; mod tax { pub struct Tax; }"),
        ]);
        assert_eq!(found, ["stock price", "till lib.rs", "till price", "till stock"]);
    }

    #[test]
    fn a_name_that_the_root_hands_on_counts_for_the_module_that_it_comes_from() {
        let found = read(&[
            ("lib.rs", "mod till; mod stock; pub use stock::Rack as Board;"),
            ("till.rs", "fn f(_: crate::Board) {}"),
            ("stock.rs", ""),
        ]);
        assert_eq!(found, ["till stock"]);
    }

    #[test]
    fn the_root_imports_what_its_own_code_uses() {
        let found = read(&[
            (
                "lib.rs",
                "mod till; mod stock; use till::Till; fn f() { stock::open() }",
            ),
            ("till.rs", ""),
            ("stock.rs", ""),
        ]);
        assert_eq!(found, ["lib.rs stock", "lib.rs till"]);
    }

    #[test]
    fn tests_may_import_what_they_like() {
        let found = read(&[
            ("lib.rs", "mod till; mod stock; #[cfg(test)] mod trial;"),
            (
                "till.rs",
                "#[cfg(test)] use crate::stock; #[cfg(test)] mod tests { use crate::stock::Rack; }",
            ),
            ("stock.rs", "pub(super) fn f() {}"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn the_tokens_of_a_macro_are_read() {
        let found = read(&[
            ("lib.rs", "mod till; mod stock;"),
            (
                "till.rs",
                "macro_rules! m { ($a:ident) => { f::<$a>(crate::stock::Rack) } }",
            ),
            (
                "stock.rs",
                "fn f() { println!(\"{}\", (1, crate::till::name())) }",
            ),
        ]);
        assert_eq!(found, ["stock till", "till stock"]);
    }
}
