//! Horizontal bars: for each scenario a bar for each target, with its figure and ratio as text.

use super::svg::{Anchor, Svg, colour_class, cut, series_class};

const NAME_WIDTH: f64 = 118.0;
const BAR_WIDTH: f64 = 330.0;
const BAR: f64 = 15.0;
const ROW: f64 = 20.0;
const HEAD: f64 = 22.0;
const GAP: f64 = 12.0;

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
pub fn height(groups: &[BarGroup]) -> f64 {
    groups
        .iter()
        .map(|g| HEAD + ROW * g.bars.len() as f64 + GAP)
        .sum()
}

/// Draws the bars of all scenarios from a place downwards.
pub fn draw(svg: &mut Svg, groups: &[BarGroup], (left, top): (f64, f64), width: f64) {
    let mut y = top;
    for group in groups {
        let name = format!("{}  {}", group.name, group.title);
        svg.label("bold", (left, y + 14.0), Anchor::Start, &cut(&name, 13.0, width));
        y += HEAD;
        let most = group
            .bars
            .iter()
            .flat_map(|b| [b.value, b.range.map(|(_, high)| high)])
            .flatten()
            .fold(f64::MIN_POSITIVE, f64::max);
        for bar in &group.bars {
            draw_bar(svg, bar, most, (left, y), width);
            y += ROW;
        }
        y += GAP;
    }
}

fn draw_bar(svg: &mut Svg, bar: &Bar, most: f64, (left, y): (f64, f64), width: f64) {
    let from = left + NAME_WIDTH;
    let long = |value: f64| (value / most).clamp(0.0, 1.0) * BAR_WIDTH;
    let mut end = from;
    svg.open(&format!("series {}", series_class(bar.target)), None);
    svg.open("pt", Some(&format!("{}: {}", bar.label, bar.text)));
    let label = cut(&bar.label, 12.0, NAME_WIDTH - 8.0);
    svg.label("small", (from - 8.0, y + 12.0), Anchor::End, &label);
    if let Some(value) = bar.value {
        let class = format!("bar {}", colour_class(bar.target));
        svg.rect(&class, [from, y, long(value).max(1.5), BAR]);
        end = from + long(value);
    }
    if let Some((low, high)) = bar.range.filter(|(low, high)| long(*high) - long(*low) > 2.0) {
        let middle = y + BAR / 2.0;
        svg.line("range", [from + long(low), middle, from + long(high), middle]);
        for x in [from + long(low), from + long(high)] {
            svg.line("range", [x, middle - 3.0, x, middle + 3.0]);
        }
        end = end.max(from + long(high));
    }
    let text = cut(&bar.text, 12.0, left + width - end - 8.0);
    svg.label("value", (end + 8.0, y + 12.0), Anchor::Start, &text);
    svg.close();
    svg.close();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_figure_is_told_where_its_bar_would_be() {
        let bar = |target, value, text: &str| Bar {
            target,
            label: format!("broker {target}"),
            value,
            range: None,
            text: text.to_owned(),
        };
        let groups = [BarGroup {
            name: "T1".to_owned(),
            title: "1→1".to_owned(),
            bars: vec![
                bar(0, Some(8e6), "8,000,000/s"),
                bar(1, None, "– failed: refused"),
            ],
        }];
        let mut svg = Svg::default();
        draw(&mut svg, &groups, (0.0, 0.0), 860.0);
        let text = svg.into_text();
        assert_eq!(text.matches("class=\"bar ").count(), 1);
        assert!(text.contains("– failed: refused</text>"), "{text}");
        assert!(text.contains(&format!("width=\"{BAR_WIDTH:.1}\"")), "{text}");
        assert_eq!(height(&groups), HEAD + 2.0 * ROW + GAP);
    }
}
