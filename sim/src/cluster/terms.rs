//! What the replicated queues of a seed may do with messages on their own.

use super::declared::Declared;
use super::theme::Theme;
use crate::terms::Said;
use cluster::{GroupId, MemberId, Membership, NodeId};
use model::{QueueSettings, Sorting};
use storage::faulty::Random;

/// The queue in which dead letters arrive.
pub const DEAD: GroupId = GroupId(1);

/// A queue that a seed decided about.
#[derive(Debug, Clone)]
pub struct Terms {
    pub declared: Declared,
    /// What the declaration means under each of its policies.
    versions: Vec<QueueSettings>,
    /// Which of them were in force, the last one now.
    in_force: Vec<usize>,
    /// The declaration, or a policy, was refused.
    pub refused: Option<String>,
    /// The nodes that have a copy at the beginning.
    pub nodes: Vec<u32>,
    /// Some consumers get messages that count as settled when they are delivered.
    pub has_no_ack: bool,
    /// Publishers give messages priorities.
    pub has_levels: bool,
    /// Nobody can do anything with some messages: whoever gets one rejects it, and it comes back.
    pub has_poison: bool,
}

impl Terms {
    /// A queue that is declared so.
    fn of(declared: Declared, nodes: Vec<u32>) -> Self {
        let (versions, refused) = match declared.settings() {
            Ok(versions) => (versions, None),
            Err(why) => (vec![QueueSettings::default().of_several()], Some(why)),
        };
        Self {
            declared,
            versions,
            in_force: vec![0],
            refused,
            nodes,
            has_no_ack: false,
            has_levels: false,
            has_poison: false,
        }
    }

    /// The queue for dead letters, which keeps everything.
    pub fn of_the_dead(nodes: Vec<u32>, random: &mut Random) -> Self {
        Self {
            has_levels: true,
            ..Self::of(Declared::of_the_dead(random), nodes)
        }
    }

    /// Decides. A third of all queues are plain: what those promise allows no loss.
    pub fn choose(nodes: Vec<u32>, theme: Theme, random: &mut Random) -> Self {
        let is_special = matches!(theme, Theme::Limits | Theme::Aimed);
        let has_levels = random.chance();
        if random.below(3) == 0 && !is_special {
            return Self {
                has_levels,
                ..Self::of(Declared::plain(), nodes)
            };
        }
        let declared = match random.below(6) {
            0 => Declared::classic(theme, random),
            _ => Declared::quorum(nodes.len(), theme, random),
        };
        Self {
            has_no_ack: random.below(4) == 0,
            has_levels,
            has_poison: random.below(3) == 0,
            ..Self::of(declared, nodes)
        }
    }

    /// What is in force.
    pub fn settings(&self) -> &QueueSettings {
        self.version(self.now())
    }

    /// Which of the policies is.
    pub fn now(&self) -> usize {
        self.in_force.last().copied().unwrap_or(0)
    }

    /// What is in force under one of the policies.
    pub fn version(&self, at: usize) -> &QueueSettings {
        &self.versions[at.min(self.versions.len() - 1)]
    }

    /// How many policies there are for it.
    pub fn policies(&self) -> usize {
        self.versions.len()
    }

    /// This policy is in force from now on.
    pub fn begin(&mut self, version: usize) {
        self.in_force.push(version);
    }

    /// Whether a policy was in force under which this is so: not all nodes know a new one at once.
    pub fn may(&self, is_so: impl Fn(&QueueSettings) -> bool) -> bool {
        self.in_force.iter().any(|at| is_so(self.version(*at)))
    }

    /// Whether this was so under all that were in force.
    pub fn must(&self, is_so: impl Fn(&QueueSettings) -> bool) -> bool {
        !self.may(|settings| !is_so(settings))
    }

    /// Who the members are at the beginning.
    pub fn members(&self) -> Membership {
        let members: Vec<_> = self.nodes.iter().map(|id| MemberId::first(NodeId(*id))).collect();
        Membership::of(&members)
    }

    /// Whether messages leave in another order than they came.
    pub fn sorts(&self) -> bool {
        match self.settings().sorting {
            Sorting::Arrival => false,
            Sorting::Levels => self.has_levels,
            Sorting::Priority(_) | Sorting::FairKey(_) => true,
        }
    }

    /// What a publisher says of a message.
    pub fn some_said(&self, random: &mut Random) -> Said {
        let mut said = Said::choose(random);
        if self.settings().sorting == Sorting::Levels {
            let levels = [random.below(32), random.below(8), 4, 200];
            let level = levels[random.below(levels.len() as u64) as usize] as u8;
            said.priority = (self.has_levels && random.below(3) > 0).then_some(level);
        }
        said
    }

    /// How long a message may be there, in milliseconds.
    pub fn lives_ms(&self, said: &Said) -> Option<u64> {
        let ruled = self.in_force.iter();
        ruled
            .filter_map(|at| self.version(*at).message_ttl_ms)
            .chain(said.expiration_ms)
            .min()
    }

    /// Whether the queue may be full.
    pub fn has_limit(&self) -> bool {
        self.may(|settings| settings.max_length.is_some() || settings.max_length_bytes.is_some())
    }
}
