//! A node: its disk, which outlives its processes, and the process, if one runs.

use super::mutant::Mutant;
use super::network::Network;
use super::observed::{Observed, Queue};
use super::policies::Opening;
use super::rot::Rotten;
use crate::world::{Simulated, until_power_cut};
use broker::groups::alone::{self, Alone};
use broker::groups::{Ends, Identity, Member, News, NotOpened, handover, member_journal};
use bytes::Bytes;
use cluster::{GroupId, MemberId, NodeId, Refused, Settings, Step};
use model::{Machine, QueueSettings, Timestamp};
use queue::{Effect, Request, store};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;
use storage::faulty::{FaultyFs, Random};
use storage::{LogOptions, World};

/// The time between two ticks.
const TICK: Duration = Duration::from_millis(100);

/// The size of a file of its log.
const LOG_FILE_BYTES: u64 = 32 << 10;

/// What a queue orders, with the number of the turn in which it may leave.
type Left = Arc<Mutex<Vec<(GroupId, Effect<Ends>)>>>;

/// A node.
pub struct Node {
    pub id: u32,
    pub files: FaultyFs,
    /// How often its disk was lost.
    life: u32,
    /// How often its member of a group was given up besides, since something of it had rotted or it was removed.
    given_up: BTreeMap<GroupId, u32>,
    /// What of its disk may have rotted.
    pub rotten: Rotten,
    /// The queues of which it has a copy.
    pub groups: BTreeSet<GroupId>,
    pub running: Option<Running>,
    /// How often it was started, over all nodes.
    pub incarnation: u64,
    /// It stands still, since so long of its own time.
    pub paused: Option<Duration>,
    /// It loses its power soon, or a call of its files fails.
    pub is_doomed: bool,
    /// The next sync of its log takes so long.
    pub hang: Option<Duration>,
    /// What its monotonic clock shows. That of its process may be ahead, until time passes next: who waits for a thread that
    /// sleeps waits until it goes on.
    clock: Duration,
}

/// A process.
pub struct Running {
    pub world: Arc<Simulated>,
    pub alone: Alone,
    pub copies: BTreeMap<GroupId, Copy>,
    /// How large its log may become until it is cut, and a file of it.
    pub log_bytes: u64,
    pub log_file_bytes: u64,
    left: Left,
    ticked: Duration,
}

impl Drop for Running {
    /// Its threads hold what holds them.
    fn drop(&mut self) {
        self.world.abandon();
    }
}

/// Its copy of a queue.
pub struct Copy {
    observed: Arc<Observed>,
    /// The term in which it leads, as it was told.
    pub leads: Option<u64>,
    /// Up to here it was told what is committed.
    pub told: u64,
    /// The last record after which its contents were compared.
    pub sampled: Cell<u64>,
}

impl Copy {
    pub fn queue(&self) -> &Arc<Queue> {
        &self.observed.queue
    }

    /// When it wants to be turned.
    pub fn wakes_at(&self) -> Option<Timestamp> {
        self.queue().inspect(|machine| Timestamp(machine.wakes_at_ms()))
    }

    /// What it was told since somebody asked.
    pub fn take_news(&self) -> Vec<News> {
        self.observed.take()
    }
}

impl Node {
    pub fn new(id: u32) -> Self {
        Self {
            id,
            files: FaultyFs::new(),
            life: 0,
            given_up: BTreeMap::new(),
            rotten: Rotten::default(),
            groups: BTreeSet::new(),
            running: None,
            incarnation: 0,
            paused: None,
            is_doomed: false,
            hang: None,
            clock: Duration::from_secs(1),
        }
    }

    /// The member that it is of a group.
    pub fn me(&self, group: GroupId) -> MemberId {
        let given_up = self.given_up.get(&group).copied().unwrap_or(0);
        let (node, life) = (NodeId(self.id), self.life + given_up);
        MemberId { node, life }
    }

    /// It is a member of this group now. False if its log is damaged where it may have something of an earlier one: then it gives
    /// this one up, too.
    ///
    /// # Errors
    /// It can't be opened.
    pub fn join(&mut self, group: GroupId, opening: &Opening) -> Result<bool, String> {
        self.groups.insert(group);
        let Some(mut running) = self.running.take() else {
            return Ok(true);
        };
        let is_damaged = !running.alone.node.log.recovery().damage.is_empty();
        let opened = until_power_cut(|| self.open(group, opening, &mut running.alone, &running.left));
        let joined = match opened {
            Some(Ok(copy)) => {
                running.copies.insert(group, copy);
                Ok(true)
            }
            Some(Err(_)) if is_damaged => Ok(false),
            Some(Err(why)) => Err(format!("{group:?}: {why:?}")),
            None => Ok(true),
        };
        self.running = Some(running);
        if joined == Ok(false) {
            self.renounce(group);
        }
        joined
    }

