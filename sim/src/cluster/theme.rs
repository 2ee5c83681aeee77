//! What a seed is about: most of what goes wrong in it is of one sort, so that rare pairs of faults are met often.

use storage::faulty::Random;

/// What goes wrong in a seed above all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Theme {
    /// Each fault now and then.
    #[default]
    Everything,
    /// Whoever leads ends or hands over, again and again.
    Leaders,
    /// One node is out at a time, and then another one: each time what is committed is so by another majority.
    Minorities,
    /// Members come and go.
    Members,
    /// Disks fail, lose what was not synced, rot, or are lost.
    Disks,
    /// What disks have stored is not any more what was written.
    Rot,
    /// The network is cut.
    Cuts,
    /// Nodes stand still and their clocks jump.
    Clocks,
    /// Small queues with limits.
    Limits,
    /// Faults wait for rare records, of which there are many.
    Aimed,
}

/// Something that goes wrong, or right again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// A process ends.
    Kill,
    /// A node loses its power.
    PowerCut,
    /// A node loses its power in the middle of something.
    PowerCutSoon,
    /// All nodes may lose their power.
    PowerCutOfAll,
    /// A majority loses its power.
    PowerCutOfMajority,
    /// The node of a leader ends, with its power or without, and starts again at once.
    Restart,
    /// What is out is there again, and another node is out.
    Rotate,
    /// Nothing gets through to a node, nor from it.
    Part,
    /// The same, for two nodes that reach each other.
    PartTwo,
    /// Nothing gets through from one node to another one.
    CutOneWay,
    /// Nothing gets through between two nodes.
    Cut,
    /// What a node says reaches nobody, or what it is told.
    HalfPart,
    /// Two parts have one node in common.
    Bridge,
    /// Everything gets through.
    Mend,
    /// A process stands still.
    Pause,
    /// It goes on.
    GoOn,
    /// A clock jumps.
    Jump,
    /// A call of a disk fails.
    DiskFails,
    /// A sync takes up to half a minute.
    DiskHangs,
    /// There is no space on a disk for a while.
    DiskFull,
    /// A sector of what is stored is not any more what was written.
    Rot,
    /// A disk is lost, or members change where none is.
    Wipe,
    /// Members change.
    Change,
    /// A leadership is handed over.
    Transfer,
    /// All nodes start that do not run.
    Start,
}

use Trouble::{
    Bridge, Change, Cut, CutOneWay, DiskFails, DiskFull, DiskHangs, GoOn, HalfPart, Jump, Kill, Mend, Part,
    PartTwo, Pause, PowerCut, PowerCutOfAll, PowerCutOfMajority, PowerCutSoon, Restart, Rotate, Start,
    Transfer, Wipe,
};

/// Everything, as often as it stands here.
const ALL: [Trouble; 28] = [
    Kill,
    Kill,
    PowerCut,
    PowerCut,
    PowerCutSoon,
    PowerCutOfAll,
    PowerCutOfMajority,
    Part,
    PartTwo,
    CutOneWay,
    Cut,
    HalfPart,
    Bridge,
    Mend,
    Mend,
    Pause,
    GoOn,
    Jump,
    DiskFails,
    DiskHangs,
    DiskFull,
    Wipe,
    Wipe,
    Transfer,
    Transfer,
    Start,
    Start,
    Start,
];

impl Theme {
    /// That of a seed: it is what a seed decides about first.
    pub fn of(seed: u64) -> Self {
        Self::choose(&mut Random(seed))
    }

    /// Decides.
    pub fn choose(random: &mut Random) -> Self {
        match random.below(10) {
            0 => Self::Leaders,
            2 => Self::Minorities,
            3 => Self::Members,
            4 if random.below(3) == 0 => Self::Rot,
            4 => Self::Disks,
            5 => Self::Cuts,
            6 => Self::Clocks,
            7 => Self::Limits,
            1 | 8 => Self::Aimed,
            _ => Self::Everything,
        }
    }

    /// How many nodes there are.
    pub fn nodes(self, random: &mut Random) -> u32 {
        match self {
            Self::Members => 5,
            _ => [3, 3, 4, 5][random.below(4) as usize],
        }
    }

    /// One round in so many brings a fault; 0 for none.
    pub fn one_in(self, random: &mut Random) -> u64 {
        match self {
            Self::Everything | Self::Limits => [0, 80, 40, 15][random.below(4) as usize],
            Self::Aimed => 60,
            _ => [40, 20, 10][random.below(3) as usize],
        }
    }

    /// How many rounds it takes at the most until everything heals, and a third of that at least.
    pub fn rounds(self) -> u64 {
        match self {
            Self::Aimed => 1_700,
            _ => 750,
        }
    }

    /// Whether disks are lost; where they are, members change only to replace those.
    pub fn loses_disks(self, random: &mut Random) -> bool {
        match self {
            Self::Disks | Self::Rot => true,
            Self::Members => false,
            Self::Aimed => random.chance(),
            _ => random.below(3) == 0,
        }
    }

    /// What goes wrong next.
    pub fn trouble(self, random: &mut Random) -> Trouble {
        let own: &[Trouble] = match self {
            Self::Everything | Self::Limits => &[],
            Self::Leaders => &[Restart, Restart, Restart, Transfer, Transfer, PowerCut, Start],
            Self::Minorities => &[Rotate, Rotate, Rotate, Restart, Transfer],
            Self::Members => &[
                Change, Change, Change, Transfer, Restart, PowerCut, Rotate, Start, Start,
            ],
            Self::Disks => &[
                Wipe,
                Wipe,
                Trouble::Rot,
                PowerCut,
                PowerCutSoon,
                PowerCutSoon,
                DiskFails,
                DiskHangs,
                DiskHangs,
                DiskFull,
                Rotate,
                Start,
                Start,
            ],
            Self::Rot => &[
                Trouble::Rot,
                Trouble::Rot,
                Trouble::Rot,
                Transfer,
                Transfer,
                Transfer,
                Restart,
                Rotate,
                PowerCut,
                Start,
                Start,
                Mend,
            ],
            Self::Cuts => &[
                Part, PartTwo, CutOneWay, CutOneWay, Cut, Cut, HalfPart, Bridge, Mend, Mend,
            ],
            // What keeps records from coming ends, and what makes them come begins.
            Self::Aimed => &[Mend, Mend, GoOn, GoOn, GoOn, Start],
            Self::Clocks => &[Pause, Pause, GoOn, GoOn, Jump, Transfer],
        };
        let from = match own.is_empty() || self != Self::Aimed && random.below(4) == 0 {
            true => &ALL,
            false => own,
        };
        from[random.below(from.len() as u64) as usize]
    }
}
