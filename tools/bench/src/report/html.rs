//! The report as one page: no file beside it, nothing from a network, readable without its script.

use super::document::{Block, Document, Section};
use super::table::{Cell, Row, Table};
use charts::drawing::slug;
use charts::drawing::{marker, target_sample};
use charts::theme::{self, FONTS, escape};

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn html(document: &Document) -> String {
    let title = escape(&document.title);
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title}</title>\n<style>\n\
         body{{font-family:{FONTS}}}\n{CSS}{}{}</style></head>\n<body>\n",
        theme::style(document.targets.len()),
        (0..document.targets.len()).map(theme::hiding).collect::<String>(),
    );
    out.push_str(&format!("<header><h1>{title}</h1>\n<dl>"));
    for (name, text) in &document.facts {
        out.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), escape(text)));
    }
    out.push_str("</dl>\n");
    out.push_str(&contents(document));
    out.push_str("</header>\n");
    out.push_str(&switches(document));
    out.push_str("<main>\n");
    for section in &document.sections {
        out.push_str(&section_html(section, &document.targets));
    }
    out.push_str("<footer>Written by leveret bench. results.json beside this page has every figure.</footer>\n</main>\n");
    out.push_str(&format!(
        "<div id=\"tip\" role=\"status\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body></html>\n"
    ));
    out
}

/// A box for each target, with its line and marker.
fn switches(document: &Document) -> String {
    if document.targets.len() < 2 {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"bar-top\"><div role=\"group\" aria-label=\"Targets shown in plots\"><span>In plots:</span>",
    );
    for (index, name) in document.targets.iter().enumerate() {
        out.push_str(&format!(
            "<label><input type=\"checkbox\" id=\"show-{index}\" checked>{}{}</label>",
            target_sample(index),
            escape(name)
        ));
    }
    out.push_str(
        "<span>Point at anything, or select a plot and use the arrow keys, for figures.</span></div></div>\n",
    );
    out
}

fn contents(document: &Document) -> String {
    let items: String = document
        .sections
        .iter()
        .map(|s| {
            format!(
                "<li><a href=\"#{}\">{}</a></li>",
                slug(&s.title),
                escape(&s.title)
            )
        })
        .collect();
    format!("<nav aria-label=\"Contents\"><ol>{items}</ol></nav>\n")
}

fn section_html(section: &Section, targets: &[String]) -> String {
    let class = if section.title.contains("failed") {
        " class=\"warn\""
    } else {
        ""
    };
    let mut out = format!(
        "<section id=\"{}\"{class}><h2>{}</h2>\n",
        slug(&section.title),
        escape(&section.title)
    );
    for block in &section.blocks {
        out.push_str(&block_html(block, targets));
    }
    out.push_str("</section>\n");
    out
}

fn block_html(block: &Block, targets: &[String]) -> String {
    match block {
        Block::Text(text) => format!("<p>{}</p>\n", escape(text)),
        Block::List(lines) => {
            let items: String = lines
                .iter()
                .map(|line| format!("<li>{}</li>", escape(line)))
                .collect();
            format!("<ul>{items}</ul>\n")
        }
        Block::Table(table) => table_html(table),
        Block::Folded(name, table) => format!(
            "<details><summary>{}</summary>{}</details>\n",
            escape(name),
            table_html(table)
        ),
        Block::Drawing(drawing) => format!(
            "<figure><figcaption><b>{}</b><span>{}</span></figcaption>{}</figure>\n",
            escape(&drawing.title),
            escape(&drawing.reading),
            drawing.inline(targets)
        ),
        Block::Commands(commands) => {
            let lines: Vec<String> = commands
                .iter()
                .map(|(name, line)| match name.as_str() {
                    "" => escape(line),
                    name => format!("<b># {}</b>\n{}", escape(name), escape(line)),
                })
                .collect();
            format!("<pre>{}</pre>\n", lines.join("\n"))
        }
    }
}

