//! No circle among the top-level modules of a crate: one direction, so that a reader finds a place to begin.

use super::modules::{self, Arrows};
use crate::findings::Findings;
use crate::sources::Source;
use crate::workspace::{self, Package};
use std::collections::{BTreeMap, VecDeque};

/// Looks at every crate.
pub fn check(packages: &[Package], sources: &[Source]) -> Findings {
    let mut findings = Findings::default();
    let root = workspace::root();
    for package in packages {
        let folder = package.dir.strip_prefix(&root).unwrap_or(&package.dir);
        match modules::arrows(&folder.to_string_lossy(), sources) {
            Ok(arrows) => judge(&package.member, &arrows, &mut findings),
            Err(error) => findings.error(error),
        }
    }
    findings
}

fn judge(name: &str, arrows: &Arrows, findings: &mut Findings) {
    let members = arrows.keys();
    let circles = members.filter_map(|module| Some((module.as_str(), circle(arrows, module)?)));
    let (members, circles): (Vec<&str>, Vec<Vec<String>>) = circles.unzip();
    if let Some(shortest) = circles.into_iter().min_by_key(Vec::len) {
        findings.error(format!(
            "{name}: {} modules import each other in circles: {}. A shortest circle: {}",
            members.len(),
            members.join(", "),
            shortest.join(", ")
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

    fn errors(list: &[(&str, &str)]) -> Vec<String> {
        let mut findings = Findings::default();
        judge("shop", &arrows(list), &mut findings);
        findings.errors
    }

    #[test]
    fn a_crate_in_one_direction_is_clean() {
        let list = [("till", "stock"), ("till", "price"), ("stock", "price")];
        assert_eq!(errors(&list), Vec::<String>::new());
    }

    #[test]
    fn a_circle_is_named_with_its_places() {
        let list = [("till", "stock"), ("stock", "price"), ("price", "stock")];
        assert_eq!(
            errors(&list),
            [
                "shop: 2 modules import each other in circles: price, stock. A shortest circle: \
              price imports stock (price.rs:1), stock imports price (stock.rs:1)"
            ]
        );
    }
}
