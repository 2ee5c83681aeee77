//! The workspace as Cargo describes it.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One crate of ours.
#[derive(Debug)]
pub struct Package {
    /// Its name in the workspace: the folder's name, such as `queue`.
    pub member: String,
    /// Its folder, absolute.
    pub dir: PathBuf,
    pub dependencies: Vec<Dependency>,
}

/// A direct dependency of a crate of ours.
#[derive(Debug)]
pub struct Dependency {
    /// The package's name, or the folder's if it is ours.
    pub name: String,
    pub ours: bool,
    pub kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Dev,
    Build,
}

/// A package that someone else publishes, as far as the lock file has it.
#[derive(Debug)]
pub struct Outside {
    pub name: String,
    pub version: String,
    /// An SPDX expression.
    pub licence: Option<String>,
    pub from_registry: bool,
}

/// The root of the repository.
pub fn root() -> PathBuf {
    // xtask lies directly below the root.
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

/// Our own crates with their direct dependencies.
///
/// # Errors
/// Cargo's own message.
pub fn packages() -> Result<Vec<Package>, String> {
    let value = metadata(&["--no-deps"])?;
    let all = array(&value, "packages");
    let member_of = |name: &str| {
        all.iter().find(|p| text(p, "name") == name).map(|p| {
            let dir = folder(p);
            (member(&dir), dir)
        })
    };
    let package = |p: &Value| {
        let (member, dir) = member_of(text(p, "name"))?;
        let dependencies = array(p, "dependencies")
            .iter()
            .map(|d| dependency(d, &member_of))
            .collect();
        Some(Package {
            member,
            dir,
            dependencies,
        })
    };
    Ok(all.iter().filter_map(package).collect())
}

fn dependency(value: &Value, member_of: &impl Fn(&str) -> Option<(String, PathBuf)>) -> Dependency {
    let ours = value.get("path").is_some_and(Value::is_string);
    let name = text(value, "name");
    let member = member_of(name).map(|(member, _)| member);
    let kind = match text(value, "kind") {
        "dev" => Kind::Dev,
        "build" => Kind::Build,
        _ => Kind::Normal,
    };
    Dependency {
        name: member.filter(|_| ours).unwrap_or_else(|| name.to_owned()),
        ours,
        kind,
    }
}

/// Every package of other people that the lock file has.
///
/// # Errors
/// Cargo's own message.
pub fn outside() -> Result<Vec<Outside>, String> {
    let value = metadata(&["--locked"])?;
    let one = |p: &Value| {
        let source = p.get("source").and_then(Value::as_str)?;
        Some(Outside {
            name: text(p, "name").to_owned(),
            version: text(p, "version").to_owned(),
            licence: p.get("license").and_then(Value::as_str).map(str::to_owned),
            from_registry: source.starts_with("registry+"),
        })
    };
    Ok(array(&value, "packages").iter().filter_map(one).collect())
}

fn metadata(options: &[&str]) -> Result<Value, String> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1"])
        .args(options)
        .current_dir(root())
        .output()
        .map_err(|e| format!("can't run cargo: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("cargo metadata: {e}"))
}

fn array<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value
        .get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn folder(package: &Value) -> PathBuf {
    Path::new(text(package, "manifest_path"))
        .parent()
        .map(Path::to_owned)
        .unwrap_or_default()
}

fn member(dir: &Path) -> String {
    dir.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