fn table_html(table: &Table) -> String {
    let mut out = String::from(
        "<div class=\"wide\" role=\"region\" aria-label=\"Table\" tabindex=\"0\"><table><thead><tr>",
    );
    for (index, head) in table.head.iter().enumerate() {
        let class = number_class(table, index);
        out.push_str(&format!("<th scope=\"col\"{class}>{}</th>", escape(head)));
    }
    out.push_str("</tr></thead><tbody>\n");
    for (at, row) in table.rows.iter().enumerate() {
        out.push_str(if row.first { "<tr class=\"first\">" } else { "<tr>" });
        let rows = spanned(table, at);
        for (index, cell) in row.cells.iter().enumerate() {
            if index > 0 || rows > 0 {
                out.push_str(&cell_html(table, row, index, cell, rows));
            }
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    if !table.notes.is_empty() {
        let notes: String = table
            .notes
            .iter()
            .map(|note| format!("<li>{}</li>", escape(note)))
            .collect();
        out.push_str(&format!("<ul class=\"notes\">{notes}</ul>\n"));
    }
    out
}

/// How many rows the first cell of a row spans: its own and those below that leave it empty. 0 for those.
fn spanned(table: &Table, at: usize) -> usize {
    let is_empty = |row: &Row| !row.first && row.cells.first().is_some_and(|c| c.text.is_empty());
    if table.rows.get(at).is_some_and(is_empty) {
        return 0;
    }
    1 + table.rows.iter().skip(at + 1).take_while(|r| is_empty(r)).count()
}

fn number_class(table: &Table, index: usize) -> &'static str {
    if index >= table.numbers_from {
        " class=\"n\""
    } else {
        ""
    }
}

fn cell_html(table: &Table, row: &Row, index: usize, cell: &Cell, rows: usize) -> String {
    let head = table.head.get(index).map_or("", String::as_str);
    let class = match head {
        _ if cell.text.starts_with("no difference") => " class=\"n ratio same\"",
        head if head.ends_with(" ×") => " class=\"n ratio\"",
        "Target" => " class=\"t\"",
        _ => number_class(table, index),
    };
    let text = match (&cell.why, head, row.target) {
        (Some(why), ..) => format!(
            "<span class=\"why\" title=\"{}\">{}</span>",
            escape(why),
            escape(&cell.text)
        ),
        (None, "Target", Some(target)) => {
            format!("{} {}", marker(target), escape(&cell.text))
        }
        (None, "Scenario", _) if !cell.text.is_empty() => format!("<b>{}</b>", escape(&cell.text)),
        _ => escape(&cell.text),
    };
    let note = cell
        .note
        .as_ref()
        .map_or_else(String::new, |note| format!("<small>{}</small>", escape(note)));
    let span = if index == 0 && rows > 1 {
        format!(" rowspan=\"{rows}\"")
    } else {
        String::new()
    };
    format!("<td{class}{span}>{text}{note}</td>")
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    fn page() -> String {
        html(&Document::of(&results()))
    }

    #[test]
    fn nothing_comes_from_outside() {
        let mut results = results();
        // The addresses of the brokers are text, not references.
        for target in &mut results.targets {
            target.uri_shown = String::new();
        }
        let page = html(&Document::of(&results));
        for forbidden in ["://", "src=", "@import", "url(", "<link", "<iframe", "fetch("] {
            assert!(!page.contains(forbidden), "{forbidden} is in the page");
        }
    }

    #[test]
    fn every_scenario_and_every_failed_visit_is_in_it() {
        let page = page();
        for scenario in &results().scenarios {
            assert!(
                page.contains(&format!("<b>{}</b>", scenario.name)),
                "{}",
                scenario.name
            );
            assert!(
                page.contains(&format!("<b># {}</b>", scenario.name)),
                "{}",
                scenario.name
            );
        }
        assert!(page.contains("refused: the broker is gone"));
        assert!(page.contains("id=\"visits-without-figures\""));
    }

    #[test]
    fn names_cannot_break_out_of_the_page() {
        let mut results = results();
        results.title = "</title><script>x()</script>".to_owned();
        results.targets[1].name = "<img onerror='y'>".to_owned();
        results.scenarios[0].title = "\"><b onclick=z>".to_owned();
        let page = html(&Document::of(&results));
        for forbidden in ["<script>x", "<img", "<b onclick"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn elements_are_closed() {
        let page = page();
        let body = page.split("<body>").nth(1).unwrap();
        for name in [
            "section", "table", "tr", "td", "figure", "svg", "g", "details", "ul", "pre",
        ] {
            let opened =
                body.matches(&format!("<{name}>")).count() + body.matches(&format!("<{name} ")).count();
            let closed = body.matches(&format!("</{name}>")).count();
            assert_eq!(opened, closed, "{name}");
        }
    }

    #[test]
    fn one_target_alone_needs_no_switches_and_no_ratios() {
        let mut results = results();
        results.targets.truncate(1);
        for scenario in &mut results.scenarios {
            scenario.runs.retain(|run| run.target == 0);
        }
        let page = html(&Document::of(&results));
        assert!(!page.contains("type=\"checkbox\"") && !page.contains("CPU ×"));
    }
}
