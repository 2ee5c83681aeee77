//! How long a connection was not read from, and why.

use super::Count;
use crate::clients::pressure::Reason;

/// Times, by reason. Written by the connection's thread when something changes.
#[derive(Debug, Default)]
pub struct Held {
    /// Milliseconds, of what is over.
    past: [Count; Reason::ALL.len()],
    /// Which reason holds now, from 1; 0 is none.
    now: Count,
    /// Since when, in milliseconds since the Unix epoch.
    since: Count,
}

impl Held {
    /// The reason that holds now.
    pub fn reason(&self) -> Option<Reason> {
        let at = self.now.get().checked_sub(1)?;
        Reason::ALL.get(at as usize).copied()
    }

    /// How long it was held for this reason until `now_ms`, in milliseconds.
    pub fn total_ms(&self, reason: Reason, now_ms: u64) -> u64 {
        let present = match self.reason() == Some(reason) {
            true => now_ms.saturating_sub(self.since.get()),
            false => 0,
        };
        self.past[reason as usize].get() + present
    }

    /// From `now_ms` on this reason holds, or none.
    pub fn change(&self, reason: Option<Reason>, now_ms: u64) {
        if let Some(before) = self.reason() {
            self.past[before as usize].add(now_ms.saturating_sub(self.since.get()));
        }
        self.since.set(now_ms);
        self.now.set(reason.map_or(0, |reason| reason as u64 + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_add_up_by_reason_and_the_present_one_counts() {
        let held = Held::default();
        held.change(Some(Reason::Sync), 1_000);
        held.change(Some(Reason::Memory), 1_500);
        held.change(None, 1_700);
        held.change(Some(Reason::Sync), 5_000);
        assert_eq!(held.reason(), Some(Reason::Sync));
        assert_eq!(held.total_ms(Reason::Sync, 5_100), 600);
        assert_eq!(held.total_ms(Reason::Memory, 5_100), 200);
        assert_eq!(held.total_ms(Reason::Alarm, 5_100), 0);
    }
}
