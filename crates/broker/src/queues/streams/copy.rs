//! This node's copy of a stream that several nodes have, as far as nobody has to agree on it: the files, who reads them here, and
//! which segments go. What is in the stream its group decides ([`super::member`]).

use super::deciding::{answered, stream_settings};
use super::log::StreamLog;
use super::opening::{Handed, Open, Opening};
use super::reads::Reads;
use super::recovered::segment;
use super::unjoined::Unjoined;
use crate::groups::NodeId;
use crate::node::Node;
use crate::node::ends::Ends;
use crate::queues::Queue;
use crate::queues::host::{QueueHost, Turned};
use model::{ConsumerId, Incarnation, Index, QueueSettings, Seq, Timestamp};
use queue::stream::segments::Segments;
use queue::stream::shared::Others;
use queue::stream::{GroupOrders, GroupWord, ReadRequest, SharedGroups, StreamRequest, StreamSettings};
use queue::{DropReason, Effect, HandOver, Inspect, Loss, Losses, OwnConsumer, Request};
use std::sync::{Arc, OnceLock, Weak};
use storage::JournalId;

/// True if this is about what a node does with its copy, whoever decides what is in the stream.
pub(crate) fn is_of_copy(request: &Request<Ends>) -> bool {
    match request {
        Request::Stream(request) => !matches!(**request, StreamRequest::Machine(_)),
        Request::Consume { .. }
        | Request::ConsumeFrom { .. }
        | Request::Cancel { .. }
        | Request::Settle { .. }
        | Request::Return { .. }
        | Request::Requeue { .. }
        | Request::Flow { .. }
        | Request::Limit { .. }
        | Request::Pause { .. }
        | Request::Resume { .. }
        | Request::Wake => true,
        _ => false,
    }
}

/// See the module.
pub struct CopyHost {
    reads: Reads,
    settings: StreamSettings,
    /// The files cannot be opened now, and may be in a while.
    opening: Option<Opening<Handed>>,
    /// Where files begin that are open now, until the group's member says what they are to have.
    handed: Index,
    has_begun: bool,
    queue: OnceLock<Weak<Queue>>,
    /// Who decided, and in which term if this node did, when that was looked at.
    decides: (Option<NodeId>, Option<u64>),
    groups: SharedGroups,
    unjoined: Unjoined,
    /// How many segments there were when it was looked at which of them go; 0 if that is to be looked at again.
    segments: usize,
    /// When one is too old.
    expires_at_ms: u64,
    now: Timestamp,
    retired: bool,
}

impl CopyHost {
    /// The copy as its files have it, or empty.
    pub fn open(known: &catalog::Queue, settings: &QueueSettings, node: &Arc<Node>) -> Self {
        let settings = stream_settings(settings);
        let now = || Handed::open(known, settings.clone(), node, false);
        let (opening, handed, log) = match node.streams.is_removing(known.id) {
            true => (
                Some(Opening::behind_removal(known, settings.clone(), node)),
                0,
                None,
            ),
            false => match now() {
                Ok((Handed(handed), log)) => (None, handed, Some(log)),
                Err(error) => {
                    let opening = Opening::after(&error, known, settings.clone(), node, false);
                    (opening, 0, None)
                }
            },
        };
        let committed = log.as_ref().map_or(0, |log| log.committed());
        Self {
            reads: Reads::new(&known.name, log, committed),
            settings,
            opening,
            handed,
            has_begun: false,
            queue: OnceLock::new(),
            decides: (None, None),
            groups: SharedGroups::default(),
            unjoined: Unjoined::default(),
            segments: 0,
            expires_at_ms: u64::MAX,
            now: Timestamp(0),
            retired: false,
        }
    }

    fn queue(&self) -> Option<Arc<Queue>> {
        self.queue.get().and_then(Weak::upgrade)
    }

    /// If the files could not be opened, and now they can, they get what they lack.
    fn open_again(&mut self) {
        let result = self.opening.as_mut().and_then(|it| it.go_on(self.now.0));
        let Some((result, opening)) = result.and_then(|it| Some((it, self.opening.take()?))) else {
            return;
        };
        match result {
            Ok((Handed(handed), log)) => {
                self.handed = handed;
                self.reads.opened(log, self.queue());
                self.segments = 0;
            }
            Err(error) => opening.is_over(&error),
        }
    }

    /// The files are open, and the group's member is: they get what they lack.
    fn begin(&mut self) {
        if let Some(log) = &self.reads.log
            && let Some(queue) = self.queue()
            && let Some(replica) = queue.replica()
            && let Some(stands) = replica.stands()
        {
            log.begin_at(self.handed, stands);
            self.has_begun = true;
        }
    }

