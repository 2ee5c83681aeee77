//! What a channel has delivered and the client has not settled yet: from delivery tags to messages of queues.
//!
//! Tags rise by one and messages of a queue mostly come in order, so a run of deliveries is kept as one entry
//! however long it is. An acknowledgement out of order splits a run in two; one in order shortens it.

use model::{Ranges, Seq};
use std::collections::BTreeMap;

/// Names who holds a message: an entry of the channel's [`super::holders::Holders`].
pub type HolderId = u32;

/// Deliveries with rising tags and rising positions in one queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    /// The tag of its first message. The key under which the run is kept is this or lower: a run that is shortened at
    /// its front keeps its key.
    tag: u64,
    seq: Seq,
    count: u64,
    holder: HolderId,
}

impl Run {
    fn last_tag(&self) -> u64 {
        self.tag + self.count - 1
    }
}

/// Consecutive messages of one queue that leave the channel's hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The first one's delivery tag.
    pub tag: u64,
    /// Who held them.
    pub holder: HolderId,
    /// The first one's position.
    pub seq: Seq,
    /// How many.
    pub count: u64,
}

/// Unsettled deliveries of a channel.
#[derive(Debug, Default)]
pub struct Unacked {
    runs: BTreeMap<u64, Run>,
}

impl Unacked {
    /// Adds `count` deliveries from `tag` on, of the queue's messages from `seq` on. Tags rise from call to call.
    pub fn push(&mut self, tag: u64, holder: HolderId, seq: Seq, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(mut entry) = self.runs.last_entry() {
            let last = entry.get_mut();
            if last.holder == holder && last.tag + last.count == tag && last.seq + last.count == seq {
                last.count += count;
                return;
            }
        }
        self.runs.insert(
            tag,
            Run {
                tag,
                seq,
                count,
                holder,
            },
        );
    }

    /// Takes out one delivery. `None` if the tag is not unsettled.
    pub fn take_one(&mut self, tag: u64) -> Option<Taken> {
        let (&key, run) = self.runs.range_mut(..=tag).next_back()?;
        if tag < run.tag || tag > run.last_tag() {
            return None;
        }
        let taken = Taken {
            tag,
            holder: run.holder,
            seq: run.seq + (tag - run.tag),
            count: 1,
        };
        let behind = run.last_tag() - tag;
        if tag == run.tag {
            run.tag += 1;
            run.seq += 1;
            run.count -= 1;
            if run.count == 0 {
                self.runs.remove(&key);
            }
        } else {
            run.count = tag - run.tag;
            if behind > 0 {
                let rest = Run {
                    tag: tag + 1,
                    seq: taken.seq + 1,
                    count: behind,
                    holder: taken.holder,
                };
                self.runs.insert(rest.tag, rest);
            }
        }
        Some(taken)
    }

    /// Takes out everything up to `tag` and hands it to `each`, oldest first. False, with nothing done, if the tag itself
    /// is not unsettled: RabbitMQ asks that of a multiple acknowledgement too.
    pub fn take_up_to(&mut self, tag: u64, mut each: impl FnMut(Taken)) -> bool {
        let Some((_, run)) = self.runs.range(..=tag).next_back() else {
            return false;
        };
        if tag < run.tag || tag > run.last_tag() {
            return false;
        }
        while let Some(mut entry) = self.runs.first_entry() {
            let run = entry.get_mut();
            if run.tag > tag {
                break;
            }
            let count = run.count.min(tag + 1 - run.tag);
            each(Taken {
                tag: run.tag,
                holder: run.holder,
                seq: run.seq,
                count,
            });
            run.tag += count;
            run.seq += count;
            run.count -= count;
            if run.count > 0 {
                break;
            }
            entry.remove();
        }
        true
    }

    /// The lowest tag that the holder has. Costs time in the number of runs of others before it.
    pub fn first_of(&self, holder: HolderId) -> Option<u64> {
        let mut runs = self.runs.values();
        runs.find(|run| run.holder == holder).map(|run| run.tag)
    }

    /// Takes out what the holder has with lower tags than `below`, oldest first. Costs time in the number of runs there.
    pub fn take_of(&mut self, holder: HolderId, below: u64, mut each: impl FnMut(Taken)) {
        let theirs = |run: &Run| run.holder == holder && run.tag < below;
        let keys = self.runs.range(..below).filter(|(_, run)| theirs(run));
        let keys: Vec<u64> = keys.map(|(key, _)| *key).collect();
        for key in keys {
            let Some(run) = self.runs.get_mut(&key) else {
                continue;
            };
            let count = run.count.min(below - run.tag);
            each(Taken {
                tag: run.tag,
                holder,
                seq: run.seq,
                count,
            });
            run.tag += count;
            run.seq += count;
            run.count -= count;
            if run.count == 0 {
                self.runs.remove(&key);
            }
        }
    }

