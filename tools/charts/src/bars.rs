//! Horizontal bars: for each scenario a bar for each target, with its figure and ratio as text.

use super::pencil::{Drawn, Pencil, Pixel, bold, cut, letters};
use super::theme::{INK, colour, ink};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

const NAME_WIDTH: i32 = 118;
const BAR_WIDTH: f64 = 330.0;
const BAR: i32 = 15;
const ROW: i32 = 20;
const HEAD: i32 = 22;
const GAP: i32 = 12;

/// The bars of one scenario. They have a scale of their own: the longest takes the width.
#[derive(Debug, Clone, PartialEq)]
pub struct BarGroup {
    pub name: String,
    pub title: String,
    pub bars: Vec<Bar>,
}

/// A target's bar.
#[derive(Debug, Clone, PartialEq)]
pub struct Bar {
    pub target: usize,
    pub label: String,
    /// None is told as a dash with the text behind it.
    pub value: Option<f64>,
    pub range: Option<(f64, f64)>,
    /// Behind the bar.
    pub text: String,
}

/// The height that the bars take.
pub(crate) fn height(groups: &[BarGroup]) -> i32 {
    groups
        .iter()
        .map(|g| HEAD + ROW * g.bars.len() as i32 + GAP)
        .sum()
}

/// Draws the bars of all scenarios from a place downwards.
pub(crate) fn draw(pencil: &mut Pencil<'_>, groups: &[BarGroup], (left, top): Pixel, width: i32) -> Drawn {
    let mut y = top;
    for group in groups {
        let name = format!("{}  {}", group.name, group.title);
        pencil.text(&cut(&name, 13.0, width.into()), (left, y + 10), &bold(13.0))?;
        y += HEAD;
        let most = group
            .bars
            .iter()
            .flat_map(|b| [b.value, b.range.map(|(_, high)| high)])
            .flatten()
            .fold(f64::MIN_POSITIVE, f64::max);
        for bar in &group.bars {
            draw_bar(pencil, bar, most, (left, y), width)?;
            y += ROW;
        }
        y += GAP;
    }
    Ok(())
}

fn draw_bar(pencil: &mut Pencil<'_>, bar: &Bar, most: f64, (left, y): Pixel, width: i32) -> Drawn {
    let (from, middle, letter) = (left + NAME_WIDTH, y + BAR / 2, ink(bar.target));
    let end_of = |value: f64| from + ((value / most).clamp(0.0, 1.0) * BAR_WIDTH) as i32;
    let mut end = from;
    let label = cut(&bar.label, 12.0, f64::from(NAME_WIDTH - 8));
    pencil.text(&label, (from - 8, middle), &letters(12.0, letter, HPos::Right))?;
    if let Some(value) = bar.value {
        end = end_of(value);
        pencil.rectangle(
            (from, y),
            (end.max(from + 2), y + BAR),
            colour(bar.target).filled(),
        )?;
    }
    if let Some((low, high)) = bar.range.filter(|(low, high)| end_of(*high) - end_of(*low) > 2) {
        let (low, high) = (end_of(low), end_of(high));
        let style = INK.mix(0.7).stroke_width(1);
        pencil.path(&[(low, middle), (high, middle)], style)?;
        for x in [low, high] {
            pencil.path(&[(x, middle - 3), (x, middle + 3)], style)?;
        }
        end = end.max(high);
    }
    let text = cut(&bar.text, 12.0, f64::from(left + width - end - 8));
    pencil.text(&text, (end + 8, middle), &letters(12.0, letter, HPos::Left))?;
    pencil.wide_tip(
        bar.target,
        (left, y),
        (left + width, y + BAR),
        &format!("{}: {}", bar.label, bar.text),
    );
    Ok(())
}
