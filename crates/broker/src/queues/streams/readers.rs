//! Those who read a stream on this node, over both protocols: where each stands, who is active in a group, and what each is told.
//! They need nothing of the machine that decides what is in the stream, and outlive it.

use super::consumers::Consumers;
use super::log::{Loaded, StreamLog};
use crate::node::ends::{Ends, Outlet};
use model::ConsumerId;
use model::chunk::Matcher;
use queue::stream::{Groups, ReadEffect, ReadRequest, Reading, Update};
use queue::{ConsumerSettings, Effect, Subscriber};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Those who read a stream on this node.
pub(super) struct Readers {
    reading: Reading<Ends>,
    groups: Groups,
    /// Those who take messages. All others take chunks, or watch.
    consumers: Consumers,
    /// Of those others.
    outlets: BTreeMap<ConsumerId, Outlet>,
    /// What readers in groups are to be told that are on other nodes.
    far: Vec<Update>,
}

impl Readers {
    /// Nobody, in a stream of which everything below this offset may be read.
    pub(super) fn new(committed: u64) -> Self {
        Self {
            reading: Reading::new(committed),
            groups: Groups::default(),
            consumers: Consumers::default(),
            outlets: BTreeMap::new(),
            far: Vec::new(),
        }
    }

    /// Everything below may be read.
    pub(super) fn committed(&self) -> u64 {
        self.reading.committed()
    }

    /// How many read.
    pub(super) fn len(&self) -> usize {
        self.reading.len()
    }

    /// See [`Reading::lowest`].
    pub(super) fn lowest(&self) -> Option<u64> {
        self.reading.lowest()
    }

    /// What those hold unacknowledged who take messages.
    pub(super) fn unacked(&self) -> u64 {
        self.consumers.unacked()
    }

    /// What somebody wants who takes chunks or watches. Who detaches leaves its group, too.
    pub(super) fn ask(&mut self, request: ReadRequest<Ends>, effects: &mut Vec<Effect<Ends>>) {
        match &request {
            ReadRequest::Attach { reader, outlet, .. } | ReadRequest::Watch { reader, outlet } => {
                self.outlets.insert(*reader, outlet.clone());
            }
            ReadRequest::Detach { reader } => {
                self.outlets.remove(reader);
                let update = self.groups.leave(*reader);
                self.update(update, effects);
            }
            _ => {}
        }
        self.read(request, effects);
    }

    /// See [`Groups::join`].
    pub(super) fn join(
        &mut self,
        reader: ConsumerId,
        group: &[u8],
        partition: Option<u32>,
        effects: &mut Vec<Effect<Ends>>,
    ) {
        let update = self.groups.join(reader, group, partition);
        self.update(update, effects);
    }

    /// See [`Groups::stepped_down`].
    pub(super) fn stepped_down(&mut self, reader: ConsumerId, effects: &mut Vec<Effect<Ends>>) {
        let update = self.groups.stepped_down(reader);
        self.update(update, effects);
    }

    /// Adds one that takes messages: it reads from an offset on, and takes none below another one.
    pub(super) fn consume(
        &mut self,
        (consumer, outlet): (ConsumerId, Outlet),
        settings: ConsumerSettings,
        (at, first): (u64, u64),
        filter: Option<Matcher>,
        effects: &mut Vec<Effect<Ends>>,
    ) {
        self.consumers
            .add(consumer, outlet.clone(), settings, (at, first), filter);
        // Its credit is its prefetch, which counts messages.
        let (reader, credit) = (consumer, u32::MAX);
        let attach = ReadRequest::Attach {
            reader,
            outlet,
            at,
            credit,
        };
        self.read(attach, effects);
    }

    /// One that takes messages ends; false if there is none of this name.
    pub(super) fn cancel(&mut self, consumer: ConsumerId, effects: &mut Vec<Effect<Ends>>) -> bool {
        let was_there = self.consumers.remove(consumer);
        if was_there {
            self.read(ReadRequest::Detach { reader: consumer }, effects);
        }
        was_there
    }

