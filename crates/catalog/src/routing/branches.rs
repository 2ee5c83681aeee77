//! The nodes of a trie that lie behind another node, by word.

use super::{Key, Sought};
use imbl::OrdMap;
use std::sync::Arc;

/// Nodes by the word that leads to them. Most nodes have one behind them, and there may be a million of these, so that case
/// has no map.
#[derive(Clone, Debug, Default)]
pub(crate) enum Branches<N> {
    #[default]
    None,
    One(Key, Arc<N>),
    Many(OrdMap<Key, Arc<N>>),
}

impl<N: Clone + Default> Branches<N> {
    pub(crate) fn is_empty(&self) -> bool {
        matches!(self, Self::None)
    }

    pub(crate) fn get(&self, word: &Sought<'_>) -> Option<&N> {
        match self {
            Self::None => None,
            Self::One(known, node) => word.is(known).then_some(&**node),
            Self::Many(map) => map.get(word).map(|node| &**node),
        }
    }

    pub(crate) fn get_or_insert(&mut self, word: &Key) -> &mut Arc<N> {
        match self {
            Self::None => *self = Self::One(word.clone(), Arc::default()),
            Self::One(known, node) if known != word => {
                *self = Self::Many([(known.clone(), node.clone())].into_iter().collect());
            }
            Self::One(..) | Self::Many(_) => {}
        }
        match self {
            Self::One(_, node) => node,
            Self::Many(map) => map.entry(word.clone()).or_default(),
            Self::None => unreachable!("it was filled above"),
        }
    }

    /// Changes the node behind a word, and takes it away if `change` says that nothing is left of it.
    pub(crate) fn prune(&mut self, word: &Sought<'_>, change: impl FnOnce(&mut N) -> bool) {
        match self {
            Self::One(known, node) if word.is(known) => {
                if change(Arc::make_mut(node)) {
                    *self = Self::None;
                }
            }
            Self::Many(map) => {
                let Some(node) = map.get_mut(word) else { return };
                if change(Arc::make_mut(node)) {
                    map.remove(word);
                }
                if map.is_empty() {
                    *self = Self::None;
                }
            }
            Self::None | Self::One(..) => {}
        }
    }
}
