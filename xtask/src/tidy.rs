//! What a compiler doesn't see: sizes, names, leftovers, documents that point nowhere.

mod documents;
pub mod functions;
mod leftovers;
mod names;
mod sizes;
mod widths;
mod words;

use crate::findings::Findings;
use crate::sources;
use crate::workspace;

/// Checks every file that Git tracks or would track.
///
/// # Errors
/// Git or Cargo can't be asked.
pub fn check() -> Result<Findings, String> {
    let sources = sources::all()?;
    let members: Vec<String> = workspace::packages()?.into_iter().map(|p| p.member).collect();
    let mut findings = sizes::check(&sources);
    findings.extend(functions::check(&sources));
    findings.extend(names::check(&sources));
    findings.extend(leftovers::check(&sources));
    findings.extend(widths::check(&sources));
    findings.extend(words::check(&sources));
    findings.extend(documents::check(&sources, &members));
    Ok(findings)
}
