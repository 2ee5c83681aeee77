//! The size of the sources, crate by crate.

use crate::sources::{self, Source};
use crate::tidy::functions;
use crate::workspace::{self, Kind, Package};
use std::path::Path;

/// One line of the table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Size {
    files: usize,
    lines: usize,
    functions: usize,
    tests: usize,
    stories: usize,
    dependencies: usize,
}

impl Size {
    fn add(&mut self, other: &Size) {
        self.files += other.files;
        self.lines += other.lines;
        self.functions += other.functions;
        self.tests += other.tests;
        self.stories += other.stories;
        self.dependencies += other.dependencies;
    }
}

/// Prints the table.
///
/// # Errors
/// Git or Cargo can't be asked.
pub fn print() -> Result<(), String> {
    let sources = sources::all()?;
    let root = workspace::root();
    println!(
        "{}",
        row(
            "member",
            &["files", "lines", "functions", "tests", "stories", "outside"].map(str::to_owned)
        )
    );
    let mut all = Size::default();
    for package in workspace::packages()? {
        let size = size(&package, &sources, &root);
        println!("{}", row(&package.member, &cells(&size)));
        all.add(&size);
    }
    println!("{}", row("all", &cells(&all)));
    println!(
        "outside: direct dependencies on crates of other people, tests' included (the sum counts one per crate of ours)"
    );
    println!("packages in the lock file: {}", workspace::outside()?.len());
    Ok(())
}

fn size(package: &Package, sources: &[Source], root: &Path) -> Size {
    let folder = package
        .dir
        .strip_prefix(root)
        .unwrap_or(&package.dir)
        .to_string_lossy()
        .into_owned()
        + "/";
    let mut size = Size {
        dependencies: package
            .dependencies
            .iter()
            .filter(|d| !d.ours && d.kind != Kind::Build)
            .count(),
        ..Size::default()
    };
    for source in sources.iter().filter(|s| s.path.starts_with(&folder)) {
        if source.is_rust() {
            let functions = functions::of(source).unwrap_or_default();
            size.files += 1;
            size.lines += source.text.lines().count();
            // By text, because properties stand inside a macro.
            size.tests += source
                .text
                .lines()
                .filter(|line| line.trim() == "#[test]")
                .count();
            size.functions += functions.len();
        } else if source.ending() == "txt" && source.path.contains("/stories/") {
            size.stories += stories(&source.text);
        }
    }
    size
}

/// A story file may hold several stories; each starts with its name, a sentence after `#`.
fn stories(text: &str) -> usize {
    text.lines().filter(|line| line.starts_with("# ")).count().max(1)
}

fn cells(size: &Size) -> [String; 6] {
    [
        size.files,
        size.lines,
        size.functions,
        size.tests,
        size.stories,
        size.dependencies,
    ]
    .map(|n| n.to_string())
}

fn row(name: &str, cells: &[String]) -> String {
    cells
        .iter()
        .fold(format!("{name:<12}"), |row, cell| format!("{row}{cell:>11}"))
}
