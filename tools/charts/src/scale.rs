//! From values to places along an axis, and where the ticks stand.

/// How values are spread over an axis.
#[derive(Debug, Clone, PartialEq)]
pub enum Scale {
    Linear {
        low: f64,
        high: f64,
    },
    Log {
        low: f64,
        high: f64,
    },
    /// One place for each value, equally far apart.
    Ordinal(Vec<f64>),
}

/// The least power of ten, times 1, 2 or 5, that is not below the value (but for rounding errors).
pub fn nice_above(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let decade = 10f64.powf(value.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|m| m * decade)
        .into_iter()
        .find(|nice| *nice >= value * (1.0 - 1e-9))
        .unwrap_or(10.0 * decade)
}

/// The greatest power of ten, times 1, 2 or 5, that is not above the value.
fn nice_below(value: f64) -> f64 {
    if !(value.is_finite() && value > 0.0) {
        return 1.0;
    }
    let decade = 10f64.powf(value.log10().floor());
    [5.0, 2.0, 1.0]
        .map(|m| m * decade)
        .into_iter()
        .find(|nice| *nice <= value * (1.0 + 1e-9))
        .unwrap_or(decade)
}

impl Scale {
    /// From zero to a little above the greatest value.
    pub fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let high = greatest(values).unwrap_or(1.0).max(f64::MIN_POSITIVE);
        let step = nice_above(high / 5.0);
        Self::Linear {
            low: 0.0,
            high: (high / step - 1e-9).ceil() * step,
        }
    }

    /// From zero to the greatest value exactly: for time, which ends when it ends.
    pub fn to_the_end(values: impl IntoIterator<Item = f64>) -> Self {
        let high = greatest(values).filter(|h| *h > 0.0).unwrap_or(1.0);
        Self::Linear { low: 0.0, high }
    }

    /// Logarithmic around the values above zero; at least a decade, so that noise does not look like a mountain.
    pub fn log(values: impl IntoIterator<Item = f64>) -> Self {
        let positive: Vec<f64> = values.into_iter().filter(|v| *v > 0.0 && v.is_finite()).collect();
        let (Some(low), Some(high)) = (least(positive.iter().copied()), greatest(positive)) else {
            return Self::Log { low: 1.0, high: 10.0 };
        };
        let (mut low, mut high) = (nice_below(low), nice_above(high));
        if high / low < 10.0 {
            low = nice_below(low / 1.5);
            high = high.max(low * 10.0);
        }
        Self::Log { low, high }
    }

    /// What fits the points of a sweep: logarithmic where they span more than a decade, one place each where zero is
    /// among them, or only one.
    pub fn of_sweep(values: &[f64]) -> Self {
        let mut places = values.to_vec();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let (first, last) = match places.as_slice() {
            [first, .., last] => (*first, *last),
            _ => return Self::Ordinal(places),
        };
        if first <= 0.0 {
            return Self::Ordinal(places);
        }
        if last / first >= 10.0 {
            // A little room on both sides keeps the markers off the frame.
            let room = (last / first).powf(0.04);
            return Self::Log {
                low: first / room,
                high: last * room,
            };
        }
        let room = (last - first) * 0.06;
        Self::Linear {
            low: first - room,
            high: last + room,
        }
    }

    /// The least and the greatest value that it shows.
    pub fn ends(&self) -> (f64, f64) {
        match self {
            Self::Linear { low, high } | Self::Log { low, high } => (*low, *high),
            Self::Ordinal(places) => (
                least(places.iter().copied()).unwrap_or_default(),
                greatest(places.iter().copied()).unwrap_or_default(),
            ),
        }
    }

    /// The place of a value: 0 at the axis' beginning, 1 at its end; values beyond are held at the ends.
    pub fn at(&self, value: f64) -> f64 {
        let place = match self {
            Self::Linear { low, high } => (value - low) / (high - low),
            Self::Log { low, high } => {
                if value <= 0.0 {
                    0.0
                } else {
                    (value / low).ln() / (high / low).ln()
                }
            }
            Self::Ordinal(places) => {
                let index = places.iter().position(|p| *p >= value).unwrap_or(places.len());
                (index as f64 + 0.5) / places.len().max(1) as f64
            }
        };
        if place.is_finite() {
            place.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Where lines with a label stand: steps of 1, 2 or 5, decades on a logarithmic axis.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        match self {
            Self::Linear { low, high } => linear_ticks(*low, *high, about),
            Self::Log { low, high } => log_ticks(*low, *high, about),
            Self::Ordinal(places) => places.clone(),
        }
    }

    /// Fine lines between the decades of a logarithmic axis.
    pub fn minor(&self) -> Vec<f64> {
        match self {
            Self::Log { low, high } if high / low <= 2e5 => {
                multiples(*low, *high, &[2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0])
            }
            _ => Vec::new(),
        }
    }
}

