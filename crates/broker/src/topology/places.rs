//! Where queues are: here, on a node that can be reached, or on none.

use super::Topology;
use super::load::Load;
use crate::clients::alarms::AlarmReason;
use crate::queues::{Handle, OtherCopies, Peers, StreamAddresses};
use catalog::{ExchangeKind, Locator, Node, NodeId, QueueKind, Refusal, Request, View};
use model::{ConsumerId, Incarnation, QueueId};
use queue::NodeConsumer;
use queue::stream::GroupWord;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Topology {
    /// True if the queue lives on this node.
    pub(crate) fn is_here(&self, known: &catalog::Queue) -> bool {
        known.home == self.own_node()
    }

    /// True if there is a handle of the queue by now.
    pub(crate) fn has_handle(&self, queue: QueueId) -> bool {
        self.registry.get(queue).is_some()
    }

    /// This node, as the catalog knows it.
    pub(crate) fn own_node(&self) -> NodeId {
        self.incarnation().node
    }

    /// True if this is the node, or it can be reached.
    pub(crate) fn reaches(&self, node: NodeId) -> bool {
        node == self.own_node() || self.peers.get().is_some_and(|peers| peers.reach(node).is_some())
    }

    /// Who leads a queue, as far as this node knows: nobody but its only member can. Of a stream that it has no copy of it
    /// knows what those have said who have one, or else who was the first.
    pub(crate) fn leader_of(&self, queue: &catalog::Queue) -> Option<NodeId> {
        let mut members = queue.members().map(|member| member.node);
        let only = members.next().filter(|_| members.next().is_none());
        let said = || {
            let is_elsewhere = queue.kind == QueueKind::Stream && self.registry.copy(queue.id).is_none();
            let peers = self.peers.get().filter(|_| is_elsewhere && queue.is_shared())?;
            let leader = peers.said_leader(queue.id).unwrap_or(queue.home);
            (queue.member(leader).is_some() && self.reaches(leader)).then_some(leader)
        };
        self.registry.leader(queue.id).or(only).or_else(said)
    }

    /// To be held from when it is found out whether a node can be reached until the handle is where others find it: else one
    /// that is made while a link comes up would never follow it.
    pub(super) fn reaching(&self) -> MutexGuard<'_, ()> {
        self.reaching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handle of a queue that lives on another node.
    pub(crate) fn away(&self, known: &Arc<catalog::Queue>) -> Handle {
        match self.peers.get().and_then(|peers| peers.reach(known.home)) {
            Some(remote) => Handle::Elsewhere(known.clone(), remote),
            None => Handle::WithoutOwner(known.clone()),
        }
    }

    /// Says where what a request declares may have its home: on a node that takes no queues or is in maintenance, and if it is to
    /// be spread. What exists already stays where it is.
    ///
    /// # Errors
    /// This node takes none, and no node that takes queues can be reached.
    pub(super) fn place(&self, request: &mut Request, load: &mut Load) -> Result<(), Refusal> {
        let (view, own) = (self.view(), self.own_node());
        let spread = self.spread(&view, request);
        let known = view.node(own);
        let Some(known) = known.filter(|known| !known.is_open_to_queues() || spread.is_some()) else {
            return Ok(());
        };
        let (named, vhost, homes, needs_none) = match request {
            Request::DeclareQueue {
                vhost, declare, by, ..
            } if !declare.passive && by.incarnation.node == own => {
                let exists = view.queue(vhost, &declare.name).is_some();
                (&declare.name, vhost, &mut declare.homes, exists)
            }
            Request::DeclareExchange { vhost, declare, by } if !declare.passive && by.node == own => {
                let keeps = ExchangeKind::from_name(&declare.kind).and_then(ExchangeKind::keeps);
                let exists = view.exchange(vhost, &declare.name).is_some();
                (
                    &declare.name,
                    vhost,
                    &mut declare.homes,
                    exists || keeps.is_none(),
                )
            }
            _ => return Ok(()),
        };
        let is_reached = |node: &NodeId| self.peers.get().is_some_and(|peers| peers.reach(*node).is_some());
        let reached = |takes: fn(&Node) -> bool| -> Vec<NodeId> {
            let take = view.nodes().filter(|(node, known)| **node != own && takes(known));
            take.map(|(node, _)| *node).filter(is_reached).collect()
        };
        *homes = reached(Node::is_open_to_queues);
        if known.is_open_to_queues() {
            homes.push(own);
        }
        if homes.is_empty() && !known.takes_queues {
            // RabbitMQ, too, has nodes in maintenance take queues if there is no other one.
            *homes = reached(|known| known.takes_queues && !known.is_forgotten());
        }
        if homes.is_empty() && !known.takes_queues && !needs_none {
            // RabbitMQ's words for a queue that another node could not make.
            return Err(Refusal::Internal {
                reason: format!(
                    "Cannot declare a queue '{named}' in vhost '{vhost}' on node '{}': it takes no queues, and no node that takes some can \
                     be reached",
                    view.node_name(own)
                ),
            });
        }
        if let Some(kind) = spread {
            load.choose(homes, (kind, named), &view, &self.registry);
        }
        Ok(())
    }

    /// The kind of the new queue that a request declares, if it is to be where the fewest of its kind are.
    fn spread(&self, view: &View, request: &Request) -> Option<QueueKind> {
        let Request::DeclareQueue { vhost, declare, .. } = request else {
            return None;
        };
        let placing = self.placing().filter(|_| self.peers.get().is_some())?;
        let vhost = view.vhost(vhost)?;
        if declare.passive || declare.exclusive || vhost.queue(&declare.name).is_some() {
            return None;
        }
        let kind = catalog::kind_of(&declare.arguments);
        let said = vhost.locator(kind, &declare.name, &declare.arguments);
        (said.unwrap_or(placing.locator) == Locator::Balanced).then_some(kind)
    }

    /// See [`crate::Broker::join`].
    pub fn join(&self, peers: Arc<dyn Peers>) {
        let _ = self.peers.set(peers);
        self.follow_peers();
        self.reach_shared();
        self.tell_stream_addresses();
    }

    /// See [`crate::Broker::serve_streams`].
    pub fn serve_streams(&self, at: StreamAddresses) {
        let _ = self.stream_addresses.set(at);
        self.tell_stream_addresses();
    }

    fn tell_stream_addresses(&self) {
        if let (Some(peers), Some(at)) = (self.peers.get(), self.stream_addresses.get()) {
            peers.serve_streams(at);
        }
    }

    /// Where clients of the stream protocol reach a node, if that is known.
    pub fn stream_addresses(&self, node: NodeId) -> Option<StreamAddresses> {
        match node == self.own_node() {
            true => self.stream_addresses.get().cloned(),
            false => self.peers.get()?.stream_addresses(node),
        }
    }

    /// Has another node store an offset in a stream that it has; false if it cannot be spoken to.
    pub fn store_offset(&self, node: NodeId, stream: QueueId, reference: &[u8], offset: u64) -> bool {
        let peers = self.peers.get();
        peers.is_some_and(|peers| peers.store_offset(node, stream, reference, offset))
    }

    /// This node's copy of a stream lacks chunks from this offset on: another node that has one and can be reached is asked, with
    /// each number of `asked` another one. Returns who has one.
    pub(crate) fn ask_for_chunks(&self, stream: QueueId, from: u64, asked: usize) -> OtherCopies {
        let Some(peers) = self.peers.get() else {
            return OtherCopies::default();
        };
        let all = self.others_of_stream(stream);
        let is_reached = |node: &crate::groups::NodeId| peers.reach(NodeId(node.0.into())).is_some();
        let reached: Vec<crate::groups::NodeId> = all.iter().copied().filter(is_reached).collect();
        if let Some(node) = reached.get(asked % reached.len().max(1)) {
            peers.ask_for_chunks(NodeId(node.0.into()), stream, from);
        }
        OtherCopies {
            all: all.into_iter().collect(),
            reached: reached.into_iter().collect(),
        }
    }

    /// Another node hears this of readers that are in a group of a stream, if it is not lost. False if it cannot be spoken to.
    pub(crate) fn say_of_group(&self, stream: QueueId, node: crate::groups::NodeId, said: GroupWord) -> bool {
        let peers = self.peers.get();
        peers.is_some_and(|peers| peers.say_of_group(NodeId(node.0.into()), stream, said))
    }

    /// The other nodes that have a copy of a stream.
    pub(crate) fn others_of_stream(&self, stream: QueueId) -> Vec<crate::groups::NodeId> {
        let Some(Handle::Shared(shared)) = self.registry.get(stream) else {
            return Vec::new();
        };
        let own = self.own_node();
        let others = shared.known.members().map(|it| it.node);
        let others = others.filter(|node| *node != own);
        others
            .filter_map(|node| u32::try_from(node.0).ok().map(crate::groups::NodeId))
            .collect()
    }

    /// The other nodes, if there are some, are told that this one has an alarm, or none any more.
    pub fn tell_alarm(&self, reason: Option<AlarmReason>) {
        if let Some(peers) = self.peers.get() {
            peers.alarm(reason);
        }
    }

    /// Whose consumer it is that a queue of this node knows by this name.
    pub fn whose_consumer(&self, queue: QueueId, consumer: ConsumerId) -> NodeConsumer {
        let elsewhere = self.peers.get().and_then(|peers| peers.consumer(queue, consumer));
        elsewhere.unwrap_or_else(|| self.own_consumer(consumer))
    }

    /// See [`crate::Broker::own_consumer`].
    pub fn own_consumer(&self, consumer: ConsumerId) -> NodeConsumer {
        let own = self.peers.get().and_then(|peers| peers.own());
        let node = own.unwrap_or(Incarnation(0));
        NodeConsumer { node, consumer }
    }

    /// See [`crate::Broker::follow_peers`].
    pub fn follow_peers(&self) {
        let _reaching = self.reaching();
        for known in self.registry.away() {
            self.registry.replace(self.away(&known));
        }
    }

    /// Another node can be reached again: what waits for its queues goes on.
    pub fn go_on(&self) {
        self.queue_events.reached();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Broker;
    use crate::clients::outbox::{ChannelId, Event, Outbox};
    use crate::clients::pressure::Pressure;
    use crate::queues::{Remote, Request};
    use crate::{ConsumerSettings, Options, Session};
    use catalog::{DeclareQueue, Incarnation, NodeConnection, NodeId, Refusal, Request as Change};
    use model::{Message, QueueId, Ranges, RouteBuf};
    use std::sync::Mutex;

    const CHANNEL: ChannelId = ChannelId(1);
    const OTHER: NodeId = NodeId(2);

    /// Another node, as far as one thinks that it can be reached: it takes what is asked and does nothing.
    #[derive(Debug, Default)]
    struct Other {
        reachable: Mutex<bool>,
        asked: Arc<Asked>,
    }

    #[derive(Debug, Default)]
    struct Asked(Mutex<Vec<(QueueId, Request)>>);

    impl Peers for Other {
        fn reach(&self, node: NodeId) -> Option<Arc<dyn Remote>> {
            assert_eq!(node, OTHER);
            let reachable = *self.reachable.lock().unwrap();
            reachable.then(|| self.asked.clone() as Arc<dyn Remote>)
        }
    }

    impl Remote for Asked {
        fn submit(&self, queue: QueueId, request: Request) {
            self.0.lock().unwrap().push((queue, request));
        }

        fn pressure(&self, _: QueueId) -> Option<Pressure> {
            None
        }
    }

    fn session(broker: &Arc<Broker>, outbox: &Arc<Outbox>) -> Arc<Session> {
        let local = "127.0.0.1".parse().unwrap();
        let user = broker.authenticate("guest", b"guest", local).unwrap();
        broker.connect(user, "/", outbox.clone()).unwrap()
    }

    fn durable(name: &str) -> DeclareQueue {
        DeclareQueue {
            name: name.into(),
            durable: true,
            ..DeclareQueue::default()
        }
    }

    /// Declares a queue as a client of the other node does.
    fn declare_there(broker: &Broker) -> QueueId {
        let topology = broker.topology();
        let start = Change::StartNode {
            node: OTHER,
            name: "rabbit@b".into(),
            takes_queues: true,
        };
        topology.decide(None, start).wait().unwrap();
        let incarnation = Incarnation {
            node: OTHER,
            number: 1,
        };
        let declare = Change::DeclareQueue {
            vhost: "/".into(),
            declare: durable("q"),
            by: NodeConnection::of_node(incarnation),
            unique: [0; 16],
        };
        topology.decide(None, declare).wait().unwrap();
        broker.view().queue("/", "q").unwrap().id
    }

    fn publish(session: &Arc<Session>, outbox: &Outbox) -> Vec<Event> {
        let mut publisher = session.publisher(CHANNEL, 1);
        let route = RouteBuf::new(b"", b"q");
        let taken = publisher.publish(
            &Message::new(
                route.as_route(),
                model::properties::Properties::amqp091(b""),
                b"body",
            ),
            Some(7),
        );
        assert_eq!(taken.unwrap().queues, 1, "there is such a queue");
        publisher.flush();
        let mut events = Vec::new();
        outbox.take_now(&mut events);
        events
    }

    fn is_refused(events: &[Event]) -> bool {
        matches!(events, [Event::Reject { numbers, .. }] if *numbers == Ranges::one(7))
    }

    #[test]
    fn a_queue_that_nobody_can_reach_refuses_publishes_and_says_so_to_all_others() {
        let dir = tempfile::tempdir().unwrap();
        for _ in 0..2 {
            let outbox = Arc::new(Outbox::new());
            // The second start finds the queue.
            let broker = Broker::open(Options::new(dir.path())).unwrap();
            if broker.view().queue("/", "q").is_none() {
                declare_there(&broker);
            }
            let session = session(&broker, &outbox);
            assert!(is_refused(&publish(&session, &outbox)));
            let settings = ConsumerSettings {
                no_ack: false,
                exclusive: false,
                prefetch: 0,
                priority: 0,
                window: 1,
                paused: false,
            };
            let refused = [
                session.declare_queue(CHANNEL, durable("q")).unwrap_err(),
                session.consume(CHANNEL, "q", settings, None).unwrap_err(),
                session.get(CHANNEL, "q", true).unwrap_err(),
                session.purge_queue(CHANNEL, "q").unwrap_err(),
                session.delete_queue(CHANNEL, "q", false, false).unwrap_err(),
                session.browse("q").err().unwrap(),
            ];
            for refusal in refused {
                assert!(matches!(refusal, Refusal::QueueDown { .. }));
                let text = "home node 'rabbit@b' of durable queue 'q' in vhost '/' is down or inaccessible";
                assert_eq!(refusal.to_string(), text);
            }
            session.close();
            broker.close();
        }
    }

    #[test]
    fn what_is_declared_on_a_node_that_takes_no_queues_is_on_another_one_that_can_be_reached() {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            takes_queues: false,
            ..Options::new(dir.path())
        };
        let broker = Broker::open(options).unwrap();
        declare_there(&broker);
        let other = Arc::new(Other::default());
        broker.join(other.clone());
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        let declare = |name, exclusive| {
            let declare = DeclareQueue {
                exclusive,
                ..durable(name)
            };
            session.declare_queue(CHANNEL, declare)
        };
        let refused = declare("new", false).unwrap_err();
        assert!(
            matches!(&refused, Refusal::Internal { reason } if reason.contains("'new'") && reason.contains("takes no queues"))
        );
        assert!(
            matches!(declare("q", false), Err(Refusal::QueueDown { .. })),
            "that one exists"
        );
        *other.reachable.lock().unwrap() = true;
        broker.follow_peers();
        for (name, exclusive) in [("new", false), ("mine", true)] {
            declare(name, exclusive).unwrap();
            assert_eq!(broker.view().queue("/", name).unwrap().home, OTHER);
        }
        let delayed = catalog::DeclareExchange {
            name: "later".into(),
            kind: "x-delayed-message".into(),
            arguments: model::table::Table::new().with("x-delayed-type", "direct"),
            ..catalog::DeclareExchange::default()
        };
        session.declare_exchange(CHANNEL, delayed).unwrap();
        let view = broker.view();
        let vhost = view.vhost("/").unwrap();
        assert!(
            vhost.all_queues().all(|queue| queue.home == OTHER),
            "what exchanges keep, too"
        );
        session.close();
        broker.close();
    }

    #[test]
    fn what_is_declared_on_a_node_in_maintenance_is_on_another_one_if_there_is_one() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        declare_there(&broker);
        let own = broker.topology().incarnation().node;
        let other = Arc::new(Other::default());
        broker.join(other.clone());
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        let home = |name: &str| {
            session.declare_queue(CHANNEL, durable(name)).unwrap();
            broker.view().queue("/", name).unwrap().home
        };
        assert_eq!(home("before"), own);
        broker.drain(true).unwrap();
        assert_eq!(home("nobody else"), own);
        *other.reachable.lock().unwrap() = true;
        broker.follow_peers();
        assert_eq!(home("elsewhere"), OTHER);
        let drained = true;
        let drain = Change::DrainNode { node: OTHER, drained };
        broker.topology().decide(None, drain).wait().unwrap();
        assert_eq!(home("both"), own);
        broker.drain(false).unwrap();
        assert_eq!(home("after"), own);
        session.close();
        broker.close();
    }

    #[test]
    fn a_queue_of_another_node_is_asked_there_as_long_as_the_node_can_be_reached() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let id = declare_there(&broker);
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        assert!(is_refused(&publish(&session, &outbox)));
        let other = Arc::new(Other::default());
        *other.reachable.lock().unwrap() = true;
        broker.join(other.clone());
        assert!(publish(&session, &outbox).is_empty());
        let asked = std::mem::take(&mut *other.asked.0.lock().unwrap());
        assert!(matches!(&asked[..], [(queue, Request::Enqueue { receipt: Some(_), .. })] if *queue == id));
        // It is gone, with what it was asked.
        *other.reachable.lock().unwrap() = false;
        broker.follow_peers();
        asked
            .into_iter()
            .for_each(|(_, request)| Handle::decline(request));
        let mut events = Vec::new();
        outbox.take_now(&mut events);
        assert!(is_refused(&events));
        assert!(is_refused(&publish(&session, &outbox)));
        session.close();
        broker.close();
    }

    #[test]
    fn a_publisher_asks_where_its_queues_are_again_once_they_have_moved() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        declare_there(&broker);
        let other = Arc::new(Other::default());
        *other.reachable.lock().unwrap() = true;
        broker.join(other.clone());
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        let mut publisher = session.publisher(CHANNEL, 1);
        let route = RouteBuf::new(b"", b"q");
        let message = Message::new(
            route.as_route(),
            model::properties::Properties::amqp091(b""),
            b"body",
        );
        let mut publish = |number| {
            publisher.publish(&message, Some(number)).unwrap();
            publisher.flush();
        };
        publish(1);
        *other.reachable.lock().unwrap() = false;
        broker.follow_peers();
        // What is on its way then still goes where the queue was.
        [2, 3].into_iter().for_each(&mut publish);
        assert_eq!(other.asked.0.lock().unwrap().len(), 2);
        let mut events = Vec::new();
        outbox.take_now(&mut events);
        assert!(matches!(&events[..], [Event::Reject { numbers, .. }] if *numbers == Ranges::one(3)));
        session.close();
        broker.close();
    }

    /// Waits until the other node is asked something more.
    #[allow(clippy::disallowed_methods, reason = "how long is waited decides nothing")]
    fn asked_next(other: &Other, what: &str) -> Request {
        let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
        loop {
            if let Some((_, request)) = other.asked.0.lock().unwrap().pop() {
                return request;
            }
            assert!(std::time::Instant::now() < until, "{what} was not asked");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_dead_letter_stays_where_it_died_until_the_queue_of_another_node_has_it() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        declare_there(&broker);
        let other = Arc::new(Other::default());
        *other.reachable.lock().unwrap() = true;
        broker.join(other.clone());
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        let source = DeclareQueue {
            arguments: model::table::Table::new()
                .with("x-dead-letter-exchange", "")
                .with("x-dead-letter-routing-key", "q")
                .with("x-message-ttl", 0),
            ..durable("source")
        };
        session.declare_queue(CHANNEL, source).unwrap();
        let mut publisher = session.publisher(CHANNEL, 1);
        let route = RouteBuf::new(b"", b"source");
        let properties = model::properties::Properties::amqp091(b"\0\0");
        publisher
            .publish(&Message::new(route.as_route(), properties, b"body"), None)
            .unwrap();
        publisher.flush();
        // The node is lost before it answers, and comes back.
        let lost = asked_next(&other, "what died");
        *other.reachable.lock().unwrap() = false;
        broker.follow_peers();
        Handle::decline(lost);
        assert_eq!(broker.stats().dead_letters().confirmed(), 0);
        *other.reachable.lock().unwrap() = true;
        broker.follow_peers();
        let again = asked_next(&other, "the same again");
        let Request::Enqueue { block, receipt } = again else {
            panic!("{again:?}")
        };
        assert_eq!(block.message(0).body, b"body");
        let (told, event) = receipt.unwrap().into_confirm();
        told.send(event);
        while broker.stats().dead_letters().confirmed() == 0 {
            std::thread::yield_now();
        }
        session.close();
        broker.close();
    }

    /// A broker with a queue of the other node that an exchange of its own leads to.
    fn with_once(broker: &Broker, session: &Session) {
        declare_there(broker);
        let once = catalog::DeclareExchange {
            name: "once".into(),
            kind: "x-message-deduplication".into(),
            durable: true,
            arguments: model::table::Table::new().with("x-cache-size", 10),
            ..catalog::DeclareExchange::default()
        };
        session.declare_exchange(CHANNEL, once).unwrap();
        let binding = crate::session::declare::Binding {
            source: "once",
            destination: "q",
            routing_key: b"",
            arguments: model::table::Table::new(),
        };
        session.bind_queue(CHANNEL, binding).unwrap();
    }

    /// Publishes a message with this key, which is its body, too.
    fn publish_key(session: &Arc<Session>, exchange: &str, routing_key: &str, key: &str) {
        let headers = model::table::Table::new().with(model::X_DEDUPLICATION_HEADER, key);
        let properties = model::properties::PropertiesBuilder::new()
            .headers(&headers)
            .encode();
        let properties = model::properties::Properties::amqp091(&properties);
        let route = RouteBuf::new(exchange.as_bytes(), routing_key.as_bytes());
        let mut publisher = session.publisher(CHANNEL, 1);
        let message = Message::new(route.as_route(), properties, key.as_bytes());
        publisher.publish(&message, Some(7)).unwrap();
        publisher.flush();
    }

    /// What the queue of the other node was asked to take, and takes.
    fn takes(request: Request) -> Vec<u8> {
        let Request::Enqueue { block, receipt } = request else {
            panic!("{request:?}")
        };
        let (told, event) = receipt.unwrap().into_confirm();
        told.send(event);
        block.message(0).body.to_vec()
    }

    #[test]
    fn a_dead_letter_that_has_not_arrived_passes_a_deduplicating_exchange_again_and_no_other_one_does() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let other = Arc::new(Other::default());
        *other.reachable.lock().unwrap() = true;
        broker.join(other.clone());
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        with_once(&broker, &session);
        let source = DeclareQueue {
            arguments: model::table::Table::new()
                .with("x-dead-letter-exchange", "once")
                .with("x-message-ttl", 0),
            ..durable("source")
        };
        session.declare_queue(CHANNEL, source).unwrap();
        publish_key(&session, "", "source", "1");
        let lost = asked_next(&other, "what died");
        publish_key(&session, "", "source", "1");
        Handle::decline(lost);
        assert_eq!(takes(asked_next(&other, "the same again")), b"1");
        publish_key(&session, "", "source", "1");
        publish_key(&session, "", "source", "2");
        assert_eq!(takes(asked_next(&other, "another one")), b"2");
        while broker.stats().dead_letters().confirmed() < 4 {
            std::thread::yield_now();
        }
        assert!(other.asked.0.lock().unwrap().is_empty());
        session.close();
        broker.close();
    }

    #[test]
    fn what_is_refused_for_want_of_a_node_is_not_remembered_by_a_deduplicating_exchange() {
        let dir = tempfile::tempdir().unwrap();
        let broker = Broker::open(Options::new(dir.path())).unwrap();
        let other = Arc::new(Other::default());
        broker.join(other.clone());
        let outbox = Arc::new(Outbox::new());
        let session = session(&broker, &outbox);
        with_once(&broker, &session);
        let told = || {
            let mut events = Vec::new();
            outbox.take_now(&mut events);
            events.retain(|event| matches!(event, Event::Confirm { .. } | Event::Reject { .. }));
            events
        };
        for _ in 0..2 {
            publish_key(&session, "once", "", "1");
            assert!(is_refused(&told()));
        }
        *other.reachable.lock().unwrap() = true;
        broker.follow_peers();
        publish_key(&session, "once", "", "1");
        assert_eq!(takes(asked_next(&other, "the same again")), b"1");
        publish_key(&session, "once", "", "1");
        assert!(other.asked.0.lock().unwrap().is_empty(), "it is a duplicate");
        session.close();
        broker.close();
    }
}
