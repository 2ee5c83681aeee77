//! Medians, and the ratio of one broker to another with an interval that says how sure it is.

use serde::{Deserialize, Serialize};

/// Resamples of the bootstrap: enough that the interval's ends move by less than the machine's noise.
const RESAMPLES: usize = 4_000;
/// The same figures give the same interval, whenever a report is printed.
const SEED: u64 = 0x6c65_7665_7265_7421;

/// How many times the other one's figure is the reference's, with a 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

/// The median; of an even count the mean of the two in the middle. Figures that are not finite are left out.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

fn middle(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    let upper = *sorted.get(half)?;
    if sorted.len() % 2 == 1 {
        return Some(upper);
    }
    let lower = *sorted.get(half.checked_sub(1)?)?;
    Some(f64::midpoint(lower, upper))
}

/// The median over the rounds of `other / reference`, with a bootstrap interval over the rounds.
///
/// The rounds are paired: what slows the machine down for one round slows both brokers, and cancels out. Where the lists
/// are not equally long the rest has no pair and is left out; so are pairs with a figure that is not above zero.
pub fn ratio(reference: &[f64], other: &[f64]) -> Option<Ratio> {
    let ratios: Vec<f64> = reference
        .iter()
        .zip(other)
        .filter(|(a, b)| a.is_finite() && b.is_finite() && **a > 0.0 && **b > 0.0)
        .map(|(a, b)| b / a)
        .collect();
    let median = median(&ratios)?;
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut medians = Vec::with_capacity(RESAMPLES);
    let mut sample = vec![0.0; ratios.len()];
    for _ in 0..RESAMPLES {
        for slot in &mut sample {
            *slot = ratios.get(random.usize(..ratios.len())).copied()?;
        }
        sample.sort_by(f64::total_cmp);
        medians.push(middle(&sample)?);
    }
    medians.sort_by(f64::total_cmp);
    let low = *medians.get(RESAMPLES / 40)?;
    let high = *medians.get(RESAMPLES - 1 - RESAMPLES / 40)?;
    Some(Ratio { median, low, high })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_count_lies_between_the_two_in_the_middle() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[5.0, 1.0, 3.0]), Some(3.0));
        assert_eq!(median(&[f64::NAN, 3.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn the_interval_contains_the_truth_about_known_figures() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut hits = 0;
        for _ in 0..200 {
            let mut noise = || 1.0 + 0.2 * (random.f64() - 0.5);
            let reference: Vec<f64> = (0..11).map(|_| 10.0 * noise()).collect();
            let other: Vec<f64> = (0..11).map(|_| 40.0 * noise()).collect();
            let found = ratio(&reference, &other).unwrap();
            assert!(found.low <= found.median && found.median <= found.high);
            if found.low <= 4.0 && 4.0 <= found.high {
                hits += 1;
            }
        }
        // 95 % of 200 are 190; a percentile bootstrap of a median is a little narrow for few rounds.
        assert!(hits >= 176, "{hits} of 200 intervals contain the truth");
    }

    #[test]
    fn what_slows_both_brokers_in_a_round_cancels_out() {
        let found = ratio(&[1.0, 2.0, 4.0], &[3.0, 6.0, 12.0]).unwrap();
        assert_eq!((found.median, found.low, found.high), (3.0, 3.0, 3.0));
    }

    #[test]
    fn the_same_figures_give_the_same_interval() {
        let (a, b) = ([1.0, 1.2, 0.9, 1.1, 1.0], [2.0, 2.6, 1.7, 2.2, 2.1]);
        assert_eq!(ratio(&a, &b), ratio(&a, &b));
    }

    #[test]
    fn rounds_without_a_pair_and_zeros_are_left_out() {
        let found = ratio(&[1.0, 0.0, 2.0, 5.0], &[2.0, 9.0, 4.0]).unwrap();
        assert_eq!(found.median, 2.0);
        assert_eq!(ratio(&[0.0], &[1.0]), None);
        assert_eq!(ratio(&[], &[]), None);
    }
}