    /// Takes out everything up to `tag`, whether that one is unsettled or not, and hands it to `each`, oldest first.
    pub fn take_all_up_to(&mut self, tag: u64, mut each: impl FnMut(Taken)) {
        let last = self.runs.range(..=tag).next_back();
        if let Some(last) = last.map(|(_, run)| run.last_tag().min(tag)) {
            self.take_up_to(last, &mut each);
        }
    }

    /// Takes out the oldest that lie together, no more than `count`, if their tags are not above `last`.
    pub fn take_first(&mut self, last: u64, count: u64) -> Option<Taken> {
        let mut entry = self.runs.first_entry()?;
        let run = entry.get_mut();
        if run.tag > last || count == 0 {
            return None;
        }
        let taken = Taken {
            tag: run.tag,
            holder: run.holder,
            seq: run.seq,
            count: run.count.min(count).min(last + 1 - run.tag),
        };
        run.tag += taken.count;
        run.seq += taken.count;
        run.count -= taken.count;
        if run.count == 0 {
            entry.remove();
        }
        Some(taken)
    }

    /// Takes out everything, oldest first.
    pub fn take_all(&mut self) -> impl Iterator<Item = Taken> + use<> {
        std::mem::take(&mut self.runs).into_values().map(|run| Taken {
            tag: run.tag,
            holder: run.holder,
            seq: run.seq,
            count: run.count,
        })
    }
}

impl Unacked {
    /// Undoes having taken these: a transaction was rolled back. Costs time in the number of all runs.
    pub fn put_back(&mut self, taken: impl Iterator<Item = Taken>) {
        let back = taken.map(|taken| Run {
            tag: taken.tag,
            seq: taken.seq,
            count: taken.count,
            holder: taken.holder,
        });
        let mut runs: Vec<Run> = std::mem::take(&mut self.runs).into_values().chain(back).collect();
        runs.sort_unstable_by_key(|run| run.tag);
        for run in runs {
            self.push(run.tag, run.holder, run.seq, run.count);
        }
    }
}

/// So many holders are looked through one by one.
const FEW_HOLDERS: usize = 16;

/// Messages that leave the channel's hands, by holder. Most batches have one holder.
#[derive(Debug)]
pub struct Batch {
    by_holder: Vec<(HolderId, Ranges)>,
    /// Where the holders stand, once there are more than a few.
    places: BTreeMap<HolderId, usize>,
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

impl Batch {
    /// An empty one; allocates nothing.
    pub const fn new() -> Self {
        Self {
            by_holder: Vec::new(),
            places: BTreeMap::new(),
        }
    }

    /// True if nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.by_holder.is_empty()
    }

    /// Adds messages.
    pub fn add(&mut self, taken: Taken) {
        let last = taken.seq + taken.count - 1;
        match self.place_of(taken.holder) {
            Some(at) => self.by_holder[at].1.push_span(taken.seq, last),
            None => {
                if !self.places.is_empty() {
                    self.places.insert(taken.holder, self.by_holder.len());
                }
                self.by_holder.push((taken.holder, Ranges::span(taken.seq, last)));
            }
        }
    }

    fn place_of(&mut self, holder: HolderId) -> Option<usize> {
        if self.by_holder.len() < FEW_HOLDERS {
            return self.by_holder.iter().rposition(|(known, _)| *known == holder);
        }
        if self.places.is_empty() {
            let places = self.by_holder.iter().enumerate();
            self.places = places.map(|(at, (known, _))| (*known, at)).collect();
        }
        self.places.get(&holder).copied()
    }

