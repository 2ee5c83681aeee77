//! All stories once more, with every queue on another node as far as the broker knows: what is asked of a queue arrives there
//! a turn later, and so does what comes of it. Either requests are handed over as they are, or as nodes say them to each
//! other.

use super::{WakeCount, World, encode_line};
use crate::connection::Connection as _;
use broker::groups::NodeId;
use broker::queues::{Existing, Handle, Peers, Queue, Remote, Request, Work, WorkLinks};
use broker::{Broker, Pressure};
use bytes::Bytes;
use model::QueueId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// The node of the clients, and the one of the queues.
const CLIENTS: NodeId = NodeId(1);
const HOME: NodeId = NodeId(2);

/// The node that has the queues.
#[derive(Debug, Default)]
pub(super) struct OtherNode {
    queues: Arc<Mutex<BTreeMap<QueueId, Arc<Queue>>>>,
    asked: Mutex<VecDeque<(QueueId, Request)>>,
    between: Option<Between>,
}

/// The work of both nodes, and what is under way between them.
#[derive(Debug)]
struct Between {
    clients: Arc<Work>,
    home: Arc<Work>,
    wire: Arc<Wire>,
    _exist: Arc<Homes>,
}

#[derive(Debug)]
struct Wire {
    frames: Mutex<VecDeque<(NodeId, Bytes)>>,
    waker: Waker,
}

impl WorkLinks for Wire {
    fn work(&self, to: NodeId, parts: Vec<Bytes>) {
        self.frames.lock().unwrap().push_back((to, parts.concat().into()));
        self.waker.wake_by_ref();
    }
}

/// What the home node has.
#[derive(Debug)]
struct Homes(Arc<Mutex<BTreeMap<QueueId, Arc<Queue>>>>);

impl Existing for Homes {
    fn here(&self, queue: QueueId) -> Option<Arc<Queue>> {
        self.0.lock().unwrap().get(&queue).cloned()
    }

    fn version(&self) -> u64 {
        0
    }

    fn moved(&self) {}
}

impl OtherNode {
    /// One with which the clients' node speaks as nodes do. `woken` is told when something is under way.
    pub(super) fn over_links(woken: Arc<WakeCount>) -> Arc<Self> {
        let wire = Arc::new(Wire {
            frames: Mutex::default(),
            waker: Waker::from(woken),
        });
        let queues = Arc::<Mutex<BTreeMap<_, _>>>::default();
        let exist = Arc::new(Homes(queues.clone()));
        let weak = Arc::downgrade(&exist);
        let work = |node| Work::new(node, 1, wire.clone(), weak.clone(), Arc::default());
        let (clients, home) = (work(CLIENTS), work(HOME));
        clients.up(HOME, 1);
        home.up(CLIENTS, 1);
        let between = Some(Between {
            clients,
            home,
            wire,
            _exist: exist,
        });
        Arc::new(Self {
            queues,
            asked: Mutex::default(),
            between,
        })
    }

    /// The way to its queues.
    fn way(self: &Arc<Self>) -> Arc<dyn Remote> {
        let Some(between) = &self.between else {
            return self.clone();
        };
        between.clients.reach(catalog_node(HOME)).unwrap()
    }

    /// Takes over the queues that were declared, and ends those that were deleted.
    pub(super) fn follow(self: &Arc<Self>, broker: &Broker) {
        let view = broker.view();
        let mut queues = self.queues.lock().unwrap();
        for queue in broker.queues().all() {
            let mut all = view.vhosts().flat_map(|vhost| vhost.all_queues());
            let Some(known) = all.find(|known| known.id == queue.id) else {
                continue;
            };
            let handle = Handle::Elsewhere(known.clone(), self.way());
            broker.queues().replace(handle);
            queues.insert(queue.id, queue);
        }
        let gone = queues
            .values()
            .filter(|queue| broker.queues().get(queue.id).is_none());
        gone.for_each(|queue| queue.retire());
    }

    /// What was asked until now arrives. True if there was something.
    pub(super) fn turn(&self) -> bool {
        if let Some(between) = &self.between {
            return between.turn();
        }
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let some = !asked.is_empty();
        for (id, request) in asked {
            let queue = self.queues.lock().unwrap().get(&id).cloned();
            match queue {
                Some(queue) => queue.submit(request),
                None => Handle::decline(request),
            }
        }
        some
    }

