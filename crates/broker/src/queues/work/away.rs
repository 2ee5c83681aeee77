//! A queue of another node, or of several, as clients of this one see it: its handle, what is brought to it, and what that
//! orders.

use super::frame::Envelope;
use super::numbers::Numbers;
use super::turned::Turned;
use super::{Here, SharedQueue};
use crate::clients::pressure::{Pressure, Reason, Release};
use crate::groups::NodeId;
use crate::groups::handle::{Frame, Handle, Orders, ToNode, deliver};
use crate::node::ends::Ends;
use crate::queues::remote::Request;
use model::{QueueId, QueueSettings};
use queue::{Answer, Effect, OwnConsumer};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle that nobody has needed for so many ticks, of 100 ms each, is let go of.
const KEPT_FOR: u32 = 20;

/// What is brought to it, in order.
pub(super) enum Brought {
    /// A client's.
    Asked(Request),
    /// A node says this.
    Said(NodeId, Frame<ToNode>),
    /// A node can be spoken to from now on.
    Up(NodeId),
    /// The link with a node is lost, and with it what was under way.
    Down(NodeId),
    /// This node leads the queue from now on, or none does, as this node's member knows.
    Leads(Option<NodeId>),
    /// This one leads it, as far as a node knows that does not.
    Named(NodeId),
    /// A tick of the clock.
    Tick,
    /// The queue is deleted.
    Deleted,
    /// It was on its home node alone, and several nodes have it from now on, with these settings.
    Several(QueueSettings),
    /// It was converted, and has these settings from now on.
    Set(QueueSettings),
    /// The queue is this node's own no more, which has served these clients itself.
    Adopted(Vec<OwnConsumer<Ends>>),
}

/// See the module.
pub(super) struct Away {
    id: QueueId,
    turned: Turned<Inner, Brought>,
    /// Publishers are to wait.
    full: AtomicBool,
    /// What those wait for who found it full.
    room: Mutex<Option<Arc<Release>>>,
}

struct Inner {
    handle: Handle<Ends>,
    place: Place,
    /// How its messages are known to clients, if it may be on one node alone: numbers of each of that node's starts are shown
    /// above those of the ones before.
    numbers: Option<Numbers>,
    /// Which start of which node has decided in the term whose numbers are shown.
    decided_by: Option<(NodeId, u64)>,
    /// For so many ticks nobody has needed it.
    unneeded: u32,
    /// The queue is deleted.
    deleted: bool,
}

/// Where a queue is decided.
enum Place {
    /// On its home node.
    Home,
    /// On one of its members.
    Members(Search),
}

/// One of the members leads; which one, others say, or it is found by asking them one after the other.
#[derive(Default)]
struct Search {
    /// How many were asked so far.
    asked: usize,
    /// The one that was asked last, if that was because this node's member says that it leads.
    named: Option<NodeId>,
    /// Since so many ticks there is no session.
    ticks: u32,
}

/// Without a session, another member is asked after so many ticks, or after so many if one was asked and says nothing.
const ASKS_NEXT_AFTER: u32 = 5;
const ANSWERS_WITHIN: u32 = 12;

impl Search {
    /// Whom to ask now. Nobody else is asked while there is a session, or for as long as an answer may be waited for.
    fn next(
        &mut self,
        is_open: bool,
        is_opening: bool,
        ticks: bool,
        queue: impl FnOnce() -> Option<SharedQueue>,
    ) -> Option<NodeId> {
        self.ticks = if is_open { 0 } else { self.ticks + u32::from(ticks) };
        let after = if is_opening {
            ANSWERS_WITHIN
        } else {
            ASKS_NEXT_AFTER
        };
        if is_open || ticks && !self.ticks.is_multiple_of(after) {
            return None;
        }
        let SharedQueue { members, leader, .. } = queue()?;
        // What this node's member knows may be of before: if that one was asked in vain, so is another one in between.
        self.named = leader.filter(|leader| !ticks || self.named != Some(*leader));
        if self.named.is_some() {
            return self.named;
        }
        self.asked += 1;
        members.get(self.asked % members.len().max(1)).copied()
    }
}