fn linear_ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let step = nice_above((high - low) / about.max(1) as f64);
    let first = (low / step - 1e-9).ceil();
    (0..200)
        .map(|n| (first + f64::from(n)) * step)
        .take_while(|tick| *tick <= high + step * 1e-9)
        .collect()
}

/// Decades; with fewer than three of them also 2 and 5; with many only each second or third.
fn log_ticks(low: f64, high: f64, about: usize) -> Vec<f64> {
    let decades = multiples(low, high, &[1.0]);
    if decades.len() <= 2 {
        let fine = multiples(low, high, &[1.0, 2.0, 5.0]);
        return if fine.len() > 1 { fine } else { vec![low, high] };
    }
    let every = decades.len().div_ceil(about.max(1)).max(1);
    decades.into_iter().step_by(every).collect()
}

fn multiples(low: f64, high: f64, mantissas: &[f64]) -> Vec<f64> {
    let (from, to) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (from..=to)
        .flat_map(|e| mantissas.iter().map(move |m| m * 10f64.powi(e)))
        .filter(|v| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9))
        .collect()
}

/// The least of the values that are finite.
pub fn least(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().filter(|v| v.is_finite()).reduce(f64::min)
}

/// The greatest of the values that are finite.
pub fn greatest(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    values.into_iter().filter(|v| v.is_finite()).reduce(f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_ticks_are_steps_of_one_two_or_five() {
        let ticks = Scale::from_zero([83_000.0]).ticks(5);
        assert_eq!(ticks, [0.0, 20_000.0, 40_000.0, 60_000.0, 80_000.0, 100_000.0]);
        assert_eq!(linear_ticks(0.0, 4.2, 5), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn log_ticks_are_decades_and_with_few_of_them_two_and_five_too() {
        let wide = Scale::log([85.0, 330_000.0]);
        assert_eq!(
            wide,
            Scale::Log {
                low: 50.0,
                high: 500_000.0
            }
        );
        let close = |found: Vec<f64>, expected: &[f64]| {
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (a, b) in found.iter().zip(expected) {
                assert!((a / b - 1.0).abs() < 1e-9, "{a} is not {b}");
            }
        };
        close(wide.ticks(6), &[100.0, 1e3, 1e4, 1e5]);
        close(
            Scale::log([150.0, 900.0]).ticks(6),
            &[100.0, 200.0, 500.0, 1_000.0],
        );
    }

    #[test]
    fn values_near_each_other_still_get_a_decade() {
        let Scale::Log { low, high } = Scale::log([100.0, 105.0]) else {
            panic!("not logarithmic");
        };
        assert!(high / low >= 10.0 && low <= 100.0 && high >= 105.0);
    }

    #[test]
    fn a_sweep_with_zero_has_a_place_for_each_value() {
        let scale = Scale::of_sweep(&[10_000.0, 0.0, 10_000.0]);
        assert_eq!(scale, Scale::Ordinal(vec![0.0, 10_000.0]));
        assert_eq!((scale.at(0.0), scale.at(10_000.0)), (0.25, 0.75));
    }

    #[test]
    fn no_values_and_odd_values_give_a_scale_all_the_same() {
        for scale in [
            Scale::from_zero([]),
            Scale::log([]),
            Scale::log([0.0, f64::NAN]),
            Scale::of_sweep(&[]),
            Scale::of_sweep(&[7.0]),
            Scale::from_zero([0.0]),
            Scale::to_the_end([f64::INFINITY]),
        ] {
            assert!((0.0..=1.0).contains(&scale.at(3.0)), "{scale:?}");
            assert!(scale.ticks(5).len() < 200, "{scale:?}");
        }
    }
}