    /// The node is gone, with all that was asked and did not arrive.
    fn end(&self, broker: &Broker) {
        let view = broker.view();
        for known in view.vhosts().flat_map(|vhost| vhost.all_queues()) {
            broker.queues().replace(Handle::WithoutOwner(known.clone()));
        }
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        asked
            .into_iter()
            .for_each(|(_, request)| Handle::decline(request));
    }

    /// True if something that was asked has not arrived.
    pub(super) fn is_asked(&self) -> bool {
        let between = self.between.as_ref();
        !self.asked.lock().unwrap().is_empty()
            || between.is_some_and(|it| !it.wire.frames.lock().unwrap().is_empty())
    }
}

impl Between {
    /// What was under way until now arrives. True if there was something.
    fn turn(&self) -> bool {
        let frames = std::mem::take(&mut *self.wire.frames.lock().unwrap());
        let some = !frames.is_empty();
        for (to, bytes) in frames {
            match to {
                HOME => self.home.receive(CLIENTS, bytes.into()),
                _ => self.clients.receive(HOME, bytes.into()),
            }
        }
        some
    }
}

/// A node as the catalog calls it.
fn catalog_node(node: NodeId) -> broker::NodeId {
    broker::NodeId(u64::from(node.0))
}

impl Remote for OtherNode {
    fn submit(&self, queue: QueueId, request: Request) {
        self.asked.lock().unwrap().push_back((queue, request));
    }

    fn pressure(&self, queue: QueueId) -> Option<Pressure> {
        let queues = self.queues.lock().unwrap();
        queues.get(&queue).and_then(|queue| queue.pressure())
    }
}

fn say(world: &mut World, line: &str) {
    world.send('A', &encode_line(line, true).unwrap());
}

#[test]
fn who_waits_for_the_answer_of_a_queue_that_can_be_reached_no_longer_is_told() {
    for asks in [
        "basic.get queue=q",
        "basic.consume queue=q",
        "queue.purge queue=q",
        "queue.delete queue=q",
        "queue.declare queue=q durable",
    ] {
        let mut world = World::new(false);
        let other = Arc::<OtherNode>::default();
        world.elsewhere = Some(other.clone());
        world.open('A', true);
        say(&mut world, "1 channel.open");
        say(&mut world, "1 queue.declare queue=q durable");
        assert_eq!(world.next('A'), "1 channel.open-ok");
        assert!(world.next('A').starts_with("1 queue.declare-ok"));
        say(&mut world, &format!("1 {asks}"));
        assert!(other.is_asked() && world.clients[&'A'].seen.is_empty(), "{asks}");
        other.end(&world.front_end.broker);
        let told = world.next('A');
        let text = "home node 'rabbit@localhost' of durable queue 'q' in vhost '/' is down or inaccessible";
        assert!(
            told.starts_with("1 channel.close") && told.contains(text),
            "{asks}: {told}"
        );
    }
}

#[test]
fn what_comes_for_a_consumer_whose_client_hung_up_before_it_began_goes_back() {
    for over_links in [false, true] {
        let mut world = World::new(false);
        let other = match over_links {
            true => OtherNode::over_links(world.woken.clone()),
            false => Arc::default(),
        };
        world.elsewhere = Some(other);
        world.open('A', true);
        world.open('B', true);
        for line in [
            "1 channel.open",
            "1 queue.declare queue=q",
            "1 basic.publish key=q body=one",
        ] {
            say(&mut world, line);
        }
        assert_eq!(world.next('A'), "1 channel.open-ok");
        assert!(world.next('A').starts_with("1 queue.declare-ok"));
        say(&mut world, "1 basic.consume queue=q consumer=c");
        // Nothing is heard of the other node before the connection is gone.
        let other = world.elsewhere.take();
        let client = world.clients.get_mut(&'A').unwrap();
        client.core.hung_up("it asks no longer", 0, &mut client.out);
        (0..5).for_each(|_| world.turn());
        assert!(world.clients[&'A'].seen.is_empty());
        world.elsewhere = other;
        world.send('B', &encode_line("1 channel.open", true).unwrap());
        assert_eq!(world.next('B'), "1 channel.open-ok");
        let mut got = String::new();
        for _ in 0..50 {
            world.send('B', &encode_line("1 basic.get queue=q no-ack", true).unwrap());
            got = world.next('B');
            if got != "1 basic.get-empty" {
                break;
            }
        }
        assert!(
            got.starts_with("1 basic.get-ok") && got.ends_with("body=one"),
            "{got}"
        );
    }
}
