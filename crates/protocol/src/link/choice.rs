//! Which link stays when there is one already. Both nodes of a pair may dial, at once, too; they end with one link per lane,
//! the same one on both ends, whatever was when under way.
//!
//! A node dials only while it has no link. So who is dialled and has one knows that either both have dialled at once, or the
//! other end has lost that link. It tells the two apart by what the greeting says of links that its sender has had
//! ([`Dialled::knows`]); no time decides.

use super::greeting::{Dialled, LinkNumber};
use super::refusal::Refusal;

/// The link that an end has, as both ends number it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Present {
    /// The other end has dialled it.
    pub by_peer: bool,
    /// Its number, in the incarnation of who has dialled it.
    pub number: LinkNumber,
    /// The other end's incarnation.
    pub peer_incarnation: u64,
}

/// What becomes of a link that is about to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is the link from now on; one that was there is over.
    Take,
    /// It is not.
    Refuse(Refusal),
}

/// Decides for the end that was dialled by a node of this incarnation.
pub fn choose(present: Option<Present>, offered: &Dialled, incarnation: u64) -> Choice {
    let Some(present) = present else {
        return Choice::Take;
    };
    if incarnation > present.peer_incarnation {
        return Choice::Take;
    }
    let is_later = match present.by_peer {
        true => offered.number > present.number.number,
        false => offered.knows >= present.number,
    };
    if incarnation == present.peer_incarnation && is_later {
        return Choice::Take;
    }
    Choice::Refuse(match present.by_peer || incarnation < present.peer_incarnation {
        true => Refusal::Stale,
        false => Refusal::Crossed,
    })
}

