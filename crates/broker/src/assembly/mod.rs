//! Opens a broker and closes it: what recovery has found gets its threads, and who is below is told whom to tell.

pub mod erase;
mod founding;
pub mod repair;
pub mod resources;

use crate::assembly::resources::QUEUE_MEMORY;
use crate::broker::Broker;
use crate::clients::access::THE_NODE;
use crate::clients::alarms::Monitor;
use crate::groups::NodeId;
use crate::groups::membership::Clustered;
use crate::messages::dead_letters::DeadLetterPublisher;
use crate::messages::own_exchanges::publish_notice;
use crate::node::LogFollower;
use crate::options::{DISK_FREE_LIMIT, OpenError, Options};
use crate::queues::JournalOf;
use crate::queues::{DeadLetters, Handle, OtherCopies, Paging, Queue, QueueEvents};
use crate::recovery;
use crate::topology::Told;
use model::QueueId;
use queue::stream::GroupWord;
use std::sync::{Arc, OnceLock, Weak};
use storage::{JournalId, Position};

/// Follows the queues. It is there before the broker is, since recovery makes queues: what dies then waits for the
/// publisher's thread.
#[derive(Default)]
struct Follower {
    dead_letters: DeadLetterPublisher,
    broker: OnceLock<Weak<Broker>>,
}

impl QueueEvents for Follower {
    fn dead_letters(&self, letters: DeadLetters) {
        self.dead_letters.send(letters);
    }

    fn reached(&self) {
        self.dead_letters.try_again();
    }

    fn led(&self, queue: &Arc<Queue>) {
        if let Some(broker) = self.broker.get().and_then(Weak::upgrade) {
            broker.topology().led(queue);
        }
    }

    fn lacks_chunks(&self, stream: &Arc<Queue>, from: u64, asked: usize) -> OtherCopies {
        let broker = self.broker.get().and_then(Weak::upgrade);
        let ask = |broker: Arc<Broker>| broker.topology().ask_for_chunks(stream.id, from, asked);
        broker.map(ask).unwrap_or_default()
    }

    fn say_of_group(&self, stream: QueueId, node: NodeId, said: GroupWord) -> bool {
        let broker = self.broker.get().and_then(Weak::upgrade);
        broker.is_some_and(|broker| broker.topology().say_of_group(stream, node, said))
    }

    fn others_of_stream(&self, stream: QueueId) -> Vec<NodeId> {
        let broker = self.broker.get().and_then(Weak::upgrade);
        broker.map_or_else(Vec::new, |broker| broker.topology().others_of_stream(stream))
    }

    fn unused(&self, queue: QueueId, then: Box<dyn FnOnce() + Send>) {
        match self.broker.get().and_then(Weak::upgrade) {
            Some(broker) => broker.delete_unused_queue(queue, then),
            None => then(),
        }
    }
}

impl Broker {
    /// Opens the data directory, replays the log, and is ready for sessions.
    ///
    /// # Errors
    /// The data directory is locked, not writable or damaged; the text says what to do.
    pub fn open(options: Options) -> Result<Arc<Self>, OpenError> {
        Self::open_as(options, None)
    }

    /// The same for a node that is to be one of several. One that has to begin the cluster is alone until
    /// [`Self::begin_cluster`]; any other is a member when this returns, for which it waits for as long as its companion does.
    ///
    /// # Errors
    /// As [`Self::open`]; or the node is none of the cluster, or not any more.
    pub fn open_clustered(options: Options, clustered: Clustered) -> Result<Arc<Self>, OpenError> {
        Self::open_as(options, Some(clustered))
    }

    fn open_as(options: Options, clustered: Option<Clustered>) -> Result<Arc<Self>, OpenError> {
        let follower = Arc::<Follower>::default();
        let (recovered, cluster) = recovery::recover(&options, clustered.as_ref(), follower.clone())?;
        let broker = Arc::new(Self::new(options, recovered, QUEUE_MEMORY.0));
        match &cluster {
            Some(running) => broker.runs(running),
            None => drop(broker.founds(clustered)),
        }
        let limit = broker.options().disk_free_limit;
        if limit < DISK_FREE_LIMIT {
            tracing::warn!(
                area = "alarm",
                "disk_free_limit is {limit} bytes: that is less than the {DISK_FREE_LIMIT} that the log may take before publishers are blocked, so it \
                 may have to wait for space"
            );
        }
        let _ = follower.broker.set(Arc::downgrade(&broker));
        broker.topology().tell(Told {
            events: broker.events().clone(),
            stats: broker.stats().clone(),
        });
        let log_follower: Weak<Self> = Arc::downgrade(&broker);
        broker.node().is_followed_by(log_follower);
        broker.topology().finish_deletions();
        for vhost in broker.view().vhosts() {
            broker.topology().warn_of_slow_policies(&vhost.name);
        }
        if broker.options().create_defaults {
            broker.create_defaults()?;
        }
        broker.start(&follower).map_err(OpenError::Thread)?;
        // Whoever ends before may still ask the others.
        broker.at_close(move || drop(cluster));
        Ok(broker)
    }

