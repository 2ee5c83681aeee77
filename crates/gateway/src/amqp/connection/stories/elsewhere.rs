//! All stories once more, with every queue on another node as far as the broker knows: what is asked of a queue arrives
//! there a turn later, and so does what comes of it.

use super::{World, encode_line};
use broker::queues::{Handle, Queue, Remote, Request};
use broker::{Broker, Pressure};
use model::QueueId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// The node that has the queues.
#[derive(Debug, Default)]
pub(super) struct OtherNode {
    queues: Mutex<BTreeMap<QueueId, Arc<Queue>>>,
    asked: Mutex<VecDeque<(QueueId, Request)>>,
}

impl OtherNode {
    /// Takes over the queues that were declared, and ends those that were deleted.
    pub(super) fn follow(self: &Arc<Self>, broker: &Broker) {
        let view = broker.view();
        let mut queues = self.queues.lock().unwrap();
        for queue in broker.queues().all() {
            let mut all = view.vhosts().flat_map(|vhost| vhost.all_queues());
            let Some(known) = all.find(|known| known.id == queue.id) else {
                continue;
            };
            let handle = Handle::Elsewhere(known.clone(), self.clone());
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
        !self.asked.lock().unwrap().is_empty()
    }
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
