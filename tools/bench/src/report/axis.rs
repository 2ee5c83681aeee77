//! Axes: what they measure, how their ticks are labelled, and how they are drawn.

use super::scale::{Scale, greatest};
use super::svg::{Anchor, Svg, width_of};
use crate::shown;

/// What an axis measures, which decides about the units of its labels.
#[derive(Debug, Clone, PartialEq)]
pub enum Quantity {
    /// Microseconds, shown as µs, ms or s.
    TimeUs,
    /// Anything counted or a second; in thousands or millions where the numbers are long.
    Count(String),
    /// Shown as MB.
    Bytes,
    /// Seconds since something began.
    Seconds,
    /// A name for each place of an ordinal scale.
    Names(Vec<String>),
}

/// An axis of a plot.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    pub label: String,
    pub quantity: Quantity,
    pub scale: Scale,
    /// Where the ticks stand, if there is something better than even steps: the values of a sweep.
    pub at: Vec<f64>,
}

/// The part of the drawing that a plot's lines may use.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
}

impl Frame {
    pub fn bottom(self) -> f64 {
        self.top + self.height
    }

    pub fn right(self) -> f64 {
        self.left + self.width
    }
}

impl Axis {
    /// Ticks with their labels.
    pub fn labelled(&self, about: usize) -> Vec<(f64, String)> {
        let ticks = if self.at.is_empty() {
            self.scale.ticks(about)
        } else {
            let mut at = self.at.clone();
            at.sort_by(f64::total_cmp);
            at.dedup();
            at
        };
        let most = greatest(ticks.iter().map(|t| t.abs())).unwrap_or(0.0);
        let each = matches!(self.scale, Scale::Log { .. });
        ticks
            .iter()
            .enumerate()
            .map(|(index, tick)| {
                // On a logarithmic axis each label has the unit that suits it; on a linear one all have the same.
                let size = if each { tick.abs() } else { most };
                let label = match &self.quantity {
                    Quantity::TimeUs => time_label(*tick, size),
                    Quantity::Bytes => format!("{} MB", plain(*tick / 1e6)),
                    Quantity::Count(_) => count_label(*tick, size),
                    Quantity::Seconds => plain(*tick),
                    Quantity::Names(names) => names.get(index).cloned().unwrap_or_default(),
                };
                (*tick, label)
            })
            .collect()
    }

    /// The label with its unit, where the ticks don't bear one.
    pub fn title(&self) -> String {
        match &self.quantity {
            Quantity::Count(unit) if !unit.is_empty() => format!("{} ({unit})", self.label),
            Quantity::Seconds => format!("{} (s)", self.label),
            _ => self.label.clone(),
        }
    }

    /// Draws the axis at the bottom of the frame; labels that would run into the one before are left out.
    pub fn draw_x(&self, svg: &mut Svg, frame: Frame) {
        let y = frame.bottom();
        let mut free_from = f64::NEG_INFINITY;
        for (tick, label) in self.labelled((frame.width / 80.0) as usize) {
            let x = frame.left + frame.width * self.scale.at(tick);
            svg.line("grid", [x, frame.top, x, y]);
            svg.line("axis", [x, y, x, y + 4.0]);
            let half = width_of(&label, 11.0) / 2.0;
            if x - half >= free_from {
                svg.label("small", (x, y + 17.0), Anchor::Middle, &label);
                free_from = x + half + 6.0;
            }
        }
        svg.line("axis", [frame.left, y, frame.right(), y]);
        let middle = frame.left + frame.width / 2.0;
        svg.label("small", (middle, y + 34.0), Anchor::Middle, &self.title());
    }

    /// Draws the axis at the left of the frame. What it measures is the panel's heading, which is easier to read than a
    /// text on its side.
    pub fn draw_y(&self, svg: &mut Svg, frame: Frame) {
        let y_of = |value: f64| frame.bottom() - frame.height * self.scale.at(value);
        for value in self.scale.minor() {
            svg.line("fine", [frame.left, y_of(value), frame.right(), y_of(value)]);
        }
        let mut free_below = f64::INFINITY;
        for (tick, label) in self.labelled((frame.height / 28.0) as usize) {
            let y = y_of(tick);
            svg.line("grid", [frame.left, y, frame.right(), y]);
            if y <= free_below {
                svg.label("small", (frame.left - 7.0, y + 4.0), Anchor::End, &label);
                free_below = y - 13.0;
            }
        }
    }
}

fn time_label(us: f64, size: f64) -> String {
    if us == 0.0 {
        return "0".to_owned();
    }
    let (value, unit) = match size {
        size if size < 999.5 => (us, "µs"),
        size if size < 999_500.0 => (us / 1e3, "ms"),
        _ => (us / 1e6, "s"),
    };
    format!("{} {unit}", plain(value))
}

fn count_label(value: f64, size: f64) -> String {
    match size {
        _ if value == 0.0 => "0".to_owned(),
        size if size >= 2e6 || (size >= 1e6 && value % 1e5 == 0.0) => format!("{} M", plain(value / 1e6)),
        size if size >= 10_000.0 => format!("{} k", plain(value / 1e3)),
        _ => plain(value),
    }
}

/// As few digits as tell the value.
pub fn plain(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 999.5 {
        return shown::number(value);
    }
    let decimals = (2 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    shown::shortest(value, decimals)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(quantity: Quantity, scale: Scale) -> Vec<String> {
        let axis = Axis {
            label: "x".to_owned(),
            quantity,
            scale,
            at: Vec::new(),
        };
        axis.labelled(5).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn each_label_of_a_logarithmic_axis_has_the_unit_that_suits_it() {
        let found = labels(Quantity::TimeUs, Scale::log([60.0, 2e6]));
        assert_eq!(found, ["100 µs", "1 ms", "10 ms", "100 ms", "1 s"]);
    }

    #[test]
    fn labels_of_a_linear_axis_share_one_unit() {
        let found = labels(Quantity::TimeUs, Scale::from_zero([1_900.0]));
        assert_eq!(found, ["0", "0.5 ms", "1 ms", "1.5 ms", "2 ms"]);
        let found = labels(Quantity::Count("msg/s".to_owned()), Scale::from_zero([83_000.0]));
        assert_eq!(found, ["0", "20 k", "40 k", "60 k", "80 k", "100 k"]);
    }

    #[test]
    fn numbers_have_no_more_digits_than_needed() {
        let shown = [0.0, 0.05, 0.125, 2.0, 2.5, 500.0, 20_000.0].map(plain);
        assert_eq!(shown, ["0", "0.05", "0.125", "2", "2.5", "500", "20,000"]);
    }

    #[test]
    fn labels_that_would_overlap_are_left_out() {
        let places: Vec<f64> = (0..60).map(|n| f64::from(n) * 100_000.0).collect();
        let axis = Axis {
            label: "x".to_owned(),
            quantity: Quantity::Count(String::new()),
            scale: Scale::Ordinal(places),
            at: Vec::new(),
        };
        let mut svg = Svg::default();
        let frame = Frame {
            left: 0.0,
            top: 0.0,
            width: 300.0,
            height: 100.0,
        };
        axis.draw_x(&mut svg, frame);
        assert!(svg.into_text().matches("<text").count() < 15);
    }
}
