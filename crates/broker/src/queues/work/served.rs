//! A queue that is decided here, as clients of other nodes reach it: their sessions, in front of what this node's clients use
//! directly. This node's clients have one, too, if several nodes have the queue.

use super::frame::Envelope;
use super::leading::ToHear;
use super::turned::Turned;
use super::{Here, node_of, start_of};
use crate::clients::pressure::Pressure;
use crate::groups::NodeId;
use crate::groups::handle::{Budget, Frame, Requests, Sessions, ToLeader};
use crate::queues::Queue;
use model::{ConsumerId, Incarnation, QueueId};
use queue::NodeConsumer;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Wake, Waker};

/// A node that has nothing of the queue and has said nothing for so many ticks, of 100 ms each, is forgotten: its handle is
/// let go of by then.
const QUIET_FOR: u32 = 100;

/// The sessions of a deleted queue stay for so many ticks: other nodes hear of it in that time.
const DELETED_FOR: u32 = 100;

/// What is brought to it, in order.
pub(super) enum Brought {
    /// A node says this.
    Said(Incarnation, Frame<ToLeader>),
    /// A node has a link again.
    Heard(Incarnation),
    /// The link with a node is lost.
    Lost(Incarnation),
    /// A node has started again.
    Ended(Incarnation),
    /// A tick of the clock.
    Tick,
    /// This node closes.
    Closes,
}

/// See the module.
pub(super) struct Served {
    queue: Arc<Queue>,
    here: Arc<Here>,
    /// In which term this node decides.
    term: u64,
    /// It does no longer.
    over: AtomicBool,
    turned: Turned<Inner, Brought>,
}

struct Inner {
    sessions: Sessions,
    /// Why nodes are to send nothing more for now, and since how many ticks.
    pressed: Option<(Pressure, u32)>,
    waker: Waker,
    /// Since so many ticks the queue is deleted.
    deleted: u32,
}

/// Has the sessions turned when the queue has something for a node, or room.
struct Knock(Weak<Served>);

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        if let Some(served) = self.0.upgrade() {
            served.knock();
        }
    }
}

impl Served {
    /// No sessions yet with a queue that is on this node alone. `started` says which start of a node was heard of last: what
    /// earlier ones have sent is forgotten.
    pub fn new(
        queue: Arc<Queue>,
        here: Arc<Here>,
        budget: Arc<Budget>,
        started: impl Fn(NodeId) -> u64,
    ) -> Arc<Self> {
        let mut requests = Requests::new();
        let term = queue.own_term().map_or(here.start, |own| own.term);
        let sessions = Sessions::new(term, &[], budget, &mut requests);
        let sessions = sessions.beside_clients_of(queue.node().clone());
        Self::with(queue, here, (term, sessions), requests, started)
    }

    /// The same for a queue that several nodes have or have had, and that this one leads in this term. Some may have something of
    /// it that others have delivered: they are heard first, or count as down, which goes on record before it is given to anybody
    /// else.
    pub fn leading(
        (queue, term): (Arc<Queue>, u64),
        here: Arc<Here>,
        budget: Arc<Budget>,
        nodes: &ToHear,
        started: impl Fn(NodeId) -> u64,
    ) -> Arc<Self> {
        let mut requests = Requests::new();
        let down = nodes.down(queue.senders());
        requests.extend(down.map(|node| queue::Request::CountAsDown { node }));
        requests.extend(nodes.are_others.then_some(queue::Request::MayHold { node: None }));
        let mut sessions = Sessions::new(term, &nodes.starts, budget, &mut requests);
        if queue.own_term().is_some() {
            sessions = sessions.beside_clients_of(queue.node().clone());
        }
        let served = Self::with(queue, here, (term, sessions), requests, started);
        // Those who are to speak are asked.
        served.turned.knock();
        served
    }

    fn with(
        queue: Arc<Queue>,
        here: Arc<Here>,
        (term, sessions): (u64, Sessions),
        mut requests: Requests,
        started: impl Fn(NodeId) -> u64,
    ) -> Arc<Self> {
        let gone = queue.senders().into_iter();
        let gone = gone.filter(|sender| start_of(*sender) < started(node_of(*sender)));
        requests.extend(gone.map(|incarnation| queue::Request::IncarnationEnded { incarnation }));
        let leads = queue.submit_in(term, requests);
        Arc::new_cyclic(|myself| {
            let waker = Waker::from(Arc::new(Knock(myself.clone())));
            Self {
                queue,
                here,
                term,
                over: AtomicBool::new(!leads),
                turned: Turned::new(Inner {
                    sessions: sessions.woken_by(waker.clone()),
                    pressed: None,
                    waker,
                    deleted: 0,
                }),
            }
        })
    }

