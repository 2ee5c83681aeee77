//! What exists: the catalog machine's host, and the view that everybody else reads.
//!
//! A change is in force at once and its reply is held until it is durable: the caller gets a ticket. The doors' calls are in
//! `declare`.

use crate::ends::Ends;
use crate::host::Host;
use crate::journal::{Journal, Journaled, LocalJournal};
use crate::node::Node;
use crate::options::Options;
use crate::outbox::{ChannelId, Outbox, Ticket};
use crate::pager::Job;
use crate::promise::Promise;
use crate::queues::{Queue, QueueJournal, Registry};
use catalog::{Answer, Catalog, Effect, Name, PasswordHash, Record, Refusal, Request, View};
use queue::fifo::{Fifo, QueueSettings, Request as QueueRequest};
use std::collections::VecDeque;
use std::sync::{
    Arc, Mutex, PoisonError, RwLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};
use storage::JournalId;

/// A change that was made; if there is a ticket, the reply waits for its `Event::Durable`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done<T> {
    /// What the reply says.
    pub value: T,
    /// What the reply waits for.
    pub durable: Option<Ticket>,
}

impl<T> Done<T> {
    /// The same change with another answer.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Done<U> {
        Done {
            value: f(self.value),
            durable: self.durable,
        }
    }
}

/// Who is told when a change is durable.
pub struct Asker {
    pub outbox: Arc<Outbox>,
    pub channel: ChannelId,
}

/// The catalog's host and the published view.
pub struct Topology {
    host: Mutex<Host<Catalog<u64>, CatalogJournal>>,
    view: RwLock<Arc<View>>,
    generation: AtomicU64,
    queue_memory: AtomicUsize,
    registry: Arc<Registry>,
    node: Arc<Node>,
}

impl Topology {
    /// A host for a machine that was made new or replayed.
    pub fn new(
        machine: Catalog<u64>,
        journal: LocalJournal,
        registry: Arc<Registry>,
        node: Arc<Node>,
    ) -> Self {
        let view = Arc::new(machine.view());
        Self {
            generation: AtomicU64::new(view.generation()),
            view: RwLock::new(view),
            host: Mutex::new(Host::new(
                machine,
                CatalogJournal {
                    journal,
                    node: node.clone(),
                    asker: None,
                    ticket: None,
                    unsynced: Arc::default(),
                },
            )),
            queue_memory: AtomicUsize::new(0),
            registry,
            node,
        }
    }

    /// What exists now; cheap.
    pub fn view(&self) -> Arc<View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Rises whenever the view changes. One load.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// New queues may hold so many bytes in memory (0: the machine's default).
    pub fn set_queue_memory(&self, bytes: usize) {
        self.queue_memory.store(bytes, Ordering::Relaxed);
    }

    /// Has the catalog decide one request. Whoever asks for a channel is told by ticket when a durable change is durable.
    ///
    /// # Errors
    /// What the catalog refused.
    pub fn decide(
        &self,
        asker: Option<Asker>,
        request: impl FnOnce(u64) -> Request<u64>,
    ) -> Result<Done<Answer>, Refusal> {
        self.decide_if(asker, || Ok(()), request)
    }

    /// The same for a request that `permit` may forbid. What RabbitMQ refuses whoever asks is refused before that.
    ///
    /// # Errors
    /// What the catalog or `permit` refused.
    pub fn decide_if(
        &self,
        asker: Option<Asker>,
        permit: impl FnOnce() -> Result<(), Refusal>,
        request: impl FnOnce(u64) -> Request<u64>,
    ) -> Result<Done<Answer>, Refusal> {
        let question = self.node.number();
        let request = request(question);
        request.check()?;
        permit()?;
        let mut answer = None;
        let mut gone = Vec::new();
        let mut host = self.host.lock().unwrap_or_else(PoisonError::into_inner);
        host.journal.asker = asker;
        host.journal.ticket = None;
        host.handle(self.node.now(), request);
        host.commit(|effect, _| match effect {
            Effect::Reply(asked, given) if asked == question => answer = Some(given),
            Effect::Reply(..) | Effect::ExchangeDeleted { .. } => {}
            Effect::QueueCreated(created) => self.create_queue(&created),
            Effect::QueueDeleted { id, .. } => gone.extend(self.registry.remove(id)),
        });
        host.journal.wait_for_earlier();
        let durable = host.journal.ticket.take();
        host.journal.asker = None;
        let view = Arc::new(host.machine.view());
        let generation = view.generation();
        if generation != self.generation() {
            *self.view.write().unwrap_or_else(PoisonError::into_inner) = view;
            self.generation.store(generation, Ordering::Release);
        }
        drop(host);
        gone.into_iter().for_each(|queue| self.drop_queue(&queue));
        match answer {
            Some(answer) => answer.map(|value| Done { value, durable }),
            None => Err(Refusal::Internal {
                reason: "the catalog gave no answer".into(),
            }),
        }
    }
}

