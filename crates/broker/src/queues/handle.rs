//! A queue as the rest of the broker sees it, wherever its messages are: something that takes requests.
//!
//! Every queue that the catalog knows has a handle. That there is none means that the queue is deleted, and nothing else.

use super::streams::is_of_copy;
use super::{Queue, Remote, Request};
use crate::clients::outbox::Question;
use crate::clients::pressure::Pressure;
use catalog::{NodeId, QueueKind, View};
use model::QueueId;
use queue::stream::{Request as Ask, StreamRequest};
use std::sync::Arc;

/// A queue. Cheap to clone.
#[derive(Clone)]
pub enum Handle {
    /// It is on this node.
    Here(Arc<Queue>),
    /// It is on another node, which can be reached.
    Elsewhere(Arc<catalog::Queue>, Arc<dyn Remote>),
    /// Nobody who has its messages can be reached.
    WithoutOwner(Arc<catalog::Queue>),
    /// Several nodes have it.
    Shared(Arc<Shared>),
}

/// A queue that several nodes have. Clients of all of them reach it in one way, whoever leads it.
#[derive(Clone)]
pub struct Shared {
    pub known: Arc<catalog::Queue>,
    /// The way to whoever leads it; nobody's, before this node has joined the others.
    pub remote: Option<Arc<dyn Remote>>,
    /// This node's copy, if it has one.
    pub replica: Option<Arc<Queue>>,
    /// The copy of this life is damaged, and is never opened again.
    pub damaged: Option<u32>,
}

impl Shared {
    /// Who leads it, as this node's copy knows.
    pub fn leader(&self) -> Option<NodeId> {
        let leader = self.replica.as_ref()?.replica()?.leader()?;
        Some(NodeId(leader.0.into()))
    }

    /// This node's copy, if that answers the request: of a stream each node that has a copy serves those who read.
    fn read_here(&self, request: &Request) -> Option<&Arc<Queue>> {
        let is_read = self.known.kind == QueueKind::Stream && is_of_copy(request);
        self.replica.as_ref().filter(|_| is_read)
    }
}

impl Handle {
    /// Its id.
    #[inline]
    pub fn id(&self) -> QueueId {
        match self {
            Self::Here(queue) => queue.id,
            Self::Elsewhere(known, _) | Self::WithoutOwner(known) => known.id,
            Self::Shared(shared) => shared.known.id,
        }
    }

    /// What it is.
    pub fn kind(&self) -> QueueKind {
        match self {
            Self::Here(queue) => queue.kind(),
            Self::Elsewhere(known, _) | Self::WithoutOwner(known) => known.kind,
            Self::Shared(shared) => shared.known.kind,
        }
    }

    /// Its name; the exchange's, if it is what an exchange keeps for itself.
    pub fn name(&self) -> &Arc<str> {
        match self {
            Self::Here(queue) => &queue.name,
            Self::Elsewhere(known, _) | Self::WithoutOwner(known) => &known.name,
            Self::Shared(shared) => &shared.known.name,
        }
    }

    /// Its virtual host's name.
    pub fn vhost(&self) -> &Arc<str> {
        match self {
            Self::Here(queue) => &queue.vhost,
            Self::Elsewhere(known, _) | Self::WithoutOwner(known) => &known.vhost,
            Self::Shared(shared) => &shared.known.vhost,
        }
    }

    /// The queue, if it is decided on this node.
    pub fn here(&self) -> Option<&Arc<Queue>> {
        self.copy().filter(|queue| queue.is_led_here())
    }

    /// What this node has of it, whoever decides.
    pub fn copy(&self) -> Option<&Arc<Queue>> {
        match self {
            Self::Here(queue) => Some(queue),
            Self::Shared(shared) => shared.replica.as_ref(),
            Self::Elsewhere(..) | Self::WithoutOwner(_) => None,
        }
    }

    /// True if nobody who has its messages can be reached.
    pub fn is_without_owner(&self) -> bool {
        matches!(self, Self::WithoutOwner(_))
    }

    /// The same, and they never will be: they were gone with the node's run, of which it is known that it has ended. A node that
    /// is merely not reached may still have them.
    pub fn is_lost_for_good(&self, view: &View) -> bool {
        let Self::WithoutOwner(known) = self else {
            return false;
        };
        let run = known.lifetime.incarnation();
        run.is_some_and(|run| !view.runs(run))
    }

    /// Has the request handled by whoever turns the queue.
    #[inline]
    pub fn submit(&self, request: Request) {
        match self {
            Self::Here(queue) => queue.submit_here(request),
            Self::Elsewhere(known, remote) => remote.submit(known.id, request),
            Self::WithoutOwner(_) => Self::decline(request),
            Self::Shared(shared) => match (shared.read_here(&request), &shared.remote) {
                (Some(copy), _) => copy.submit(request),
                (None, Some(remote)) => remote.submit(shared.known.id, request),
                (None, None) => Self::decline(request),
            },
        }
    }

    /// The same for a request that is a question: see [`Question`].
    pub fn ask(&self, question: Question, request: Request) {
        match self {
            Self::Here(queue) => queue.ask(question, request),
            Self::Shared(shared) => match shared.read_here(&request) {
                Some(copy) => copy.ask(question, request),
                None => self.submit(request),
            },
            Self::Elsewhere(..) | Self::WithoutOwner(_) => self.submit(request),
        }
    }

    /// A reason to slow down for those who publish to this queue.
    #[inline]
    pub fn pressure(&self) -> Option<Pressure> {
        match self {
            Self::Here(queue) => queue.pressure(),
            Self::Elsewhere(known, remote) => remote.pressure(known.id),
            Self::WithoutOwner(_) => None,
            Self::Shared(shared) => shared.remote.as_ref()?.pressure(shared.known.id),
        }
    }

    /// See [`Queue::compares`]; nobody but its own node knows that of a queue.
    pub(crate) fn compares(&self) -> bool {
        self.copy().is_none_or(|queue| queue.compares())
    }

    /// Answers in the place of a queue that nobody can reach: what is published to it is refused, never taken for safe.
    #[cold]
    pub fn decline(request: Request) {
        let reply = match request {
            Request::Enqueue {
                receipt: Some(receipt),
                ..
            } => {
                let (outbox, event) = receipt.into_unreached();
                return outbox.send(event);
            }
            Request::Stream(request) => match *request {
                StreamRequest::Machine(Ask::Publish {
                    receipt: Some(receipt),
                    ..
                }) => {
                    let (outbox, event) = receipt.into_unreached();
                    return outbox.send(event);
                }
                StreamRequest::Machine(Ask::Sequence { reply, .. } | Ask::Offset { reply, .. }) => reply,
                _ => return,
            },
            Request::Consume { reply, .. }
            | Request::ConsumeFrom { reply, .. }
            | Request::Get { reply, .. }
            | Request::Recall { reply, .. }
            | Request::TakeOut { reply, .. }
            | Request::Purge { reply }
            | Request::Use { reply: Some(reply) }
            | Request::MayRetire { reply, .. }
            | Request::Cancel {
                reply: Some(reply), ..
            }
            | Request::Pause {
                reply: Some(reply), ..
            } => reply,
            _ => return,
        };
        reply.outbox.send(reply.answered(None));
    }
}

impl From<Arc<Queue>> for Handle {
    fn from(queue: Arc<Queue>) -> Self {
        Self::Here(queue)
    }
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queue '{}' in vhost '{}'", self.name(), self.vhost())
    }
}