    /// It is no member of this group any more.
    pub fn leave(&mut self, group: GroupId) {
        self.groups.remove(&group);
        if let Some(running) = &mut self.running {
            running.copies.remove(&group);
            // What was its copy of the queue is deleted, as the catalog has nodes do that are no members any more.
            let segments = Some(member_journal(group));
            until_power_cut(|| handover::forget(&running.alone.groups, group, segments));
        }
    }

    /// It is to be a member of this group again, from which it was removed: another one than before.
    pub fn comes_again(&mut self, group: GroupId) -> MemberId {
        *self.given_up.entry(group).or_default() += 1;
        self.me(group)
    }

    /// Its copy has other settings from now on, if it has one.
    pub fn configure(&self, group: GroupId, settings: QueueSettings) -> bool {
        let Some(copy) = self.copy(group).filter(|_| self.goes_on()) else {
            return false;
        };
        copy.queue().set(settings.clone());
        let settings = Box::new(settings);
        // Whoever does not lead is told once it does.
        self.submit(group, Request::Configure { settings });
        true
    }

    /// Its member of this group is damaged and given up: it comes back as another one, once the group has that.
    pub fn renounce(&mut self, group: GroupId) {
        self.groups.remove(&group);
        *self.given_up.entry(group).or_default() += 1;
        if let Some(running) = &mut self.running {
            running.copies.remove(&group);
            let segments = Some(member_journal(group));
            until_power_cut(|| running.alone.renounce(group, segments));
        }
    }

    /// Has the members of a group changed that is led here.
    ///
    /// # Errors
    /// They are not.
    pub fn change(&self, group: GroupId, steps: &[Step]) -> Result<(), Refused> {
        let running = self.running.as_ref().filter(|_| self.paused.is_none());
        let changed = running.and_then(|it| until_power_cut(|| it.alone.groups.change(group, steps)));
        changed.unwrap_or(Err(Refused::Unknown))
    }

    /// Hands over a group that is led here.
    ///
    /// # Errors
    /// It is not.
    pub fn transfer(&self, group: GroupId, to: MemberId) -> Result<(), Refused> {
        let running = self.running.as_ref().filter(|_| self.paused.is_none());
        let handed = running.and_then(|it| until_power_cut(|| it.alone.groups.transfer(group, to)));
        handed.unwrap_or(Err(Refused::Unknown))
    }

    /// Everything that it ever had is lost: it comes back as another member.
    pub fn wipe(&mut self) {
        self.files = FaultyFs::new();
        self.rotten = Rotten::default();
        self.life += u32::from(!Mutant::SameLife.is_on());
        if !Mutant::SameLife.is_on() {
            self.groups.clear();
        }
    }

    /// Whether the machine of one of its copies is being made of contents that others have.
    pub fn is_made_anew(&self) -> bool {
        let copies = self.running.iter().flat_map(|running| running.copies.values());
        copies.into_iter().any(|copy| copy.queue().applied().is_none())
    }

    /// Whether a process runs and goes on.
    pub fn goes_on(&self) -> bool {
        self.running.is_some() && self.paused.is_none()
    }

