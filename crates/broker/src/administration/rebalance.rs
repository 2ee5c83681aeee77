//! Spreads leaders evenly: some are moved at a time, and the next ones once others lead those.
//!
//! Whoever does this believes nothing for long. It asks all nodes what they lead, draws up what is to move, has the nodes that
//! lead it hand over, each if it still leads and the heir has all that is committed, and looks at the end what became of it. See
//! decision note 58.

use super::evenly::{Led, Move, moves};
use catalog::NodeId;
use model::QueueId;
use std::collections::{BTreeMap, BTreeSet};

/// So many leaders are moved at a time.
const AT_A_TIME: usize = 10;

/// So often it is drawn up anew, if nodes come, go or refuse meanwhile.
const PASSES: usize = 8;

/// So often nodes are asked whether they lead what they are to: for two seconds in all.
const LOOKS: usize = 40;

/// What is asked of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// It hands these over to those.
    pub moves: Vec<(QueueId, NodeId)>,
    /// Which of these it leads; of all that there are, if none are named.
    pub of: Option<Vec<QueueId>>,
}

/// What it says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// It has begun to hand these over.
    pub begun: BTreeSet<QueueId>,
    /// It leads these.
    pub leads: Vec<QueueId>,
}

/// The nodes and queues of the cluster, as this is done.
pub trait Leaderships {
    /// The nodes that run, can be reached and are not in maintenance.
    fn nodes(&self) -> BTreeSet<NodeId>;
    /// The queues that are to be spread, each with the nodes that have it.
    fn queues(&self) -> Vec<(QueueId, Vec<NodeId>)>;
    /// Asks these nodes, all at once; `None` for those that say nothing in time.
    fn ask(&self, asked: Vec<(NodeId, Asked)>) -> Vec<Option<Told>>;
    /// Waits for a moment. False if all of this is to end.
    fn pause(&self) -> bool;
    /// How far it is.
    fn tell(&self, progress: Progress);
}

/// How far it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// It goes on.
    pub is_running: bool,
    /// So many leaders are to be moved.
    pub wanted: usize,
    /// So many were.
    pub moved: usize,
    /// So many were not, since the node did not lead them any more, or another one could not or did not.
    pub failed: usize,
}

/// Moves leaders until they are spread evenly, or nothing more can be done.
pub fn rebalance(on: &dyn Leaderships) -> Progress {
    let mut work = Work {
        on,
        progress: Progress::default(),
        failed: BTreeSet::new(),
        avoided: BTreeSet::new(),
        took: BTreeSet::new(),
    };
    for _ in 0..PASSES {
        let planned = work.draw_up();
        if planned.is_empty() {
            break;
        }
        work.progress.wanted += planned.len();
        on.tell(work.progress);
        for some in planned.chunks(AT_A_TIME) {
            if !work.carry_out(some) {
                return work.progress;
            }
            on.tell(work.progress);
        }
        let heirs = planned.iter().map(|it| it.to);
        let in_vain = heirs.filter(|heir| !work.took.contains(heir));
        work.avoided.extend(in_vain);
    }
    work.progress
}

struct Work<'a> {
    on: &'a dyn Leaderships,
    progress: Progress,
    /// What was tried in vain. It is not tried again.
    failed: BTreeSet<(QueueId, NodeId)>,
    /// Nodes that took nothing of what they were to: nothing more is moved there.
    avoided: BTreeSet<NodeId>,
    /// Nodes that took something.
    took: BTreeSet<NodeId>,
}

