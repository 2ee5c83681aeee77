//! Who imports whom (`docs/ARCHITECTURE.md`), checked against what the manifests and the sources say.
//!
//! Three rules. A crate imports only the crates that the table allows it, in its tests too. A crate of other people
//! lives in the crates that the table in `docs/ARCHITECTURE.md` gives it as home, with a reason beside it. Inside a
//! crate, the top-level modules import each other in one direction ([`circles`]).

mod circles;
mod modules;

use crate::findings::Findings;
use crate::sources;
use crate::workspace::{self, Dependency, Kind, Package};
use std::fs;

/// Who may import whom. A crate that isn't here may not exist yet.
const ALLOWED: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("protocol", &["model"]),
    ("queue", &["model"]),
    ("catalog", &["model"]),
    ("storage", &[]),
    ("cluster", &["storage"]),
    ("broker", &["model", "queue", "catalog", "storage", "cluster"]),
    ("listener", &[]),
    ("identity", &["broker"]),
    ("gateway", &["broker", "protocol", "model", "listener"]),
    ("management", &["broker", "model", "listener"]),
    (
        "server",
        &[
            "gateway",
            "management",
            "broker",
            "model",
            "listener",
            "identity",
            "ctl",
            "perf",
            "bench",
        ],
    ),
    ("charts", &[]),
    ("perf", &["charts", "protocol", "model"]),
    ("bench", &["charts"]),
    ("ctl", &[]),
    (
        "sim",
        &[
            "model",
            "protocol",
            "queue",
            "catalog",
            "storage",
            "cluster",
            "broker",
            "listener",
            "gateway",
            "management",
            "perf",
        ],
    ),
    ("xtask", &[]),
];

/// Which of our crates uses a crate of other people, as the architecture page says.
#[derive(Debug, PartialEq, Eq)]
struct Home {
    name: String,
    members: Vec<String>,
    reason: String,
}

/// Checks the workspace.
///
/// # Errors
/// The workspace, its sources or the architecture page can't be read.
pub fn check() -> Result<Findings, String> {
    let packages = workspace::packages()?;
    let page = workspace::root().join("docs/ARCHITECTURE.md");
    let text = fs::read_to_string(&page).map_err(|e| format!("{}: {e}", page.display()))?;
    let mut findings = Findings::default();
    let homes = homes(&text);
    for package in &packages {
        check_package(package, &homes, &mut findings);
    }
    check_homes(&packages, &homes, &mut findings);
    findings.extend(circles::check(&packages, &sources::all()?));
    Ok(findings)
}

fn check_package(package: &Package, homes: &[Home], findings: &mut Findings) {
    let member = &package.member;
    let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| name == member) else {
        findings.error(format!(
            "crate {member} has no line in the table ALLOWED (xtask/src/layers.rs)"
        ));
        return;
    };
    for dependency in &package.dependencies {
        // A crate may switch on its own features for its tests.
        let own = dependency.name == *member && dependency.kind == Kind::Dev;
        if dependency.ours && !own && !allowed.contains(&dependency.name.as_str()) {
            findings.error(refusal(member, dependency, allowed));
        }
        if !dependency.ours && !lives_in(homes, &dependency.name, member, dependency.kind) {
            findings.error(format!(
                "{member} uses {}, which docs/ARCHITECTURE.md doesn't give it as a home (table of outside crates)",
                dependency.name
            ));
        }
    }
}

fn refusal(member: &str, dependency: &Dependency, allowed: &[&str]) -> String {
    let how = if dependency.kind == Kind::Dev {
        " in its tests"
    } else {
        ""
    };
    let may = if allowed.is_empty() {
        "nothing of ours".to_owned()
    } else {
        allowed.join(", ")
    };
    format!("{member} imports {}{how}; it may import {may}", dependency.name)
}

/// A crate for tests only may be used by every crate's tests: its home is `tests`.
fn lives_in(homes: &[Home], name: &str, member: &str, kind: Kind) -> bool {
    let Some(home) = homes.iter().find(|h| h.name == name) else {
        return false;
    };
    home.members
        .iter()
        .any(|r| r == member || (r == "tests" && kind == Kind::Dev))
}

