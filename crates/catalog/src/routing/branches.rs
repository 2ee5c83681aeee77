//! The nodes of a trie that lie behind another node, by what leads to them: a word, or the number of a condition.

use equivalent::Comparable;
use imbl::OrdMap;
use std::sync::Arc;

/// Nodes by the step that leads to them. Most nodes have one behind them, and there may be a million of these, so that case
/// has no map.
#[derive(Clone, Debug, Default)]
pub(crate) enum Branches<K: Ord, N> {
    #[default]
    None,
    One(K, Arc<N>),
    Many(OrdMap<K, Arc<N>>),
}

impl<K: Clone + Ord, N: Clone + Default> Branches<K, N> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(crate) fn get(&self, step: &impl Comparable<K>) -> Option<&N> {
        match self {
            Self::None => None,
            Self::One(known, node) => step.equivalent(known).then_some(&**node),
            Self::Many(map) => map.get(step).map(|node| &**node),
        }
    }

    pub(crate) fn get_mut(&mut self, step: &impl Comparable<K>) -> Option<&mut Arc<N>> {
        match self {
            Self::None => None,
            Self::One(known, node) => step.equivalent(known).then_some(node),
            Self::Many(map) => map.get_mut(step),
        }
    }

    pub(crate) fn get_or_insert(&mut self, step: &K) -> &mut Arc<N> {
        match self {
            Self::None => *self = Self::One(step.clone(), Arc::default()),
            Self::One(known, node) if known != step => {
                *self = Self::Many([(known.clone(), node.clone())].into_iter().collect());
            }
            Self::One(..) | Self::Many(_) => {}
        }
        match self {
            Self::One(_, node) => node,
            Self::Many(map) => map.entry(step.clone()).or_default(),
            Self::None => unreachable!("it was filled above"),
        }
    }

    /// Changes the node behind a step, and takes it away if `change` says that nothing is left of it.
    pub(crate) fn prune(&mut self, step: &impl Comparable<K>, change: impl FnOnce(&mut N) -> bool) {
        match self {
            Self::One(known, node) if step.equivalent(known) => {
                if change(Arc::make_mut(node)) {
                    *self = Self::None;
                }
            }
            Self::Many(map) => {
                let Some(node) = map.get_mut(step) else { return };
                if change(Arc::make_mut(node)) {
                    map.remove(step);
                }
                match map.len() {
                    0 => *self = Self::None,
                    1 => {
                        let last = map.get_min().map(|(step, node)| (step.clone(), node.clone()));
                        *self = last.map_or(Self::None, |(step, node)| Self::One(step, node));
                    }
                    _ => {}
                }
            }
            Self::None | Self::One(..) => {}
        }
    }
}
