//! A whole drawing: heading, legend, panels side by side or bars; within the page or as a file of its own.

use super::bars::{self, BarGroup};
use super::panel::{Panel, Stroke, dashes};
use super::pencil::{Drawn, Pencil, bold, cut, letters, small, width_of};
use super::theme::{self, INK, PAPER, SOFT, colour, escape};
use plotters::prelude::{IntoDrawingArea, SVGBackend};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, ShapeStyle};

const WIDTH: i32 = 860;
const MARGIN: i32 = 14;
const HEAD: i32 = 30;
const LEGEND_ROW: i32 = 20;
const PANEL_HEIGHT: i32 = 280;
const WIDE_HEIGHT: i32 = 330;

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
        let label = escape(&format!("{}. {}", self.title, self.reading));
        let (height, body) = self.body(targets, 0);
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" tabindex=\"0\" aria-label=\"{label}\">{body}</svg>"
        )
    }

    /// As a file: with background, heading and style.
    pub fn stand_alone(&self, targets: &[String]) -> String {
        let (height, body) = self.body(targets, HEAD);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"0 0 {WIDTH} {height}\" \
             width=\"{WIDTH}\" height=\"{height}\" role=\"img\" aria-label=\"{}\"><title>{}</title><style>{}</style>{body}</svg>\n",
            escape(&self.reading),
            escape(&self.title),
            theme::style(targets.len()),
        )
    }

    /// The drawing below a heading of this height: its whole height and its shapes.
    fn body(&self, targets: &[String], head: i32) -> (i32, String) {
        let panels: &[Panel] = match &self.content {
            Content::Panels(panels) => panels,
            Content::Bars(_) => &[],
        };
        let top = head + 6;
        let samples = self.samples(targets, panels, top);
        let below = samples.last().map_or(top, |sample| sample.y + LEGEND_ROW - 8);
        let height = 4 + match &self.content {
            Content::Bars(groups) => top + bars::height(groups),
            Content::Panels(panels) => below + rows(panels) * row_height(panels),
        };
        let text = sketch(WIDTH, height, |pencil| {
            if head > 0 {
                pencil.rectangle((0, 0), (WIDTH, height), PAPER.filled())?;
                let title = cut(&self.title, 15.0, f64::from(WIDTH - 2 * MARGIN));
                pencil.text(&title, (MARGIN, 19), &bold(15.0))?;
            }
            for sample in &samples {
                sample.draw(pencil)?;
            }
            match &self.content {
                Content::Bars(groups) => bars::draw(pencil, groups, (MARGIN, top), WIDTH - 2 * MARGIN),
                Content::Panels(panels) => draw_panels(pencil, panels, below),
            }
        });
        (height, text)
    }

    /// The legend: the targets that are in the plots, and what strokes mean.
    fn samples<'a>(&'a self, targets: &'a [String], panels: &[Panel], top: i32) -> Vec<Sample<'a>> {
        let shown = targets.iter().enumerate();
        let shown = shown.filter(|(index, _)| panels.iter().any(|p| p.shows(*index)));
        let shown = shown.map(|(index, name)| (Meaning::Target(index), name.as_str()));
        let strokes = self
            .strokes
            .iter()
            .map(|(stroke, text)| (Meaning::Stroke(*stroke), *text));
        let (mut x, mut y) = (MARGIN, top + 8);
        let mut samples = Vec::new();
        for (meaning, text) in shown.chain(strokes) {
            let width = width_of(text, 12.0) as i32 + 46;
            if x + width > WIDTH - MARGIN && x > MARGIN {
                (x, y) = (MARGIN, y + LEGEND_ROW);
            }
            samples.push(Sample { meaning, text, x, y });
            x += width;
        }
        samples
    }
}

/// A line of the legend.
struct Sample<'a> {
    meaning: Meaning,
    text: &'a str,
    x: i32,
    y: i32,
}

#[derive(Clone, Copy)]
enum Meaning {
    Target(usize),
    Stroke(Stroke),
}

