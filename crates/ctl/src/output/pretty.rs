//! Rows in a frame. RabbitMQ draws it with a terminal's line-drawing mode; the same lines as characters survive a file too.

use super::Rows;
use super::table::cell;

/// Writes rows in a frame; nothing for an empty list.
pub fn render(rows: &Rows) -> String {
    if rows.rows.is_empty() {
        return String::new();
    }
    let cells: Vec<Vec<String>> = rows
        .rows
        .iter()
        .map(|row| {
            let named = rows.columns.iter().zip(row);
            named.map(|(column, value)| cell(column, value)).collect()
        })
        .collect();
    let widths: Vec<usize> = (0..rows.columns.len())
        .map(|at| {
            let cells = cells.iter().filter_map(|row| row.get(at));
            let texts = cells.chain(rows.columns.get(at));
            texts.map(|text| text.chars().count()).max().unwrap_or(0)
        })
        .collect();
    let mut text = edge(&widths, ["┌", "┬", "┐"]);
    text.push_str(&line(&rows.columns, &widths));
    for row in &cells {
        text.push_str(&edge(&widths, ["├", "┼", "┤"]));
        text.push_str(&line(row, &widths));
    }
    text.push_str(&edge(&widths, ["└", "┴", "┘"]));
    text
}

fn edge(widths: &[usize], [left, middle, right]: [&str; 3]) -> String {
    let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    format!("{left}{}{right}\n", dashes.join(middle))
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let cells = cells.iter().zip(widths);
    let padded: Vec<String> = cells
        .map(|(text, width)| format!(" {text}{} ", " ".repeat(width - text.chars().count())))
        .collect();
    format!("│{}│\n", padded.join("│"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_frame_fits_what_is_in_it() {
        let rows = Rows {
            columns: vec!["name".into(), "n".into()],
            rows: vec![vec![json!("größe"), json!(10)]],
            ..Rows::default()
        };
        let expected = "┌───────┬────┐\n│ name  │ n  │\n├───────┼────┤\n│ größe │ 10 │\n└───────┴────┘\n";
        assert_eq!(render(&rows), expected);
    }
}
