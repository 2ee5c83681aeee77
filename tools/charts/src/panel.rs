//! One plot of lines: axes, points with whiskers, strips of phases, and marks where visits failed.

use super::axis::{Axis, Coordinate};
use super::pencil::{Area, Drawn, Pencil, Pixel, bold, cut, letters, small, width_of};
use super::theme::{AREA, FINE, GRID, SOFT, colour, ink};
use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::cartesian::Cartesian2d;
use plotters::prelude::{DashedLineSeries, SVGBackend};
use plotters::style::text_anchor::HPos;
use plotters::style::{Color, RGBAColor};

/// Room beside the plot for labels.
const LEFT: i32 = 62;
const RIGHT: i32 = 16;
const TOP: i32 = 30;
const BOTTOM: i32 = 46;
const STRIP: i32 = 15;
/// Lines with more points have small markers.
const CROWDED: usize = 12;

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Coordinate, Coordinate>>;

/// How a line is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stroke {
    Solid,
    Dashed,
    /// A round that is not the median one.
    Thin,
}

/// One line of a panel.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub target: usize,
    pub stroke: Stroke,
    /// By x.
    pub dots: Vec<Dot>,
}

/// A point of a line.
#[derive(Debug, Clone, PartialEq)]
pub struct Dot {
    pub x: f64,
    pub y: f64,
    /// The least and the greatest round.
    pub range: Option<(f64, f64)>,
    /// What pointing at it tells; without, it has no marker.
    pub tip: Option<String>,
}

/// A phase of a target's run, drawn as part of a strip above the lines: phases take each target its own time, so shading
/// the background would be true for one of them only.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub target: usize,
    pub name: String,
    pub tip: String,
    pub from: f64,
    pub to: f64,
}

/// A visit that failed, marked at the bottom.
#[derive(Debug, Clone, PartialEq)]
pub struct Missing {
    pub target: usize,
    pub x: f64,
    pub tip: String,
}

/// A plot of lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub title: String,
    pub x: Axis,
    pub y: Axis,
    pub lines: Vec<Line>,
    /// A line of no target: the rate that was asked for.
    pub asked: Vec<(f64, f64)>,
    pub spans: Vec<Span>,
    pub missing: Vec<Missing>,
}

impl Panel {
    /// Whether there is anything of a target in it.
    pub(crate) fn shows(&self, target: usize) -> bool {
        self.lines.iter().any(|l| l.target == target) || self.missing.iter().any(|m| m.target == target)
    }

    /// Draws it into a part of the drawing.
    pub(crate) fn draw(&self, pencil: &mut Pencil<'_>, area: &Area<'_>) -> Drawn {
        let (width, height) = area.dim_in_pixel();
        let (width, height) = (width as i32, height as i32);
        let (left, top) = area.get_base_pixel();
        let mut targets: Vec<usize> = self.spans.iter().map(|s| s.target).collect();
        targets.sort_unstable();
        targets.dedup();
        let strips = targets.len() as i32 * STRIP;
        let title = cut(&self.title, 13.0, f64::from(width - 24));
        pencil.text(&title, (left + 14, top + 13), &bold(13.0))?;
        let across = self.x.across(f64::from(width - LEFT - RIGHT));
        let upwards = self.y.upwards(f64::from(height - TOP - BOTTOM - strips));
        let mut chart = ChartBuilder::on(area)
            .margin_top(TOP + strips)
            .margin_right(RIGHT)
            .x_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(across, upwards)?;
        chart.plotting_area().fill(&AREA)?;
        // What is measured upwards is the heading, which is easier to read than a text on its side.
        chart
            .configure_mesh()
            .light_line_style(FINE)
            .bold_line_style(GRID)
            .axis_style(SOFT)
            .label_style(small(HPos::Center))
            .axis_desc_style(small(HPos::Center))
            .x_desc(self.x.title())
            .draw()?;
        for (row, target) in targets.iter().enumerate() {
            self.draw_strip(pencil, &chart, *target, top + TOP + row as i32 * STRIP)?;
        }
        if self.asked.len() > 1 {
            chart.draw_series(dashes(&self.asked, SOFT.to_rgba()))?;
        }
        // Markers of one target shall not hide under another's thin lines, nor the reference under who equals it.
        for stroke in [Stroke::Thin, Stroke::Dashed, Stroke::Solid] {
            for line in self.lines.iter().rev().filter(|l| l.stroke == stroke) {
                draw_line(pencil, &mut chart, line)?;
            }
        }
        self.draw_missing(pencil, &chart)
    }

    fn draw_strip(&self, pencil: &mut Pencil<'_>, chart: &Chart<'_, '_>, target: usize, top: i32) -> Drawn {
        let (_, bottom) = self.y.scale.ends();
        for (index, span) in self.spans.iter().filter(|s| s.target == target).enumerate() {
            let ((from, _), (to, _)) = (
                chart.backend_coord(&(span.from, bottom)),
                chart.backend_coord(&(span.to, bottom)),
            );
            let share = if index % 2 == 0 { 0.28 } else { 0.5 };
            let to = (to - 1).max(from + 1);
            pencil.rectangle(
                (from, top),
                (to, top + STRIP - 2),
                colour(target).mix(share).filled(),
            )?;
            if width_of(&span.name, 11.0) + 6.0 <= f64::from(to - from) {
                let style = letters(11.0, ink(target), HPos::Left);
                pencil.text(&span.name, (from + 4, top + STRIP / 2 - 1), &style)?;
            }
            pencil.wide_tip(target, (from, top), (to, top + STRIP - 2), &span.tip);
        }
        Ok(())
    }

