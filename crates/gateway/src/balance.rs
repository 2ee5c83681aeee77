//! Which thread serves whom: few threads while there is little to do, more when there is much.
//!
//! A message that goes from one thread to another wakes it, and that costs as much as a hundred messages while threads
//! sleep between them. So connections sit together until their thread is full; then half of those that are busy move to
//! the next thread, and back once two threads together have little to do. Pure decisions: the figures come from `load`.

use crate::connection::Millis;

/// A share of a processor's time, in thousandths.
pub type Share = u32;

/// When connections move.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// How often a thread looks at its share, in milliseconds.
    pub window: Millis,
    /// A thread with this share is full.
    pub full: Share,
    /// For so many looks in a row before it does something about it.
    pub full_looks: u8,
    /// A thread with less takes connections of others, and new ones.
    pub room: Share,
    /// Two threads with less between them become one.
    pub together: Share,
    /// For so many looks in a row.
    pub together_looks: u8,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            window: 50,
            full: 900,
            full_looks: 2,
            room: 500,
            together: 350,
            together_looks: 10,
        }
    }
}

/// How many connections may leave within a window: each costs a few system calls.
const MOST: usize = 256;

/// An order to a thread's connections: so many of the next ones that are busy go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// The thread that takes them.
    pub to: usize,
    /// How many.
    pub left: usize,
}

/// A thread's connections that had something to do within a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Those that published.
    pub publishers: usize,
    /// The others: mostly consumers.
    pub others: usize,
}

impl Busy {
    /// True if some of them could do better elsewhere. One alone cannot be halved; a publisher and its consumer are kept
    /// together: apart they cost a fifth more, and the publisher runs ahead.
    fn can_part(self) -> bool {
        self.publishers > 1 || self.others > 1
    }
}

/// One thread's memory of its last looks.
#[derive(Debug, Default)]
pub struct Balance {
    full: u8,
    quiet: u8,
}

impl Balance {
    /// What thread `me` does in the next window, after one with these `shares` of all threads and its own `busy` connections.
    pub fn look(&mut self, rules: &Rules, me: usize, shares: &[Share], busy: Busy) -> Option<Moves> {
        let mine = shares[me];
        self.full = if mine >= rules.full {
            self.full.saturating_add(1)
        } else {
            0
        };
        if self.full >= rules.full_looks && busy.can_part() {
            self.full = 0;
            let to = thread_for_new(rules, shares);
            let left = usize::midpoint(busy.publishers, busy.others).min(MOST);
            // A thread that is nearly as full would give them back.
            return (shares[to] + rules.room / 2 < mine).then_some(Moves { to, left });
        }
        let host = (0..me).find(|&other| shares[other] + mine <= rules.together);
        self.quiet = if host.is_some() {
            self.quiet.saturating_add(1)
        } else {
            0
        };
        if self.quiet < rules.together_looks {
            return None;
        }
        self.quiet = 0;
        host.map(|to| Moves { to, left: MOST })
    }
}

/// Where a new connection goes: the first thread that has room, else the one with the least to do.
pub fn thread_for_new(rules: &Rules, shares: &[Share]) -> usize {
    let first = shares.iter().position(|&share| share < rules.room);
    let least = || shares.iter().enumerate().min_by_key(|(_, share)| **share);
    first.or_else(|| least().map(|(at, _)| at)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules {
        window: 50,
        full: 850,
        full_looks: 2,
        room: 500,
        together: 350,
        together_looks: 3,
    };

    const MANY: Busy = Busy {
        publishers: 3,
        others: 5,
    };

    #[test]
    fn a_full_thread_sends_half_of_its_busy_connections_to_the_first_with_room() {
        let mut balance = Balance::default();
        let shares = [900, 600, 100, 0];
        assert_eq!(
            balance.look(&RULES, 0, &shares, MANY),
            None,
            "a moment is not enough"
        );
        assert_eq!(
            balance.look(&RULES, 0, &shares, MANY),
            Some(Moves { to: 2, left: 4 })
        );
        assert_eq!(
            balance.look(&RULES, 0, &shares, MANY),
            None,
            "the move must show first"
        );
    }

    #[test]
    fn what_would_not_help_is_left_alone() {
        let mut balance = Balance::default();
        let pair = Busy {
            publishers: 1,
            others: 1,
        };
        let one = Busy {
            publishers: 1,
            others: 0,
        };
        for _ in 0..5 {
            assert_eq!(balance.look(&RULES, 0, &[1000, 0], one), None);
            assert_eq!(balance.look(&RULES, 0, &[1000, 0], pair), None);
        }
        let two = Busy {
            publishers: 2,
            others: 0,
        };
        assert_eq!(
            balance.look(&RULES, 0, &[1000, 0], two),
            Some(Moves { to: 1, left: 1 })
        );
        for _ in 0..5 {
            assert_eq!(balance.look(&RULES, 0, &[1000, 900], MANY), None);
        }
    }

    #[test]
    fn two_quiet_threads_become_one_after_a_while() {
        let mut balance = Balance::default();
        let shares = [300, 40, 40];
        assert_eq!(balance.look(&RULES, 2, &shares, MANY), None);
        assert_eq!(balance.look(&RULES, 2, &[300, 340, 400], MANY), None);
        assert_eq!(balance.look(&RULES, 2, &shares, MANY), None);
        assert_eq!(balance.look(&RULES, 2, &shares, MANY), None);
        assert_eq!(
            balance.look(&RULES, 2, &shares, MANY),
            Some(Moves { to: 0, left: MOST })
        );
        for _ in 0..5 {
            assert_eq!(
                balance.look(&RULES, 0, &[0, 0, 0], MANY),
                None,
                "the first thread is everyone's host"
            );
        }
    }

    #[test]
    fn new_connections_go_to_the_first_thread_with_time_to_spare_and_else_to_the_one_with_most() {
        assert_eq!(thread_for_new(&RULES, &[499, 0]), 0);
        assert_eq!(thread_for_new(&RULES, &[500, 0]), 1);
        assert_eq!(thread_for_new(&RULES, &[900, 700, 800]), 1);
    }
}