/// Decides for the end that has dialled, and was told by a node of this incarnation that the link is taken. If both were told
/// so, what the one dials stays that is preferred: one of two nodes is, by their names.
pub fn settle(present: Option<Present>, incarnation: u64, am_preferred: bool) -> Choice {
    match present {
        Some(present) if present.peer_incarnation > incarnation => Choice::Refuse(Refusal::Stale),
        Some(present) if present.peer_incarnation == incarnation && present.by_peer && !am_preferred => {
            Choice::Refuse(Refusal::Crossed)
        }
        _ => Choice::Take,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::Lane;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// A connection: what is under way to its two ends, and which ends have let go of it.
    struct Connection {
        /// The dialler's incarnation, and what it dialled.
        dialler: u64,
        dialled: Dialled,
        under_way: [VecDeque<Said>; 2],
        closed: [bool; 2],
    }

    #[derive(Clone, Copy, Debug)]
    enum Said {
        Dialled,
        /// With the incarnation of who says it.
        Welcome(u64),
        Closed,
    }

    #[derive(Default)]
    struct End {
        incarnation: u64,
        dialled: u64,
        knows: LinkNumber,
        present: Option<(usize, Present)>,
        /// Dials, and was not answered.
        dials: Option<usize>,
    }

    /// Two nodes, of which the first is preferred.
    #[derive(Default)]
    struct Pair {
        ends: [End; 2],
        connections: Vec<Connection>,
    }

    impl Pair {
        fn new() -> Self {
            let mut pair = Self::default();
            pair.ends.iter_mut().for_each(|end| end.incarnation = 1);
            pair
        }

        fn dial(&mut self, me: usize) {
            let end = &mut self.ends[me];
            if end.present.is_some() || end.dials.is_some() {
                return;
            }
            end.dialled += 1;
            end.dials = Some(self.connections.len());
            let dialled = Dialled {
                lane: Some(Lane::Work),
                number: end.dialled,
                knows: end.knows,
            };
            let mut under_way = [VecDeque::new(), VecDeque::new()];
            under_way[1 - me].push_back(Said::Dialled);
            self.connections.push(Connection {
                dialler: end.incarnation,
                dialled,
                under_way,
                closed: [false; 2],
            });
        }

        fn close(&mut self, me: usize, at: usize) {
            let connection = self.connections.get_mut(at);
            let Some(connection) = connection else {
                return;
            };
            if !std::mem::replace(&mut connection.closed[me], true) {
                connection.under_way[1 - me].push_back(Said::Closed);
            }
            let end = &mut self.ends[me];
            end.present = end.present.filter(|(present, _)| *present != at);
            end.dials = end.dials.filter(|dials| *dials != at);
        }

        fn take(&mut self, me: usize, at: usize, present: Present) {
            if let Some((former, _)) = self.ends[me].present {
                self.close(me, former);
            }
            if present.by_peer {
                self.ends[me].knows = self.ends[me].knows.max(present.number);
            }
            self.ends[me].present = Some((at, present));
        }

        /// Something arrives at this end of a connection, if something is under way.
        fn arrive(&mut self, me: usize, at: usize) {
            let connection = &mut self.connections[at];
            let Some(said) = connection.under_way[me].pop_front() else {
                return;
            };
            if connection.closed[me] {
                return;
            }
            let (dialler, dialled) = (connection.dialler, connection.dialled);
            let number = LinkNumber {
                incarnation: dialler,
                number: dialled.number,
            };
            let present = self.ends[me].present.map(|(_, present)| present);
            match said {
                Said::Closed => self.close(me, at),
                Said::Dialled => match choose(present, &dialled, dialler) {
                    Choice::Take => {
                        let peer_incarnation = dialler;
                        self.take(
                            me,
                            at,
                            Present {
                                by_peer: true,
                                number,
                                peer_incarnation,
                            },
                        );
                        let welcome = Said::Welcome(self.ends[me].incarnation);
                        self.connections[at].under_way[1 - me].push_back(welcome);
                    }
                    Choice::Refuse(_) => self.close(me, at),
                },
                Said::Welcome(peer_incarnation) => match settle(present, peer_incarnation, me == 0) {
                    Choice::Take => {
                        self.take(
                            me,
                            at,
                            Present {
                                by_peer: false,
                                number,
                                peer_incarnation,
                            },
                        );
                        self.ends[me].dials = None;
                    }
                    Choice::Refuse(_) => self.close(me, at),
                },
            }
        }

        /// The node is gone, and starts again: its connections break.
        fn restart(&mut self, me: usize) {
            for at in 0..self.connections.len() {
                self.close(me, at);
            }
            let incarnation = self.ends[me].incarnation + 1;
            self.ends[me] = End {
                incarnation,
                ..End::default()
            };
        }

        /// One end gives its link up, and the other one is not told: a cable is out.
        fn lose(&mut self, me: usize) {
            if let Some((at, _)) = self.ends[me].present.take() {
                let connection = &mut self.connections[at];
                connection.closed[me] = true;
                connection.under_way = Default::default();
            }
        }

        /// What is used at one end alone is silent there, and a dial that nobody answers takes too long.
        fn silence(&mut self) {
            for me in [0, 1] {
                if let Some(at) = self.ends[me].dials {
                    self.close(me, at);
                }
                if let Some((at, _)) = self.ends[me].present
                    && self.connections[at].closed[1 - me]
                {
                    self.close(me, at);
                }
            }
        }

        /// One of the things that can happen.
        fn step(&mut self, (what, me, at): (u8, usize, usize)) {
            let recent = self.connections.len().checked_sub(1 + at);
            match what {
                0..4 => self.dial(me),
                4 => self.close(me, self.connections.len().saturating_sub(1)),
                5 => self.lose(me),
                6 => self.restart(me),
                _ => recent.into_iter().for_each(|at| self.arrive(me, at)),
            }
        }

        fn arrive_all(&mut self) {
            for _ in 0..8 {
                for at in 0..self.connections.len() {
                    (0..40).for_each(|time| self.arrive(time % 2, at));
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]
        #[test]
        fn two_nodes_end_with_the_same_one_link_whatever_crossed_broke_or_was_started_again(
            steps in proptest::collection::vec((0..24_u8, 0..2_usize, 0..3_usize), 0..60),
        ) {
            let mut pair = Pair::new();
            steps.into_iter().for_each(|step| pair.step(step));
            pair.arrive_all();
            pair.silence();
            pair.arrive_all();
            // Each has something to do with the same link, or both dial once more, at once.
            [0, 1].into_iter().for_each(|me| pair.dial(me));
            pair.arrive_all();
            let [one, other] = [0, 1].map(|me| pair.ends[me].present.map(|(at, _)| at));
            prop_assert!(one.is_some());
            prop_assert_eq!(one, other);
            let open = pair.connections.iter().filter(|it| it.closed == [false; 2]).count();
            prop_assert_eq!(open, 1);
        }
    }

    #[test]
    fn both_dial_at_once_and_what_the_preferred_one_dials_stays() {
        // In whatever order what was said arrives.
        for order in 0..1 << 6 {
            let mut pair = Pair::new();
            [0, 1].into_iter().for_each(|me| pair.dial(me));
            for bit in 0..6 {
                let at = order >> bit & 1;
                pair.arrive(0, at);
                pair.arrive(1, at);
            }
            pair.arrive_all();
            let [one, other] = [0, 1].map(|me| pair.ends[me].present.map(|(at, _)| at));
            assert_eq!(one, other);
            let stays = one.unwrap();
            // That of the other one stays only if the first one's was refused for it.
            assert!(stays == 0 || pair.connections[0].closed == [true; 2], "{order}");
        }
    }

    #[test]
    fn a_link_that_one_end_has_lost_is_replaced_by_whoever_dials_first() {
        for (by, lost_by) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let mut pair = Pair::new();
            pair.dial(by);
            pair.arrive_all();
            pair.lose(lost_by);
            pair.dial(lost_by);
            pair.arrive_all();
            let [one, other] = [0, 1].map(|me| pair.ends[me].present.map(|(at, _)| at));
            assert_eq!((one, other), (Some(1), Some(1)), "{by} {lost_by}");
        }
    }

    #[test]
    fn what_is_older_than_the_link_that_there_is_never_takes_its_place() {
        let number = |incarnation, number| LinkNumber { incarnation, number };
        let present = |by_peer| Present {
            by_peer,
            number: number(5, 7),
            peer_incarnation: 5,
        };
        let offered = |offered, knows| Dialled {
            lane: Some(Lane::Bulk),
            number: offered,
            knows,
        };
        let refused = Choice::Refuse;
        let never = LinkNumber::default();
        for (choice, by_peer, offer, incarnation) in [
            (refused(Refusal::Stale), true, offered(6, never), 5),
            (refused(Refusal::Stale), true, offered(7, never), 5),
            (Choice::Take, true, offered(8, never), 5),
            (refused(Refusal::Stale), true, offered(8, never), 4),
            (Choice::Take, true, offered(1, never), 6),
            (refused(Refusal::Crossed), false, offered(8, never), 5),
            (refused(Refusal::Crossed), false, offered(8, number(5, 6)), 5),
            (refused(Refusal::Crossed), false, offered(8, number(4, 9)), 5),
            (Choice::Take, false, offered(8, number(5, 7)), 5),
            (refused(Refusal::Stale), false, offered(8, number(5, 7)), 4),
            (Choice::Take, false, offered(1, never), 6),
        ] {
            assert_eq!(
                choose(Some(present(by_peer)), &offer, incarnation),
                choice,
                "{offer:?} {by_peer}"
            );
        }
        for (choice, incarnation, am_preferred) in [
            (Choice::Take, 5, true),
            (refused(Refusal::Crossed), 5, false),
            (refused(Refusal::Stale), 4, true),
            (Choice::Take, 6, false),
        ] {
            assert_eq!(settle(Some(present(true)), incarnation, am_preferred), choice);
        }
    }
}
