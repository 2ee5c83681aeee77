//! Consuming, getting, settling: what a consumer's front end holds of a queue.

use crate::broker::replies::ReplyAddress;
use crate::clients::outbox::{ChannelId, Question};
use crate::node::Node;
use crate::node::ends::{Ends, Outlet, Reply};
use crate::queues::{Handle, Queue};
use crate::session::Session;
use crate::stats::{self, Consumer, ConsumerDetails};
use catalog::{QueueKind, Refusal, StreamArguments, StreamOffset};
use model::chunk::Matcher;
use model::{ConsumerId, Ranges, Timestamp};
use queue::stream::{Start, StreamRequest};
use queue::{Answer, ConsumerSettings, Delivery, Disposal, Request};
use std::sync::Arc;

/// A queue as a consumer's front end knows it. Cheap to clone.
#[derive(Clone, Debug)]
pub struct QueueRef {
    queue: Handle,
    ack_timeout_ms: u64,
    kind: QueueKind,
    single_active: bool,
    auto_delete: bool,
}

impl QueueRef {
    /// The queue's name.
    pub fn name(&self) -> &str {
        self.queue.name()
    }

    /// How long its deliveries may stay unacknowledged, in milliseconds, unless the consumer asks for something else; 0 for as
    /// long as they like. What was in force when the queue was asked for.
    pub fn ack_timeout_ms(&self) -> u64 {
        self.ack_timeout_ms
    }

    /// True if it ends with its last consumer.
    pub fn is_auto_delete(&self) -> bool {
        self.auto_delete
    }

    /// True if both are the same queue.
    pub fn is(&self, other: &Self) -> bool {
        self.queue.id() == other.queue.id()
    }

    /// These delivered messages are done with. `consumer` is who held them, `None` after a get.
    pub fn settle(&self, consumer: Option<ConsumerId>, seqs: Ranges, disposal: Disposal) {
        self.queue.submit(Request::Settle {
            consumer,
            seqs,
            disposal,
        });
    }

    /// The client gave these delivered messages back, or had them for too long: they go back to where they stood.
    pub fn requeue(&self, consumer: Option<ConsumerId>, seqs: Ranges) {
        self.queue.submit(Request::Requeue { consumer, seqs });
    }

    /// These delivered messages go back to where they stood; `failed` if the client may have seen them.
    pub fn give_back(&self, consumer: Option<ConsumerId>, seqs: Ranges, failed: bool) {
        self.queue.submit(Request::Return {
            consumer,
            seqs,
            failed,
        });
    }
}

/// A consumer, seen from its front end.
pub struct Subscription {
    queue: QueueRef,
    consumer: ConsumerId,
    settings: ConsumerSettings,
    question: Question,
    outlet: Outlet,
    node: Arc<Node>,
    shown: Option<Shown>,
}

/// What operators see of a consumer, and where.
#[derive(Debug)]
struct Shown {
    consumer: Arc<Consumer>,
    channel: Arc<stats::Channel>,
    /// What this node has of the queue.
    copy: Option<Arc<Queue>>,
}

impl Subscription {
    /// Its id, which deliveries carry.
    pub fn consumer(&self) -> ConsumerId {
        self.consumer
    }

    /// Its queue.
    pub fn queue(&self) -> &QueueRef {
        &self.queue
    }

    /// Shows it to operators, until this is dropped.
    pub fn show(&mut self, details: ConsumerDetails<'_>) {
        let queue = &self.queue.queue;
        let consumer = Consumer {
            id: self.consumer,
            tag: details.tag.to_owned(),
            queue: queue.name().clone(),
            vhost: queue.vhost().clone(),
            no_ack: self.settings.no_ack,
            exclusive: self.settings.exclusive,
            prefetch: details.prefetch,
            timeout_ms: details.timeout_ms,
            arguments: details.arguments,
            connection: details.channel.connection().clone(),
            channel: details.channel.number,
        };
        let (consumer, channel) = consumer.enter(details.channel);
        let copy = queue.copy().cloned();
        if let Some(queue) = &copy {
            queue.consumer_came(consumer.clone());
        }
        self.shown = Some(Shown {
            consumer,
            channel,
            copy,
        });
    }

    /// What [`Session::consuming`] makes something of has this name.
    pub fn question(&self) -> Question {
        self.question
    }

    /// Ends it: no delivery to it follows the answer. What it holds stays with its channel until settled or given back.
    pub fn cancel(&self) -> Question {
        let consumer = self.consumer;
        self.ask(|reply| Request::Cancel { consumer, reply })
    }

    /// It is about to end, and what it holds is about to be given back: until [`Subscription::cancel`] nothing is delivered to
    /// it, nor to those who wait for its place. No delivery to it follows the answer.
    pub fn hold(&self) -> Question {
        let consumer = self.consumer;
        self.ask(|reply| Request::Pause { consumer, reply })
    }

