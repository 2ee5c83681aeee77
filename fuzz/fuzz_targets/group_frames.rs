//! Frames of peers at a node with groups in all states. The input plays the peers and the host: frames whose numbers are what an
//! honest peer would say, or are not; bytes that never were a frame; and whatever a host may do. Nothing may panic, nothing that
//! peers say makes the node write or tell what contradicts what it wrote before, and it can be started again from its log.
#![no_main]

use bytes::Bytes;
use cluster::{
    Committed, Damage, Disk, Event, GroupId, Groups, Mark, MemberId, Membership, NodeId, Record, Recovered,
    Rejected, Settings, Step,
};
use leveret_fuzz::Source;
use leveret_fuzz::group_items::{
    APPEND, APPEND_RESPONSE, HEARTBEAT, SLEEP, Speech, Standing, TIMEOUT_NOW, VOTE_RESPONSE, member,
};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

/// The only node that there is.
const ME: NodeId = NodeId(1);

/// What an honest leader's first frame says: two entries.
const ENTRIES: [u8; 9] = [0, 0, 2, 0, 1, b'x', 0, 1, b'y'];

/// What a step of a change takes at most.
const STEP_BYTES: usize = 16;

/// A run has so many actions: a longer one says nothing that shorter ones don't.
const ACTIONS: usize = 64;

fn m(node: u32) -> MemberId {
    MemberId::first(NodeId(node))
}

/// One group alone, one of three, one of which the node is no member yet, one whose log begins behind a checkpoint, and one in
/// which it learns.
fn members(group: u64) -> (Mark, Membership) {
    match group {
        1 => (Mark::default(), Membership::of(&[m(1)])),
        2 => (Mark::default(), Membership::of(&[m(1), m(2), m(3)])),
        3 => (Mark::default(), Membership::of(&[m(2), m(3)])),
        4 => (Mark { index: 5, term: 2 }, Membership::of(&[m(1), m(2), m(3)])),
        _ => {
            let learners = vec![m(1)];
            let voters = Membership::of(&[m(2), m(3)]);
            (Mark::default(), Membership { learners, ..voters })
        }
    }
}

/// What the host knows of a member.
struct Book {
    /// What its contents are of.
    base: Mark,
    members: Membership,
    /// What was told of it last as committed.
    told: u64,
    term: u64,
    vote: u64,
    last: u64,
    /// Peers have made the host fetch contents, which may contradict what others said.
    installed: bool,
}

impl Book {
    fn new(base: Mark, members: Membership) -> Self {
        Self {
            base,
            members,
            told: base.index,
            term: 0,
            vote: 0,
            last: base.index,
            installed: false,
        }
    }

    /// The group writes this to its log.
    fn writes(&mut self, record: &Record) {
        match record {
            Record::Entry { at, .. } => {
                assert!(at.index <= self.last + 1, "a gap before {at:?}");
                assert!(at.index > self.told, "{at:?} was committed");
                self.last = at.index;
            }
            Record::Promise { promise, .. } => {
                assert!(promise.term >= self.term, "a term goes back");
                let changed = promise.term == self.term && promise.vote != self.vote;
                assert!(!changed || self.vote == 0, "two votes in a term");
                (self.term, self.vote) = (promise.term, promise.vote);
            }
        }
    }

    /// The member comes back with what it has written.
    fn opens_again(&mut self, group: GroupId, groups: &mut Groups, log: &[&Record]) -> Result<(), Damage> {
        let (base, members) = (self.base, self.members.clone());
        let mut recovered = Recovered::at(m(1), base, base.index, members.clone());
        let installed = self.installed;
        *self = Self::new(base, members);
        self.installed = installed;
        for record in log {
            let payload = payload(record);
            match record {
                Record::Entry { .. } => recovered.entry(&payload)?,
                Record::Promise { promise, .. } => {
                    recovered.promise(&payload)?;
                    (self.term, self.vote) = (promise.term, promise.vote);
                }
            }
        }
        groups.open(group, recovered)?;
        self.last = groups.status(group).map_or(base.index, |status| status.last);
        Ok(())
    }

    /// The group tells that this is committed: what comes next in its log, or behind contents that were installed.
    fn tells(&mut self, committed: &Committed) {
        let index = committed.at.index;
        let next = index == self.told + 1 || index == self.base.index + 1;
        assert!(index > self.told && next, "{index} after {}", self.told);
        self.told = index;
    }
}