    /// Another node decides now: those who publish here are told, who would wait for answers that nobody gives, and those of
    /// groups, which the other one does not know. So are those who have come to publish since: they looked who decides before.
    fn look_who_decides(&mut self) {
        let queue = self.queue();
        let replica = queue.as_ref().and_then(|queue| queue.replica());
        let decides = replica.map_or((None, None), |replica| (replica.leader(), replica.term()));
        if std::mem::replace(&mut self.decides, decides) != decides {
            let (leader, term) = decides;
            let leader = leader.filter(|_| term.is_none()).map(|leader| leader.0);
            let groups = self.reads.readers.groups();
            self.groups.led(leader, term, groups, self.now.0);
            self.end_watches(|_| true);
            self.unjoined = Unjoined::default();
        } else if !self.groups.leads() {
            let late = self.unjoined.take_late(self.now.0);
            self.end_watches(|reader| late.contains(&reader));
        }
    }

    fn end_watches(&mut self, ends: impl Fn(ConsumerId) -> bool) {
        let reads = &mut self.reads;
        reads.readers.end_watches(ends, &mut reads.effects);
    }

    /// What a reader of this node wants of its group is for the node that leads. False if that is this one, or it is about
    /// something else.
    fn passes_on(&mut self, request: &StreamRequest<Ends>) -> bool {
        if self.groups.leads() {
            return false;
        }
        let now_ms = self.now.0;
        match request {
            StreamRequest::Read(ReadRequest::Watch { reader, .. }) => {
                self.unjoined.comes(*reader, now_ms);
                false
            }
            StreamRequest::Read(ReadRequest::Detach { reader }) => {
                self.unjoined.take(*reader);
                self.groups.leave(*reader, now_ms);
                false
            }
            StreamRequest::Join {
                reader,
                group,
                partition,
            } => {
                // If nobody leads whom this node knows, it ends soon, and its client looks again.
                if self.groups.leader().is_some() && self.unjoined.take(*reader) {
                    self.groups.join(*reader, group, *partition, now_ms);
                }
                true
            }
            StreamRequest::SteppedDown { reader } => {
                self.groups.stepped_down(*reader, now_ms);
                true
            }
            _ => false,
        }
    }

    /// Another node says this of groups.
    fn hear(&mut self, node: u32, said: GroupWord) {
        let Some(queue) = self.queue().filter(|_| !self.retired) else {
            return;
        };
        let (mut orders, groups) = (GroupOrders::default(), self.reads.readers.groups());
        let mut others = OtherNodes(&queue);
        self.groups
            .hear(node, said, self.now.0, groups, &mut others, &mut orders);
        self.obey(orders);
    }

    fn obey(&mut self, orders: GroupOrders) {
        let reads = &mut self.reads;
        for update in orders.updates {
            reads.readers.tell_active(update, &mut reads.effects);
        }
        if orders.all_end || !orders.ended.is_empty() {
            self.end_watches(|reader| orders.all_end || orders.ended.contains(&reader));
        }
    }

    /// What is due of groups: other nodes are asked and told.
    fn turn_groups(&mut self) {
        let now_ms = self.now.0;
        self.groups.tell(&self.reads.readers.take_far());
        if self.groups.wakes_at_ms(self.reads.readers.groups()) > now_ms {
            return;
        }
        let Some(queue) = self.queue() else { return };
        let (mut orders, mut others) = (GroupOrders::default(), OtherNodes(&queue));
        let groups = self.reads.readers.groups();
        self.groups.settle(now_ms, groups, &mut others, &mut orders);
        self.obey(orders);
        let readers = &mut self.reads.readers;
        self.groups.tell(&readers.take_far());
        self.groups.say(now_ms, readers.groups(), &mut others);
    }

    /// No other node counts on readers here any more.
    fn leave_groups(&mut self) {
        if let Some(queue) = self.queue() {
            self.groups.retire(&mut OtherNodes(&queue), self.now.0);
        }
    }

    /// Which segments go: each node looks at its clock and at its readers.
    fn drop_segments(&mut self) {
        let Some(log) = &self.reads.log else { return };
        if log.files().segment_count() == self.segments && self.now.0 < self.expires_at_ms {
            return;
        }
        let files = log.files().segments();
        let Some((newest, closed)) = files.split_last() else {
            self.expires_at_ms = u64::MAX;
            return;
        };
        let mut segments = Segments::of(closed.iter().map(segment), newest.first);
        segments.grow(newest.next, newest.bytes, Timestamp(newest.last_ms));
        let pinned = self.reads.readers.lowest();
        if segments.drop_old(&self.settings, self.now, pinned) {
            log.drop_below(segments.first_offset());
        }
        self.segments = files.len();
        self.expires_at_ms = segments.expires_at_ms(&self.settings);
    }