    /// Puts this into its mailbox; [`Served::turn`] is due.
    pub fn put(&self, brought: Brought) {
        self.turned.put(brought);
    }

    /// It is turned, though nothing was brought.
    pub fn knock(&self) {
        self.turned.knock();
        self.turn();
    }

    /// Takes what was brought, and says what the queue has for nodes; unless somebody does so already.
    pub fn turn(&self) {
        self.turned.turn(|inner, brought| {
            let (mut requests, mut frames) = (Requests::new(), Vec::new());
            for one in brought {
                inner.take(one, &self.queue, &self.here, &mut requests);
            }
            let submit = |term, requests| self.queue.submit_in(term, requests);
            inner.press(&self.queue, &requests);
            if self.is_over() || !inner.sessions.turn(submit, &mut requests, &mut frames) {
                self.end();
                // What was decided is not for these to tell any more.
                frames.clear();
                inner.sessions.end_all(&mut frames);
            }
            for (node, frame) in frames {
                let queue = self.queue.id;
                self.here.send(node_of(node), Envelope::Down { queue, frame });
            }
        });
    }

    /// In which term these are.
    pub fn term(&self) -> u64 {
        self.term
    }

    /// This node does not decide in that term any more.
    pub fn end(&self) {
        self.over.store(true, Ordering::SeqCst);
    }

    /// True if that is so.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::SeqCst)
    }

    /// True if it can be let go of, as long as nobody can bring it anything.
    pub fn is_unneeded(&self) -> bool {
        self.is_over()
            || self.turned.is(|inner| match self.queue.is_retired() {
                true => inner.deleted >= DELETED_FOR,
                false => inner.sessions.are_over() && inner.pressed.is_none(),
            })
    }

    /// True if [`Served::turn`] is due after somebody has asked whether it is unneeded.
    pub fn is_left(&self) -> bool {
        self.turned.is_left()
    }

    /// Whose consumer it is that the queue knows by this name.
    pub fn consumer(&self, id: ConsumerId) -> Option<NodeConsumer> {
        let found = self.turned.look(|inner| inner.sessions.consumer(id));
        self.turn();
        found
    }

    /// Whose sessions these are.
    pub fn id(&self) -> QueueId {
        self.queue.id
    }
}

impl Inner {
    fn take(&mut self, brought: Brought, queue: &Arc<Queue>, here: &Here, requests: &mut Requests) {
        match brought {
            Brought::Said(node, frame) => self.sessions.receive(node, frame, requests),
            Brought::Heard(node) => self.sessions.heard(node),
            Brought::Lost(node) => self.sessions.lost(node),
            Brought::Ended(node) => self.sessions.ended(node, requests),
            Brought::Closes => self.sessions.close(requests),
            Brought::Tick => {
                self.sessions.tick(|| here.keeps_for(queue.id), requests);
                self.sessions.forget_the_quiet(QUIET_FOR, requests);
                self.deleted += u32::from(queue.is_retired());
                if let Some((_, ticks)) = &mut self.pressed {
                    *ticks += 1;
                }
            }
        }
    }

    /// Publishers of other nodes wait for what those of this node wait for: whoever has published looks for a reason.
    fn press(&mut self, queue: &Arc<Queue>, requests: &Requests) {
        if let Some((pressure, ticks)) = &self.pressed {
            let goes_on = pressure.timeout().is_some() && *ticks > 1 || pressure.poll(&self.waker);
            if !goes_on {
                return;
            }
            self.pressed = None;
        }
        let publishes = |request: &queue::Request<_>| matches!(request, queue::Request::EnqueueFrom { .. });
        if requests.iter().any(publishes) {
            let pressure = queue.pressure().filter(|pressure| !pressure.poll(&self.waker));
            self.pressed = pressure.map(|pressure| (pressure, 0));
        }
        self.sessions.hold(self.pressed.is_some());
    }
}
