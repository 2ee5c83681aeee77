//! What a benchmark found, for people.

use crate::results::Results;

/// The report as Markdown.
pub fn markdown(results: &Results) -> String {
    format!("# {}\n", results.title)
}

/// The report as one page without outside parts.
pub fn html(results: &Results) -> String {
    format!("<!doctype html><title>{}</title>\n", results.title)
}

/// Each plot as a file name and its SVG.
pub fn svg(_results: &Results) -> Vec<(String, String)> {
    Vec::new()
}
