//! Deleting what is much, in parts, so that nobody who asks the catalog waits long.

use super::decision::{Answered, Decision};
use super::{Asker, Topology};
use crate::clients::outbox::Ticket;
use crate::node::promise::Promise;
use catalog::{Answer, NodeConnection, Refusal, RefusalKind, Request};
use model::QueueId;
use std::sync::Arc;

/// How many bindings of a queue are taken away at a time.
const BINDINGS_PART: usize = 64;

/// How many exclusive queues of a connection that is gone are deleted at a time, with their bindings.
const QUEUES_PART: usize = 64;

/// Something that is deleted in parts.
pub struct Deletion {
    of: Doomed,
    /// What is done once it is gone, or cannot be deleted: with the last answer.
    then: Box<dyn FnOnce(Answered) + Send>,
    /// The answer to what was asked last, if that came later than the question.
    answered: Option<Answered>,
}

/// What is deleted in parts.
enum Doomed {
    /// A queue that has many bindings.
    Queue {
        id: QueueId,
        /// Who gets the ticket when the queue is gone.
        asker: Asker,
        /// Its bindings are gone.
        is_bare: bool,
    },
    /// The exclusive queues of a connection that is gone.
    ExclusiveTo(NodeConnection),
    /// A queue that nobody uses. Whoever waits for its end is told with the first answer.
    Unused {
        id: QueueId,
        told: Option<Box<dyn FnOnce() + Send>>,
    },
}

impl Doomed {
    fn next_part(&self) -> Request {
        match *self {
            Self::Queue {
                id, is_bare: false, ..
            } => Request::ClearBindings {
                id,
                at_most: BINDINGS_PART,
            },
            Self::Queue { id, .. } | Self::Unused { id, .. } => Request::DeleteQueue { id },
            Self::ExclusiveTo(connection) => Request::CloseConnection {
                connection,
                at_most: QUEUES_PART,
            },
        }
    }

    fn label(&self) -> String {
        match self {
            Self::Queue { id, .. } | Self::Unused { id, .. } => format!("queue {id}"),
            Self::ExclusiveTo(it) => format!("exclusive queues of connection {}", it.connection.0),
        }
    }
}

impl Deletion {
    /// A queue with its bindings, of which nothing is gone yet.
    pub fn of_queue(id: QueueId, asker: Asker, then: impl FnOnce(Answered) + Send + 'static) -> Self {
        let is_bare = false;
        Self::new(Doomed::Queue { id, asker, is_bare }, then)
    }

    /// The exclusive queues of a connection.
    pub fn of_exclusive_queues(
        connection: NodeConnection,
        then: impl FnOnce(Answered) + Send + 'static,
    ) -> Self {
        Self::new(Doomed::ExclusiveTo(connection), then)
    }

    /// A queue that nobody uses. `told` is called when it is gone, or nobody can decide that for now.
    pub fn of_unused_queue(id: QueueId, told: Box<dyn FnOnce() + Send>) -> Self {
        let told = Some(told);
        Self::new(Doomed::Unused { id, told }, drop)
    }

    /// The queue that is deleted because nobody uses it, if that is why.
    pub fn unused_queue(&self) -> Option<QueueId> {
        match self.of {
            Doomed::Unused { id, .. } => Some(id),
            _ => None,
        }
    }

    fn new(of: Doomed, then: impl FnOnce(Answered) + Send + 'static) -> Self {
        let (then, answered) = (Box::new(then), None);
        Self { of, then, answered }
    }

    /// The same, to go on with this answer.
    fn with(mut self, answered: Answered) -> Self {
        self.answered = Some(answered);
        self
    }

