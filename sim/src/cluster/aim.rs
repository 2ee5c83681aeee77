//! Faults that wait for their moment: until a record of a wanted kind has just come to a wanted point of its way through a
//! node, which is the one that is struck. What must be interrupted in one step out of thousands is so again and again.

use super::coverage::{Cell, Fault, Kind, Phase};
use super::nodes::Cluster;
use cluster::GroupId;
use storage::faulty::Random;

/// So many rounds pass at least between two faults: what the first one began is to go on.
const APART: u64 = 4;

/// So many rounds are waited for a record before it is another one that is waited for.
const WAIT: u64 = 40;

/// A node is silent for so many rounds, in which it comes to count as down, and then heard for so many.
const SILENT: u64 = 240;
const HEARD: u64 = 40;

/// So many faults are tried of which some can't be there just now.
const TRIES: usize = 6;

/// What is rare, as often as it stands here.
const KINDS: [Kind; 18] = [
    Kind::Activated,
    Kind::Activated,
    Kind::Activated,
    Kind::Activated,
    Kind::Retried,
    Kind::Retried,
    Kind::Retried,
    Kind::Members,
    Kind::Members,
    Kind::Members,
    Kind::Returned,
    Kind::Returned,
    Kind::SenderEnded,
    Kind::SenderEnded,
    Kind::SenderEnded,
    Kind::HandedOut,
    Kind::Declined,
    Kind::TermBegan,
];

/// Moments that last for one step only are waited for most.
const PHASES: [Phase; 11] = [
    Phase::Decided,
    Phase::Decided,
    Phase::Decided,
    Phase::Appended,
    Phase::Appended,
    Phase::Appended,
    Phase::Sent,
    Phase::Sent,
    Phase::Sent,
    Phase::Synced,
    Phase::Committed,
];

/// What goes wrong, those more often that find the fewest records at their point.
const FAULTS: [Fault; 20] = [
    Fault::DiskFails,
    Fault::DiskFails,
    Fault::DiskFails,
    Fault::DiskFails,
    Fault::Change,
    Fault::Change,
    Fault::Change,
    Fault::DiskFull,
    Fault::DiskFull,
    Fault::Transfer,
    Fault::Transfer,
    Fault::Killed,
    Fault::Killed,
    Fault::PowerCut,
    Fault::PowerCut,
    Fault::Blackout,
    Fault::ClockJump,
    Fault::DiskHangs,
    Fault::Paused,
    Fault::Cut,
];

/// Whoever leads goes on for most of these.
const MILD: [Fault; 6] = [
    Fault::ClockJump,
    Fault::DiskFull,
    Fault::DiskHangs,
    Fault::Transfer,
    Fault::Change,
    Fault::Paused,
];

/// What is waited for, and since when.
#[derive(Debug, Clone, Copy)]
pub struct Aim {
    kind: Kind,
    phase: Phase,
    /// Nodes are silent for so long that they count as down.
    bars: bool,
    /// Nothing else goes wrong.
    only: Option<Fault>,
    /// Nothing else is waited for.
    fixed: bool,
    /// Disks are lost; members change then only to replace those.
    loses_disks: bool,
    round: u64,
    /// In this round the last fault struck.
    struck: u64,
    /// It is waited for since this round.
    since: u64,
}

impl Aim {
    /// Decides.
    pub fn choose(random: &mut Random, loses_disks: bool) -> Self {
        let only = match random.below(5) {
            0 if !loses_disks => Some(Fault::ALL[random.below(Fault::ALL.len() as u64) as usize]),
            _ => None,
        };
        let mut aim = Self {
            kind: Kind::Barred,
            phase: Phase::Sent,
            bars: random.below(5) > 0,
            only,
            fixed: false,
            loses_disks,
            round: 0,
            struck: 0,
            since: 0,
        };
        aim.next(random);
        aim
    }

    /// At this alone, as often as it comes about.
    pub fn at((kind, phase, fault): Cell, loses_disks: bool) -> Self {
        Self {
            kind,
            phase,
            bars: kind == Kind::Barred,
            only: Some(fault),
            fixed: true,
            loses_disks,
            round: 0,
            struck: 0,
            since: 0,
        }
    }

    fn next(&mut self, random: &mut Random) {
        if self.fixed {
            return;
        }
        let mut below = |count: usize| random.below(count as u64) as usize;
        (self.kind, self.phase) = match below(20) {
            // Who is replaced, while another disk is lost: only there members change where disks are lost.
            0 | 1 if self.loses_disks => (Kind::Members, Phase::Committed),
            _ => (KINDS[below(KINDS.len())], PHASES[below(PHASES.len())]),
        };
        self.since = self.round;
    }

    fn some_fault(self, kind: Kind, random: &mut Random) -> Fault {
        let loses = self.loses_disks && random.below(3) > 0;
        let mut some = |faults: &[Fault]| faults[random.below(faults.len() as u64) as usize];
        match self.only {
            Some(fault) => fault,
            None if loses => Fault::DiskLost,
            // Until a node counts as down its leader is to go on.
            None if self.bars && kind != Kind::Barred => some(&MILD),
            None => some(&FAULTS),
        }
    }
}