    /// Starts a process on what is on its disk. Which of its members were given up, since something had rotted that they need.
    ///
    /// # Errors
    /// It does not start.
    pub fn start(
        &mut self,
        incarnation: u64,
        openings: &BTreeMap<GroupId, Opening>,
        nodes: &[u32],
        network: &Network,
        random: &mut Random,
    ) -> Result<Vec<GroupId>, String> {
        self.incarnation = incarnation;
        if Mutant::DisksLie.is_on() {
            self.files.set_lying();
        }
        let world = Simulated::new(self.files.clone(), self.clock, random.bits());
        // Small logs are cut while members lag, others never.
        let log_bytes = [96 << 10, 256 << 20][random.below(2) as usize];
        let options = LogOptions {
            file_bytes: LOG_FILE_BYTES,
            size_limit: log_bytes,
            make_ahead: false,
            retry_ms: 20,
            ..LogOptions::default()
        };
        let settings = Settings {
            uncommitted_bytes: 4_000 + random.below(60_000) as usize,
            kept_bytes: random.below(20_000) as usize,
            message_bytes: 1_000 + random.below(20_000),
            ..Settings::default()
        };
        let (dir, node, wire) = (Path::new("/data"), NodeId(self.id), network.wire(self.id));
        let opened =
            until_power_cut(|| alone::open(world.clone(), dir, options, node, incarnation, settings, wire));
        let mut alone = match opened {
            Some(Ok(alone)) => alone,
            Some(Err(error)) => return Err(format!("{error:?}")),
            None => return Err("the power was cut".to_owned()),
        };
        nodes.iter().for_each(|peer| alone.groups.add_peer(NodeId(*peer)));
        let left = Left::default();
        let (mut copies, mut given_up) = (BTreeMap::new(), Vec::new());
        for (group, opening) in openings.iter().filter(|(group, _)| self.groups.contains(group)) {
            let memory = random.below(60_000) as usize;
            let opened = until_power_cut(|| self.open(*group, opening, &mut alone, &left));
            let copy = match opened.ok_or("the power was cut")? {
                Ok(copy) => copy,
                Err(_) if self.is_rotten() => {
                    until_power_cut(|| alone.renounce(*group, None)).ok_or("the power was cut")?;
                    given_up.push(*group);
                    continue;
                }
                Err(why) => return Err(format!("{group:?}: {why:?}")),
            };
            let shrink = Request::Store(store::Request::Shrink { memory });
            until_power_cut(|| copy.queue().submit(alone.node.now(), shrink).is_ok());
            copies.insert(*group, copy);
        }
        let not_its = alone.unopened().map(GroupId).collect::<Vec<_>>();
        until_power_cut(|| not_its.into_iter().for_each(|group| alone.forget(group)));
        alone.sweep().map_err(|error| format!("{error:?}"))?;
        for group in &given_up {
            self.groups.remove(group);
            *self.given_up.entry(*group).or_default() += 1;
        }
        // All of the log was read. What was damaged is found again if what forgets it gets lost.
        self.rotten.log = !alone.node.log.recovery().damage.is_empty();
        let ticked = self.clock;
        self.running = Some(Running {
            world,
            alone,
            copies,
            log_bytes,
            log_file_bytes: LOG_FILE_BYTES,
            left,
            ticked,
        });
        Ok(given_up)
    }

    fn open(
        &self,
        group: GroupId,
        (settings, members): &Opening,
        alone: &mut Alone,
        left: &Left,
    ) -> Result<Copy, NotOpened> {
        let (me, members) = (self.me(group), members.clone());
        let identity = Identity { group, me, members };
        let leaves = left.clone();
        let act = Box::new(move |effect| {
            let mut left = leaves.lock().unwrap_or_else(PoisonError::into_inner);
            left.push((group, effect));
        });
        let queue: Arc<Queue> = alone.member(identity, settings.clone(), act)?;
        let told = queue.applied().unwrap_or(0);
        let observed = Observed::new(queue);
        let member: Arc<dyn Member> = observed.clone();
        let member: Weak<dyn Member> = Arc::downgrade(&member);
        alone.groups.pass_by(group, member);
        Ok(Copy {
            observed,
            leads: None,
            told,
            sampled: Cell::new(0),
        })
    }

    /// Time passes, also for one that stands still. Whether its clock ticks.
    pub fn advance(&mut self, time: Duration) -> bool {
        self.clock = self.clock() + time;
        let Some(running) = self.running.as_mut().filter(|_| self.paused.is_none()) else {
            return false;
        };
        let behind = self.clock.saturating_sub(running.world.elapsed());
        running.world.advance(behind);
        let ticks = self.clock >= running.ticked + TICK;
        if ticks {
            running.ticked = self.clock;
            until_power_cut(|| running.alone.groups.tick());
        }
        ticks
    }

    /// What its clock shows, or that of its process if that is ahead. It never goes back, whatever becomes of processes.
    pub fn clock(&self) -> Duration {
        let shows = self.running.as_ref().map(|running| running.world.elapsed());
        shows.unwrap_or_default().max(self.clock)
    }

    /// Its clock jumps ahead, as after a sleep of the machine.
    pub fn jump(&mut self, time: Duration) {
        self.clock = self.clock() + time;
    }

