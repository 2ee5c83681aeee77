//! Every dependency comes from the registry and is under a licence that `deny.toml` allows.

use crate::findings::Findings;
use crate::workspace;
use std::fs;

/// Checks everything in the lock file.
///
/// # Errors
/// The workspace or `deny.toml` can't be read.
pub fn check() -> Result<Findings, String> {
    let path = workspace::root().join("deny.toml");
    let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let (allowed, exceptions) = (allowed(&text), exceptions(&text));
    let mut findings = Findings::default();
    if allowed.is_empty() {
        findings.error("deny.toml allows no licence");
    }
    let packages = workspace::outside()?;
    for (name, _) in &exceptions {
        if !packages.iter().any(|package| package.name == *name) {
            findings.error(format!(
                "deny.toml makes an exception for {name}, which is not used"
            ));
        }
    }
    for package in packages {
        let name = format!("{} {}", package.name, package.version);
        let mut allowed = allowed.clone();
        allowed.extend(
            exceptions
                .iter()
                .filter(|(name, _)| *name == package.name)
                .map(|(_, licence)| licence.clone()),
        );
        if !package.from_registry {
            findings.error(format!("{name} doesn't come from the registry"));
        }
        match package.licence {
            Some(licence) if permits(&licence, &allowed) => {}
            Some(licence) => findings.error(format!("{name} is under {licence}")),
            None => findings.error(format!("{name} names no licence")),
        }
    }
    Ok(findings)
}

/// The strings of the list `allow = [ … ]`.
fn allowed(deny: &str) -> Vec<String> {
    let list = deny
        .split("\nallow = [")
        .nth(1)
        .and_then(|rest| rest.split(']').next())
        .unwrap_or_default();
    list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Crates and the licence that one is allowed beyond the list: lines `{ crate = "…", allow = ["…"] }`.
fn exceptions(deny: &str) -> Vec<(String, String)> {
    let quoted = |line: &str| {
        line.split('"')
            .skip(1)
            .step_by(2)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    deny.lines()
        .map(str::trim)
        .filter(|line| line.starts_with("{ crate = ") && line.contains("allow = ["))
        .filter_map(|line| match quoted(line).as_slice() {
            [name, licence] => Some((name.clone(), licence.clone())),
            _ => None,
        })
        .collect()
}

/// Whether an SPDX expression can be met with the allowed licences. `AND` binds closer than `OR`; a slash is an
/// old way to write `OR`.
fn permits(expression: &str, allowed: &[String]) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let tokens: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    let met = any_of(&tokens, &mut at, allowed);
    met && at == tokens.len()
}

fn any_of(tokens: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = all_of(tokens, at, allowed);
    while tokens.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all_of(tokens, at, allowed);
    }
    met
}

fn all_of(tokens: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let mut met = one(tokens, at, allowed);
    while tokens.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(tokens, at, allowed);
    }
    met
}

fn one(tokens: &[&str], at: &mut usize, allowed: &[String]) -> bool {
    let Some(&token) = tokens.get(*at) else {
        return false;
    };
    *at += 1;
    if token == "(" {
        let met = any_of(tokens, at, allowed);
        *at += 1;
        return met;
    }
    let mut name = token.to_owned();
    if let (Some(&"WITH"), Some(exception)) = (tokens.get(*at), tokens.get(*at + 1)) {
        *at += 2;
        name = format!("{name} WITH {exception}");
    }
    allowed.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_by_crate() {
        let deny = "exceptions = [\n  { crate = \"a\", allow = [\"MPL-2.0\"] },\n]\ndeny = [\n { crate = \"b\" },\n]\n";
        assert_eq!(exceptions(deny), [("a".to_owned(), "MPL-2.0".to_owned())]);
    }

    #[test]
    fn expressions_are_understood() {
        let allowed =
            allowed("[licenses]\nallow = [\"MIT\", \"Apache-2.0\", # why\n \"Unicode-3.0\"]\nx = 1\n");
        assert_eq!(allowed, ["MIT", "Apache-2.0", "Unicode-3.0"]);
        for (expression, met) in [
            ("MIT", true),
            ("MIT OR GPL-3.0", true),
            ("GPL-3.0/MIT", true),
            ("GPL-3.0 AND MIT", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("(GPL-3.0 OR LGPL-3.0) AND MIT", false),
            ("GPL-3.0 OR MIT AND Apache-2.0", true),
            ("Apache-2.0 WITH LLVM-exception", false),
            ("", false),
        ] {
            assert_eq!(permits(expression, &allowed), met, "{expression}");
        }
    }
}