struct Node {
    groups: Groups,
    books: BTreeMap<GroupId, Book>,
    incarnation: u64,
    /// What was written, in which turn, and how many turns are synced.
    log: Vec<(u64, Record)>,
    turn: u64,
    synced: u64,
    /// What the host was asked for.
    fetches: Vec<(GroupId, Mark, Membership)>,
    reads: Vec<(GroupId, u64, u64)>,
    rounds: u64,
    /// What peers said: it may come again, at any time.
    late: Vec<(NodeId, Bytes)>,
    /// Bytes of what was said and proposed.
    brought: usize,
}

fn groups(incarnation: u64) -> Groups {
    let settings = Settings {
        uncommitted_bytes: 4_096,
        message_bytes: 64,
        in_flight: 3,
        kept_bytes: 0,
        ..Settings::default()
    };
    let mut groups = Groups::new(ME, incarnation, settings);
    groups.add_peer(NodeId(2));
    groups.add_peer(NodeId(3));
    groups
}

impl Node {
    fn new(numbers: impl Iterator<Item = u64>) -> Self {
        let mut node = Self {
            groups: groups(1),
            books: BTreeMap::new(),
            incarnation: 1,
            log: Vec::new(),
            turn: 0,
            synced: 0,
            fetches: Vec::new(),
            reads: Vec::new(),
            rounds: 0,
            late: Vec::new(),
            brought: 0,
        };
        numbers.for_each(|number| node.open(GroupId(number)));
        node
    }

    /// Opens a group that nobody has written anything of.
    fn open(&mut self, group: GroupId) {
        let (base, members) = members(group.0);
        let new = Recovered::at(m(1), base, base.index, members.clone());
        if self.groups.open(group, new).is_ok() {
            self.books.insert(group, Book::new(base, members));
        }
    }

    /// What became of a turn.
    fn collect(&mut self, sync: bool) {
        let turn = self.groups.turn();
        self.turn = turn.number;
        for record in turn.append {
            let (Record::Entry { group, .. } | Record::Promise { group, .. }) = &record;
            if let Some(book) = self.books.get_mut(group) {
                book.writes(&record);
            }
            self.log.push((turn.number, record));
        }
        for committed in &turn.committed {
            if let Some(book) = self.books.get_mut(&committed.group) {
                book.tells(committed);
            }
        }
        for event in turn.events {
            match event {
                Event::Fetch {
                    group, at, members, ..
                } => self.fetches.push((group, at, members)),
                Event::Read { group, from, to } => self.reads.push((group, from, to)),
                _ => {}
            }
        }
        if sync {
            self.synced = turn.number;
            self.groups.synced(turn.number);
        }
    }

    fn receive(&mut self, from: NodeId, frame: Bytes) {
        self.brought += frame.len();
        let known = self.groups.incarnation_of(from).unwrap_or(0);
        let outcome = self.groups.receive(from, &frame);
        let incarnation = self.groups.incarnation_of(from).unwrap_or(0);
        assert!(incarnation >= known, "an older start counts");
        if let Err(Rejected::OldIncarnation { known: said }) = outcome {
            assert_eq!((said, incarnation), (known, known));
        }
        let held = self.groups.held_bytes();
        assert!(held <= self.brought, "{held} of {}", self.brought);
        self.late.push((from, frame));
    }

    fn standing(&self, group: GroupId, from: NodeId) -> Option<Standing> {
        let status = self.groups.status(group)?;
        let last_term = self.groups.term_at(group, status.last).unwrap_or(0);
        let round = (self.incarnation << 32) + self.rounds;
        Some(Standing::new(group, from, &status, last_term, round))
    }

    /// A frame of a peer with some items.
    fn hear(&mut self, which: u8, source: &mut Source<'_>) {
        let from = NodeId(u32::from(which & 3) + 2);
        let known = self.groups.incarnation_of(from).unwrap_or(0).max(1);
        let mut speech = Speech::new(match which >> 2 & 15 {
            15 => known + 1,
            14 => known - 1,
            _ => known,
        });
        for _ in 0..=which >> 6 {
            let group = GroupId(u64::from(source.byte()) % 7);
            // Of a group that isn't open here it is said what is said of another one.
            let open = self.groups.status(group).map(|_| group);
            let Some(like) = open.or_else(|| self.books.keys().next().copied()) else {
                break;
            };
            if let Some(standing) = self.standing(like, from) {
                speech.item(source, &Standing { group, ..standing });
            }
        }
        self.receive(from, speech.finish().into());
    }