    /// Has its copy write down what it has.
    pub fn checkpoint(&self, group: GroupId) {
        if let Some(copy) = self.copy(group).filter(|_| self.goes_on()) {
            let observed = copy.observed.clone();
            until_power_cut(|| {
                observed.queue.tell(vec![News::Checkpoint]);
                observed.turn();
            });
        }
    }

    /// Its threads make some steps.
    pub fn work(&mut self, steps: u64) {
        let Some(running) = self.running.as_ref().filter(|_| self.paused.is_none()) else {
            return;
        };
        for _ in 0..steps {
            if until_power_cut(|| running.world.step()) != Some(true) {
                return;
            }
            if running.alone.node.log.busy_for().is_some()
                && let Some(time) = self.hang.take()
            {
                running.world.hang(time);
            }
        }
    }

    /// The process is gone. With the power goes what was not synced, as `random` decides.
    pub fn end(&mut self, power: bool, random: &mut Random) {
        self.clock = self.clock();
        let Some(running) = self.running.take() else {
            return;
        };
        let seed = random.bits();
        self.files = match power || self.files.is_off() {
            true => self.files.crash(seed),
            false => self.files.kill(),
        };
        drop(running);
        (self.paused, self.is_doomed, self.hang) = (None, false, None);
    }

    /// A copy, as long as a process has it.
    pub fn copy(&self, group: GroupId) -> Option<&Copy> {
        self.running.as_ref()?.copies.get(&group)
    }

    /// The term in which its copy leads, as it was told.
    pub fn leads(&self, group: GroupId) -> Option<u64> {
        self.copy(group)?.leads
    }

    /// Has its copy decide something, if it does.
    pub fn submit(&self, group: GroupId, request: Request<Ends>) -> bool {
        let Some(running) = self.running.as_ref().filter(|_| self.paused.is_none()) else {
            return false;
        };
        let Some(copy) = running.copies.get(&group) else {
            return false;
        };
        let now = running.alone.node.now();
        until_power_cut(|| copy.queue().submit(now, request).is_ok()) == Some(true)
    }

    /// Of another node's groups something arrives.
    pub fn receive(&self, from: u32, bytes: Bytes, is_bulk: bool) {
        if let Some(running) = &self.running {
            let (groups, from) = (&running.alone.groups, NodeId(from));
            until_power_cut(|| match is_bulk {
                true => groups.bulk(from, bytes),
                false => groups.receive(from, bytes),
            });
        }
    }

    /// The term in which its copy decides.
    pub fn term(&self, group: GroupId) -> Option<u64> {
        self.copy(group)?.queue().term()
    }

    /// Has its copy decide these in a turn, if it decides in this term.
    pub fn submit_in(&self, group: GroupId, term: u64, requests: Vec<Request<Ends>>) -> bool {
        let Some(copy) = self.copy(group).filter(|_| self.goes_on()) else {
            return false;
        };
        let now = self.now();
        until_power_cut(|| copy.queue().submit_in(term, now, requests)) == Some(true)
    }

    /// A write or a sync of its log has failed: its process promises nothing more.
    pub fn log_failed(&self) -> bool {
        let running = self.running.as_ref().filter(|_| self.paused.is_none());
        running.is_some_and(|running| running.alone.node.log.failed())
    }

    /// So long its log waits for its disk already.
    pub fn hangs_for(&self) -> Duration {
        let running = self.running.as_ref().filter(|_| self.paused.is_none());
        running
            .and_then(|running| running.alone.node.log.busy_for())
            .unwrap_or_default()
    }

    /// Its disk answers again, if it did not.
    pub fn answers(&mut self) {
        self.hang = None;
        if let Some(running) = &self.running {
            running.world.hang(Duration::ZERO);
        }
    }

    /// It has lost its power in the middle of something.
    pub fn is_off(&self) -> bool {
        self.running.is_some() && self.files.is_off()
    }

    /// The same as [`Node::copy`], to be changed.
    pub fn copy_mut(&mut self, group: GroupId) -> Option<&mut Copy> {
        self.running.as_mut()?.copies.get_mut(&group)
    }

    /// What its clock shows to queues.
    pub fn now(&self) -> Timestamp {
        let running = self.running.as_ref();
        running.map_or(Timestamp(0), |running| running.alone.node.now())
    }
}

impl Running {
    /// What has left its queues since somebody asked.
    pub fn take_left(&self) -> Vec<(GroupId, Effect<Ends>)> {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
