//! The text files of the repository: what Git tracks or would track.

use crate::workspace;
use std::fs;
use std::path::Path;
use std::process::Command;

/// One file with its text.
pub struct Source {
    /// Relative to the root, with `/`.
    pub path: String,
    pub text: String,
}

impl Source {
    /// The ending after the last dot of the file's name; empty without one.
    pub fn ending(&self) -> &str {
        self.name().rsplit_once('.').map_or("", |(_, ending)| ending)
    }

    /// The file's name.
    pub fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    pub fn is_rust(&self) -> bool {
        self.ending() == "rs"
    }
}

/// Reads every text file, sorted by path. Files that aren't UTF-8 are left out.
///
/// # Errors
/// Git's own message.
pub fn all() -> Result<Vec<Source>, String> {
    let root = workspace::root();
    let output = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()
        .map_err(|e| format!("can't run git: {e}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let list = String::from_utf8_lossy(&output.stdout);
    let mut paths: Vec<&str> = list.split('\0').filter(|path| !path.is_empty()).collect();
    paths.sort_unstable();
    paths.dedup();
    Ok(paths.into_iter().filter_map(|path| read(&root, path)).collect())
}

fn read(root: &Path, path: &str) -> Option<Source> {
    let text = fs::read_to_string(root.join(path)).ok()?;
    Some(Source {
        path: path.to_owned(),
        text,
    })
}