    /// Something else is so of one that takes messages.
    pub(super) fn change(&mut self, consumer: ConsumerId, change: impl FnOnce(&mut Subscriber<Ends>)) {
        self.consumers.change(consumer, change);
    }

    /// See [`Consumers::loaded`].
    pub(super) fn loaded(&mut self, loaded: Loaded, end: u64) -> Option<Outlet> {
        self.consumers.loaded(loaded, end)
    }

    /// Those who take messages are given what they may have.
    pub(super) fn serve(&mut self, log: &Arc<StreamLog>, stream: &str, effects: &mut Vec<Effect<Ends>>) {
        for reader in self.consumers.ids() {
            while let Some(next) = self.consumers.go_on(reader, log, stream, effects) {
                let chunks = 0;
                self.read(ReadRequest::Sent { reader, next, chunks }, effects);
            }
        }
    }

    /// See [`Reading::retract`].
    pub(super) fn retract(&mut self, below: u64) {
        self.reading.retract(below);
    }

    /// Everything below this offset may be read now.
    pub(super) fn commit(&mut self, below: u64, effects: &mut Vec<Effect<Ends>>) {
        let mut ordered = Vec::new();
        self.reading.commit(below, &mut ordered);
        self.tell(ordered, effects);
    }

    /// The groups as they are.
    pub(super) fn shown_groups(&self) -> &Groups {
        &self.groups
    }

    /// The groups. What comes of it for readers is to be [told](Self::tell_active).
    pub(super) fn groups(&mut self) -> &mut Groups {
        &mut self.groups
    }

    /// What readers of other nodes are to be told.
    pub(super) fn take_far(&mut self) -> Vec<Update> {
        std::mem::take(&mut self.far)
    }

    /// Another node decides: of those who publish here and are in groups these are told, and look for it.
    pub(super) fn end_watches(&mut self, ends: impl Fn(ConsumerId) -> bool, effects: &mut Vec<Effect<Ends>>) {
        let mut ordered = Vec::new();
        self.reading.end_watches(ends, &mut ordered);
        for order in &ordered {
            if let ReadEffect::Gone { reader, .. } = order {
                self.outlets.remove(reader);
            }
        }
        self.tell(ordered, effects);
    }

    /// The stream is gone.
    pub(super) fn end(&mut self, effects: &mut Vec<Effect<Ends>>) {
        self.consumers = Consumers::default();
        self.groups = Groups::default();
        self.outlets.clear();
        let mut ordered = Vec::new();
        self.reading.end(&mut ordered);
        self.tell(ordered, effects);
    }

    fn read(&mut self, request: ReadRequest<Ends>, effects: &mut Vec<Effect<Ends>>) {
        let mut ordered = Vec::new();
        self.reading.handle(request, &mut ordered);
        self.tell(ordered, effects);
    }

    /// Tells each what it may read, or that there is nothing any more.
    fn tell(&mut self, ordered: Vec<ReadEffect<Ends>>, effects: &mut Vec<Effect<Ends>>) {
        for order in ordered {
            match order {
                ReadEffect::Read {
                    reader, from, below, ..
                } if self.consumers.has(reader) => self.consumers.may_read(reader, from, below),
                ReadEffect::Read { reader, outlet, .. } => {
                    let consumer = reader;
                    effects.push(Effect::Readable { outlet, consumer });
                }
                ReadEffect::Gone { reader, outlet } => {
                    let consumer = reader;
                    effects.push(Effect::CancelConsumer { outlet, consumer });
                }
            }
        }
    }

    /// Tells one whether it is its group's active one.
    fn update(&mut self, update: Option<Update>, effects: &mut Vec<Effect<Ends>>) {
        update
            .into_iter()
            .for_each(|update| self.tell_active(update, effects));
    }

    /// The same, whoever says so.
    pub(super) fn tell_active(&mut self, update: Update, effects: &mut Vec<Effect<Ends>>) {
        let Update { reader, active } = update;
        match self.outlets.get(&reader).cloned() {
            Some(outlet) => effects.push(Effect::Active {
                outlet,
                consumer: reader,
                active,
            }),
            None => self.far.push(update),
        }
    }
}
