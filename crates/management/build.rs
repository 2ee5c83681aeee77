//! Puts the built web UI (`ui/dist`, see `ui/pack.mjs`) into the binary. Without it the crate builds all the same, and the
//! listener says so on `/`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The forms in which a file is kept, and what they are called at the end of its name.
const FORMS: [(&str, &str); 3] = [("plain", ""), ("gzip", ".gz"), ("brotli", ".br")];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let built = here.join("../../ui/dist");
    println!("cargo::rerun-if-changed={}", built.display());
    let mut found = BTreeMap::new();
    if built.is_dir() {
        collect(&built, "", &mut found)?;
    }
    let mut table = String::from("&[\n");
    for (path, file) in &found {
        if FORMS[1..].iter().any(|(_, ending)| path.ends_with(ending)) {
            continue;
        }
        let mut hasher = DefaultHasher::new();
        hasher.write(&fs::read(file)?);
        let _ = write!(
            table,
            "File {{ path: {path:?}, tag: \"\\\"{:016x}\\\"\"",
            hasher.finish()
        );
        for (form, ending) in FORMS {
            match found.get(&format!("{path}{ending}")) {
                Some(file) if form == "plain" => {
                    let _ = write!(table, ", {form}: include_bytes!({file:?})");
                }
                Some(file) => {
                    let _ = write!(table, ", {form}: Some(include_bytes!({file:?}))");
                }
                None => {
                    let _ = write!(table, ", {form}: None");
                }
            }
        }
        table.push_str(" },\n");
    }
    table.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("web_ui.rs"), table)
}

/// Every file below a folder by its address. What begins with a dot is none of the UI's.
fn collect(folder: &Path, prefix: &str, found: &mut BTreeMap<String, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let address = format!("{prefix}/{name}");
        if name.starts_with('.') {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &address, found)?;
        } else {
            found.insert(address, entry.path().canonicalize()?);
        }
    }
    Ok(())
}
