//! What the host of a stream does for those who read it on this node, whoever decides what is in it.

use super::log::StreamLog;
use super::readers::Readers;
use crate::node::ends::{Ends, Outlet, Reply};
use crate::queues::Queue;
use model::ConsumerId;
use model::chunk::Matcher;
use queue::stream::{Start, StreamRequest};
use queue::{Answer, ConsumerSettings, Effect, Request, Status};
use std::sync::Arc;

/// See the module.
pub(super) struct Reads {
    name: Box<str>,
    /// Nothing, if the files cannot be read: then nothing is read.
    pub log: Option<Arc<StreamLog>>,
    pub readers: Readers,
    /// What leaves with the end of this turn.
    pub effects: Vec<Effect<Ends>>,
}

impl Reads {
    /// Nobody, in a stream of which everything below this offset may be read.
    pub fn new(name: &str, log: Option<Arc<StreamLog>>, committed: u64) -> Self {
        Self {
            name: name.into(),
            log,
            readers: Readers::new(committed),
            effects: Vec::new(),
        }
    }

    /// The files of this queue, which could not be opened, are open now.
    pub fn opened(&mut self, log: Arc<StreamLog>, queue: Option<Arc<Queue>>) {
        tracing::warn!(area = "storage", "{} could be opened", log.name);
        if let Some(queue) = queue {
            log.belongs_to(&queue);
            queue.is_opened(log.clone());
        }
        self.log = Some(log);
    }

    /// Answers, if somebody waits for that.
    pub fn reply(&mut self, reply: Option<Reply>, answer: Answer) {
        let answered = reply.map(|reply| Effect::Reply(reply, answer));
        self.effects.extend(answered);
    }

    /// Does what a reader wants.
    ///
    /// # Errors
    /// It is something else: here it is back.
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and goes on with it"
    )]
    pub fn handle(&mut self, request: Request<Ends>, retired: bool) -> Result<(), Request<Ends>> {
        match request {
            Request::Consume {
                consumer,
                outlet,
                settings,
                reply,
            }
            | Request::ConsumeFrom {
                consumer,
                outlet,
                settings,
                reply,
                of: _,
            } => {
                self.reply(Some(reply), Answer::Consuming);
                self.consume((consumer, outlet), settings, Start::Next, None);
            }
            Request::Cancel { consumer, reply } => {
                self.cancel(consumer);
                self.reply(reply, Answer::Cancelled);
            }
            Request::Settle { consumer, seqs, .. }
            | Request::Return { consumer, seqs, .. }
            | Request::Requeue { consumer, seqs } => {
                if let Some(consumer) = consumer {
                    self.readers.change(consumer, |it| it.settle(seqs.count()));
                }
            }
            Request::Flow { consumer, bytes } => self.readers.change(consumer, |it| it.flow(bytes)),
            Request::Limit { consumer, prefetch } => self.readers.change(consumer, |it| it.limit(prefetch)),
            Request::Pause { consumer, reply } => {
                self.readers.change(consumer, |it| it.pause(true));
                self.reply(reply, Answer::Paused);
            }
            Request::Resume { consumer } => self.readers.change(consumer, |it| it.pause(false)),
            Request::Stream(request) => {
                if let Err(request) = self.stream(*request, retired) {
                    return Err(Request::Stream(Box::new(request)));
                }
            }
            request => return Err(request),
        }
        Ok(())
    }

    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and goes on with it"
    )]
    fn stream(&mut self, request: StreamRequest<Ends>, retired: bool) -> Result<(), StreamRequest<Ends>> {
        match request {
            StreamRequest::Consume {
                consumer,
                outlet,
                settings,
                from,
                filter,
                reply,
            } => {
                self.reply(Some(reply), Answer::Consuming);
                self.consume((consumer, outlet), settings, from, filter);
            }
            StreamRequest::Read(request) => self.readers.ask(request, &mut self.effects),
            // In a stream that is gone nobody is active.
            StreamRequest::Join { .. } if retired => {}
            StreamRequest::Join {
                reader,
                group,
                partition,
            } => self.readers.join(reader, &group, partition, &mut self.effects),
            StreamRequest::SteppedDown { reader } => {
                self.readers.stepped_down(reader, &mut self.effects);
            }
            request @ (StreamRequest::Machine(_) | StreamRequest::OfNode { .. }) => return Err(request),
        }
        Ok(())
    }

    fn consume(
        &mut self,
        (consumer, outlet): (ConsumerId, Outlet),
        settings: ConsumerSettings,
        from: Start,
        filter: Option<Matcher>,
    ) {
        let Some(log) = self.log.clone() else {
            return self.effects.push(Effect::CancelConsumer { outlet, consumer });
        };
        let at = log.begin(from);
        // Who asks for a message that is not there yet waits for it.
        let first = if let Start::Offset(offset) = from {
            offset.max(at)
        } else {
            at
        };
        log.attach();
        let consumer = (consumer, outlet);
        self.readers
            .consume(consumer, settings, (at, first), filter, &mut self.effects);
    }

    fn cancel(&mut self, consumer: ConsumerId) {
        if self.readers.cancel(consumer, &mut self.effects)
            && let Some(log) = &self.log
        {
            log.detach();
        }
    }

    /// Everything below this offset may be read now.
    pub fn commit(&mut self, below: u64) {
        self.readers.commit(below, &mut self.effects);
    }

    /// What is behind this offset was taken back, if it was there.
    pub fn retract(&mut self, below: u64) {
        self.readers.retract(below);
    }

    /// What was read for consumers since this was called last.
    pub fn take_loaded(&mut self) {
        let Some(log) = self.log.clone() else { return };
        for loaded in log.take_loaded() {
            let consumer = loaded.consumer;
            if let Some(outlet) = self.readers.loaded(loaded, log.end()) {
                self.cancel(consumer);
                self.effects.push(Effect::CancelConsumer { outlet, consumer });
            }
        }
    }

    /// Those who take messages are given what they may have.
    pub fn serve(&mut self) {
        if let Some(log) = &self.log {
            self.readers.serve(log, &self.name, &mut self.effects);
        }
    }

    /// How many messages may be read, from this offset on.
    pub fn messages(&self, first: u64) -> u64 {
        self.readers.committed().saturating_sub(first)
    }

    /// Its numbers, if it has so many messages, in so many bytes, and this is the offset of the next one.
    pub fn status(&self, messages: u64, bytes: u64, next_offset: u64) -> Status {
        Status {
            ready: messages,
            unacked: self.readers.unacked(),
            consumers: self.readers.len(),
            ready_bytes: bytes,
            persistent: messages,
            persistent_bytes: bytes,
            memory: self.log.as_ref().map_or(0, |log| log.memory()),
            paged: messages,
            paged_bytes: bytes,
            next_seq: next_offset,
            keeps: true,
            ..Status::default()
        }
    }
}
