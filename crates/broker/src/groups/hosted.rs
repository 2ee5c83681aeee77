//! A replicated machine with its inbox: what the groups of a node tell, and what is asked of it.

use super::host::ReplicatedHost;
use super::node_groups::{Member, News, NodeGroups};
use crate::node::ends::Ends;
use cluster::{GroupId, MemberId};
use model::{Index, QueueSettings, Timestamp};
use queue::{Effect, QueueMachine, Request};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What carries out what the machine orders. Called under the host's lock, so that its orders keep their order: it asks
/// nothing of the same machine.
pub type Act = Box<dyn Fn(Effect<Ends>) + Send + Sync>;

/// A machine of which this node has a copy, turned by whoever brings it something. A queue that leads delivers nothing
/// before its owner has told it which nodes to hear ([`Request::AwaitNodes`]).
pub struct Hosted<M: QueueMachine<Ends>> {
    myself: Weak<Self>,
    groups: Arc<NodeGroups>,
    host: Mutex<ReplicatedHost<M>>,
    inbox: Mutex<Vec<News>>,
    mail: AtomicBool,
    /// Its next machine is being made.
    replaying: AtomicBool,
    act: Act,
}

impl<M: QueueMachine<Ends> + Send + 'static> Hosted<M>
where
    M::Record: Send,
{
    /// An empty machine, to which its group comes from its first entry on.
    pub fn new(settings: QueueSettings, groups: Arc<NodeGroups>, group: GroupId, act: Act) -> Arc<Self> {
        Arc::new_cyclic(|myself| Self {
            myself: myself.clone(),
            host: Mutex::new(ReplicatedHost::new(settings, groups.clone(), group)),
            groups,
            inbox: Mutex::default(),
            mail: AtomicBool::new(false),
            replaying: AtomicBool::new(false),
            act,
        })
    }

    /// Has the machine decide this.
    ///
    /// # Errors
    /// It does not decide here; whoever asks asks its leader.
    #[allow(
        clippy::result_large_err,
        reason = "the caller has made it, and sends it elsewhere"
    )]
    pub fn submit(&self, now: Timestamp, request: Request<Ends>) -> Result<(), Request<Ends>> {
        let mut host = self.lock();
        let taken = host.handle(now, request);
        host.commit(&mut |effect| (self.act)(effect));
        drop(host);
        self.look();
        self.groups.turn();
        taken
    }

    /// Whether it decides here.
    pub fn leads(&self) -> bool {
        self.with(|host| host.leads())
    }

    /// Who decides, as far as this node knows.
    pub fn leader(&self) -> Option<MemberId> {
        self.with(|host| host.leader())
    }

    /// Up to here it has what is committed; `None` while its next machine is being made.
    pub fn applied(&self) -> Option<Index> {
        self.with(|host| host.applied())
    }

    /// Looks at the machine between two turns; `None` while its next one is being made.
    pub fn inspect<T>(&self, look: impl FnOnce(&M) -> T) -> Option<T> {
        self.with(|host| host.machine().map(look))
    }

    /// Looks at the host. Who found it locked meanwhile has left something in the inbox.
    fn with<T>(&self, look: impl FnOnce(&ReplicatedHost<M>) -> T) -> T {
        let found = look(&self.lock());
        self.look();
        self.groups.turn();
        found
    }

    fn lock(&self) -> MutexGuard<'_, ReplicatedHost<M>> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has it take what is in the inbox. Whoever has the host's lock looks after letting go.
    fn look(&self) {
        while self.mail.load(Ordering::SeqCst) {
            let Ok(mut host) = self.host.try_lock() else {
                return;
            };
            self.mail.store(false, Ordering::SeqCst);
            let news = std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
            host.take(news, &mut |effect| (self.act)(effect));
            self.replay(&host);
        }
    }

    /// Reads its next machine from the log, on a thread that may wait for the disk. If that fails, the next news try again.
    fn replay(&self, host: &ReplicatedHost<M>) {
        let Some(replay) = host.replay() else { return };
        let Some(hosted) = self.myself.upgrade() else {
            return;
        };
        if self.replaying.swap(true, Ordering::SeqCst) {
            return;
        }
        self.groups.node().pager.read(move |files| {
            let made = replay.run(&files.log);
            hosted.replaying.store(false, Ordering::SeqCst);
            match made {
                Ok(machine) => hosted
                    .lock()
                    .replayed(machine, &mut |effect| (hosted.act)(effect)),
                Err(error) => tracing::error!(area = "groups", "a queue's copy cannot be read anew: {error}"),
            }
            hosted.look();
            hosted.groups.turn();
        });
    }
}

impl<M: QueueMachine<Ends> + Send + 'static> Member for Hosted<M>
where
    M::Record: Send,
{
    fn tell(&self, news: Vec<News>) {
        self.inbox
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(news);
        self.mail.store(true, Ordering::SeqCst);
    }

    fn turn(self: Arc<Self>) {
        self.look();
    }
}
