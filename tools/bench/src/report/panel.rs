//! One plot of lines: axes, points with whiskers, strips of phases, and marks where visits failed.

use super::axis::{Axis, Frame};
use super::svg::{Anchor, Svg, colour_class, cut, series_class, width_of};

/// Room beside the frame for labels.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 30.0;
const BOTTOM: f64 = 46.0;
const STRIP: f64 = 15.0;

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
    /// Draws it into a rectangle.
    pub fn draw(&self, svg: &mut Svg, area: Frame) {
        let mut targets: Vec<usize> = self.spans.iter().map(|s| s.target).collect();
        targets.sort_unstable();
        targets.dedup();
        let strips = targets.len() as f64 * STRIP;
        let frame = Frame {
            left: area.left + LEFT,
            top: area.top + TOP + strips,
            width: area.width - LEFT - RIGHT,
            height: area.height - TOP - BOTTOM - strips,
        };
        let title = cut(&self.title, 13.0, area.width - 24.0);
        svg.label("bold", (area.left + 14.0, area.top + 17.0), Anchor::Start, &title);
        svg.rect("area", [frame.left, frame.top, frame.width, frame.height]);
        self.y.draw_y(svg, frame);
        self.x.draw_x(svg, frame);
        for (row, target) in targets.iter().enumerate() {
            self.draw_strip(svg, frame, *target, area.top + TOP + row as f64 * STRIP);
        }
        let asked: Vec<(f64, f64)> = self
            .asked
            .iter()
            .map(|(x, y)| self.place(frame, *x, *y))
            .collect();
        if asked.len() > 1 {
            svg.path("line dash sample", &asked);
        }
        // Markers of one target shall not hide under another's thin lines, nor the reference under who equals it.
        for stroke in [Stroke::Thin, Stroke::Dashed, Stroke::Solid] {
            for line in self.lines.iter().rev().filter(|l| l.stroke == stroke) {
                self.draw_line(svg, frame, line);
            }
        }
        for (index, missing) in self.missing.iter().enumerate() {
            let x = frame.left + frame.width * self.x.scale.at(missing.x) + (index % 3) as f64 * 3.0 - 3.0;
            let y = frame.bottom() - 8.0;
            let class = format!("pt series {}", series_class(missing.target));
            svg.open(&class, Some(&missing.tip));
            let class = format!("fail {}", colour_class(missing.target));
            svg.path(&class, &[(x - 4.0, y - 4.0), (x + 4.0, y + 4.0)]);
            svg.path(&class, &[(x - 4.0, y + 4.0), (x + 4.0, y - 4.0)]);
            svg.rect("hit", [x - 8.0, y - 8.0, 16.0, 16.0]);
            svg.close();
        }
    }

    fn place(&self, frame: Frame, x: f64, y: f64) -> (f64, f64) {
        (
            frame.left + frame.width * self.x.scale.at(x),
            frame.bottom() - frame.height * self.y.scale.at(y),
        )
    }

    fn draw_strip(&self, svg: &mut Svg, frame: Frame, target: usize, top: f64) {
        let x_of = |value: f64| frame.left + frame.width * self.x.scale.at(value);
        for (index, span) in self.spans.iter().filter(|s| s.target == target).enumerate() {
            let (from, to) = (x_of(span.from), x_of(span.to));
            let parity = if index % 2 == 0 { "odd" } else { "even" };
            let class = format!("strip {parity} {}", colour_class(target));
            svg.open(&format!("pt series {}", series_class(target)), Some(&span.tip));
            svg.rect(&class, [from, top, (to - from - 1.0).max(1.0), STRIP - 2.0]);
            if width_of(&span.name, 11.0) + 6.0 <= to - from {
                svg.label("inside", (from + 4.0, top + 10.0), Anchor::Start, &span.name);
            }
            svg.close();
        }
    }

    fn draw_line(&self, svg: &mut Svg, frame: Frame, line: &Line) {
        let colour = colour_class(line.target);
        let place = |x: f64, y: f64| self.place(frame, x, y);
        svg.open(&format!("series {}", series_class(line.target)), None);
        let class = match line.stroke {
            Stroke::Solid => "line",
            Stroke::Dashed => "line dash",
            Stroke::Thin => "line thin",
        };
        let points: Vec<(f64, f64)> = line.dots.iter().map(|d| place(d.x, d.y)).collect();
        if points.len() > 1 {
            svg.path(&format!("{class} {colour}"), &points);
        }
        for (dot, (x, y)) in line.dots.iter().zip(&points) {
            if let Some((low, high)) = dot.range {
                let ((_, top), (_, bottom)) = (place(dot.x, high), place(dot.x, low));
                let class = format!("whisker {colour}");
                if bottom - top > 2.0 {
                    svg.path(&class, &[(*x, top), (*x, bottom)]);
                    svg.path(&class, &[(x - 3.0, top), (x + 3.0, top)]);
                    svg.path(&class, &[(x - 3.0, bottom), (x + 3.0, bottom)]);
                }
            }
            let Some(tip) = &dot.tip else {
                continue;
            };
            svg.open("pt", Some(tip));
            let crowded = line.dots.len() > 12;
            let size = if line.stroke == Stroke::Solid && !crowded {
                4.2
            } else {
                3.0
            };
            svg.marker(line.target, (*x, *y), size);
            svg.rect("hit", [x - 8.0, y - 8.0, 16.0, 16.0]);
            svg.close();
        }
        svg.close();
    }
}

#[cfg(test)]
mod tests {
    use super::super::axis::Quantity;
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
        let mut svg = Svg::default();
        let area = Frame {
            left: 0.0,
            top: 0.0,
            width: 400.0,
            height: 300.0,
        };
        panel().draw(&mut svg, area);
        let text = svg.into_text();
        for expected in [
            "<title>a &amp; b</title>",
            "<title>failed: refused</title>",
            ">fill</text>",
            "class=\"line c1\"",
            "rate (msg/s)",
            "1 ms",
        ] {
            assert!(text.contains(expected), "{expected} is missing in {text}");
        }
        assert_eq!(text.matches("whisker").count(), 6);
        assert_eq!(text.matches("<g").count(), text.matches("</g>").count());
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
    }
}
