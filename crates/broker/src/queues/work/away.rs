//! A queue of another node, as clients of this one see it: its handle, what is brought to it, and what that orders.

use super::Here;
use super::frame::Envelope;
use super::numbers::Numbers;
use super::turned::Turned;
use crate::clients::pressure::{Pressure, Reason, Release};
use crate::groups::NodeId;
use crate::groups::handle::{Frame, Handle, Orders, ToNode, deliver};
use crate::node::ends::Ends;
use crate::queues::remote::Request;
use model::{QueueId, QueueSettings};
use queue::{Answer, Effect};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A handle that nobody has needed for so many ticks, of 100 ms each, is let go of.
const KEPT_FOR: u32 = 20;

/// What is brought to it, in order.
pub(super) enum Brought {
    /// A client's.
    Asked(Request),
    /// The home node says this.
    Said(Frame<ToNode>),
    /// The home node can be spoken to from now on.
    Up,
    /// The link is lost, and with it what was under way.
    Down,
    /// A tick of the clock.
    Tick,
    /// The queue is deleted.
    Deleted,
}

/// See the module.
pub(super) struct Away {
    id: QueueId,
    home: NodeId,
    turned: Turned<Inner, Brought>,
    /// Publishers are to wait.
    full: AtomicBool,
    /// What those wait for who found it full.
    room: Mutex<Option<Arc<Release>>>,
}

struct Inner {
    handle: Handle<Ends>,
    numbers: Numbers,
    /// For so many ticks nobody has needed it.
    unneeded: u32,
    /// The queue is deleted.
    deleted: bool,
}

impl Away {
    /// The handle of a queue of this node. `counted`: see [`Handle::after`].
    pub fn new(here: &Here, id: QueueId, home: NodeId, counted: u64) -> Self {
        // What else a queue is set to is its home node's business.
        let handle = Handle::new(here.incarnation, &QueueSettings::default()).after(counted);
        Self {
            id,
            home,
            turned: Turned::new(Inner {
                handle,
                numbers: Numbers::above(here.void_below()),
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
                inner.take(self.home, one, &mut orders);
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
            if unneeded && inner.handle.has_discarded() {
                here.are_void_below(inner.numbers.next());
            }
            unneeded
        })
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
            here.send(to, &envelope);
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

impl Inner {
    fn take(&mut self, home: NodeId, brought: Brought, orders: &mut Orders<Ends>) {
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
            Brought::Said(frame) => {
                self.handle.receive(home, frame, orders);
                // Nothing is delivered before the session has begun in which the node learns of a new term.
                self.numbers.are_of(self.handle.term());
            }
            Brought::Up => {
                self.handle.lost(home);
                self.handle.leads(None);
                self.handle.leads(Some(home));
                self.handle.waits_again();
            }
            Brought::Down => {
                self.handle.leads(None);
                self.handle.lost(home);
            }
            Brought::Tick => {
                self.handle.tick(orders);
                self.unneeded = match self.handle.is_idle() {
                    true => self.unneeded.saturating_add(1),
                    false => 0,
                };
            }
            Brought::Deleted => {
                self.deleted = true;
                self.handle.retire(orders);
            }
        }
    }

    /// A request with the numbers that the home node knows.
    fn as_known(&self, request: Request) -> Request {
        match request {
            Request::Settle {
                consumer,
                seqs,
                disposal,
            } => Request::Settle {
                consumer,
                seqs: self.numbers.said_of(seqs),
                disposal,
            },
            Request::Return {
                consumer,
                seqs,
                failed,
            } => Request::Return {
                consumer,
                seqs: self.numbers.said_of(seqs),
                failed,
            },
            Request::Requeue { consumer, seqs } => Request::Requeue {
                consumer,
                seqs: self.numbers.said_of(seqs),
            },
            other => other,
        }
    }

    /// Clients hear of it under the lock, so in the order in which it happened.
    fn obey(&mut self, orders: Orders<Ends>) {
        for mut effect in orders.effects {
            if let Effect::Deliver { delivery, .. } | Effect::Reply(_, Answer::Got { delivery, .. }) =
                &mut effect
            {
                self.numbers.show(delivery);
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
