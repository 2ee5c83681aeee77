//! A counted set of destinations: one for each direct key, fanout exchange and topic pattern.

use super::Found;
use crate::binding::Target;
use imbl::OrdMap;

/// Destinations and how many bindings lead to each (bindings that differ in their arguments only are several).
///
/// Nearly all have one destination only, and there may be a million of these, so that case has no map.
#[derive(Clone, Debug, Default)]
pub(crate) enum Targets {
    #[default]
    Empty,
    One(Target, u32),
    Many(OrdMap<Target, u32>),
}

impl Targets {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    /// How many there are, each counted once.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::One(..) => 1,
            Self::Many(map) => map.len(),
        }
    }

    pub(crate) fn add(&mut self, target: &Target) {
        match self {
            Self::Empty => *self = Self::One(target.clone(), 1),
            Self::One(known, count) if known == target => *count += 1,
            Self::One(known, count) => {
                *self = Self::Many(
                    [(known.clone(), *count), (target.clone(), 1)]
                        .into_iter()
                        .collect(),
                );
            }
            Self::Many(map) => *map.entry(target.clone()).or_insert(0) += 1,
        }
    }

    pub(crate) fn remove(&mut self, target: &Target) {
        match self {
            Self::One(known, count) if known == target => {
                *count -= 1;
                if *count == 0 {
                    *self = Self::Empty;
                }
            }
            Self::Many(map) => {
                let Some(count) = map.get_mut(target) else { return };
                *count -= 1;
                if *count == 0 {
                    map.remove(target);
                }
                if map.is_empty() {
                    *self = Self::Empty;
                }
            }
            Self::Empty | Self::One(..) => {}
        }
    }

    pub(crate) fn give(&self, found: &mut Found<'_>) {
        match self {
            Self::Empty => {}
            Self::One(target, _) => found.add(target),
            Self::Many(map) => map.keys().for_each(|target| found.add(target)),
        }
    }
}
