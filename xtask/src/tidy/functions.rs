//! Functions stay short, nearly all of them.

use crate::findings::Findings;
use crate::sources::Source;
use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A function should have no more lines than this.
const LINES_MOST: usize = 70;
/// How many of a thousand functions may be longer.
const LONG_PER_MILLE: usize = 20;
/// No function may have more lines than this.
const LINES_ERROR: usize = 120;

/// A function, with its body, in a file.
pub struct Function {
    pub name: String,
    pub line: usize,
    pub lines: usize,
}

/// All functions with a body in a Rust file.
///
/// # Errors
/// The file can't be parsed.
pub fn of(source: &Source) -> Result<Vec<Function>, String> {
    let file = syn::parse_file(&source.text).map_err(|e| format!("{}: {e}", source.path))?;
    let mut finder = Finder {
        functions: Vec::new(),
    };
    finder.visit_file(&file);
    Ok(finder.functions)
}

struct Finder {
    functions: Vec<Function>,
}

impl Finder {
    fn found(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let (first, last): (Span, Span) = (signature.span(), body.span());
        self.functions.push(Function {
            name: signature.ident.to_string(),
            line: first.start().line,
            lines: last.end().line + 1 - first.start().line,
        });
    }
}

impl<'ast> Visit<'ast> for Finder {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.found(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.found(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.found(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }
}

pub fn check(sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    let (mut all, mut long) = (0, Vec::new());
    for source in sources.iter().filter(|s| s.is_rust()) {
        let functions = match of(source) {
            Ok(functions) => functions,
            Err(error) => {
                findings.error(error);
                continue;
            }
        };
        all += functions.len();
        for function in functions {
            let Function {
                name, line, lines, ..
            } = function;
            let place = format!("{}:{line}: {name} has {lines} lines", source.path);
            if lines > LINES_ERROR {
                findings.error(format!("{place}; {LINES_ERROR} is the wall"));
            } else if lines > LINES_MOST {
                long.push(format!("{place}; {LINES_MOST} is the rule"));
            }
        }
    }
    if long.len() * 1_000 > all * LONG_PER_MILLE {
        findings.error(format!(
            "{} of {all} functions have more than {LINES_MOST} lines:",
            long.len()
        ));
        findings.errors.extend(long);
    } else {
        findings.remarks.extend(long);
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Source {
        Source {
            path: "a.rs".to_owned(),
            text: text.to_owned(),
        }
    }

    fn function(name: &str, lines: usize) -> String {
        format!("fn {name}() {{\n{}}}\n", "f();\n".repeat(lines - 2))
    }

    #[test]
    fn functions_are_measured_with_their_bodies() {
        let source = file(
            "trait T { fn a(); fn b() {\n\n} }\nimpl X { fn c() {} }\nmod m { #[test]\nfn d() {\nfn e() {}\n} }\n",
        );
        let found: Vec<_> = of(&source)
            .unwrap()
            .into_iter()
            .map(|f| (f.name, f.line, f.lines))
            .collect();
        let expected = [("b", 1, 3), ("c", 4, 1), ("d", 6, 3), ("e", 7, 1)];
        assert_eq!(
            found,
            expected.map(|(name, line, lines)| (name.to_owned(), line, lines))
        );
    }

    #[test]
    fn two_percent_may_be_long() {
        let mut text: String = (0..49).map(|i| function(&format!("f{i}"), 10)).collect();
        text.push_str(&function("long", 71));
        let findings = check(&[file(&text)]);
        assert_eq!((findings.errors.len(), findings.remarks.len()), (0, 1));
        text.push_str(&function("longer", 120));
        let findings = check(&[file(&text)]);
        assert_eq!(findings.errors[0], "2 of 51 functions have more than 70 lines:");
    }

    #[test]
    fn nothing_is_longer_than_the_wall() {
        let text: String = (0..200)
            .map(|i| function(&format!("f{i}"), 10))
            .collect::<String>()
            + &function("g", 121);
        let errors = check(&[file(&text)]).errors;
        assert_eq!(errors, ["a.rs:2001: g has 121 lines; 120 is the wall"]);
    }

    #[test]
    fn what_is_no_rust_is_named() {
        assert!(check(&[file("fn {")]).errors[0].starts_with("a.rs: "));
    }
}