impl Work<'_> {
    fn draw_up(&self) -> Vec<Move> {
        let nodes = self.on.nodes();
        let asked = nodes.iter().map(|node| (*node, Asked::default())).collect();
        let told = self.on.ask(asked);
        let told = nodes.iter().zip(told);
        let leads = told.flat_map(|(node, told)| {
            let leads = told.map(|told| told.leads).unwrap_or_default();
            leads.into_iter().map(|queue| (queue, *node))
        });
        let leaders: BTreeMap<QueueId, NodeId> = leads.collect();
        let led = self.on.queues().into_iter().filter_map(|(queue, members)| {
            let leader = *leaders.get(&queue)?;
            let could = |node: &NodeId| {
                *node != leader && !self.avoided.contains(node) && !self.failed.contains(&(queue, *node))
            };
            let others = members.into_iter().filter(could).collect();
            Some(Led {
                queue,
                leader,
                others,
            })
        });
        moves(&led.collect::<Vec<_>>(), &nodes)
    }

    /// False if all of this is to end.
    fn carry_out(&mut self, some: &[Move]) -> bool {
        let mut asked: BTreeMap<NodeId, Asked> = BTreeMap::new();
        for it in some {
            let of = asked.entry(it.from).or_default();
            of.moves.push((it.queue, it.to));
            of.of = Some(Vec::new());
        }
        let told = self.on.ask(asked.into_iter().collect());
        let begun: BTreeSet<QueueId> = told.into_iter().flatten().flat_map(|told| told.begun).collect();
        let (mut open, refused): (Vec<Move>, Vec<Move>) =
            some.iter().copied().partition(|it| begun.contains(&it.queue));
        for it in refused {
            self.fail(it);
        }
        for _ in 0..LOOKS {
            if open.is_empty() {
                return true;
            }
            if !self.on.pause() {
                return false;
            }
            let arrived = self.arrived(&open);
            self.progress.moved += arrived.len();
            self.took.extend(arrived.iter().map(|it| it.to));
            open.retain(|it| !arrived.contains(it));
        }
        for it in open {
            self.fail(it);
        }
        true
    }

    /// Those whose heirs lead them.
    fn arrived(&self, open: &[Move]) -> BTreeSet<Move> {
        let mut asked: BTreeMap<NodeId, Asked> = BTreeMap::new();
        for it in open {
            let of = &mut asked.entry(it.to).or_default().of;
            of.get_or_insert_default().push(it.queue);
        }
        let heirs: Vec<NodeId> = asked.keys().copied().collect();
        let told = self.on.ask(asked.into_iter().collect());
        let led: BTreeSet<(NodeId, QueueId)> = heirs
            .into_iter()
            .zip(told)
            .flat_map(|(node, told)| {
                let leads = told.map(|told| told.leads).unwrap_or_default();
                leads.into_iter().map(move |queue| (node, queue))
            })
            .collect();
        let has_come = |it: &&Move| led.contains(&(it.to, it.queue));
        open.iter().filter(has_come).copied().collect()
    }

    fn fail(&mut self, it: Move) {
        self.progress.failed += 1;
        self.failed.insert((it.queue, it.to));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::{Cell, RefCell};

    /// Nodes of which each does at once what it is asked, if it can.
    #[derive(Default)]
    struct Cluster {
        nodes: RefCell<BTreeSet<NodeId>>,
        leaders: RefCell<BTreeMap<QueueId, NodeId>>,
        members: BTreeMap<QueueId, Vec<NodeId>>,
        /// Those that are never up to date.
        behind: BTreeSet<NodeId>,
        /// What is asked after so many questions comes from a cluster in which this has happened.
        happens: RefCell<Option<(usize, Happens)>>,
        questions: Cell<usize>,
        /// Handed over in one round, at the most.
        most: Cell<usize>,
    }

    type Happens = Box<dyn FnOnce(&Cluster)>;

    impl Cluster {
        /// So many queues, which the first of so many nodes leads.
        fn piled(queues: u64, nodes: u64) -> Self {
            let all: Vec<NodeId> = (1..=nodes).map(NodeId).collect();
            Self {
                nodes: RefCell::new(all.iter().copied().collect()),
                leaders: RefCell::new((1..=queues).map(|it| (QueueId(it), NodeId(1))).collect()),
                members: (1..=queues).map(|it| (QueueId(it), all.clone())).collect(),
                ..Self::default()
            }
        }

        fn counts(&self) -> Vec<usize> {
            let leaders = self.leaders.borrow();
            let of = |node: &NodeId| leaders.values().filter(|it| *it == node).count();
            self.nodes.borrow().iter().map(of).collect()
        }

        fn after(self, questions: usize, happens: impl FnOnce(&Cluster) + 'static) -> Self {
            *self.happens.borrow_mut() = Some((questions, Box::new(happens)));
            self
        }
    }

    impl Leaderships for Cluster {
        fn nodes(&self) -> BTreeSet<NodeId> {
            self.nodes.borrow().clone()
        }

        fn queues(&self) -> Vec<(QueueId, Vec<NodeId>)> {
            let members = self.members.iter();
            members.map(|(queue, nodes)| (*queue, nodes.clone())).collect()
        }

        fn ask(&self, asked: Vec<(NodeId, Asked)>) -> Vec<Option<Told>> {
            self.questions.set(self.questions.get() + 1);
            let due = self
                .happens
                .borrow_mut()
                .take_if(|it| it.0 < self.questions.get());
            if let Some((_, happens)) = due {
                happens(self);
            }
            let moved = asked.iter().map(|(_, asked)| asked.moves.len()).sum();
            self.most.set(self.most.get().max(moved));
            let answer = |(node, asked): (NodeId, Asked)| {
                if !self.nodes.borrow().contains(&node) {
                    return None;
                }
                let mut leaders = self.leaders.borrow_mut();
                let mut begun = BTreeSet::new();
                for (queue, to) in asked.moves {
                    let is_able = self.nodes.borrow().contains(&to) && !self.behind.contains(&to);
                    if leaders.get(&queue) == Some(&node) && is_able {
                        leaders.insert(queue, to);
                        begun.insert(queue);
                    }
                }
                let is_asked = |queue: &QueueId| asked.of.as_ref().is_none_or(|of| of.contains(queue));
                let leads = leaders
                    .iter()
                    .filter(|(queue, it)| **it == node && is_asked(queue));
                let leads = leads.map(|(queue, _)| *queue).collect();
                Some(Told { begun, leads })
            };
            asked.into_iter().map(answer).collect()
        }

        fn pause(&self) -> bool {
            true
        }

        fn tell(&self, _: Progress) {}
    }

    #[test]
    fn leaders_are_moved_some_at_a_time_until_all_nodes_lead_as_many() {
        let cluster = Cluster::piled(100, 3);
        let told = rebalance(&cluster);
        let mut counts = cluster.counts();
        counts.sort_unstable();
        assert_eq!(counts, [33, 33, 34]);
        assert_eq!(
            (told.wanted, told.moved, told.failed, cluster.most.get()),
            (66, 66, 0, AT_A_TIME)
        );
        assert_eq!(rebalance(&cluster), Progress::default(), "it is even");
    }

    #[test]
    fn who_is_not_up_to_date_leads_nothing_and_the_others_share_the_rest() {
        let mut cluster = Cluster::piled(30, 3);
        cluster.behind.insert(NodeId(2));
        let told = rebalance(&cluster);
        assert_eq!(cluster.counts(), [15, 0, 15]);
        assert!(told.failed > 0 && told.moved == 15, "{told:?}");
    }

    #[test]
    fn a_node_that_dies_in_between_costs_what_it_was_about_to_get() {
        for questions in 1..10 {
            let cluster = Cluster::piled(60, 3).after(questions, |cluster| {
                cluster.nodes.borrow_mut().remove(&NodeId(3));
                // The others elect the first one.
                let mut leaders = cluster.leaders.borrow_mut();
                let led = leaders.values_mut().filter(|it| **it == NodeId(3));
                led.for_each(|it| *it = NodeId(1));
            });
            rebalance(&cluster);
            assert_eq!(cluster.counts(), [30, 30], "after {questions} questions");
        }
    }

    #[test]
    fn queues_that_are_deleted_or_led_elsewhere_meanwhile_are_left_alone() {
        let cluster = Cluster::piled(30, 3).after(3, |cluster| {
            let mut leaders = cluster.leaders.borrow_mut();
            leaders.retain(|queue, _| queue.0 % 3 != 0);
            leaders.insert(QueueId(29), NodeId(2));
        });
        let told = rebalance(&cluster);
        assert!(told.moved + told.failed == told.wanted, "{told:?}");
        let counts = cluster.counts();
        assert_eq!(counts.iter().sum::<usize>(), 20);
        assert!(counts.iter().all(|it| (6..=7).contains(it)), "{counts:?}");
    }

    #[test]
    fn a_node_that_ends_ends_it() {
        struct Ends(Cluster);
        impl Leaderships for Ends {
            fn nodes(&self) -> BTreeSet<NodeId> {
                self.0.nodes()
            }
            fn queues(&self) -> Vec<(QueueId, Vec<NodeId>)> {
                self.0.queues()
            }
            fn ask(&self, asked: Vec<(NodeId, Asked)>) -> Vec<Option<Told>> {
                self.0.ask(asked)
            }
            fn pause(&self) -> bool {
                false
            }
            fn tell(&self, progress: Progress) {
                self.0.tell(progress);
            }
        }
        let told = rebalance(&Ends(Cluster::piled(30, 3)));
        assert_eq!((told.wanted, told.moved), (20, 0));
    }
}