impl Away {
    /// The handle of a queue that is on this node alone.
    pub fn of_home(here: &Here, id: QueueId) -> Self {
        // What else a queue is set to is its home node's business.
        let numbers = Numbers::above(here.void_below());
        Self::new(here, id, &QueueSettings::default(), (Place::Home, Some(numbers)))
    }

    /// The handle of a queue that several nodes have.
    pub fn of_members(here: &Here, id: QueueId, (settings, may_be_alone): (&QueueSettings, bool)) -> Self {
        let numbers = may_be_alone.then(|| Numbers::above(here.void_below()));
        Self::new(here, id, settings, (Place::Members(Search::default()), numbers))
    }

    fn new(
        here: &Here,
        id: QueueId,
        settings: &QueueSettings,
        (place, numbers): (Place, Option<Numbers>),
    ) -> Self {
        let handle = Handle::new(here.incarnation, settings).after(here.count_behind());
        Self {
            id,
            turned: Turned::new(Inner {
                handle,
                place,
                numbers,
                decided_by: None,
                unneeded: 0,
                deleted: false,
            }),
            full: AtomicBool::new(false),
            room: Mutex::default(),
        }
    }

    /// Puts this into its mailbox; [`Away::turn`] is due.
    pub fn put(&self, brought: Brought) {
        self.turned.put(brought);
    }

    /// Takes what was brought, unless somebody does so already.
    pub fn turn(&self, here: &Here) {
        self.turned.turn(|inner, brought| {
            for one in brought {
                let mut orders = Orders::default();
                let ticks = matches!(one, Brought::Tick);
                let comes_up = matches!(one, Brought::Up(_));
                inner.take(one, || here.keeps_for(self.id), &mut orders);
                inner.follow_term(
                    || here.existing.upgrade()?.shared(self.id)?.numbers?.behind,
                    |node| here.work.upgrade()?.start_of(node),
                );
                if ticks || comes_up {
                    inner.look_for_leader(ticks, || here.existing.upgrade()?.shared(self.id));
                }
                inner.obey(orders);
            }
            self.say(inner, here);
            self.look_whether_full(inner);
        });
    }

    /// True if it can be let go of, as long as nobody can bring it anything.
    pub fn is_unneeded(&self, here: &Here) -> bool {
        self.turned.is(|inner| {
            let unneeded = inner.handle.is_idle() && (inner.deleted || inner.unneeded >= KEPT_FOR);
            if let Some(numbers) = &inner.numbers
                && unneeded
                && inner.handle.has_discarded()
            {
                here.are_void_below(numbers.next());
            }
            unneeded
        })
    }

    /// True if [`Away::turn`] is due after somebody has asked whether it is unneeded.
    pub fn is_left(&self) -> bool {
        self.turned.is_left()
    }

    /// A reason to slow down for those who publish to it.
    pub fn pressure(&self) -> Option<Pressure> {
        if !self.full.load(Ordering::Acquire) {
            return None;
        }
        let mut room = self.room();
        // It is looked at again under the lock: whoever makes room takes what is waited for.
        let release = self
            .full
            .load(Ordering::Acquire)
            .then(|| room.get_or_insert_default().clone());
        release.map(|release| Pressure::until_release(Reason::Node, release))
    }

    fn say(&self, inner: &mut Inner, here: &Here) {
        let mut frames = Vec::new();
        inner.handle.frames(&mut frames);
        for (to, frame) in frames {
            let (queue, version) = (self.id, here.version());
            let envelope = Envelope::Up {
                queue,
                version,
                frame,
            };
            here.send(to, envelope);
        }
    }

    fn look_whether_full(&self, inner: &Inner) {
        let full = inner.handle.is_full();
        if self.full.load(Ordering::Relaxed) == full {
            return;
        }
        let mut room = self.room();
        self.full.store(full, Ordering::Release);
        let release = room.take_if(|_| !full);
        drop(room);
        if let Some(release) = release {
            release.release();
        }
    }