    /// Takes an answer: true if nothing is left to be asked. `is_late` says that others decide: if they can't, somebody who waits
    /// is told, and for a connection that is gone or a queue that nobody uses they are asked again, since nobody else would ask.
    fn is_over(&mut self, answered: &Answered, is_late: bool) -> bool {
        if let Doomed::Unused { told, .. } = &mut self.of
            && let Some(told) = told.take()
        {
            told();
        }
        match (&mut self.of, answered.as_ref().map(|done| &done.value)) {
            (Doomed::ExclusiveTo(_) | Doomed::Unused { .. }, Err(refusal))
                if is_late && refusal.kind() == RefusalKind::Internal =>
            {
                return false;
            }
            (_, Err(refusal)) => warn(&self.of.label(), refusal),
            (Doomed::Queue { is_bare, .. }, Ok(answer)) if !*is_bare => {
                *is_bare = *answer != Answer::Cleared(BINDINGS_PART);
                return false;
            }
            (Doomed::Queue { .. } | Doomed::Unused { .. }, Ok(_)) => {}
            (Doomed::ExclusiveTo(_), Ok(answer)) => return *answer != Answer::Cleared(QUEUES_PART),
        }
        true
    }

    /// Who is named where it is told that something is gone.
    fn actor(&self) -> Option<Arc<str>> {
        match &self.of {
            Doomed::Queue { asker, .. } => Some(asker.user.clone()),
            Doomed::ExclusiveTo(_) | Doomed::Unused { .. } => None,
        }
    }

    /// True if the part that comes next is as small as the last one was: it is taken at once.
    fn is_small(&self) -> bool {
        matches!(self.of, Doomed::Queue { is_bare: true, .. })
    }
}

fn warn(what: &str, refusal: &Refusal) {
    tracing::error!(area = "catalog", "{what} could not be deleted: {refusal}");
}

impl Topology {
    /// Goes on with a deletion: some queues and bindings at a time. Gives back what is left to do, unless the answer comes later:
    /// then `go_on` is called with that. If the node ends in between, the next start does the rest.
    pub fn delete_a_part(
        &self,
        mut deletion: Deletion,
        go_on: impl FnOnce(Deletion) + Send + 'static,
    ) -> Option<Deletion> {
        loop {
            let late = deletion.answered.take();
            let is_late = late.is_some();
            let answered = match late {
                Some(answered) => answered,
                None => match self.ask(None, deletion.actor(), || Ok(()), deletion.of.next_part()) {
                    Decision::Made(answered) => answered,
                    awaited => {
                        awaited.then(move |answered| go_on(deletion.with(answered)));
                        return None;
                    }
                },
            };
            if deletion.is_over(&answered, is_late) {
                self.end_deletion(deletion, answered);
                return None;
            }
            if !deletion.is_small() {
                return Some(deletion);
            }
        }
    }

    /// Tells the answer first, and then that it is durable: whoever learned of the ticket from the answer would wait
    /// for ever for one that came before.
    fn end_deletion(&self, deletion: Deletion, mut answered: Answered) {
        let mut promise = None;
        if let (Doomed::Queue { asker, .. }, Ok(done)) = (deletion.of, &mut answered) {
            let ticket = Ticket(self.node.number());
            done.durable = Some(ticket);
            promise = Some(Promise::Durable {
                outbox: asker.outbox,
                channel: asker.channel,
                ticket,
            });
        }
        (deletion.then)(answered);
        if let Some(promise) = promise {
            self.node.log.promise(promise);
        }
    }

    /// Deletes a queue for which nobody waits.
    pub fn delete_queue(&self, id: QueueId, then: impl FnOnce() + Send + 'static) {
        self.decide(None, Request::DeleteQueue { id })
            .then(move |answered| match answered {
                Ok(_) => then(),
                Err(refusal) => warn(&format!("queue {id}"), &refusal),
            });
    }

    /// Deletes the queues whose deletion the node's last end came into. Nobody waits for that any more, and nobody must find a
    /// queue that lacks some of its bindings.
    pub fn finish_deletions(&self) {
        for id in self.view().doomed_queues() {
            self.delete_queue(id, move || {
                tracing::info!(
                    area = "catalog",
                    "queue {id} is deleted: its deletion had begun when the node ended"
                );
            });
        }
    }
}