    /// Takes everything out and keeps the memory.
    pub fn drain(&mut self) -> impl Iterator<Item = (HolderId, Ranges)> + '_ {
        self.places.clear();
        self.by_holder.drain(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_oldest_come_in_pieces_and_what_came_later_stays() {
        let mut unacked = Unacked::default();
        unacked.push(1, 0, 100, 10);
        unacked.push(11, 1, 500, 10);
        let mut pieces = Vec::new();
        while let Some(taken) = unacked.take_first(15, 4) {
            pieces.push((taken.tag, taken.seq, taken.count));
        }
        assert_eq!(
            pieces,
            [(1, 100, 4), (5, 104, 4), (9, 108, 2), (11, 500, 4), (15, 504, 1)]
        );
        assert_eq!(count(&unacked), 5);
    }

    #[test]
    fn a_batch_of_many_holders_keeps_their_order_and_each_ones_messages_together() {
        let mut batch = Batch::new();
        for round in 0..3 {
            for holder in 0..1_000 {
                let seq = u64::from(holder) * 10 + round;
                batch.add(Taken {
                    tag: 1,
                    holder,
                    seq,
                    count: 1,
                });
            }
        }
        let all: Vec<_> = batch.drain().collect();
        let meant = (0..1_000).map(|holder| {
            (
                holder,
                Ranges::span(u64::from(holder) * 10, u64::from(holder) * 10 + 2),
            )
        });
        assert_eq!(all, meant.collect::<Vec<_>>());
        batch.add(Taken {
            tag: 1,
            holder: 7,
            seq: 1,
            count: 1,
        });
        assert_eq!(batch.drain().count(), 1);
    }

    fn count(unacked: &Unacked) -> u64 {
        unacked.runs.values().map(|run| run.count).sum()
    }

    #[test]
    fn deliveries_in_order_are_one_run_and_stay_one() {
        let mut unacked = Unacked::default();
        unacked.push(1, 0, 100, 10);
        unacked.push(11, 0, 110, 5);
        assert_eq!((unacked.runs.len(), count(&unacked)), (1, 15));
        for tag in 1..=10 {
            assert_eq!(
                unacked.take_one(tag),
                Some(Taken {
                    tag,
                    holder: 0,
                    seq: 99 + tag,
                    count: 1
                })
            );
        }
        unacked.push(16, 0, 115, 1);
        assert_eq!((unacked.runs.len(), count(&unacked)), (1, 6));
        assert_eq!(unacked.take_one(10), None);
        assert_eq!(unacked.take_one(17), None);
    }

    #[test]
    fn a_multiple_of_a_settled_tag_is_unknown() {
        let mut unacked = Unacked::default();
        unacked.push(1, 0, 1, 5);
        unacked.take_one(4);
        assert!(!unacked.take_up_to(4, |_| panic!("nothing may be taken")));
        assert_eq!(count(&unacked), 4);
        assert!(unacked.take_up_to(5, |_| ()));
        assert_eq!(count(&unacked), 0);
    }

    #[test]
    fn what_is_put_back_can_be_taken_again_by_the_same_tags() {
        let mut unacked = Unacked::default();
        unacked.push(1, 0, 1, 6);
        unacked.push(7, 1, 1, 1);
        let mut taken = vec![unacked.take_one(4).unwrap()];
        assert!(unacked.take_up_to(2, |piece| taken.push(piece)));
        unacked.put_back(taken.into_iter());
        assert_eq!((unacked.runs.len(), count(&unacked)), (2, 7));
        for tag in [4, 2, 7, 1, 6, 3, 5] {
            assert_eq!(unacked.take_one(tag).map(|taken| taken.tag), Some(tag));
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push { holder: u32, gap: u64, count: u64 },
        One(u64),
        UpTo(u64),
        All,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => (0u32..3, 0u64..2, 0u64..6).prop_map(|(holder, gap, count)| Step::Push { holder, gap, count }),
            5 => (0u64..60).prop_map(Step::One),
            2 => (0u64..60).prop_map(Step::UpTo),
            1 => Just(Step::All),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_a_plain_list(steps in prop::collection::vec(step(), 0..60)) {
            let mut unacked = Unacked::default();
            let mut naive: Vec<(u64, HolderId, Seq)> = Vec::new();
            let mut next_tag = 1;
            let mut next_seq = [1u64; 3];
            for step in steps {
                match step {
                    Step::Push { holder, gap, count } => {
                        let seq = next_seq[holder as usize] + gap;
                        unacked.push(next_tag, holder, seq, count);
                        naive.extend((0..count).map(|n| (next_tag + n, holder, seq + n)));
                        next_tag += count;
                        next_seq[holder as usize] = seq + count;
                    }
                    Step::One(tag) => {
                        let at = naive.iter().position(|held| held.0 == tag);
                        let expected = at.map(|at| naive.remove(at)).map(|(_, holder, seq)| Taken { tag, holder, seq, count: 1 });
                        prop_assert_eq!(unacked.take_one(tag), expected);
                    }
                    Step::UpTo(tag) => {
                        let mut taken = Vec::new();
                        let known = unacked.take_up_to(tag, |piece| taken.push(piece));
                        let at = naive.iter().position(|held| held.0 == tag);
                        prop_assert_eq!(known, at.is_some());
                        let expected: Vec<_> = at.map_or(Vec::new(), |at| naive.drain(..=at).collect());
                        prop_assert_eq!(flat(taken.into_iter()), expected.iter().map(|held| (held.1, held.2)).collect::<Vec<_>>());
                    }
                    Step::All => {
                        prop_assert_eq!(flat(unacked.take_all()), naive.drain(..).map(|held| (held.1, held.2)).collect::<Vec<_>>());
                    }
                }
                prop_assert_eq!(count(&unacked), naive.len() as u64);
            }
        }
    }

    fn flat(taken: impl Iterator<Item = Taken>) -> Vec<(HolderId, Seq)> {
        taken
            .flat_map(|piece| (0..piece.count).map(move |n| (piece.holder, piece.seq + n)))
            .collect()
    }
}
