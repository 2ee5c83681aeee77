//! What one seed does: some seconds in which much goes wrong, and then everything heals and is looked at.

use super::coverage::Cell;
use super::faults::Plan;
use super::invariants::{acks, bounded, healed, levels, lost, members, unused};
use super::ledger::{Counts, Ledger};
use super::node::Node;
use super::nodes::{Cluster, Drained};
use super::terms::DEAD;
use crate::ledger::Violation;
use cluster::GroupId;
use queue::ConsumerSettings;
use std::time::Duration;

/// A dead letter that was refused is tried again after half a minute at the most.
const LETTERS_WAIT: u32 = 400;

const TICK: Duration = Duration::from_millis(100);

/// What became of a seed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    pub violations: Vec<Violation>,
    /// What happened, in words, if that was wanted.
    pub story: Vec<String>,
    /// A sum over everything that happened.
    pub digest: u64,
    pub counts: Counts,
}

/// Runs a seed.
pub fn run(seed: u64) -> Outcome {
    outcome(run_in(Cluster::new(seed, None, false), None))
}

/// Runs a seed in which everything waits for this fault to meet this record there.
pub fn run_at(seed: u64, cell: Cell) -> Outcome {
    outcome(run_in(Cluster::new(seed, Some(cell), false), Some(cell)))
}

/// Runs a seed, aimed at something or not, and writes down what happens.
pub fn run_told(seed: u64, cell: Option<Cell>) -> Outcome {
    outcome(run_in(Cluster::new(seed, cell, true), cell))
}

fn run_in(mut cluster: Cluster, cell: Option<Cell>) -> Ledger {
    let plan = Plan::choose(&mut cluster, cell);
    let most = cluster.theme.rounds();
    for _ in 0..most / 3 + cluster.random.below(most * 2 / 3) {
        cluster.round();
        for _ in 0..cluster.random.below(3) {
            cluster.client_acts();
        }
        if plan.checkpoints {
            cluster.checkpoint_some();
        }
        plan.strike(&mut cluster);
        if cluster.random.below(10) == 0 {
            cluster.replace_lost();
        }
        if !cluster.ledger.violations.is_empty() {
            return cluster.ledger;
        }
    }
    cluster.ledger.tell(|| "everything heals".to_owned());
    cluster.heal();
    if !until(&mut cluster, |cluster| {
        healed::is_well(&cluster.ledger, &cluster.nodes)
    }) {
        healed::too_long(&mut cluster.ledger, &cluster.nodes);
        return cluster.ledger;
    }
    healed::same_contents(&mut cluster.ledger, &cluster.nodes);
    let mut groups: Vec<GroupId> = cluster.ledger.books.keys().copied().collect();
    if !until(&mut cluster, |cluster| unserved(cluster, &groups).is_none()) {
        let what = format!("{:?} through some node", unserved(&cluster, &groups));
        cluster.ledger.violated("what heals serves", what);
        return cluster.ledger;
    }
    cluster.clients_leave();
    rest(&mut cluster);
    acks::ended(&mut cluster.ledger);
    members::ended(&mut cluster.ledger);
    // What dies while the others are emptied comes into the queue of the dead.
    groups.sort_by_key(|group| *group == DEAD);
    for group in groups {
        drain(&mut cluster, group);
    }
    settle_down(&mut cluster);
    cluster.ledger
}

/// Nobody wants anything any more: what nodes have kept for clients and for each other is given back.
fn settle_down(cluster: &mut Cluster) {
    until(cluster, |cluster| {
        let books = cluster.ledger.books.values();
        cluster.letters.is_empty() && books.into_iter().all(|book| book.history.live().next().is_none())
    });
    let since = cluster.ledger.now;
    if !until(cluster, |cluster| unused::all_have_ended(&cluster.ledger, since)) {
        let what = format!("since {since:?}");
        cluster.ledger.violated("a queue that nobody uses ends", what);
    }
    cluster.is_calm = true;
    let excess = |cluster: &Cluster| {
        let groups: Vec<GroupId> = cluster.terms.keys().copied().collect();
        let of_node = |node: &Node| Some(format!("{}: {}", node.id, bounded::excess(node, &groups)?));
        let of_nodes = cluster.nodes.iter().find_map(of_node);
        let of_access = |(at, access)| Some(format!("{at:?}: {}", bounded::excess_of_access(access)?));
        of_nodes.or_else(|| cluster.accesses.iter().find_map(of_access))
    };
    for _ in 0..bounded::CHECKPOINTS {
        for id in cluster.ids() {
            cluster
                .terms
                .keys()
                .for_each(|group| cluster.node(id).checkpoint(*group));
        }
        if until_within(cluster, bounded::TICKS, |cluster| excess(cluster).is_none()) {
            return;
        }
    }
    if let Some(what) = excess(cluster) {
        cluster.ledger.violated("what is over is given back", what);
    }
}