    fn draw_missing(&self, pencil: &mut Pencil<'_>, chart: &Chart<'_, '_>) -> Drawn {
        let (_, bottom) = chart.plotting_area().get_pixel_range();
        for (index, missing) in self.missing.iter().enumerate() {
            let (low, _) = self.y.scale.ends();
            let (x, _) = chart.backend_coord(&(missing.x, low));
            // Those of several targets at one place stand beside each other.
            let (x, y) = (x + (index % 3) as i32 * 3 - 3, bottom.end - 8);
            let style = colour(missing.target).stroke_width(2);
            pencil.path(&[(x - 4, y - 4), (x + 4, y + 4)], style)?;
            pencil.path(&[(x - 4, y + 4), (x + 4, y - 4)], style)?;
            pencil.tip(missing.target, (x, y), &missing.tip);
        }
        Ok(())
    }
}

/// A dashed line of 6 px dashes and gaps of 4 px.
pub(crate) fn dashes<P: Clone>(
    points: &[P],
    colour: RGBAColor,
) -> DashedLineSeries<std::vec::IntoIter<P>, i32> {
    DashedLineSeries::new(points.to_vec(), 6, 4, colour.stroke_width(2))
}

fn draw_line(pencil: &mut Pencil<'_>, chart: &mut Chart<'_, '_>, line: &Line) -> Drawn {
    let colour = colour(line.target);
    let points: Vec<(f64, f64)> = line.dots.iter().map(|d| (d.x, d.y)).collect();
    let places: Vec<Pixel> = points.iter().map(|point| chart.backend_coord(point)).collect();
    if points.len() > 1 {
        match line.stroke {
            Stroke::Solid => pencil.path(&places, colour.stroke_width(2))?,
            Stroke::Thin => pencil.path(&places, colour.mix(0.4).stroke_width(1))?,
            Stroke::Dashed => drop(chart.draw_series(dashes(&points, colour.to_rgba()))?),
        }
    }
    for (dot, (x, y)) in line.dots.iter().zip(places) {
        if let Some((low, high)) = dot.range {
            let ((_, top), (_, bottom)) = (
                chart.backend_coord(&(dot.x, high)),
                chart.backend_coord(&(dot.x, low)),
            );
            let style = colour.mix(0.75).stroke_width(1);
            if bottom - top > 2 {
                pencil.path(&[(x, top), (x, bottom)], style)?;
                pencil.path(&[(x - 3, top), (x + 3, top)], style)?;
                pencil.path(&[(x - 3, bottom), (x + 3, bottom)], style)?;
            }
        }
        let Some(tip) = &dot.tip else {
            continue;
        };
        let large = line.stroke == Stroke::Solid && line.dots.len() <= CROWDED;
        pencil.marker(line.target, (x, y), if large { 4 } else { 3 })?;
        pencil.tip(line.target, (x, y), tip);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::axis::Quantity;
    use super::super::drawing::{Content, Drawing};
    use super::super::scale::Scale;
    use super::*;

    fn panel() -> Panel {
        let dot = |x, y, tip: Option<&str>| Dot {
            x,
            y,
            range: Some((y / 2.0, y * 2.0)),
            tip: tip.map(str::to_owned),
        };
        Panel {
            title: "Latency".to_owned(),
            x: Axis {
                label: "rate".to_owned(),
                quantity: Quantity::Count("msg/s".to_owned()),
                scale: Scale::of_sweep(&[100.0, 60_000.0]),
                at: Vec::new(),
            },
            y: Axis {
                label: "latency".to_owned(),
                quantity: Quantity::TimeUs,
                scale: Scale::log([50.0, 9_000.0]),
                at: Vec::new(),
            },
            lines: vec![Line {
                target: 1,
                stroke: Stroke::Solid,
                dots: vec![dot(100.0, 100.0, Some("a & b")), dot(60_000.0, 4_000.0, None)],
            }],
            asked: Vec::new(),
            spans: vec![Span {
                target: 1,
                name: "fill".to_owned(),
                tip: "b: fill, 2 s".to_owned(),
                from: 100.0,
                to: 1_000.0,
            }],
            missing: vec![Missing {
                target: 0,
                x: 1_000.0,
                tip: "failed: refused".to_owned(),
            }],
        }
    }

    #[test]
    fn lines_points_whiskers_phases_and_failures_are_drawn() {
        let drawing = Drawing {
            name: "x".to_owned(),
            title: "t".to_owned(),
            reading: "r".to_owned(),
            strokes: Vec::new(),
            content: Content::Panels(vec![panel()]),
        };
        let text = drawing.inline(&["a".to_owned(), "b".to_owned()]);
        for expected in [
            "<title>a &amp; b</title>",
            "<title>failed: refused</title>",
            "\nfill\n",
            "stroke=\"#C8500A\"",
            "rate (msg/s)",
            "1 ms",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert_eq!(text.matches("opacity=\"0.75\"").count(), 6, "whiskers");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
