//! No circle among the top-level modules of a crate: one direction, so that a reader finds a place to begin.

use super::modules::{self, Arrows};
use crate::findings::Findings;
use crate::sources::Source;
use crate::workspace::{self, Package};
use std::collections::{BTreeMap, VecDeque};

/// The crates that are not clean yet, with how many of their modules import each other in circles. A number may only
/// become smaller.
const CIRCLES: &[(&str, usize)] = &[("catalog", 3), ("server", 2)];

/// Looks at every crate.
pub fn check(packages: &[Package], sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    let root = workspace::root();
    for package in packages {
        let folder = package.dir.strip_prefix(&root).unwrap_or(&package.dir);
        match modules::arrows(&folder.to_string_lossy(), sources) {
            Ok(arrows) => judge(&package.room, &arrows, CIRCLES, &mut findings),
            Err(error) => findings.error(error),
        }
    }
    findings
}

fn judge(name: &str, arrows: &Arrows, allowed: &[(&str, usize)], findings: &mut Findings) {
    let known = allowed.iter().find(|(listed, _)| *listed == name);
    let allowed = known.map_or(0, |(_, count)| *count);
    let members: Vec<&str> = arrows
        .keys()
        .map(String::as_str)
        .filter(|module| circle(arrows, module).is_some())
        .collect();
    let count = members.len();
    let list = "the list CIRCLES in xtask/src/layers/circles.rs";
    if count > allowed {
        let shortest = members.iter().filter_map(|module| circle(arrows, module));
        let shortest = shortest.min_by_key(Vec::len).unwrap_or_default();
        findings.error(format!(
            "{name}: {count} modules import each other in circles, {allowed} may: {}. A shortest circle: {}",
            members.join(", "),
            shortest.join(", ")
        ));
    } else if count < allowed {
        findings.remark(format!(
            "{name}: {count} modules import each other in circles now: write that for {allowed} into {list}"
        ));
    }
}

/// A shortest way from a module back to itself, each arrow with where it stands.
fn circle(arrows: &Arrows, start: &str) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(module) = next.pop_front() {
        for to in arrows.get(module).into_iter().flat_map(BTreeMap::keys) {
            if to == start {
                return Some(way(arrows, &came_from, start, module));
            }
            if !came_from.contains_key(to.as_str()) {
                came_from.insert(to, module);
                next.push_back(to);
            }
        }
    }
    None
}

fn way(arrows: &Arrows, came_from: &BTreeMap<&str, &str>, start: &str, last: &str) -> Vec<String> {
    let arrow = |from: &str, to: &str| {
        let place = arrows.get(from).and_then(|arrows| arrows.get(to));
        format!("{from} imports {to} ({})", place.map_or("", String::as_str))
    };
    let mut way = vec![arrow(last, start)];
    let mut module = last;
    while module != start {
        let Some(from) = came_from.get(module) else {
            break;
        };
        way.insert(0, arrow(from, module));
        module = from;
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrows(list: &[(&str, &str)]) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, to) in list {
            let place = format!("{from}.rs:1");
            arrows
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned(), place);
        }
        arrows
    }

    fn errors(list: &[(&str, &str)], allowed: &[(&str, usize)]) -> Vec<String> {
        let mut findings = Findings::default();
        judge("shop", &arrows(list), allowed, &mut findings);
        findings.errors
    }

    #[test]
    fn a_crate_in_one_direction_is_clean() {
        let list = [("till", "stock"), ("till", "price"), ("stock", "price")];
        assert_eq!(errors(&list, &[]), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_named_with_its_places() {
        let list = [("till", "stock"), ("stock", "price"), ("price", "stock")];
        assert_eq!(
            errors(&list, &[]),
            [
                "shop: 2 modules import each other in circles, 0 may: price, stock. A shortest circle: \
              price imports stock (price.rs:1), stock imports price (stock.rs:1)"
            ]
        );
    }

    #[test]
    fn a_number_in_the_list_only_becomes_smaller() {
        let list = [("till", "stock"), ("stock", "till")];
        assert_eq!(errors(&list, &[("shop", 2)]), Vec::<String>::new());
        assert!(errors(&list, &[("shop", 1)])[0].contains("2 modules import each other in circles, 1 may"));
        let mut findings = Findings::default();
        judge("shop", &arrows(&list), &[("shop", 3)], &mut findings);
        assert!(findings.errors.is_empty() && findings.remarks[0].contains("shop: 2 modules"));
    }
}