    /// What an honest peer says; `what` chooses where there is a choice.
    fn honest(&mut self, kind: u8, group: GroupId, from: u32, what: &[u8]) {
        if let Some(standing) = self.standing(group, NodeId(from)) {
            let mut speech = Speech::new(self.groups.incarnation_of(NodeId(from)).unwrap_or(0).max(1));
            speech.item_of(kind, &mut Source::new(what), &standing);
            self.receive(NodeId(from), speech.finish().into());
        }
    }

    /// What both peers say, and what comes of it.
    fn all(&mut self, kind: u8, from: &[u32]) {
        self.all_of(kind, from, &[]);
    }

    fn all_of(&mut self, kind: u8, from: &[u32], what: &[u8]) {
        let groups: Vec<_> = self.books.keys().copied().collect();
        for group in groups {
            from.iter().for_each(|from| self.honest(kind, group, *from, what));
        }
        self.collect(true);
    }

    /// The node follows the second one, and has some entries that are committed.
    fn follow(&mut self) {
        self.all_of(APPEND, &[2], &ENTRIES);
        self.all(HEARTBEAT, &[2]);
    }

    /// The node leads what it can lead.
    fn lead(&mut self) {
        self.all(TIMEOUT_NOW, &[2]);
        self.all(VOTE_RESPONSE, &[2, 3]);
        self.all(APPEND_RESPONSE, &[2, 3]);
    }

    fn tick(&mut self, ticks: u8) {
        for _ in 0..ticks {
            self.groups.tick();
            self.collect(true);
        }
    }

    /// The process ends, and comes back with what was synced.
    fn restart(&mut self) {
        self.log.retain(|(turn, _)| *turn <= self.synced);
        self.incarnation += 1;
        self.groups = groups(self.incarnation);
        (self.turn, self.synced, self.rounds) = (0, 0, 0);
        self.fetches.clear();
        self.reads.clear();
        let mut log: BTreeMap<GroupId, Vec<&Record>> = BTreeMap::new();
        for (turn, record) in &mut self.log {
            *turn = 0;
            let (Record::Entry { group, .. } | Record::Promise { group, .. }) = &*record;
            log.entry(*group).or_default().push(record);
        }
        let groups = &mut self.groups;
        self.books.retain(|group, book| {
            let records = log.remove(group).unwrap_or_default();
            let outcome = book.opens_again(*group, groups, &records);
            assert!(outcome.is_ok() || book.installed, "{outcome:?}");
            outcome.is_ok()
        });
    }

    /// The contents that the host was asked for are durable.
    fn install(&mut self) {
        let Some((group, at, members)) = self.fetches.pop() else {
            return;
        };
        let Some(book) = self.books.get_mut(&group) else {
            return;
        };
        if at.index > book.base.index {
            (book.base, book.members) = (at, members);
            (book.last, book.installed) = (book.last.max(at.index), true);
            self.groups.installed(group, at.index);
        }
    }

    /// Entries that the node wants to read come from its log, or are none.
    fn read(&mut self, lies: bool) {
        let Some((group, from, to)) = self.reads.pop() else {
            return;
        };
        let mut entries = BTreeMap::new();
        for (_, record) in &self.log {
            if let Record::Entry { group: of, at, .. } = record
                && *of == group
                && (from..to).contains(&at.index)
            {
                entries.insert(at.index, payload(record));
            }
        }
        if lies {
            entries.insert(from, Bytes::from_static(&[0; 18]));
        }
        let payloads: Vec<_> = entries.into_values().collect();
        self.brought += payloads.iter().map(Bytes::len).sum::<usize>();
        self.groups.fetched(group, from, &payloads);
    }

