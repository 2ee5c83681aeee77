//! What a benchmark found, for people: a page, Markdown and plots.
//!
//! Reading order: `document` says what is told in which order; it asks `summary`, `sweep`, `confirm_window`,
//! `over_time`, `percentiles` for drawings and `conditions`, `table`, `details` for the rest. `html` and `markdown`
//! write it down. `figure` and `words` know nothing of drawings; how one is drawn is in the crate `charts`.

mod conditions;
mod confirm_window;
mod details;
mod document;
mod figure;
mod html;
mod markdown;
mod over_time;
mod percentiles;
#[cfg(test)]
mod sample;
mod summary;
mod sweep;
mod table;
pub mod verdict;
mod words;

use crate::results::Results;
use document::Document;

/// The report as Markdown, which refers to the plots as `plots/NAME.svg`.
pub fn markdown(results: &Results) -> String {
    markdown::markdown(&Document::of(results))
}

/// The report as one page without outside parts.
pub fn html(results: &Results) -> String {
    html::html(&Document::of(results))
}

/// Each plot as a file name and its SVG, which stands alone.
pub fn svg(results: &Results) -> Vec<(String, String)> {
    let document = Document::of(results);
    document
        .drawings()
        .map(|d| (d.file_name(), d.stand_alone(&document.targets)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Machine;

    #[test]
    fn a_run_that_found_nothing_has_a_report_all_the_same() {
        let mut results = sample::results();
        for scenario in &mut results.scenarios {
            scenario.runs.clear();
        }
        results.machine = Machine::default();
        for text in [html(&results), markdown(&results)] {
            assert!(text.contains("not run"), "{text}");
            assert!(!text.contains("NaN"));
        }
        assert_eq!(svg(&results), Vec::new());
        results.scenarios.clear();
        results.targets.clear();
        assert!(html(&results).contains("</html>") && crate::table::found(&results).ends_with('\n'));
    }

    #[test]
    fn plots_are_files_of_their_own() {
        let drawn = svg(&sample::results());
        for (name, text) in &drawn {
            assert!(name.ends_with(".svg") && !name.contains('/'), "{name}");
            assert!(text.starts_with("<svg xmlns=") && text.ends_with("</svg>\n"));
            assert!(!text.contains("NaN") && !text.contains("inf"), "{name}");
        }
        assert!(drawn.iter().any(|(name, _)| name == "summary-cpu.svg"));
        assert!(drawn.iter().any(|(name, _)| name == "s004-drain-time.svg"));
    }
}