    fn room(&self) -> MutexGuard<'_, Option<Arc<Release>>> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Who waits for room would wait for ever: whoever publishes next finds another handle, which has some.
impl Drop for Away {
    fn drop(&mut self) {
        if let Some(release) = self.room().take() {
            release.release();
        }
    }
}

impl Inner {
    fn take(&mut self, brought: Brought, keeps_for: impl FnOnce() -> u32, orders: &mut Orders<Ends>) {
        match brought {
            // It went nowhere, as on its own node.
            Brought::Asked(Request::Enqueue { receipt, .. }) if self.deleted => {
                orders.effects.extend(receipt.map(Effect::Confirm));
            }
            Brought::Asked(request) => {
                self.unneeded = 0;
                if let Err(other) = self.handle.request(self.as_known(request), orders) {
                    crate::queues::Handle::decline(other);
                }
            }
            Brought::Said(from, frame) => {
                self.handle.receive(from, frame, orders);
            }
            Brought::Up(node) => self.up(node),
            Brought::Down(node) => self.down(node),
            Brought::Leads(leader) => self.leads(leader),
            // It may be as wrong as whoever was asked: clients wait no longer for it.
            Brought::Named(leader) if !self.handle.is_open() => self.handle.leads(Some(leader)),
            Brought::Named(_) => {}
            Brought::Tick => {
                self.handle.tick(keeps_for, orders);
                self.unneeded = match self.handle.is_idle() {
                    true => self.unneeded.saturating_add(1),
                    false => 0,
                };
            }
            Brought::Deleted => {
                self.deleted = true;
                self.handle.retire(orders);
            }
            Brought::Several(settings) => {
                self.place = Place::Members(Search::default());
                self.handle.is_of_several(&settings);
            }
            Brought::Set(settings) => self.handle.is_of_several(&settings),
            Brought::Adopted(own) => {
                self.unneeded = 0;
                own.into_iter().for_each(|it| self.handle.adopt(it));
            }
        }
    }

    /// Nothing is delivered before the session has begun in which the node learns of a new term.
    fn follow_term(
        &mut self,
        alone: impl FnOnce() -> Option<u64>,
        start: impl FnOnce(NodeId) -> Option<u64>,
    ) {
        let term = self.handle.term();
        if let Some(numbers) = self.numbers.as_mut().filter(|it| it.term() != term) {
            let leader = self.handle.leader();
            let now = leader.and_then(|node| Some((node, start(node)?)));
            // Another term of the same start is no restart, nor is one of another node: then the queue has become one of several
            // nodes, be it that this one has not heard of that yet, and what clients hold has the numbers that it had.
            let is_restart =
                |(before, now): ((NodeId, u64), (NodeId, u64))| before.0 == now.0 && before != now;
            let may_have_restarted = self.decided_by.zip(now).is_none_or(is_restart);
            self.decided_by = now.or(self.decided_by);
            let alone = match self.place {
                Place::Home => Some(0),
                Place::Members(_) => alone(),
            };
            if numbers.are_of(term, alone.filter(|_| may_have_restarted)) {
                // Nobody here could ever say that it is done with them.
                self.handle.held_is_void();
            }
        }
    }

    /// With a tick of the clock, and when a node can be spoken to again: a queue of several nodes is asked for where it is
    /// led, as far as this node knows, or on one member after the other.
    fn look_for_leader(&mut self, ticks: bool, queue: impl FnOnce() -> Option<SharedQueue>) {
        let (is_open, is_opening) = (self.handle.is_open(), self.handle.is_opening());
        if let Place::Members(search) = &mut self.place
            && let Some(next) = search.next(is_open, is_opening, ticks, queue)
        {
            self.handle.leads(Some(next));
        }
    }

    fn up(&mut self, node: NodeId) {
        match &self.place {
            Place::Home => {
                self.handle.lost(node);
                self.handle.leads(None);
                self.leads(Some(node));
            }
            // Whoever leads is heard of anew, and clients wait for that.
            Place::Members(_) => {
                self.handle.lost(node);
                self.handle.waits_again();
            }
        }
    }

    fn down(&mut self, node: NodeId) {
        if self.handle.leader() == Some(node) {
            self.handle.leads(None);
        }
        self.handle.lost(node);
    }

    fn leads(&mut self, leader: Option<NodeId>) {
        self.handle.leads(leader);
        if leader.is_some() {
            self.handle.waits_again();
        }
    }

