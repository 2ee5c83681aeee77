//! A whole drawing: heading, legend, panels side by side or bars; within the page or as a file of its own.

use super::axis::Frame;
use super::bars::{self, BarGroup};
use super::panel::{Panel, Stroke};
use super::svg::{self, Anchor, Svg, escape, series_class, width_of};

const WIDTH: f64 = 860.0;
const MARGIN: f64 = 14.0;
const LEGEND_ROW: f64 = 20.0;
const PANEL_HEIGHT: f64 = 280.0;
const WIDE_HEIGHT: f64 = 330.0;

/// What a drawing shows.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Panels(Vec<Panel>),
    Bars(Vec<BarGroup>),
}

/// A drawing.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// Of the file, without `.svg`.
    pub name: String,
    pub title: String,
    /// How to read it, in a line; also for readers who hear the page.
    pub reading: String,
    /// What the strokes mean, as far as there are several.
    pub strokes: Vec<(Stroke, &'static str)>,
    pub content: Content,
}

impl Drawing {
    pub fn file_name(&self) -> String {
        format!("{}.svg", self.name)
    }

    /// As part of an HTML page, which has the style.
    pub fn inline(&self, targets: &[String]) -> String {
        let (body, height) = self.body(targets, 0.0);
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" role=\"img\" tabindex=\"0\" aria-label=\"{}\">{body}</svg>",
            escape(&format!("{}. {}", self.title, self.reading))
        )
    }

    /// As a file: with background, heading and style.
    pub fn stand_alone(&self, targets: &[String]) -> String {
        let (body, height) = self.body(targets, 30.0);
        let mut head = Svg::default();
        head.rect("bg", [0.0, 0.0, WIDTH, height]);
        let title = svg::cut(&self.title, 15.0, WIDTH - 2.0 * MARGIN);
        head.label("head", (MARGIN, 24.0), Anchor::Start, &title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH:.0} {height:.0}\" \
             width=\"{WIDTH:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{}\"><title>{}</title><style>{}</style>{}{body}</svg>\n",
            escape(&self.reading),
            escape(&self.title),
            svg::style(),
            head.into_text(),
        )
    }

    /// The drawing from a place downwards, and where it ends.
    fn body(&self, targets: &[String], top: f64) -> (String, f64) {
        let mut svg = Svg::default();
        let mut y = top + 6.0;
        match &self.content {
            Content::Bars(groups) => {
                bars::draw(&mut svg, groups, (MARGIN, y), WIDTH - 2.0 * MARGIN);
                y += bars::height(groups);
            }
            Content::Panels(panels) => {
                y = self.legend(&mut svg, targets, panels, y);
                y = draw_panels(&mut svg, panels, y);
            }
        }
        (svg.into_text(), y + 4.0)
    }

    fn legend(&self, svg: &mut Svg, targets: &[String], panels: &[Panel], top: f64) -> f64 {
        let (mut x, mut y) = (MARGIN, top);
        let mut place = |width: f64| {
            if x + width > WIDTH - MARGIN && x > MARGIN {
                (x, y) = (MARGIN, y + LEGEND_ROW);
            }
            let here = (x, y + 8.0);
            x += width;
            here
        };
        for (index, name) in targets.iter().enumerate() {
            if !panels.iter().any(|p| p.shows(index)) {
                continue;
            }
            let (x, y) = place(width_of(name, 12.0) + 42.0);
            svg.open(&format!("series {}", series_class(index)), None);
            svg.path(
                &format!("line {}", svg::colour_class(index)),
                &[(x, y), (x + 22.0, y)],
            );
            svg.marker(index, (x + 11.0, y), 4.2);
            svg.label("value", (x + 28.0, y + 4.0), Anchor::Start, name);
            svg.close();
        }
        for (stroke, meaning) in &self.strokes {
            let (x, y) = place(width_of(meaning, 12.0) + 46.0);
            let class = match stroke {
                Stroke::Solid => "line sample",
                Stroke::Dashed => "line dash sample",
                Stroke::Thin => "line thin sample",
            };
            svg.path(class, &[(x, y), (x + 26.0, y)]);
            svg.label("small", (x + 32.0, y + 4.0), Anchor::Start, meaning);
        }
        y + LEGEND_ROW
    }
}

impl Panel {
    fn shows(&self, target: usize) -> bool {
        self.lines.iter().any(|l| l.target == target) || self.missing.iter().any(|m| m.target == target)
    }
}

fn draw_panels(svg: &mut Svg, panels: &[Panel], top: f64) -> f64 {
    let columns = if panels.len() > 1 { 2 } else { 1 };
    let height = if columns == 1 { WIDE_HEIGHT } else { PANEL_HEIGHT };
    let width = WIDTH / columns as f64;
    for (index, panel) in panels.iter().enumerate() {
        let area = Frame {
            left: (index % columns) as f64 * width,
            top: top + (index / columns) as f64 * height,
            width,
            height,
        };
        panel.draw(svg, area);
    }
    top + panels.len().div_ceil(columns) as f64 * height
}

/// A name for files: small letters, digits and hyphens.
pub fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            slug.push(c.to_ascii_lowercase());
        } else if !slug.ends_with('-') {
            slug.push('-');
        }
    }
    slug.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_small_letters_digits_and_hyphens() {
        assert_eq!(slug("S000-CONS/10000@5 "), "s000-cons-10000-5");
        assert_eq!(slug("../../etc"), "etc");
    }

    #[test]
    fn a_drawing_alone_has_its_own_background_and_style_and_nothing_from_outside() {
        let drawing = Drawing {
            name: "x".to_owned(),
            title: "A <title>".to_owned(),
            reading: "how".to_owned(),
            strokes: Vec::new(),
            content: Content::Bars(Vec::new()),
        };
        let text = drawing.stand_alone(&[]);
        assert!(text.contains("class=\"bg\"") && text.contains("<style>"));
        assert!(text.contains("A &lt;title&gt;"));
        assert_eq!(text.matches("://").count(), 1, "only the name of the format");
        assert!(!drawing.inline(&[]).contains("://"));
    }
}
