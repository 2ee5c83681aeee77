//! Dead letters that queues have not answered for: each has a number of its own, for a queue may take some of a block and
//! refuse others.

use model::{QueueId, Ranges, Seq};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A block that a queue has.
struct Block {
    /// Its round.
    round: u64,
    /// What its letters are in the queue that they left, in their order.
    seqs: Arc<[Seq]>,
    /// The numbers without an answer.
    open: Ranges,
    /// Other queues have it, too.
    among_others: bool,
}

/// A letter for which a queue has answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answered {
    pub round: u64,
    /// What it is in the queue that it left.
    pub seq: Seq,
    /// It went to other queues, too.
    pub among_others: bool,
}

/// All of them.
pub struct Sent {
    /// By queue and the number of the first letter. A letter that is told twice is not found again.
    blocks: BTreeMap<(QueueId, u64), Block>,
    /// The number of the next letter.
    next: u64,
}

impl Sent {
    /// None yet.
    pub fn new() -> Self {
        Self {
            blocks: BTreeMap::new(),
            next: 1,
        }
    }

    /// Numbers for so many letters, of which there is one at least.
    pub fn numbers(&mut self, count: usize) -> Ranges {
        let first = self.next;
        self.next += count as u64;
        Ranges::span(first, self.next - 1)
    }

    /// Letters of a round with these numbers go to this queue.
    pub fn add(
        &mut self,
        queue: QueueId,
        round: u64,
        numbers: &Ranges,
        seqs: &Arc<[Seq]>,
        among_others: bool,
    ) {
        let Some(first) = numbers.first() else { return };
        let block = Block {
            round,
            seqs: seqs.clone(),
            open: numbers.clone(),
            among_others,
        };
        self.blocks.insert((queue, first), block);
    }

    /// A queue has answered for the letters with these numbers: each is told to `letter`. Returns the rounds of blocks without a
    /// letter that has no answer.
    pub fn answered(
        &mut self,
        queue: QueueId,
        numbers: &Ranges,
        mut letter: impl FnMut(Answered),
    ) -> Vec<u64> {
        let mut done = Vec::new();
        for (first, last) in numbers.spans() {
            let before = self.blocks.range(..=(queue, first)).next_back();
            let from = before.map_or((queue, first), |(at, _)| *at).max((queue, 0));
            let concerned = self.blocks.range(from..=(queue, last));
            let concerned: Vec<(QueueId, u64)> = concerned.map(|(at, _)| *at).collect();
            for at in concerned {
                let Some(block) = self.blocks.get_mut(&at) else {
                    continue;
                };
                let open = block.open.without(&Ranges::span(first, last));
                for number in block.open.without(&open).iter() {
                    letter(Answered {
                        round: block.round,
                        seq: block.seqs[(number - at.1) as usize],
                        among_others: block.among_others,
                    });
                }
                block.open = open;
                if block.open.is_empty() {
                    done.push(block.round);
                    self.blocks.remove(&at);
                }
            }
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_answers_for_each_letter_of_its_blocks_once() {
        let (one, other) = (QueueId(1), QueueId(2));
        let mut sent = Sent::new();
        let (first, second) = (sent.numbers(3), sent.numbers(2));
        assert_eq!((&first, &second), (&Ranges::span(1, 3), &Ranges::span(4, 5)));
        for queue in [one, other] {
            sent.add(queue, 7, &first, &Arc::from([30, 10, 20]), true);
        }
        sent.add(one, 8, &second, &Arc::from([5, 6]), false);
        let mut answered = |queue, numbers: Ranges| {
            let mut seqs = Vec::new();
            let done = sent.answered(queue, &numbers, |it| {
                seqs.push((it.round, it.seq, it.among_others))
            });
            (seqs, done)
        };
        assert_eq!(answered(QueueId(3), Ranges::span(1, 9)), (vec![], vec![]));
        assert_eq!(answered(one, Ranges::one(2)), (vec![(7, 10, true)], vec![]));
        let rest = vec![(7, 30, true), (7, 20, true), (8, 5, false)];
        assert_eq!(answered(one, Ranges::span(1, 4)), (rest, vec![7]));
        assert_eq!(answered(one, Ranges::span(4, 5)), (vec![(8, 6, false)], vec![8]));
        let all = vec![(7, 30, true), (7, 10, true), (7, 20, true)];
        assert_eq!(answered(other, Ranges::span(1, 3)), (all, vec![7]));
        assert_eq!(answered(other, Ranges::span(1, 3)), (vec![], vec![]));
    }
}