/// Rounds pass until this holds; false if it does not within its bound.
fn until(cluster: &mut Cluster, holds: impl Fn(&Cluster) -> bool) -> bool {
    until_within(cluster, healed::TICKS, holds)
}

fn until_within(cluster: &mut Cluster, ticks: u32, holds: impl Fn(&Cluster) -> bool) -> bool {
    let end = cluster.ledger.now + TICK * ticks;
    while cluster.ledger.now < end && cluster.ledger.violations.is_empty() {
        cluster.round();
        cluster.replace_lost();
        if holds(cluster) {
            return true;
        }
    }
    false
}

/// A queue that is not served through every node.
fn unserved(cluster: &Cluster, groups: &[GroupId]) -> Option<GroupId> {
    groups.iter().copied().find(|group| !serves(cluster, *group))
}

/// Whether a queue is led, and served through every node. A leader may have been removed, or have handed over, just now, and
/// what is asked while nobody is known to lead is declined after a while.
fn serves(cluster: &Cluster, group: GroupId) -> bool {
    let mut ways = cluster.accesses.iter().filter(|((_, of), _)| *of == group);
    cluster.leadership_of(group).is_some() && ways.all(|(_, access)| access.is_open())
}

/// What is under way to clients that have left arrives and goes back. A question that the network lost is asked again after a
/// second, and nodes are waited for that do not say what their clients have.
fn rest(cluster: &mut Cluster) {
    let (mut deliveries, mut since) = (cluster.ledger.counts.deliveries, cluster.ledger.now);
    while cluster.ledger.now < since + TICK * 25 && cluster.ledger.violations.is_empty() {
        cluster.round();
        if cluster.ledger.counts.deliveries > deliveries {
            (deliveries, since) = (cluster.ledger.counts.deliveries, cluster.ledger.now);
        }
    }
}

/// Takes everything out of a queue, and looks whether it is what must be there.
fn drain(cluster: &mut Cluster, group: GroupId) {
    until(cluster, |cluster| {
        cluster.letters.is_empty() && serves(cluster, group)
    });
    let Some(by) = cluster.leadership_of(group) else {
        return cluster
            .ledger
            .violated("what heals serves", format!("nobody leads {group:?}"));
    };
    let node = match cluster.random.chance() {
        true => by.node,
        false => 1,
    };
    let settings = ConsumerSettings {
        no_ack: false,
        exclusive: false,
        prefetch: 0,
        priority: 0,
        window: 1 << 30,
        paused: false,
    };
    let consumer = Some(cluster.consume_with(node, group, settings));
    let taken = Vec::new();
    cluster.drained = Some(Drained { consumer, taken });
    // A dead letter that was refused often waits for long.
    until_within(cluster, LETTERS_WAIT, |cluster| missing(cluster, group) == 0);
    let taken = cluster
        .drained
        .take()
        .map(|drained| drained.taken)
        .unwrap_or_default();
    if let Some(book) = cluster.ledger.books.get(&group) {
        let there = book.history.live().collect();
        lost::drained(&mut cluster.ledger, group, &there, &taken);
        levels::drained(&mut cluster.ledger, group, &taken);
    }
    if let Some(number) = consumer {
        cluster.done_with(node, group, number, &taken);
    }
}

/// How many messages are there that were not taken out.
fn missing(cluster: &Cluster, group: GroupId) -> usize {
    let taken = cluster.drained.as_ref().map(|drained| &drained.taken);
    let book = cluster.ledger.books.get(&group);
    let is_taken = |message| taken.is_some_and(|taken| taken.contains(&message));
    book.map_or(0, |book| {
        book.history.live().filter(|message| !is_taken(*message)).count()
    })
}

fn outcome(ledger: Ledger) -> Outcome {
    Outcome {
        violations: ledger.violations,
        story: ledger.story.unwrap_or_default(),
        digest: ledger.digest,
        counts: ledger.counts,
    }
}
