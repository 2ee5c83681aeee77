//! The report as Markdown, in GitHub's flavour.

use super::document::{Block, Document};
use super::table::{Cell, Table};

/// The document; drawings are referred to as `plots/NAME.svg`.
pub fn markdown(document: &Document) -> String {
    let mut out = format!("# {}\n\n", plain(&document.title));
    for (name, text) in &document.facts {
        out.push_str(&format!("- {}: {}\n", plain(name), plain(text)));
    }
    for section in &document.sections {
        out.push_str(&format!("\n## {}\n\n", plain(&section.title)));
        let blocks: Vec<String> = section.blocks.iter().filter_map(block).collect();
        out.push_str(&blocks.join("\n"));
    }
    out
}

/// None for what is only worth unfolding: the JSON has it.
fn block(block: &Block) -> Option<String> {
    Some(match block {
        Block::Text(text) => format!("{}\n", plain(text)),
        Block::List(lines) => lines.iter().map(|line| format!("- {}\n", plain(line))).collect(),
        Block::Table(found) => table(found),
        Block::Folded(..) => return None,
        Block::Drawing(drawing) => format!(
            "![{}](plots/{})\n\n{}\n",
            plain(&drawing.title),
            drawing.file_name(),
            plain(&drawing.reading)
        ),
        Block::Commands(commands) => {
            let width = commands.iter().map(|(name, _)| name.chars().count()).max();
            let width = width.filter(|w| *w > 0).map_or(0, |w| w + 2);
            let lines: String = commands
                .iter()
                .map(|(name, line)| format!("{name:width$}{line}\n"))
                .collect();
            format!("```\n{}```\n", lines.replace("```", "` ` `"))
        }
    })
}

fn table(table: &Table) -> String {
    let mut out = String::new();
    let head: Vec<String> = table.head.iter().map(|h| plain(h)).collect();
    out.push_str(&format!("| {} |\n|", head.join(" | ")));
    for index in 0..table.head.len() {
        out.push_str(if index < table.numbers_from {
            "---|"
        } else {
            "--:|"
        });
    }
    out.push('\n');
    for row in &table.rows {
        let cells: Vec<String> = row.cells.iter().enumerate().map(cell).collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    if !table.notes.is_empty() {
        out.push('\n');
        for note in &table.notes {
            out.push_str(&format!("- {}\n", plain(note)));
        }
    }
    out
}

fn cell((index, cell): (usize, &Cell)) -> String {
    let text = plain(&cell.text);
    match &cell.note {
        // The first column's note is the scenario's title.
        Some(title) if index == 0 && !title.is_empty() => format!("{text}: {}", plain(title)),
        Some(note) if !note.is_empty() => format!("{text} {}", plain(note)),
        _ => text,
    }
}

/// A text in which nothing is taken for markup, and which stays in its line and cell.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '|' | '*' | '_' | '`' | '\\' | '#' => {
                out.push('\\');
                out.push(c);
            }
            '<' => out.push_str("&lt;"),
            '&' => out.push_str("&amp;"),
            '\n' | '\r' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::sample::results;
    use super::*;

    #[test]
    fn every_scenario_and_every_drawing_is_in_it() {
        let results = results();
        let document = Document::of(&results);
        let text = markdown(&document);
        for scenario in &results.scenarios {
            assert!(
                text.contains(&format!("| {}: ", scenario.name)),
                "{}",
                scenario.name
            );
        }
        for drawing in document.drawings() {
            assert!(text.contains(&format!("(plots/{})", drawing.file_name())));
        }
        assert!(text.contains("refused: the broker is gone"), "failed visits");
    }

    #[test]
    fn all_rows_of_a_table_have_as_many_cells_as_its_head() {
        let text = markdown(&Document::of(&results()));
        let cells = |line: &str| line.replace("\\|", "").matches('|').count();
        let mut head = None;
        for line in text.lines() {
            match (line.starts_with('|'), head) {
                (true, None) => head = Some(cells(line)),
                (true, Some(count)) => assert_eq!(cells(line), count, "{line}"),
                (false, _) => head = None,
            }
        }
    }

    #[test]
    fn names_cannot_break_the_table() {
        assert_eq!(plain("a|b\n*<i>"), "a\\|b \\*&lt;i>");
    }
}