/// The page must not name crates or homes that are no longer true.
fn check_homes(packages: &[Package], homes: &[Home], findings: &mut Findings) {
    for home in homes {
        if home.reason.is_empty() {
            findings.error(format!("docs/ARCHITECTURE.md gives no reason for {}", home.name));
        }
        for member in &home.members {
            let used = packages.iter().any(|p| {
                p.dependencies.iter().any(|d| {
                    let here = if member == "tests" {
                        d.kind == Kind::Dev
                    } else {
                        p.member == *member
                    };
                    !d.ours && d.name == home.name && here
                })
            });
            if !used {
                findings.error(format!(
                    "docs/ARCHITECTURE.md says {member} uses {}, but it doesn't",
                    home.name
                ));
            }
        }
    }
}

/// Reads the table whose first column is headed `Crate`: rows of crate, its users and reason.
fn homes(page: &str) -> Vec<Home> {
    let rows = page.lines().skip_while(|line| !line.starts_with("| Crate |"));
    rows.skip(2)
        .take_while(|line| line.starts_with('|'))
        .filter_map(|line| {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let (name, members, reason) = (cells.next()?, cells.next()?, cells.next()?);
            Some(Home {
                name: name.trim_matches('`').to_owned(),
                members: members
                    .split(',')
                    .map(|r| r.trim().trim_matches('`').to_owned())
                    .collect(),
                reason: reason.to_owned(),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(member: &str, dependencies: &[(&str, bool, Kind)]) -> Package {
        let dependency = |&(name, ours, kind): &(&str, bool, Kind)| Dependency {
            name: name.to_owned(),
            ours,
            kind,
        };
        Package {
            member: member.to_owned(),
            dir: Default::default(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    fn errors(package: &Package, page: &str) -> Vec<String> {
        let mut findings = Findings::default();
        check_package(package, &homes(page), &mut findings);
        findings.errors
    }

    const PAGE: &str = "x\n| Crate | Home | Reason |\n|---|---|---|\n| `tokio` | gateway | sockets |\n\
                        | `proptest` | tests | properties |\n\nafter\n| `not` | `in` | it |\n";

    #[test]
    fn the_table_of_the_page_is_read() {
        let homes = homes(PAGE);
        assert_eq!(homes.len(), 2);
        assert_eq!(homes[0].name, "tokio");
        assert_eq!(homes[0].members, ["gateway"]);
        assert_eq!(homes[0].reason, "sockets");
    }

    #[test]
    fn crates_import_only_what_they_may() {
        let fine = package(
            "gateway",
            &[("broker", true, Kind::Normal), ("tokio", false, Kind::Normal)],
        );
        assert_eq!(errors(&fine, PAGE), Vec::<String>::new());
        let storage = package("storage", &[("model", true, Kind::Normal)]);
        assert_eq!(
            errors(&storage, PAGE),
            ["storage imports model; it may import nothing of ours"]
        );
        let gateway = package("gateway", &[("queue", true, Kind::Dev)]);
        assert!(
            errors(&gateway, PAGE)[0].starts_with("gateway imports queue in its tests; it may import broker")
        );
        assert!(errors(&package("attic", &[]), PAGE)[0].starts_with("crate attic has no line"));
    }

    #[test]
    fn outside_crates_stay_at_home() {
        let broker = package("broker", &[("tokio", false, Kind::Normal)]);
        assert_eq!(errors(&broker, PAGE).len(), 1);
        let tests = package("queue", &[("proptest", false, Kind::Dev)]);
        assert_eq!(errors(&tests, PAGE), Vec::<String>::new());
        let shipped = package("queue", &[("proptest", false, Kind::Normal)]);
        assert_eq!(errors(&shipped, PAGE).len(), 1);
    }

    #[test]
    fn the_page_names_nobody_who_has_left() {
        let mut findings = Findings::default();
        let packages = [package("gateway", &[("tokio", false, Kind::Normal)])];
        check_homes(&packages, &homes(PAGE), &mut findings);
        assert_eq!(
            findings.errors,
            ["docs/ARCHITECTURE.md says tests uses proptest, but it doesn't"]
        );
    }

    #[test]
    fn the_table_names_only_crates_of_ours() {
        for (member, allowed) in ALLOWED {
            for other in *allowed {
                assert!(
                    ALLOWED.iter().any(|(name, _)| name == other),
                    "{member} may import {other}, which is no crate of ours"
                );
            }
            assert!(
                !allowed.contains(&"xtask") && !allowed.contains(&"sim"),
                "nothing imports sim or xtask"
            );
        }
    }
}