    fn start(self: &Arc<Self>, follower: &Arc<Follower>) -> std::io::Result<()> {
        let (node, events, follower) = (self.node(), self.events().clone(), follower.clone());
        node.start_timers()?;
        follower.dead_letters.start(self, node.files())?;
        let broker = Arc::downgrade(self);
        let publish = move |notice: &_| {
            if let Some(broker) = broker.upgrade() {
                publish_notice(&broker, notice);
            }
        };
        events.notices.start(node.world.as_ref(), publish)?;
        self.look_at_resources();
        let broker = Arc::downgrade(self);
        let look = move || broker.upgrade().map(|it| it.look_at_resources()).is_some();
        let monitor = Monitor::start(&node.world, look)?;
        let of_node = node.clone();
        self.at_close(move || {
            drop(monitor);
            of_node.timers.stop();
            events.notices.stop();
            follower.dead_letters.stop();
        });
        Ok(())
    }

    /// A node without users gets its default virtual host and user.
    ///
    /// # Errors
    /// A default permission is no regular expression, or the system has no randomness.
    pub fn create_defaults(&self) -> Result<(), OpenError> {
        if self.view().users().next().is_some() {
            return Ok(());
        }
        let password = self.hash_password(self.options().default_password.as_bytes());
        password
            .and_then(|password| self.topology().seed(self.options(), password))
            .and_then(|()| {
                let by = self.administrator(THE_NODE);
                by.apply_defaults(&self.options().default_vhost)
            })
            .map_err(OpenError::Defaults)
    }

    /// Ends cleanly: everything appended is synced. Close all front ends first.
    pub fn close(&self) {
        // A thread that has to end before the log may be reading what waits for space to be written.
        self.node().log.close_soon();
        self.take_closers().into_iter().for_each(|close| close());
        self.caches().write(true);
        let node = self.node();
        node.streams.stop();
        node.pager.stop();
        if let Err(error) = node.log.close() {
            tracing::error!(area = "log", "the log could not be closed cleanly: {error}");
        }
        let (syncs, confirmed) = (node.log.syncs(), node.confirmed());
        tracing::info!(
            area = "log",
            "the write-ahead log was synced {syncs} times since the start, {confirmed} publishes were confirmed after a sync"
        );
    }

    fn checkpoint_by(self: &Arc<Self>, checkpoint: impl FnOnce(&Self) + Send + 'static) {
        let broker = Arc::downgrade(self);
        self.node().pager.write(move |_| {
            if let Some(broker) = broker.upgrade() {
                checkpoint(&broker);
            }
        });
    }
}

impl LogFollower for Broker {
    fn log_failed(&self) {
        self.raise_log_failed();
    }

    fn log_stalled(&self, stalled: bool) {
        self.set_log_stalled(stalled);
    }

    fn checkpoint(self: Arc<Self>, journals: Vec<JournalId>, before: Position) {
        if let Some(groups) = self.groups() {
            groups.reclaim(&journals, before);
        }
        let pager = &self.node().pager;
        for journal in journals {
            match JournalOf::known(journal) {
                Some(JournalOf::Catalog) => self.checkpoint_by(|broker| broker.topology().checkpoint()),
                Some(JournalOf::Cache(cache)) => {
                    self.checkpoint_by(move |broker| broker.restate_cache(cache))
                }
                Some(JournalOf::Queue(_, id)) => match self.queues().get(id) {
                    Some(Handle::Here(queue)) => Paging::Checkpoint { queue, before }.send(pager),
                    // What is left of it here stays until it is deleted.
                    Some(Handle::Elsewhere(..) | Handle::WithoutOwner(_) | Handle::Shared(_)) => {}
                    // It was deleted: whatever was unknown at the start was set aside.
                    None => self.node().log.forget(journal),
                },
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;
    use std::sync::mpsc::channel;
    use storage::faulty::FaultyFs;
    use storage::{Kind, LogOptions, System};

    #[test]
    fn a_node_closes_while_somebody_reads_what_waits_for_space_to_be_written() {
        let files = FaultyFs::new();
        let options = Options {
            world: System::over(Arc::new(files.clone())),
            log: LogOptions {
                file_bytes: 64 << 10,
                make_ahead: false,
                ..LogOptions::default()
            },
            ..Options::new("/data")
        };
        let broker = Broker::open(options).unwrap();
        let node = broker.node().clone();
        files.set_no_descriptor(true);
        let journal = JournalId::new(Kind::QUEUE, 1);
        let at = node.log.append(|batch| {
            batch.await_sync();
            batch.record(journal, |out| out.resize(out.len() + (128 << 10), 7))
        });
        while !broker.log_events().is_stalled() {
            std::thread::yield_now();
        }
        let (reading, begun) = channel();
        let log = node.log.clone();
        node.pager.read(move |_| {
            let _ = reading.send(());
            let _ = log.read(at);
        });
        begun.recv().unwrap();
        broker.close();
    }
}