    fn ask(&self, request: impl FnOnce(Option<Reply>) -> Request<Ends>) -> Question {
        let question = Question(self.node.number());
        let reply = Reply {
            outbox: self.outlet.outbox.clone(),
            channel: self.outlet.channel,
            question,
            no_ack: false,
        };
        self.queue.queue.ask(question, request(Some(reply)));
        question
    }

    /// So many bytes of its deliveries have left for the client: as many more may come.
    pub fn flow(&self, bytes: u32) {
        self.queue.queue.submit(Request::Flow {
            consumer: self.consumer,
            bytes,
        });
    }

    /// From now on the consumer may hold so many unsettled messages; 0 is no limit.
    pub fn limit(&self, prefetch: u32) {
        self.queue.queue.submit(Request::Limit {
            consumer: self.consumer,
            prefetch,
        });
    }

    /// No deliveries until [`Subscription::resume`].
    pub fn pause(&self) {
        self.queue.queue.submit(Request::Pause {
            consumer: self.consumer,
            reply: None,
        });
    }

    /// Undoes [`Subscription::pause`].
    pub fn resume(&self) {
        self.queue.queue.submit(Request::Resume {
            consumer: self.consumer,
        });
    }
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "consumer {} of {:?}", self.consumer.0, self.queue)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(shown) = &self.shown {
            shown.consumer.leave(&shown.channel);
            if let Some(queue) = &shown.copy {
                queue.consumer_went(&shown.consumer);
            }
        }
    }
}

/// Where a stream is begun with that is asked for like this.
pub(super) fn start(offset: StreamOffset, now: Timestamp) -> Start {
    match offset {
        StreamOffset::First => Start::First,
        StreamOffset::Last => Start::Last,
        StreamOffset::Next => Start::Next,
        StreamOffset::Offset(offset) => Start::Offset(offset),
        StreamOffset::Time(ms) => Start::Time(ms),
        StreamOffset::Ago(ms) => Start::Time(now.0.saturating_sub(ms)),
    }
}

fn not_for_streams(what: &'static str, queue: &QueueRef) -> Refusal {
    Refusal::NotForStreams {
        what,
        queue: queue.name().to_owned(),
        vhost: queue.queue.vhost().to_string(),
    }
}

impl Session {
    /// A channel that has so many consumers may have one more.
    ///
    /// # Errors
    /// The configuration says how many a channel may have.
    pub fn permit_consumer(&self, consumers: usize) -> Result<(), Refusal> {
        self.broker().options().node_limits.permit_consumer(consumers)
    }

    /// Starts a consumer: it is one if [`Session::consuming`] says so of the answer to its question.
    ///
    /// # Errors
    /// No such queue, no read permission, or another connection's exclusive queue; or what streams refuse, for which `stream`
    /// says what was asked of one.
    pub fn consume(
        &self,
        channel: ChannelId,
        queue: &str,
        mut settings: ConsumerSettings,
        stream: Option<&StreamArguments>,
    ) -> Result<Subscription, Refusal> {
        let queue = self.queue_to_consume(channel, queue)?;
        if queue.kind == QueueKind::Stream {
            self.permit_stream_consumer(&queue, settings)?;
        }
        settings.exclusive &= queue.kind.has_exclusive_consumers();
        let consumer = ConsumerId(self.broker().node().number());
        let reply = self.reply(channel, false);
        let question = reply.question;
        let outlet = Outlet {
            outbox: self.outbox().clone(),
            channel,
            no_ack: settings.no_ack,
        };
        let outlet_there = outlet.clone();
        let request = match stream.filter(|_| queue.kind == QueueKind::Stream) {
            None => Request::Consume {
                consumer,
                outlet: outlet_there,
                settings,
                reply,
            },
            Some(asked) => Request::Stream(Box::new(StreamRequest::Consume {
                consumer,
                outlet: outlet_there,
                settings,
                from: start(asked.offset, self.broker().node().now()),
                filter: Matcher::new(asked.filter.iter().cloned(), asked.unfiltered),
                reply,
            })),
        };
        queue.queue.ask(question, request);
        Ok(Subscription {
            queue,
            consumer,
            settings,
            question,
            outlet,
            node: self.broker().node().clone(),
            shown: None,
        })
    }

    /// What RabbitMQ asks of those who consume from a stream, in its order; and this node must have a copy of the stream.
    fn permit_stream_consumer(&self, queue: &QueueRef, settings: ConsumerSettings) -> Result<(), Refusal> {
        let (name, vhost) = (queue.name().to_owned(), self.vhost().to_owned());
        if settings.prefetch == 0 {
            return Err(Refusal::NoPrefetch { queue: name, vhost });
        }
        if settings.no_ack {
            let what = "automatic acknowledgement not supported by stream";
            return Err(not_for_streams(what, queue));
        }
        match queue.queue.copy() {
            Some(_) => Ok(()),
            None => Err(self.not_here(&queue.queue)),
        }
    }

