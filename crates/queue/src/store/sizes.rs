//! How long bodies are whose bytes are not in memory.

use model::Block;

/// Body lengths of the messages of one run, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Not taken down: the block is in memory and knows.
    InBlock,
    /// All alike, as a load generator's are; costs no memory per message.
    Same(u32),
    /// One by one.
    Each(Box<[u32]>),
    /// Only their sum is known, after a restart from a snapshot, until the block has been read back. Meanwhile each
    /// message counts as its even share.
    Spread(u64),
}

impl Sizes {
    /// Takes down the lengths of messages `from..from + count` of a block.
    pub(crate) fn take_down(block: &Block, from: usize, count: usize) -> Self {
        let size = |at: usize| block.message(at).body.len() as u32;
        if count == 0 {
            return Self::Same(0);
        }
        let first = size(from);
        match (from..from + count).all(|at| size(at) == first) {
            true => Self::Same(first),
            false => Self::Each((from..from + count).map(size).collect()),
        }
    }

    /// The sum over messages `from..from + count` of a run of `length` messages. Zero for `InBlock`.
    pub(crate) fn sum(&self, from: usize, count: usize, length: usize) -> u64 {
        match self {
            Self::InBlock => 0,
            Self::Same(size) => u64::from(*size) * count as u64,
            Self::Each(sizes) => sizes
                .get(from..from + count)
                .unwrap_or_default()
                .iter()
                .map(|size| u64::from(*size))
                .sum(),
            // Shares are differences of rounded prefix sums, so that any way to split a run adds up to the same total.
            Self::Spread(total) => share(*total, from + count, length) - share(*total, from, length),
        }
    }

    /// The sizes of a part of a run of `length` messages.
    pub(crate) fn cut(&self, from: usize, count: usize, length: usize) -> Self {
        match self {
            Self::InBlock => Self::InBlock,
            Self::Same(size) => Self::Same(*size),
            Self::Each(sizes) => Self::Each(sizes.get(from..from + count).unwrap_or_default().into()),
            Self::Spread(_) => Self::Spread(self.sum(from, count, length)),
        }
    }

    /// True if they are right for every message, not only in sum.
    pub(crate) fn are_exact(&self) -> bool {
        matches!(self, Self::Same(_) | Self::Each(_))
    }

    /// Appends the sizes of `count` messages one by one; even shares if only their sum is known.
    pub(crate) fn list(&self, count: usize, into: &mut Vec<u32>) {
        into.extend((0..count).map(|at| self.sum(at, 1, count).min(u64::from(u32::MAX)) as u32));
    }

    /// Sizes from a list.
    pub(crate) fn from_list(list: Vec<u32>) -> Self {
        match list.split_first() {
            None => Self::Same(0),
            Some((first, rest)) if rest.iter().all(|size| size == first) => Self::Same(*first),
            Some(_) => Self::Each(list.into_boxed_slice()),
        }
    }
}

fn share(total: u64, upto: usize, length: usize) -> u64 {
    (u128::from(total) * upto as u128 / length.max(1) as u128) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_shares_add_up() {
        let sizes = Sizes::Spread(1000);
        assert_eq!((0..7).map(|at| sizes.sum(at, 1, 7)).sum::<u64>(), 1000);
        assert_eq!(sizes.sum(0, 3, 7) + sizes.sum(3, 4, 7), 1000);
    }

    #[test]
    fn equal_sizes_cost_nothing_per_message() {
        assert_eq!(Sizes::from_list(vec![5, 5, 5]), Sizes::Same(5));
        assert_eq!(Sizes::from_list(vec![5, 6]).sum(0, 2, 2), 11);
    }
}
