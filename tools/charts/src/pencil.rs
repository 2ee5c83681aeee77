//! The shapes that charts are made of, at places in pixels, and the tips that pointing at them shows.

use super::theme::{INK, PAPER, SOFT, colour, escape};
use plotters::coord::Shift;
use plotters::element::{Circle, Drawable, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, DrawingAreaErrorKind, IntoFont, SVGBackend, ShapeStyle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, FontTransform, RGBColor, TextStyle};
use std::fmt::Write;

/// Nothing but the text grows, so nothing fails; the library's backends for files can.
pub type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;
pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A point of the drawing, in pixels.
pub type Pixel = (i32, i32);

/// `plotters` writes sizes of letters divided by this.
const LETTERS: f64 = 1.24;
/// Half the side of the square that shows a point's tip.
const REACH: i32 = 8;

/// Draws on the whole of a drawing.
pub struct Pencil<'a> {
    pub root: Area<'a>,
    /// What lies above all shapes, in SVG.
    pub tips: String,
}

impl Pencil<'_> {
    pub fn draw<'b, E>(&self, element: &'b E) -> Drawn
    where
        &'b E: plotters::element::PointCollection<'b, Pixel>,
        E: for<'c> Drawable<SVGBackend<'c>>,
    {
        self.root.draw(element)
    }

    pub fn text(&self, text: &str, place: Pixel, style: &TextStyle<'_>) -> Drawn {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        self.root.draw(&Text::new(text, place, style.clone()))
    }

    pub fn rectangle(&self, from: Pixel, to: Pixel, style: ShapeStyle) -> Drawn {
        self.root.draw(&Rectangle::new([from, to], style))
    }

    pub fn path(&self, points: &[Pixel], style: ShapeStyle) -> Drawn {
        self.root.draw(&PathElement::new(points, style))
    }

    /// A target's marker: another form for each of the first five, so that colour is not all that tells them apart.
    pub fn marker(&self, target: usize, place: Pixel, size: i32) -> Drawn {
        // An edge in the page's colour keeps it apart from the lines.
        self.form(target, place, size + 1, PAPER)?;
        self.form(target, place, size, colour(target))
    }

    fn form(&self, target: usize, (x, y): Pixel, size: i32, colour: RGBColor) -> Drawn {
        let style = colour.filled();
        let polygon = |corners: &[(f64, f64)]| {
            let far = |side: f64| (side * f64::from(size)).round() as i32;
            let corners: Vec<Pixel> = corners
                .iter()
                .map(|(dx, dy)| (x + far(*dx), y + far(*dy)))
                .collect();
            self.root.draw(&Polygon::new(corners, style))
        };
        match target % 5 {
            0 => self.root.draw(&Circle::new((x, y), size, style)),
            1 => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            2 => polygon(&[(0.0, -1.3), (1.2, 0.9), (-1.2, 0.9)]),
            3 => polygon(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
            _ => polygon(&[(0.0, 1.3), (1.2, -0.9), (-1.2, -0.9)]),
        }
    }

    /// What pointing at a place shows.
    pub fn tip(&mut self, target: usize, (x, y): Pixel, tip: &str) {
        self.wide_tip(target, (x - REACH, y - REACH), (x + REACH, y + REACH), tip);
    }

    /// The same for a rectangle.
    pub fn wide_tip(&mut self, target: usize, (left, top): Pixel, (right, bottom): Pixel, tip: &str) {
        let (width, height, tip) = (right - left, bottom - top, escape(tip));
        let _ = writeln!(
            self.tips,
            r#"<g class="pt s{target}"><title>{tip}</title><rect class="hit" x="{left}" y="{top}" width="{width}" height="{height}"/></g>"#
        );
    }
}

/// How a text is written: its size in pixels, and which point of it is its place.
pub fn letters(size: f64, colour: RGBColor, anchor: HPos) -> TextStyle<'static> {
    let font = ("sans-serif", size * LETTERS)
        .into_font()
        .transform(FontTransform::None);
    font.color(&colour).pos(Pos::new(anchor, VPos::Center))
}

/// Headings.
pub fn bold(size: f64) -> TextStyle<'static> {
    let font = ("sans-serif", size * LETTERS, FontStyle::Bold).into_font();
    font.color(&INK).pos(Pos::new(HPos::Left, VPos::Center))
}

/// Labels of axes and samples.
pub fn small(anchor: HPos) -> TextStyle<'static> {
    letters(11.0, SOFT, anchor)
}

/// About how wide a text is, in a sans-serif font of that size. Too wide rather than too narrow.
pub fn width_of(text: &str, size: f64) -> f64 {
    let units: f64 =
        text.chars()
            .map(|c| match c {
                'i' | 'j' | 'l' | 't' | 'f' | 'r' | '.' | ',' | ':' | '/' | '|' | ' ' | '(' | ')' | '['
                | ']' => 0.36,
                'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
                c if c.is_ascii_uppercase() => 0.7,
                _ => 0.6,
            })
            .sum();
    units * size
}

/// A text cut to a width, with an ellipsis where something is missing.
pub fn cut(text: &str, size: f64, width: f64) -> String {
    if width_of(text, size) <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    for c in text.chars() {
        if width_of(&short, size) + 2.0 * size > width {
            break;
        }
        short.push(c);
    }
    format!("{}…", short.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_to_their_width() {
        assert_eq!(cut("short", 12.0, 100.0), "short");
        let short = cut("a text that is much too long for its place", 12.0, 100.0);
        assert!(short.ends_with('…') && width_of(&short, 12.0) <= 110.0, "{short}");
    }
}