    /// Other nodes are asked for what is missing here.
    fn fetch(&self) {
        if let Some(log) = &self.reads.log
            && let Some((from, asked)) = log.lacks(self.now.0)
            && let Some(queue) = self.queue()
        {
            log.may_ask(queue.events().lacks_chunks(&queue, from, asked));
        }
    }

    fn messages(&self) -> u64 {
        let first = self.reads.log.as_ref().map_or(0, |log| log.first_offset());
        self.reads.messages(first)
    }
}

/// The other nodes that have a copy.
struct OtherNodes<'a>(&'a Queue);

impl Others for OtherNodes<'_> {
    fn nodes(&mut self) -> Vec<u32> {
        let nodes = self.0.events().others_of_stream(self.0.id);
        nodes.into_iter().map(|node| node.0).collect()
    }

    fn say(&mut self, node: u32, word: GroupWord) -> bool {
        self.0.events().say_of_group(self.0.id, NodeId(node), word)
    }

    fn name(&mut self) -> ConsumerId {
        ConsumerId(self.0.node().number())
    }
}

impl QueueHost for CopyHost {
    fn handle(&mut self, now: Timestamp, request: Request<Ends>) {
        self.now = now;
        if let Request::Stream(request) = &request {
            self.look_who_decides();
            if self.passes_on(request) {
                return;
            }
        }
        let Err(request) = self.reads.handle(request, self.retired) else {
            return;
        };
        match request {
            Request::Stream(request) => {
                if let StreamRequest::OfNode { node, said } = *request {
                    self.hear(node, said);
                }
            }
            Request::Configure { settings } => {
                self.settings = stream_settings(&settings);
                self.segments = 0;
                if let Some(opening) = &mut self.opening {
                    opening.settings = self.settings.clone();
                }
            }
            Request::Retire => {
                self.retired = true;
                self.leave_groups();
                self.reads.readers.end(&mut self.reads.effects);
            }
            request => self.reads.effects.extend(answered(request).ok()),
        }
    }

    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned {
        if !self.retired {
            self.open_again();
            // Its machine may just be made.
            if !self.has_begun {
                self.begin();
            }
            self.look_who_decides();
            if let Some(log) = &self.reads.log {
                log.try_again(self.now.0);
                let committed = log.committed();
                self.reads.retract(committed);
                self.reads.commit(committed);
            }
            self.reads.take_loaded();
            self.drop_segments();
            self.fetch();
            self.reads.serve();
            self.turn_groups();
        }
        self.reads.effects.drain(..).for_each(act);
        self.turned()
    }

    fn turned(&self) -> Turned {
        let log = self.reads.log.as_ref();
        let bytes = log.map_or(0, |log| log.files().bytes());
        let committed = self.reads.readers.committed();
        let tried = log.map_or(u64::MAX, |log| log.wakes_at_ms().min(log.asks_at_ms()));
        let opens_at_ms = self.opening.as_ref().map_or(u64::MAX, Opening::wakes_at_ms);
        let wakes_at_ms = match self.retired {
            true => u64::MAX,
            false => tried
                .min(opens_at_ms)
                .min(self.expires_at_ms)
                .min(self.unjoined.wakes_at_ms())
                .min(self.groups.wakes_at_ms(self.reads.readers.shown_groups())),
        };
        Turned {
            status: self.reads.status(self.messages(), bytes, committed),
            lost: self.lost(),
            wakes_at_ms,
        }
    }

    fn inspect(&self) -> &dyn Inspect {
        self
    }

    fn hand_over(&self) -> HandOver<Vec<u8>> {
        HandOver::Waits
    }

    fn segments(&self) -> Option<JournalId> {
        None
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<Ends>> {
        Vec::new()
    }

    fn plain(self: Box<Self>) -> Box<dyn QueueHost> {
        self
    }

    fn belongs_to(&self, queue: &Arc<Queue>) {
        let _ = self.queue.set(Arc::downgrade(queue));
        if let Some(log) = &self.reads.log {
            log.belongs_to(queue);
        }
        if let Some(opening) = &self.opening {
            opening.belongs_to(queue);
        }
    }

    fn follows(&mut self) {
        self.begin();
    }

    fn stream_log(&self) -> Option<&Arc<StreamLog>> {
        self.reads.log.as_ref()
    }
}

impl Inspect for CopyHost {
    fn losses(&self) -> Losses {
        Losses::of(Loss::Dropped(DropReason::Unreadable), self.lost())
    }

    fn lost(&self) -> u64 {
        self.reads.log.as_ref().map_or(0, |log| log.lost())
    }

    fn senders(&self) -> Vec<Incarnation> {
        Vec::new()
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        let log = self.reads.log.as_ref()?;
        Some((log.first_offset(), log.committed()))
    }
}