    fn act(&mut self, source: &mut Source<'_>) {
        let [kind, which] = [source.byte(), source.byte()];
        let group = GroupId(u64::from(which) % 7);
        match kind % 32 {
            0 => self.tick(which % 24),
            1 => {
                let record = vec![which; usize::from(which)];
                self.brought += record.len();
                let _ = self.groups.propose(group, record.into());
            }
            2 => {
                let changed = member(source.byte());
                let steps = [
                    Step::Voter(changed),
                    Step::Learner(changed),
                    Step::Remove(changed),
                    Step::Voter(m(1)),
                ];
                let from = usize::from(which >> 6);
                let steps = &steps[from..(from + 1 + usize::from(which & 1)).min(4)];
                self.brought += steps.len() * STEP_BYTES;
                let _ = self.groups.change(group, steps);
            }
            3 => drop(self.groups.transfer(group, member(source.byte()))),
            4 => self.rounds += u64::from(self.groups.prove(group).is_ok()),
            5 => {
                let (at, keep) = (source.byte().into(), source.byte().into());
                self.groups.checkpointed(group, at, keep);
            }
            6 => self.host(source.byte(), group),
            7 => self.install(),
            8 => self.read(which > 200),
            9 => self.restart(),
            // Bytes that never were a frame, behind a header that is one.
            10 => {
                let mut frame = vec![1, which & 3];
                frame.extend_from_slice(source.bytes());
                self.receive(NodeId(u32::from(which >> 4) % 4 + 1), frame.into());
            }
            11 if !self.late.is_empty() => {
                let (from, frame) = self.late[usize::from(which) % self.late.len()].clone();
                self.receive(from, frame);
            }
            // An earlier frame, bent.
            12 if !self.late.is_empty() => {
                let (from, frame) = self.late[usize::from(which) % self.late.len()].clone();
                let mut bent = frame.to_vec();
                let place = usize::from(source.byte()) % bent.len();
                bent[place] = bent[place].wrapping_add(source.byte());
                self.receive(from, bent.into());
            }
            13 => self.all(APPEND_RESPONSE, &[2, 3]),
            14 => self.all(VOTE_RESPONSE, &[2, 3]),
            15 => self.all(HEARTBEAT, &[2]),
            16 => self.lead(),
            17 => self.follow(),
            _ => self.hear(which, source),
        }
        self.collect(kind < 224);
    }

    /// What else a host does.
    fn host(&mut self, what: u8, group: GroupId) {
        let peer = NodeId(u32::from(what >> 4) % 5 + 1);
        match what % 16 {
            0..=2 => self.groups.suspect(peer),
            3 => self.groups.disk(Disk::Failed),
            4 => self.groups.disk(Disk::Hangs { ticks: 20 }),
            5 => self.groups.disk(Disk::Syncs),
            6 => self.groups.forget_peer(peer),
            7 => self.groups.add_peer(peer),
            8 => self.groups.hand_over(),
            9 => drop(self.groups.hand_over_group(group)),
            10 => drop(self.groups.lacked(group, 5)),
            11 | 12 => self.open(group),
            13 => {
                self.groups.close(group);
                self.forget(group);
            }
            14 => {
                self.groups.delete(group);
                self.forget(group);
            }
            // Closed, and opened again by another life of the process.
            _ => self.restart(),
        }
    }

    fn forget(&mut self, group: GroupId) {
        self.fetches.retain(|(of, ..)| *of != group);
        self.books.remove(&group);
        self.log.retain(|(_, record)| {
            let (Record::Entry { group: of, .. } | Record::Promise { group: of, .. }) = record;
            *of != group
        });
    }
}

fn payload(record: &Record) -> Bytes {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes.into()
}

fuzz_target!(|input: &[u8]| {
    let mut source = Source::new(input);
    let first = source.byte();
    // Which of the groups there are, bit by bit: few of them make a quick run.
    let open = if first.is_multiple_of(32) { 2 } else { first % 32 };
    let mut node = Node::new((1..=5).filter(|group| open >> (group - 1) & 1 == 1));
    // What the node is when it begins: nothing, a leader, a follower, or one that follows and sleeps.
    match first >> 5 & 3 {
        0 => {}
        1 => node.lead(),
        2 => node.follow(),
        _ => {
            node.follow();
            node.all(SLEEP, &[2]);
        }
    }
    node.tick(first >> 7);
    for _ in 0..ACTIONS {
        if source.is_empty() {
            break;
        }
        node.act(&mut source);
    }
});
