//! Both sides together, over a network that loses, doubles and reorders, between nodes that vanish and come back.

use super::answer::{Answers, Standing, Task};
use super::fetch::{Brought, Ended, Fetch, Lie};
use super::frame::{Asked, Entry, Head, PIECE_BYTES, Said};
use bytes::Bytes;
use cluster::{Mark, NodeId};
use model::properties::Properties;
use model::{BlockBuilder, Index, Message, Ranges, RouteBuf, Seq, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

const ME: NodeId = NodeId(1);
const SOURCES: [NodeId; 2] = [NodeId(2), NodeId(3)];

/// A message of this number: its body is never the same as another one's, and sometimes too large for a frame.
fn entry(seq: Seq) -> Entry {
    let mut body = seq.to_string().into_bytes();
    let large = seq.is_multiple_of(59);
    body.resize(
        if large {
            PIECE_BYTES * 2 + seq as usize
        } else {
            1 + seq as usize % 3_000
        },
        seq as u8,
    );
    let mut block = BlockBuilder::default();
    let route = RouteBuf::new(b"", b"q");
    block.push_message(&Message::new(route.as_route(), Properties::amqp091(b""), &body));
    let block = block.finish(true, Timestamp(seq));
    let head = Head {
        first: seq,
        count: 1,
        persistent: true,
        received: Timestamp(seq),
    };
    let bytes = Bytes::copy_from_slice(block.bytes());
    Entry { head, bytes }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// The queue as all members have it, at each index.
#[derive(Default)]
struct History {
    applied: Index,
    next: Seq,
    live: BTreeSet<Seq>,
    /// Who was there at which checkpoint.
    checkpoints: BTreeMap<Index, BTreeSet<Seq>>,
}

impl History {
    fn publish(&mut self, count: u64) {
        self.applied += 1;
        self.live.extend(self.next + 1..=self.next + count);
        self.next += count;
    }

    fn settle(&mut self, random: &mut Random) {
        self.applied += 1;
        let limit = random.below(self.next);
        let gone: Vec<Seq> = self.live.range(limit..).take(3).copied().collect();
        self.live.retain(|seq| !gone.contains(seq));
    }

    fn contents(&self, at: Index) -> Bytes {
        let live = self.checkpoints[&at].iter();
        live.flat_map(|seq| seq.to_le_bytes()).collect()
    }
}

struct Source {
    answers: Answers,
    incarnation: u64,
    /// It has applied less than there is.
    behind: u64,
    lost: BTreeSet<Seq>,
    tasks: Vec<Task>,
}

struct World {
    random: Random,
    history: History,
    sources: BTreeMap<NodeId, Source>,
    fetch: Fetch,
    incarnation: u64,
    network: Vec<(NodeId, NodeId, Bytes)>,
    /// The contents that came, and what was there then.
    at: Option<Index>,
    wanted: BTreeSet<Seq>,
    /// Bodies that are stored here; they outlive a restart.
    spare: BTreeSet<Seq>,
    ended: Option<Ended>,
    honest: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let source = || Source {
            answers: Answers::default(),
            incarnation: 1,
            behind: 0,
            lost: BTreeSet::new(),
            tasks: Vec::new(),
        };
        let mut world = Self {
            random: Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            history: History::default(),
            sources: SOURCES.map(|node| (node, source())).into(),
            fetch: Fetch::new(1),
            incarnation: 1,
            network: Vec::new(),
            at: None,
            wanted: BTreeSet::new(),
            spare: BTreeSet::new(),
            ended: None,
            honest: true,
        };
        let count = 1 + world.random.below(120);
        world.history.publish(count);
        world.checkpoint();
        world.fetch.want_contents(SOURCES.to_vec(), 1);
        world
    }

    fn checkpoint(&mut self) {
        let history = &mut self.history;
        history.checkpoints.insert(history.applied, history.live.clone());
    }

    fn send(&mut self, from: NodeId, to: NodeId, said: &Said) {
        let incarnation = match from {
            ME => self.incarnation,
            source => self.sources[&source].incarnation,
        };
        let frame = said.frame(incarnation, cluster::GroupId(7));
        assert!(frame.len() <= super::frame::BULK_LIMIT, "{}", frame.len());
        self.network.push((from, to, frame));
    }

    fn ask(&mut self) {
        if let Some(ended) = self.fetch.ended() {
            self.ended = Some(ended);
            self.fetch.give_up();
        }
        if let Some((to, said)) = self.fetch.ask() {
            self.send(ME, to, &said);
        }
    }

    fn deliver(&mut self, (from, to, frame): (NodeId, NodeId, Bytes)) {
        let (_, bulk) = super::read_header(from, &frame).unwrap();
        let said = Said::decode(&bulk.said).unwrap();
        if to == ME {
            let brought = self.fetch.hear(from, said);
            assert!(brought.is_ok() || !self.honest, "{brought:?}");
            self.take(brought.unwrap_or(Brought::Nothing));
            return;
        }
        let history = &self.history;
        let Some(source) = self.sources.get_mut(&to) else {
            return;
        };
        let applied = history.applied.saturating_sub(source.behind);
        let here = Standing {
            applied: Some(applied),
            checkpoint: *history
                .checkpoints
                .range(..=applied)
                .last()
                .map_or(&0, |(at, _)| at),
        };
        let task = source.answers.asked(from, bulk.incarnation, said, here);
        match task {
            Task::Say(to_me, said) => self.send(to, to_me, &said),
            Task::Nothing => {}
            task => source.tasks.push(task),
        }
    }

    /// A source's disk answers.
    fn read(&mut self, node: NodeId) {
        let Self {
            history,
            sources,
            random,
            ..
        } = self;
        let source = sources.get_mut(&node).unwrap();
        let Some(task) = source.tasks.pop() else { return };
        let said = match task {
            Task::ReadContents(from) => {
                let applied = history.applied.saturating_sub(source.behind);
                let last = history.checkpoints.range(..=applied).last();
                let read = last.map(|(at, _)| (Mark { index: *at, term: 1 }, history.contents(*at)));
                source.answers.contents(from, read)
            }
            Task::ReadBodies(from, seqs) => {
                let (mut entries, mut bytes) = (Vec::new(), 0);
                let (mut gone, mut lost) = (Ranges::new(), Ranges::new());
                let fails = random.below(10) == 0;
                for seq in seqs.iter().take(60) {
                    if !history.live.contains(&seq) {
                        gone.push(seq);
                    } else if source.lost.contains(&seq) {
                        lost.push(seq);
                    } else if !fails {
                        let entry = entry(seq);
                        bytes += entry.bytes.len();
                        if bytes > PIECE_BYTES && !entries.is_empty() {
                            break;
                        }
                        entries.push(entry);
                    }
                }
                source.answers.bodies(from, entries, gone, lost)
            }
            _ => None,
        };
        if let Some(said) = said {
            self.send(node, ME, &said);
        }
    }

    fn take(&mut self, brought: Brought) {
        match brought {
            Brought::Nothing => {}
            Brought::Contents { at, bytes } => {
                assert_eq!(bytes, self.history.contents(at.index), "of one checkpoint");
                self.at = Some(at.index);
                self.wanted = self.history.checkpoints[&at.index].clone();
                self.want_bodies();
            }
            Brought::Bodies(entries) => {
                for came in entries {
                    let seqs = came.head.first..=came.head.last();
                    for seq in seqs {
                        assert_eq!(came, entry(seq));
                        assert!(self.wanted.contains(&seq), "it was asked for");
                        match self.random.below(20) {
                            0 => self.fetch.want_again(&Ranges::one(seq)),
                            _ => drop(self.spare.insert(seq)),
                        }
                    }
                }
            }
        }
    }

    fn want_bodies(&mut self) {
        let missing: Ranges = self.wanted.difference(&self.spare).copied().collect();
        let at = self.at.unwrap_or(1);
        self.fetch.want_bodies(SOURCES.to_vec(), at, &missing);
    }

    fn tick(&mut self) {
        self.sources.values_mut().for_each(|source| source.answers.tick());
        if let Some((to, said)) = self.fetch.tick() {
            self.send(ME, to, &said);
        }
    }

    /// Everything that can go wrong.
    fn step(&mut self) {
        let source = SOURCES[self.random.below(2) as usize];
        match self.random.below(24) {
            0 => self.history.publish(2),
            1 => self.history.settle(&mut self.random),
            2 => self.checkpoint(),
            3 => drop(self.network.pop()),
            4 => {
                if let Some(frame) = self.network.last().cloned() {
                    self.network.push(frame);
                }
            }
            5 if self.random.below(3) == 0 => {
                let source = self.sources.get_mut(&source).unwrap();
                source.incarnation += 1;
                (source.answers, source.tasks) = (Answers::default(), Vec::new());
            }
            6 if self.random.below(4) == 0 => {
                self.incarnation += 1;
                self.fetch = Fetch::new(self.incarnation);
                (self.at, self.ended) = (None, None);
                self.fetch.want_contents(SOURCES.to_vec(), 1);
            }
            7 => self.sources.get_mut(&source).unwrap().behind = self.random.below(3),
            8 => {
                let lost = self.random.below(self.history.next) + 1;
                self.sources.get_mut(&source).unwrap().lost.insert(lost);
            }
            9..=12 => self.tick(),
            13..=16 => self.read(source),
            _ => self.deliver_one(),
        }
        self.ask();
    }

    fn deliver_one(&mut self) {
        if !self.network.is_empty() {
            let at = self.random.below(self.network.len() as u64) as usize;
            let frame = self.network.swap_remove(at);
            self.deliver(frame);
        }
    }

    /// Nothing goes wrong any more.
    fn settle(&mut self, ticks: usize) {
        for _ in 0..ticks {
            if self.ended.is_some() {
                return;
            }
            self.tick();
            self.ask();
            while !self.network.is_empty() || self.sources.values().any(|source| !source.tasks.is_empty()) {
                self.deliver_one();
                SOURCES.iter().for_each(|node| self.read(*node));
                self.ask();
            }
        }
    }
}

#[test]
fn whatever_the_network_and_both_ends_do_a_fetch_ends_with_all_that_can_be_had() {
    for seed in 0..60 {
        let mut world = World::new(seed);
        for _ in 0..400 {
            if world.ended.is_some() {
                break;
            }
            world.step();
        }
        world.sources.values_mut().for_each(|source| source.behind = 0);
        world.settle(2_000);
        let ended = world
            .ended
            .take()
            .unwrap_or_else(|| panic!("seed {seed}: {:?}", world.fetch));
        for seq in &world.wanted {
            let has = world.spare.contains(seq) || ended.missing.contains(*seq);
            // It was not live when a source was asked.
            assert!(has || !world.history.live.contains(seq), "seed {seed}: {seq}");
            if ended.missing.contains(*seq) && ended.sure {
                assert!(
                    world.sources.values().all(|source| source.lost.contains(seq)),
                    "seed {seed}: {seq}"
                );
            }
        }
    }
}

fn contents(fetch: &mut Fetch, at: Index, total: u64, offset: u64, length: usize) -> Result<Brought, Lie> {
    let (from, said) = fetch.ask().unwrap();
    let Said::WantsContents { number, .. } = said else {
        panic!("{said:?}");
    };
    let asked = Asked {
        incarnation: 1,
        number,
    };
    let bytes = vec![7; length].into();
    let at = Mark { index: at, term: 1 };
    fetch.hear(
        from,
        Said::Contents {
            asked,
            at,
            total,
            offset,
            bytes,
        },
    )
}

/// After a lie the next node is asked, a little later.
fn pass(fetch: &mut Fetch) {
    (0..3).for_each(|_| assert_eq!(fetch.tick(), None));
}

#[test]
fn contents_that_cannot_be_what_was_asked_for_are_refused_and_another_node_is_asked() {
    let mut fetch = Fetch::new(1);
    fetch.want_contents(SOURCES.to_vec(), 10);
    let lies = [
        (9, 5, 0, 5, Lie::Index),
        (10, 5, 1, 4, Lie::Bytes),
        (10, 5, 0, 6, Lie::Bytes),
        (10, 5, 0, 0, Lie::Bytes),
    ];
    for (at, total, offset, length, lie) in lies {
        assert_eq!(contents(&mut fetch, at, total, offset, length), Err(lie));
        assert_eq!(fetch.ask(), None, "not at once");
        pass(&mut fetch);
    }
    assert_eq!(contents(&mut fetch, 12, 5, 0, 3), Ok(Brought::Nothing));
    assert_eq!(
        contents(&mut fetch, 13, 5, 3, 2),
        Err(Lie::Index),
        "of another checkpoint"
    );
    pass(&mut fetch);
    let whole = contents(&mut fetch, 12, 5, 0, 5);
    assert!(matches!(whole, Ok(Brought::Contents { bytes, .. }) if bytes.len() == 5));
}

#[test]
fn bodies_that_were_not_asked_for_or_are_none_are_refused() {
    let mut fetch = Fetch::new(1);
    fetch.want_bodies(SOURCES.to_vec(), 10, &Ranges::span(5, 9));
    let answer = |fetch: &mut Fetch, gone: Ranges, entries: Vec<Entry>| {
        let (from, said) = fetch.ask().unwrap();
        let Said::WantsBodies { number, .. } = said else {
            panic!("{said:?}");
        };
        let asked = Asked {
            incarnation: 1,
            number,
        };
        let lost = Ranges::new();
        fetch.hear(
            from,
            Said::Bodies {
                asked,
                gone,
                lost,
                entries,
            },
        )
    };
    let two = Entry {
        head: Head {
            count: 2,
            ..entry(5).head
        },
        ..entry(5)
    };
    let lies = [
        (Ranges::one(4), vec![], Lie::Numbers),
        (Ranges::span(0, u64::MAX), vec![], Lie::Numbers),
        (Ranges::new(), vec![entry(10)], Lie::Numbers),
        (Ranges::one(5), vec![entry(5)], Lie::Numbers),
        (Ranges::new(), vec![two], Lie::Messages),
    ];
    for (gone, entries, lie) in lies {
        assert_eq!(answer(&mut fetch, gone, entries), Err(lie));
        pass(&mut fetch);
    }
    let came = answer(&mut fetch, Ranges::one(5), vec![entry(6), entry(7)]);
    assert_eq!(came, Ok(Brought::Bodies(vec![entry(6), entry(7)])));
    let came = answer(&mut fetch, Ranges::new(), vec![entry(8), entry(9)]);
    assert!(matches!(came, Ok(Brought::Bodies(_))));
    let missing = Ranges::new();
    assert_eq!(fetch.ended(), Some(Ended { missing, sure: true }));
}

#[test]
fn answers_to_other_questions_of_other_nodes_and_to_an_earlier_start_are_dropped() {
    let mut fetch = Fetch::new(2);
    fetch.want_bodies(SOURCES.to_vec(), 10, &Ranges::span(5, 9));
    let (from, _) = fetch.ask().unwrap();
    let answer = |incarnation, number| Said::Bodies {
        asked: Asked { incarnation, number },
        gone: Ranges::span(5, 9),
        lost: Ranges::new(),
        entries: Vec::new(),
    };
    assert_eq!(from, SOURCES[0]);
    for (from, said) in [
        (SOURCES[1], answer(2, 1)),
        (SOURCES[0], answer(1, 1)),
        (SOURCES[0], answer(2, 2)),
    ] {
        assert_eq!(fetch.hear(from, said), Ok(Brought::Nothing));
        assert_eq!(fetch.ended(), None);
    }
    assert_eq!(fetch.hear(from, answer(2, 1)), Ok(Brought::Nothing));
    assert!(fetch.ended().is_some());
}

#[test]
fn a_node_that_says_nothing_is_asked_again_and_then_another_one() {
    let mut fetch = Fetch::new(1);
    fetch.want_contents(SOURCES.to_vec(), 1);
    let (first, question) = fetch.ask().unwrap();
    let asked: Vec<_> = (0..49).filter_map(|_| fetch.tick()).collect();
    assert_eq!(asked, vec![(first, question); 4], "it may still answer");
    assert_eq!(fetch.tick(), None);
    assert_eq!(fetch.ask().map(|(to, _)| to), Some(SOURCES[1]));
}