impl Cluster {
    /// What is aimed at is brought about, and nodes fall silent for that, or are heard again.
    pub fn aim(&mut self) {
        let Some(mut aim) = self.aim else { return };
        aim.round += 1;
        if aim.since + WAIT < aim.round {
            aim.next(&mut self.random);
        }
        self.aim = Some(aim);
        match aim.round % (SILENT + HEARD) {
            0 if aim.bars => self.silence_one(),
            SILENT if aim.bars => self.mend(),
            _ => {}
        }
        if self.random.below(25) == 0 {
            self.ids().iter().for_each(|id| self.start(*id));
        }
        match aim.kind {
            Kind::Activated => self.another_consumes(),
            Kind::Retried | Kind::Returned => self.gives_back(),
            Kind::Members if !aim.loses_disks && self.random.below(8) == 0 => self.change_some(),
            Kind::SenderEnded if self.random.below(20) == 0 => self.restart_one(),
            _ => {}
        }
        if aim.phase == Phase::Decided
            && self.random.below(30) == 0
            && let Some(by) = self.some_leader()
        {
            // What is decided waits for what was decided before, as long as that is not synced.
            self.disk_hangs_for(by.node, 300);
        }
    }

    /// Some node ends, and is there again.
    fn restart_one(&mut self) {
        let one = 1 + self.random.below(self.nodes.len() as u64) as u32;
        self.strike_down(Fault::Killed, &[one]);
        self.start(one);
    }

    /// If what is aimed at is there, it is struck.
    pub fn strike_aimed(&mut self) {
        let Some(mut aim) = self.aim else { return };
        if aim.struck + APART > aim.round {
            return;
        }
        let barred = aim.bars.then(|| self.found(Kind::Barred, aim.phase)).flatten();
        let (kind, found) = match barred {
            Some(at) => (Kind::Barred, Some(at)),
            None => (aim.kind, self.found(aim.kind, aim.phase)),
        };
        let struck = found.and_then(|at| self.strike_at(aim, kind, at));
        if let Some(fault) = struck {
            let phase = aim.phase;
            self.ledger
                .tell(|| format!("{kind:?} was {phase:?} when {fault:?} struck"));
            aim.struck = aim.round;
            aim.next(&mut self.random);
            self.aim = Some(aim);
        }
    }

    /// Where a record of this kind is at this point.
    fn found(&mut self, kind: Kind, phase: Phase) -> Option<(u32, GroupId)> {
        let books = &self.ledger.books;
        let agreed = |group: GroupId| books.get(&group).map_or(0, |book| book.history.last());
        self.ways.find(kind, phase, &self.nodes, agreed)
    }

    /// One node is not heard of, and all others are.
    fn silence_one(&mut self) {
        self.mend();
        for id in self.ids() {
            self.go_on(id);
            self.start(id);
        }
        let one = 1 + self.random.below(self.nodes.len() as u64) as u32;
        self.part(&[one]);
    }

    /// Something goes wrong there: what, if something can. What nodes survive goes wrong together with something else.
    fn strike_at(&mut self, aim: Aim, kind: Kind, (node, group): (u32, GroupId)) -> Option<Fault> {
        let some = std::iter::repeat_with(|| aim.some_fault(kind, &mut self.random));
        let faults: Vec<Fault> = some.take(TRIES).collect();
        // Bars are the rarest: most of what leaves them on their way goes wrong together.
        if kind == Kind::Barred && aim.only.is_none() {
            for fault in MILD.into_iter().filter(|fault| *fault != Fault::Paused) {
                if self.random.chance() {
                    self.strikes(fault, node, group, aim.loses_disks);
                }
            }
        }
        let mut faults = faults.into_iter();
        let mut strike = || faults.find(|fault| self.strikes(*fault, node, group, aim.loses_disks));
        let first = strike()?;
        match aim.only {
            None if MILD.contains(&first) => Some(strike().unwrap_or(first)),
            _ => Some(first),
        }
    }

    /// False if that can't be done there now.
    fn strikes(&mut self, fault: Fault, node: u32, group: GroupId, loses_disks: bool) -> bool {
        match fault {
            Fault::Killed | Fault::PowerCut => self.strike_down(fault, &[node]),
            Fault::Blackout => self.strike_down(fault, &self.ids()),
            Fault::Cut => self.part(&[node]),
            Fault::Paused => self.pause(node),
            Fault::ClockJump => self.jump(node),
            Fault::DiskFails => self.disk_fails_now(node),
            Fault::DiskFull => self.disk_is_full(node),
            Fault::DiskHangs => self.disk_hangs_for(node, 1_500),
            Fault::DiskLost => return loses_disks && self.wipe(node),
            Fault::Change => return !loses_disks && self.change_on(node, group),
            Fault::Transfer => return self.transfer_on(node, group),
        }
        true
    }
}