impl Sample<'_> {
    fn draw(&self, pencil: &Pencil<'_>) -> Drawn {
        let Self { x, y, .. } = *self;
        let line = [(x, y), (x + 26, y)];
        let style = match self.meaning {
            Meaning::Target(target) => {
                draw_target(pencil, target, (x, y))?;
                letters(12.0, INK, HPos::Left)
            }
            Meaning::Stroke(stroke) => {
                match stroke {
                    Stroke::Solid => pencil.path(&line, SOFT.stroke_width(2))?,
                    Stroke::Thin => pencil.path(&line, SOFT.mix(0.4).stroke_width(1))?,
                    Stroke::Dashed => {
                        for dash in dashes(&line, SOFT.to_rgba()) {
                            pencil.draw(&dash)?;
                        }
                    }
                }
                small(HPos::Left)
            }
        };
        pencil.text(self.text, (x + 32, y), &style)
    }
}

/// A target's line with its marker, 26 px wide.
fn draw_target(pencil: &Pencil<'_>, target: usize, (x, y): (i32, i32)) -> Drawn {
    let style: ShapeStyle = colour(target).stroke_width(2);
    pencil.path(&[(x, y), (x + 26, y)], style)?;
    pencil.marker(target, (x + 13, y), 4)
}

/// A target's line with its marker, for a page.
pub fn target_sample(target: usize) -> String {
    let text = sketch(28, 14, |pencil| draw_target(pencil, target, (1, 7)));
    format!("<svg class=\"plot\" viewBox=\"0 0 28 14\" aria-hidden=\"true\">{text}</svg>")
}

/// A target's marker alone, for a table.
pub fn marker(target: usize) -> String {
    let text = sketch(12, 12, |pencil| pencil.marker(target, (6, 6), 4));
    format!(
        "<svg class=\"plot\" viewBox=\"0 0 12 12\" width=\"12\" height=\"12\" aria-hidden=\"true\">{text}</svg>"
    )
}

/// What is drawn on so many pixels, without the element around it, and the tips above it.
fn sketch(width: i32, height: i32, draw: impl FnOnce(&mut Pencil<'_>) -> Drawn) -> String {
    let size = (width.unsigned_abs(), height.unsigned_abs());
    let (mut text, mut tips) = (String::new(), String::new());
    let mut pencil = Pencil {
        root: SVGBackend::with_string(&mut text, size).into_drawing_area(),
        tips: String::new(),
    };
    let drawn = draw(&mut pencil).and_then(|()| pencil.root.present());
    debug_assert!(drawn.is_ok(), "{drawn:?}");
    tips.push_str(&pencil.tips);
    drop(pencil);
    let shapes = text.split_once('>').map_or("", |(_, shapes)| shapes);
    let shapes = shapes.trim_end().strip_suffix("</svg>").unwrap_or(shapes);
    format!("{shapes}{tips}")
}

fn columns(panels: &[Panel]) -> i32 {
    if panels.len() > 1 { 2 } else { 1 }
}

fn rows(panels: &[Panel]) -> i32 {
    panels.len().div_ceil(columns(panels) as usize) as i32
}

fn row_height(panels: &[Panel]) -> i32 {
    if columns(panels) == 1 {
        WIDE_HEIGHT
    } else {
        PANEL_HEIGHT
    }
}

fn draw_panels(pencil: &mut Pencil<'_>, panels: &[Panel], top: i32) -> Drawn {
    let (columns, height) = (columns(panels), row_height(panels));
    let width = WIDTH / columns;
    for (index, panel) in panels.iter().enumerate() {
        let (row, column) = (index as i32 / columns, index as i32 % columns);
        let (left, top) = (column * width, top + row * height);
        let area = pencil
            .root
            .clone()
            .shrink((left, top), (width.unsigned_abs(), height.unsigned_abs()));
        panel.draw(pencil, &area)?;
    }
    Ok(())
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
        assert!(text.contains("fill=\"#FFFFFF\"") && text.contains("<style>"));
        assert!(text.contains("A &lt;title&gt;"));
        assert_eq!(text.matches("://").count(), 1, "only the name of the format");
        assert!(!drawing.inline(&[]).contains("://"));
    }
}