    /// A request with the numbers that whoever decides knows.
    fn as_known(&self, request: Request) -> Request {
        let Some(numbers) = &self.numbers else {
            return request;
        };
        match request {
            Request::Settle {
                consumer,
                seqs,
                disposal,
            } => Request::Settle {
                consumer,
                seqs: numbers.said_of(seqs),
                disposal,
            },
            Request::Return {
                consumer,
                seqs,
                failed,
            } => Request::Return {
                consumer,
                seqs: numbers.said_of(seqs),
                failed,
            },
            Request::Requeue { consumer, seqs } => Request::Requeue {
                consumer,
                seqs: numbers.said_of(seqs),
            },
            other => other,
        }
    }

    /// Clients hear of it under the lock, so in the order in which it happened.
    fn obey(&mut self, orders: Orders<Ends>) {
        for mut effect in orders.effects {
            if let Effect::Deliver { delivery, .. } | Effect::Reply(_, Answer::Got { delivery, .. }) =
                &mut effect
                && let Some(numbers) = &mut self.numbers
            {
                numbers.show(delivery);
            }
            if let Ok(outbox) = deliver(effect) {
                outbox.wake();
            }
        }
        for receipt in orders.unreached {
            let (outbox, event) = receipt.into_unreached();
            outbox.send(event);
        }
        for reply in orders.declined {
            reply.outbox.send(reply.answered(None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Work, WorkLinks};
    use super::*;
    use bytes::Bytes;
    use std::sync::Weak;
    use std::task::Waker;

    const HOME: NodeId = NodeId(2);

    #[derive(Debug)]
    struct Nowhere;

    impl WorkLinks for Nowhere {
        fn work(&self, _: NodeId, _: Vec<Bytes>) {}
    }

    #[test]
    fn who_waits_for_a_queue_that_is_held_goes_on_when_its_handle_is_let_go_of() {
        let existing: Weak<crate::Broker> = Weak::new();
        let work = Work::new(NodeId(1), 1, Arc::new(Nowhere), existing, Arc::default());
        let away = Away::of_home(&work.here, QueueId(7));
        let held = ToNode::Opened {
            below: 1,
            refused: model::Ranges::new(),
            resolved: 0,
            credit: 0,
        };
        let frame = Frame {
            session: 1,
            term: 1,
            number: 1,
            seen: 1,
            asks: false,
            messages: vec![held],
        };
        away.put(Brought::Up(HOME));
        away.put(Brought::Said(HOME, frame));
        away.turn(&work.here);
        let pressure = away.pressure().expect("the queue is held");
        for _ in 0..KEPT_FOR {
            away.put(Brought::Tick);
            away.turn(&work.here);
        }
        assert!(away.is_unneeded(&work.here) && !pressure.poll(Waker::noop()));
        drop(away);
        assert!(pressure.poll(Waker::noop()));
    }

    /// Has a node decide in this term, from now on.
    fn decides(inner: &mut Inner, term: u64, node: NodeId) {
        inner.handle.leads(None);
        inner.handle.lost(node);
        inner.handle.leads(Some(node));
        let mut frames = Vec::new();
        inner.handle.frames(&mut frames);
        let opened = Frame {
            session: frames.last().expect("a session is asked for").1.session,
            term,
            number: 1,
            seen: 1,
            asks: false,
            messages: vec![ToNode::Opened {
                below: 1,
                refused: model::Ranges::new(),
                resolved: 0,
                credit: 0,
            }],
        };
        inner.take(Brought::Said(node, opened), || 0, &mut Orders::default());
    }

    /// Where a queue is, by what this node knows.
    #[derive(Clone, Copy)]
    enum On {
        Home,
        /// On several nodes; on one alone in terms behind this one.
        Members(Option<u64>),
    }

    /// What a client is shown for the first message, when these have decided one after the other, in terms from 4 on: a start of
    /// a node each, if that is known.
    fn shown(on: On, decided: &[(NodeId, Option<u64>)]) -> Vec<u64> {
        let existing: Weak<crate::Broker> = Weak::new();
        let work = Work::new(NodeId(1), 1, Arc::new(Nowhere), existing, Arc::default());
        let (away, alone) = match on {
            On::Home => (Away::of_home(&work.here, QueueId(7)), None),
            On::Members(alone) => (
                Away::of_members(&work.here, QueueId(7), (&QueueSettings::default(), true)),
                alone,
            ),
        };
        let (mut shown, mut known) = (Vec::new(), None);
        away.turned.knock();
        away.turned.turn(|inner, _| {
            for (term, (node, start)) in (4..).zip(decided) {
                decides(inner, term, *node);
                inner.follow_term(|| alone, |it| start.filter(|_| it == *node));
                known = start.map(|start| (*node, start)).or(known);
                assert_eq!(inner.decided_by, known, "term {term}");
                let numbers = inner.numbers.as_mut().expect("it may be on one node alone");
                let seqs = super::super::numbers::tests::shown(numbers, 1, 9);
                shown.extend(seqs.first());
            }
        });
        shown
    }

    #[test]
    fn numbers_begin_anew_when_a_queues_node_has_started_again_and_not_when_it_becomes_one_of_several() {
        let other = NodeId(3);
        for on in [On::Home, On::Members(Some(0))] {
            // It starts again, twice.
            let starts = [4, 5, 7].map(|start| (HOME, Some(start)));
            assert_eq!(shown(on, &starts), [1, 11, 21]);
            // Its group is led by its node, which this one may not have heard of; then by another one, and by its node again.
            let led = [(HOME, 4), (HOME, 4), (other, 2), (HOME, 4), (HOME, 4)];
            let led = led.map(|(node, start)| (node, Some(start)));
            assert_eq!(shown(on, &led), [1; 5]);
            // Another one has led it while it started again: what was shown was on record. What is shown since then need not be.
            let led = [(HOME, 4), (other, 2), (HOME, 5), (HOME, 6)];
            let led = led.map(|(node, start)| (node, Some(start)));
            assert_eq!(shown(on, &led), [1, 1, 1, 11]);
        }
    }

    #[test]
    fn a_start_that_is_not_known_may_be_another_one() {
        for on in [On::Home, On::Members(Some(0))] {
            let led = [Some(4), None, Some(4), Some(5)].map(|start| (HOME, start));
            assert_eq!(shown(on, &led), [1, 11, 11, 21]);
        }
    }

    #[test]
    fn numbers_of_terms_in_which_several_nodes_have_a_queue_stay_whoever_starts_again() {
        let starts = [4, 5, 6, 7].map(|start| (HOME, Some(start)));
        assert_eq!(shown(On::Members(None), &starts), [1; 4]);
        // It was handed back in term 5.
        assert_eq!(shown(On::Members(Some(5)), &starts), [1, 1, 1, 11]);
    }

    #[test]
    fn nothing_is_looked_up_within_a_term_or_of_a_queue_that_is_never_on_one_node_alone() {
        let existing: Weak<crate::Broker> = Weak::new();
        let work = Work::new(NodeId(1), 1, Arc::new(Nowhere), existing, Arc::default());
        for may_be_alone in [true, false] {
            let settings = QueueSettings::default();
            let away = Away::of_members(&work.here, QueueId(7), (&settings, may_be_alone));
            let mut asked = Vec::new();
            away.turned.knock();
            away.turned.turn(|inner, _| {
                decides(inner, 4, HOME);
                for _ in 0..2 {
                    let start = |node| {
                        asked.push(node);
                        Some(1)
                    };
                    inner.follow_term(|| Some(0), start);
                }
            });
            assert_eq!(asked.len(), usize::from(may_be_alone));
        }
    }

    #[test]
    fn a_node_that_is_said_to_lead_and_declines_is_asked_in_turns_with_the_other_members() {
        let queue = || {
            Some(SharedQueue {
                home: NodeId(1),
                members: [1, 2, 3].map(NodeId).into(),
                settings: QueueSettings::default(),
                leader: Some(NodeId(1)),
                numbers: None,
                is_refounded: false,
            })
        };
        let mut search = Search::default();
        let asked = (0..4 * ASKS_NEXT_AFTER).filter_map(|_| search.next(false, false, true, queue));
        assert_eq!(asked.collect::<Vec<_>>(), [1, 2, 1, 3].map(NodeId));
        assert_eq!(
            search.next(false, false, false, queue),
            Some(NodeId(1)),
            "it is there again"
        );
    }
}
