//! How far what a member fetches has come, for operators.

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyPhase {
    /// Others of its node are fetched before it, or nobody has answered.
    Waits,
    /// The contents, without bodies: which messages there are.
    Contents,
    /// Of the bodies of these what only this node's log has is copied.
    Copies,
    /// The other bodies come.
    Bodies,
    /// Nothing but bodies that can't be read here.
    Lacking,
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyProgress {
    pub phase: CopyPhase,
    /// So many bytes have come in this phase, since the node was started last.
    pub bytes: u64,
    /// What is counted: the bytes of contents, and otherwise messages. So many there are to be, and so many are missing.
    pub total: u64,
    pub left: u64,
}

impl CopyProgress {
    /// Nothing has come yet.
    pub const fn begins(phase: CopyPhase) -> Self {
        let (bytes, total, left) = (0, 0, 0);
        Self {
            phase,
            bytes,
            total,
            left,
        }
    }

    /// How much of this phase is done, in hundredths.
    pub fn percent(&self) -> u64 {
        let done = self.total.saturating_sub(self.left);
        done.saturating_mul(100).checked_div(self.total).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_of_what_there_is_to_be() {
        let progress = CopyProgress {
            bytes: 7,
            total: 300,
            left: 100,
            ..CopyProgress::begins(CopyPhase::Bodies)
        };
        assert_eq!(progress.percent(), 66);
        assert_eq!(CopyProgress::begins(CopyPhase::Waits).percent(), 0);
    }
}
