//! What the table of kinds knows of streams: they are opened, and no journal has anything of them.

use super::copy::CopyHost;
use super::host::StreamHost;
use crate::groups::handover::Whose;
use crate::node::Node;
use crate::node::journal::NodeLog;
use crate::queues::{Missing, QueueHost, QueueJournal, QueueType, Replaying};
use model::{Block, Index, QueueSettings};
use queue::Status;
use queue::store::Place;
use std::sync::Arc;
use storage::{JournalId, Kind, Position};

/// Queues that keep their messages in files of their own.
pub struct OfFiles;

impl QueueType for OfFiles {
    fn journal(&self) -> Kind {
        Kind::STREAM
    }

    fn start(&self, settings: QueueSettings, _: QueueJournal) -> Box<dyn QueueHost> {
        Box::new(StreamHost::without_files("", &settings))
    }

    fn open(
        &self,
        known: &catalog::Queue,
        settings: &QueueSettings,
        node: &Arc<Node>,
    ) -> Option<Box<dyn QueueHost>> {
        Some(Box::new(StreamHost::open(known, settings, node)))
    }

    fn beside_member(
        &self,
        known: &catalog::Queue,
        settings: &QueueSettings,
        node: &Arc<Node>,
    ) -> Box<dyn QueueHost> {
        Box::new(CopyHost::open(known, settings, node))
    }

    fn replay(&self, _: QueueSettings) -> Box<dyn Replaying> {
        Box::new(Nothing)
    }

    fn block(&self, _: &[u8]) -> Option<Arc<Block>> {
        None
    }
}

/// The journal of a stream, in which nothing stands.
struct Nothing;

impl Replaying for Nothing {
    fn record(&mut self, _: Index, _: Position, _: &[u8]) -> Option<()> {
        None
    }

    fn local(&mut self, _: Position, _: &[u8]) -> Option<()> {
        None
    }

    fn note(&mut self, _: &[u8]) -> Option<()> {
        None
    }

    fn whose(&self) -> Whose {
        Whose::default()
    }

    fn first(&self) -> Option<(Index, Position)> {
        None
    }

    fn missing(&self) -> Missing {
        Missing::default()
    }

    fn status(&self) -> Status {
        Status::default()
    }

    fn places(&self) -> Vec<Place> {
        Vec::new()
    }

    fn taken_over(self: Box<Self>, _: &Arc<NodeLog>, _: JournalId) -> Box<dyn QueueHost> {
        OfFiles.start(QueueSettings::default(), QueueJournal::None)
    }

    fn recovered(self: Box<Self>, _: bool, _: &Arc<NodeLog>, _: JournalId) -> Box<dyn QueueHost> {
        OfFiles.start(QueueSettings::default(), QueueJournal::None)
    }
}