    /// What the answer to [`Session::consume`] means.
    ///
    /// # Errors
    /// An exclusive consumer is there, or the queue is gone or cannot be reached.
    pub fn consuming(&self, queue: &str, answer: Option<Answer>) -> Result<(), Refusal> {
        match answer {
            Some(Answer::Consuming) => Ok(()),
            Some(Answer::InExclusiveUse) => Err(Refusal::ExclusiveUse {
                queue: queue.into(),
                vhost: self.vhost().into(),
            }),
            Some(_) => Err(self.no_queue(queue)),
            None => Err(self.unreachable(queue)),
        }
    }

    fn queue_to_consume(&self, channel: ChannelId, name: &str) -> Result<QueueRef, Refusal> {
        let queue = self.queue_of_step(channel, name)?;
        let view = self.broker().view();
        let known = view.queue(self.vhost(), name);
        let settings = known.map(|known| view.settings(known));
        let own = settings
            .as_ref()
            .and_then(|settings| settings.consumer_timeout_ms);
        let ack_timeout_ms = own.unwrap_or_else(|| self.broker().consumer_timeout_ms());
        Ok(QueueRef {
            queue,
            ack_timeout_ms,
            kind: known.map_or_else(QueueKind::default, |known| known.kind),
            single_active: settings.is_some_and(|settings| settings.single_active),
            auto_delete: known.is_some_and(|known| known.auto_delete),
        })
    }

    /// Fetches one message, which the answer brings: see [`Session::got`].
    ///
    /// # Errors
    /// No such queue, no read permission, another connection's exclusive queue, or a quorum queue's single active consumer.
    pub fn get(
        &self,
        channel: ChannelId,
        queue: &str,
        no_ack: bool,
    ) -> Result<(QueueRef, Question), Refusal> {
        let queue = self.queue_to_consume(channel, queue)?;
        if queue.kind == QueueKind::Stream {
            return Err(not_for_streams(
                "basic.get not supported by stream queues",
                &queue,
            ));
        }
        if queue.single_active && !queue.kind.gives_beside_active() {
            return Err(Refusal::GetBesideActive {
                queue: queue.name().into(),
                vhost: self.vhost().into(),
                kind: queue.kind,
            });
        }
        let reply = self.reply(channel, no_ack);
        let question = reply.question;
        queue.queue.ask(question, Request::Get { no_ack, reply });
        Ok((queue, question))
    }

    /// What the answer to [`Session::get`] means: a message, and how many ready ones are left.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub fn got(&self, queue: &QueueRef, answer: Option<Answer>) -> Result<Option<(Delivery, u64)>, Refusal> {
        match answer {
            Some(Answer::Got { delivery, remaining }) => Ok(Some((delivery, remaining))),
            Some(_) => Ok(None),
            None => Err(self.unreachable(queue.name())),
        }
    }

    /// Drops everything that is ready: see [`Session::purged`].
    ///
    /// # Errors
    /// No such queue, no read permission, another connection's exclusive queue.
    pub fn purge_queue(&self, channel: ChannelId, queue: &str) -> Result<Question, Refusal> {
        let handle = self.queue_of_step(channel, queue)?;
        if handle.kind() == QueueKind::Stream {
            return Err(Refusal::NotForStreams {
                what: "queue.purge not supported by stream queues",
                queue: queue.into(),
                vhost: self.vhost().into(),
            });
        }
        let reply = self.reply(channel, false);
        let question = reply.question;
        handle.ask(question, Request::Purge { reply });
        Ok(question)
    }

    /// What the answer to [`Session::purge_queue`] means: how many messages are dropped.
    ///
    /// # Errors
    /// The queue cannot be reached.
    pub fn purged(&self, queue: &str, answer: Option<Answer>) -> Result<u64, Refusal> {
        match answer {
            Some(Answer::Purged(count)) => Ok(count),
            Some(_) => Ok(0),
            None => Err(self.unreachable(queue)),
        }
    }
}

impl Session {
    /// An address for direct replies to a channel. It cannot be guessed: whoever knows it was told.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn reply_address(&self, channel: ChannelId) -> Result<ReplyAddress, Refusal> {
        let secret = self.broker().node().random_bytes()?;
        let consumer = ConsumerId(self.broker().node().number());
        let to = (self.outbox().clone(), channel);
        Ok(self.broker().replies().open(secret, self.vhost(), to, consumer))
    }

    /// True if somebody can be answered under this name.
    pub fn is_reply_address(&self, name: &str) -> bool {
        self.broker()
            .replies()
            .find(self.vhost(), name.as_bytes())
            .is_some()
    }
}
