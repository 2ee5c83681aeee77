//! Random lives of a replicated queue: what was confirmed is there, what was settled stays settled, and nobody has
//! anything twice.

use super::trio::{Left, NODES, Trio};
use model::{QueueSettings, Seq, Sorting};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Copy, Debug)]
enum Step {
    Publish(u64),
    Get,
    Ack(usize),
    Tick,
    Work,
    Deliver(u8),
    Settle,
    Isolate(u8),
    OneWay(u8, u8),
    Heal,
    Hang(u8),
    Crash(u8, u64),
    Checkpoint(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..4_u64).prop_map(Step::Publish),
        3 => Just(Step::Get),
        3 => (0..4_usize).prop_map(Step::Ack),
        4 => Just(Step::Tick),
        2 => Just(Step::Work),
        4 => (1..8_u8).prop_map(Step::Deliver),
        3 => Just(Step::Settle),
        1 => (0..3_u8).prop_map(Step::Isolate),
        1 => (0..3_u8, 0..3_u8).prop_map(|(from, to)| Step::OneWay(from, to)),
        2 => Just(Step::Heal),
        1 => (0..3_u8).prop_map(Step::Hang),
        1 => (0..3_u8, any::<u64>()).prop_map(|(node, seed)| Step::Crash(node, seed)),
        2 => (0..3_u8).prop_map(Step::Checkpoint),
    ]
}

/// What clients know.
#[derive(Default)]
struct Clients {
    published: u64,
    confirmed: BTreeSet<u64>,
    /// Who has which message, and from which node.
    held: BTreeMap<u64, (Seq, u32)>,
    /// Acks that a leader took: they may or may not be so in the end.
    acked: BTreeSet<u64>,
}

impl Clients {
    fn see(&mut self, trio: &Trio) {
        for id in NODES.into_iter().filter(|id| trio.is_up(*id)) {
            trio.left(id).into_iter().for_each(|left| self.take(id, left));
        }
    }

    fn take(&mut self, id: u32, left: Left) {
        match left {
            Left::Confirm(last) => drop(self.confirmed.insert(last)),
            Left::Got(number, seq) => {
                assert!(number <= self.published, "{number} was never published");
                if let Some((_, from)) = self.held.get(&number) {
                    assert_ne!(*from, id, "{number} is handed out twice by one leader");
                }
                self.held.insert(number, (seq, id));
            }
            _ => {}
        }
    }

    /// What a deposed or dead leader handed out may come again: its client gives it up.
    fn forget_what_came_from_others(&mut self, trio: &Trio) {
        self.held
            .retain(|_, (_, from)| trio.is_up(*from) && trio.queue(*from).leads());
    }
}

fn run(steps: &[Step], sorting: Sorting) {
    let settings = QueueSettings {
        durable: true,
        sorting,
        ..QueueSettings::default()
    };
    // Small enough that most messages are read from disk.
    let (mut trio, mut clients) = (Trio::with(settings, 256, u64::MAX), Clients::default());
    trio.leader();
    for step in steps {
        let leading = NODES
            .into_iter()
            .filter(|id| trio.is_up(*id) && trio.queue(*id).leads());
        let leading: Vec<u32> = leading.collect();
        match *step {
            // Whoever thinks that it leads is asked; there may be two of them.
            Step::Publish(count) => {
                for id in leading {
                    let first = clients.published + 1;
                    clients.published += count;
                    trio.publish(id, first..=clients.published);
                }
            }
            Step::Get => {
                for id in leading {
                    trio.get(id);
                }
            }
            Step::Ack(which) => {
                let found = clients
                    .held
                    .iter()
                    .nth(which)
                    .map(|(number, held)| (*number, *held));
                if let Some((number, (seq, from))) = found
                    && trio.is_up(from)
                    && trio.ack(from, seq)
                {
                    clients.acked.insert(number);
                    clients.held.remove(&number);
                }
            }
            Step::Tick => trio.tick(),
            Step::Work => trio.work(),
            Step::Deliver(frames) => {
                for _ in 0..frames {
                    trio.deliver_one();
                }
            }
            Step::Settle => trio.settle(),
            Step::Isolate(node) => trio.isolate(NODES[usize::from(node)]),
            Step::OneWay(from, to) => {
                trio.cut
                    .insert((NODES[usize::from(from)], NODES[usize::from(to)]));
            }
            Step::Heal => trio.heal(),
            Step::Hang(node) => {
                if !trio.hung.remove(&NODES[usize::from(node)]) {
                    trio.hung.insert(NODES[usize::from(node)]);
                }
            }
            Step::Checkpoint(node) => trio.checkpoint(NODES[usize::from(node)]),
            Step::Crash(node, seed) => {
                let id = NODES[usize::from(node)];
                for left in trio.crash(id, seed) {
                    clients.take(id, left);
                }
                trio.start(id);
            }
        }
        clients.see(&trio);
        clients.forget_what_came_from_others(&trio);
    }
    judge(trio, &clients);
}

fn judge(mut trio: Trio, clients: &Clients) {
    trio.heal();
    trio.hung.clear();
    trio.ticks(40);
    // A leader that holds messages for clients that are gone hands over: its successor has all of them.
    let old = trio.leader();
    trio.crash(old, 1);
    trio.start(old);
    let leader = trio.leader();
    let found = trio.drain(leader);
    let there: BTreeSet<u64> = found.iter().copied().collect();
    assert_eq!(there.len(), found.len(), "nothing is there twice: {found:?}");
    for number in &clients.confirmed {
        let kept = there.contains(number) || clients.acked.contains(number);
        assert!(kept, "{number} was confirmed and is lost");
    }
    trio.ticks(40);
    let applied = NODES.map(|id| trio.queue(id).applied());
    assert_eq!(applied, [applied[0]; 3], "all have the same");
    let messages = NODES.map(|id| trio.messages(id));
    assert_eq!(messages, [messages[0]; 3], "all have the same");
}

proptest! {
    // A quarter of the usual number, since a life takes as long as a few hundred of what other properties look at.
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]
    #[test]
    fn nothing_confirmed_is_lost_whatever_nodes_disks_and_links_do(
        steps in prop::collection::vec(step(), 1..80),
        sorted in any::<bool>(),
    ) {
        run(&steps, if sorted { Sorting::Priority(3) } else { Sorting::Arrival });
    }
}