impl Topology {
    /// Has the catalog write everything down again, so that the log may use its oldest file again.
    pub fn checkpoint(&self) {
        if let Err(refusal) = self.decide(None, |reply| Request::Checkpoint { reply }) {
            tracing::error!(area = "catalog", "no checkpoint of the catalog: {refusal}");
        }
    }

    /// A node without users gets its default virtual host and user.
    ///
    /// # Errors
    /// A default permission is no regular expression.
    pub fn seed(&self, options: &Options, salt: [u8; 4]) -> Result<(), Refusal> {
        if self.view().users().next().is_some() {
            return Ok(());
        }
        let name: Name = options.default_user.as_str().into();
        let vhost: Name = options.default_vhost.as_str().into();
        let (user, of) = (name.clone(), vhost.clone());
        self.decide(None, |reply| Request::CreateVhost { name: vhost, reply })?;
        let password = Some(PasswordHash::new(salt, options.default_password.as_bytes()));
        let tags = options.default_tags.clone();
        self.decide(None, |reply| Request::PutUser {
            name,
            password,
            tags,
            reply,
        })?;
        let [configure, write, read] = options.default_permissions.clone();
        self.decide(None, |reply| Request::SetPermissions {
            user,
            vhost: of,
            configure,
            write,
            read,
            reply,
        })?;
        Ok(())
    }

    fn create_queue(&self, created: &catalog::Queue) {
        let settings = queue_settings(created);
        let journal = match settings.durable {
            true => {
                let id = JournalId(created.id.0);
                QueueJournal::Local(LocalJournal::new(self.node.log.clone(), id, 1, VecDeque::new()))
            }
            false => QueueJournal::None,
        };
        let host = Host::new(Fifo::<Ends>::new(settings), journal);
        let queue = Queue::new(
            created.id,
            created.vhost.clone(),
            created.name.clone(),
            host,
            self.node.clone(),
        );
        let memory = self.queue_memory.load(Ordering::Relaxed);
        if memory > 0 {
            queue.submit(QueueRequest::Shrink { memory });
        }
        self.registry.insert(queue);
    }

    /// Ends a queue that the catalog no longer knows: consumers are cancelled, its journal and segments go.
    fn drop_queue(&self, queue: &Arc<Queue>) {
        queue.retire();
        self.node.log.forget(JournalId(queue.id.0));
        self.node.pager.send(Job::Remove { queue: queue.id });
    }
}

/// The queue machine's settings from what the catalog keeps.
pub fn queue_settings(known: &catalog::Queue) -> QueueSettings {
    QueueSettings {
        durable: known.survives_restart(),
        auto_delete: known.auto_delete,
        single_active: known.settings.single_active,
        max_length: known.settings.max_length,
        max_length_bytes: known.settings.max_length_bytes,
    }
}

/// The catalog's journal: this node's log, for what is durable.
pub struct CatalogJournal {
    journal: LocalJournal,
    node: Arc<Node>,
    asker: Option<Asker>,
    ticket: Option<Ticket>,
    /// How many batches are not durable yet.
    unsynced: Arc<AtomicUsize>,
}

impl CatalogJournal {
    /// A request that changed nothing found what it asked for; if somebody's change is not durable yet, this may be what it
    /// found, and its reply waits as well.
    fn wait_for_earlier(&mut self) {
        if self.unsynced.load(Ordering::Acquire) == 0 {
            return;
        }
        let promises: Vec<Promise> = self.take_ticket().into_iter().collect();
        if !promises.is_empty() {
            self.journal.append(std::iter::empty::<Record>(), promises);
        }
    }

    /// A ticket for whoever asks and has none yet, and the promise that makes it good.
    fn take_ticket(&mut self) -> Option<Promise> {
        let Asker { outbox, channel } = self.asker.take()?;
        let ticket = Ticket(self.node.number());
        self.ticket = Some(ticket);
        Some(Promise::Durable {
            outbox,
            channel,
            ticket,
        })
    }
}

impl Journal<Catalog<u64>> for CatalogJournal {
    /// Journals the durable records. Replies are not kept back: the caller has the answer at once and a ticket for when it may
    /// be told to the client.
    fn append(&mut self, records: &mut Vec<Record>, _promises: &mut Vec<Effect<u64>>) {
        records.retain(Record::is_durable);
        if records.is_empty() {
            return;
        }
        self.unsynced.fetch_add(1, Ordering::AcqRel);
        let mut promises = vec![Promise::Synced(self.unsynced.clone())];
        promises.extend(self.take_ticket());
        let snapshot = records
            .iter()
            .position(|record| matches!(record, Record::SnapshotStarted));
        let release = snapshot.map(|at| self.journal.next_index() + at as u64);
        self.journal.append(records.drain(..), promises);
        if let Some(before) = release {
            self.journal.release(before);
        }
    }
}

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        Record::encode(self, out);
    }

    /// Nothing of the catalog is read again, but a snapshot's place must be known to cut the log there.
    fn place_is_kept(&self) -> bool {
        matches!(self, Record::SnapshotStarted)
    }
}
