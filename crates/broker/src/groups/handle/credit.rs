//! How much nodes may send to the queues that a node leads, and have no answer to.
//!
//! Each node may send a little to each queue, which costs nothing as long as it is idle. Who wants to send more borrows
//! from one budget for all queues and nodes, and gives it back when it has been quiet for a while.

use model::Incarnation;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a node may send to a queue without asking, in bytes.
pub const FIRST_CREDIT: u64 = 64 * 1024;

/// What it may borrow for it, in bytes.
const MOST: u64 = 8 * 1024 * 1024;

/// What it may borrow for all queues of a leader, in bytes: half of what the links between nodes keep for each other. What they
/// have no room for is lost, and with it the sessions of its queues; then everything is sent once more.
const MOST_OF_NODE: u64 = 32 * 1024 * 1024;

/// Who has sent nothing for so many ticks gives back what it has borrowed.
const QUIET: u32 = 50;

/// What all nodes together may borrow from one, in bytes.
#[derive(Debug)]
pub struct Budget(Mutex<Lent>);

#[derive(Debug)]
struct Lent {
    left: u64,
    nodes: BTreeMap<Incarnation, u64>,
}

impl Budget {
    /// So many bytes.
    pub fn new(bytes: u64) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Lent {
            left: bytes,
            nodes: BTreeMap::new(),
        })))
    }

    /// What is left of it.
    pub fn left(&self) -> u64 {
        self.lent().left
    }

    fn lend(&self, node: Incarnation, bytes: u64) -> bool {
        let mut lent = self.lent();
        let has = lent.nodes.get(&node).copied().unwrap_or(0);
        if bytes > lent.left.min(MOST_OF_NODE - has) {
            return false;
        }
        lent.left -= bytes;
        lent.nodes.insert(node, has + bytes);
        true
    }

    fn take_back(&self, node: Incarnation, bytes: u64) {
        let mut lent = self.lent();
        lent.left += bytes;
        if let Some(has) = lent.nodes.get_mut(&node) {
            *has -= bytes;
        }
        lent.nodes.retain(|_, has| *has > 0);
    }

    fn lent(&self) -> MutexGuard<'_, Lent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one node may send to one queue.
#[derive(Debug)]
pub struct Credit {
    node: Incarnation,
    budget: Arc<Budget>,
    borrowed: u64,
    wants: bool,
    quiet: u32,
}

impl Credit {
    /// The first credit of a node, and the right to ask the budget for more.
    pub fn new(node: Incarnation, budget: Arc<Budget>) -> Self {
        Self {
            node,
            budget,
            borrowed: 0,
            wants: false,
            quiet: 0,
        }
    }

    /// So many bytes.
    pub fn bytes(&self) -> u64 {
        FIRST_CREDIT + self.borrowed
    }

    /// The node has sent something.
    pub fn used(&mut self) {
        self.quiet = 0;
    }

    /// It could send more. True if it may now; otherwise it may as soon as there is something to borrow.
    pub fn more(&mut self) -> bool {
        let more = self.bytes().min(MOST.saturating_sub(self.borrowed));
        self.wants = more > 0 && !self.budget.lend(self.node, more);
        let granted = more > 0 && !self.wants;
        if granted {
            self.borrowed += more;
        }
        granted
    }

    /// A tick of the clock. True if the node is to be told what it may send: it changes, or what the node wants is forgotten, and
    /// it would not ask again.
    pub fn tick(&mut self) -> bool {
        self.quiet = self.quiet.saturating_add(1);
        if self.quiet < QUIET {
            return self.wants && self.more();
        }
        let wanted = self.wants;
        self.give_back() || wanted
    }

    /// Back to the first credit. True if it was more.
    pub fn give_back(&mut self) -> bool {
        self.wants = false;
        let borrowed = std::mem::take(&mut self.borrowed);
        if borrowed > 0 {
            self.budget.take_back(self.node, borrowed);
        }
        borrowed > 0
    }
}

impl Drop for Credit {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Incarnation = Incarnation(3);

    #[test]
    fn a_node_borrows_less_for_all_its_queues_than_a_link_keeps() {
        let budget = Budget::new(1 << 40);
        let mut credits: Vec<Credit> = (0..100).map(|_| Credit::new(NODE, budget.clone())).collect();
        while credits.iter_mut().any(Credit::more) {}
        assert_eq!(budget.left(), (1 << 40) - MOST_OF_NODE);
        let mut other = Credit::new(Incarnation(4), budget.clone());
        assert!(other.more(), "another node has its own share");
        drop((credits, other));
        assert_eq!(budget.left(), 1 << 40);
        assert!(budget.lent().nodes.is_empty());
    }

    #[test]
    fn credit_grows_on_demand_from_one_budget_and_goes_back_when_its_node_is_quiet_or_gone() {
        let budget = Budget::new(4 * FIRST_CREDIT);
        let (mut one, mut other) = (
            Credit::new(NODE, budget.clone()),
            Credit::new(NODE, budget.clone()),
        );
        assert!(one.more() && one.more());
        assert_eq!((one.bytes(), budget.left()), (4 * FIRST_CREDIT, FIRST_CREDIT));
        assert!(other.more() && !other.more(), "nothing is left");
        assert!(!other.tick());
        drop(one);
        assert!(other.tick(), "what is there now it may have");
        assert_eq!((other.bytes(), budget.left()), (4 * FIRST_CREDIT, FIRST_CREDIT));
        let changes = (0..QUIET).filter(|_| other.tick()).count();
        assert_eq!(
            (changes, other.bytes(), budget.left()),
            (1, FIRST_CREDIT, 4 * FIRST_CREDIT)
        );
    }

    #[test]
    fn a_node_whose_wish_is_forgotten_is_told_so_once() {
        let mut credit = Credit::new(NODE, Budget::new(0));
        assert!(!credit.more());
        assert_eq!((0..2 * QUIET).filter(|_| credit.tick()).count(), 1);
    }

    #[test]
    fn nobody_borrows_more_than_a_share_of_a_large_budget() {
        let budget = Budget::new(1 << 40);
        let mut credit = Credit::new(NODE, budget);
        while credit.more() {}
        assert_eq!(credit.bytes(), FIRST_CREDIT + MOST);
    }
}
