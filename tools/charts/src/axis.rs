//! Axes: what they measure and how their ticks are labelled.

use super::pencil::width_of;
use super::scale::{Scale, greatest};
use crate::shown;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use std::ops::Range;

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

/// An axis with room for its labels, as `plotters` asks for it.
#[derive(Debug, Clone)]
pub(crate) struct Coordinate {
    scale: Scale,
    /// Ticks with their labels; one that would run into the one before is empty.
    ticks: Vec<(f64, String)>,
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

    /// The axis at the bottom of a plot of this width.
    pub(crate) fn across(&self, width: f64) -> Coordinate {
        let mut free_from = f64::NEG_INFINITY;
        let fits = |tick: f64, label: &str| {
            let (x, half) = (width * self.scale.at(tick), width_of(label, 11.0) / 2.0);
            let fits = x - half >= free_from;
            if fits {
                free_from = x + half + 6.0;
            }
            fits
        };
        self.coordinate((width / 80.0) as usize, fits)
    }

    /// The axis at the left of a plot of this height.
    pub(crate) fn upwards(&self, height: f64) -> Coordinate {
        let mut free_from = f64::NEG_INFINITY;
        let fits = |tick: f64, _: &str| {
            let y = height * self.scale.at(tick);
            let fits = y >= free_from;
            if fits {
                free_from = y + 13.0;
            }
            fits
        };
        self.coordinate((height / 28.0) as usize, fits)
    }

    fn coordinate(&self, about: usize, mut fits: impl FnMut(f64, &str) -> bool) -> Coordinate {
        let mut ticks = self.labelled(about);
        for (tick, label) in &mut ticks {
            if !fits(*tick, label) {
                label.clear();
            }
        }
        Coordinate {
            scale: self.scale.clone(),
            ticks,
        }
    }
}

impl Ranged for Coordinate {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        from + (f64::from(to - from) * self.scale.at(*value)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if hint.weight().allow_light_points() {
            self.scale.minor()
        } else {
            self.ticks.iter().map(|(tick, _)| *tick).collect()
        }
    }

    fn range(&self) -> Range<f64> {
        let (low, high) = self.scale.ends();
        low..high
    }
}

impl ValueFormatter<f64> for Coordinate {
    fn format_ext(&self, value: &f64) -> String {
        let found = self.ticks.iter().find(|(tick, _)| tick == value);
        found.map_or_else(String::new, |(_, label)| label.clone())
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
        let shown = axis.across(300.0).ticks;
        assert_eq!(shown.len(), 60);
        assert!(shown.iter().filter(|(_, label)| !label.is_empty()).count() < 15);
    }
}
