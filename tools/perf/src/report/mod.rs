//! What is told during a run and at its end: lines on the console, rows in a CSV file, one JSON object, an HDR log, and a
//! bar on a terminal. Measures nothing: [`Sample`](crate::measure::Sample)s come in.
//!
//! [`Reports`] hands each sample to all of them. [`figures`](Figures) turns counts into what is shown, [`console`] and
//! [`csv`] lay it out as PerfTest does, [`json`] is ours.

mod console;
mod csv;
mod end;
mod figures;
pub(crate) mod hdr;
pub mod json;
mod parts;
pub(crate) mod progress;
mod reports;
#[cfg(test)]
pub(crate) mod trial;

pub use end::End;
pub use figures::Figures;
pub use figures::per_second;
pub use parts::Parts;
pub use reports::Reports;

use crate::failure::Failure;
use std::fs::File;
use std::io;
use std::path::Path;

/// Creates or empties a file for results.
fn create(path: &Path) -> Result<File, Failure> {
    File::create(path).map_err(|error| cannot_write(path, &error))
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::File(format!(
        "cannot write {}: {error}. Name a file in a folder that exists and can be written to",
        path.display()
    ))
}
