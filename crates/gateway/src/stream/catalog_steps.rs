//! What the catalog is asked for streams and super streams: several steps, each of which may have to wait for other nodes, rights
//! or the disk. What was made is removed again if a later step is refused.

use super::streams::{NewSuperStream, Refused};
use broker::Answer as QueueAnswer;
use broker::{
    Binding, ChannelId, DeclareExchange, DeclareQueue, Deleting, QueueDeletion, QueueQuestion, Refusal,
    RefusalKind, Session, Ticket,
};
use model::table::Table;
use std::collections::{BTreeSet, VecDeque};

/// The most streams of a super stream (RabbitMQ's `stream.max_super_stream_partitions`).
const PARTITIONS_MOST: usize = 1_000;

/// One thing that is asked.
#[derive(Clone, Debug)]
pub enum Step {
    Queue(DeclareQueue),
    Exchange(DeclareExchange),
    Bind {
        source: String,
        stream: String,
        key: String,
        order: usize,
    },
    DeleteQueue(String),
    DeleteExchange(String),
}

/// Steps that belong together.
pub struct Steps {
    rest: VecDeque<Step>,
    /// How to take back what was done, the last thing first.
    undo: VecDeque<Step>,
    refused: Option<Refused>,
    /// What is said once all is done.
    after: Option<Refused>,
    /// What the step under way makes was there before it was tried for the first time.
    was_there: Option<bool>,
    /// What is in force and not durable yet.
    tickets: BTreeSet<Ticket>,
    deletion: Option<QueueDeletion>,
    /// What streams that were made are asked: once they answer, somebody leads them, and they can be published to.
    asked: BTreeSet<QueueQuestion>,
}

impl Steps {
    /// These steps.
    pub fn of(steps: impl IntoIterator<Item = Step>) -> Self {
        Self {
            rest: steps.into_iter().collect(),
            undo: VecDeque::new(),
            refused: None,
            after: None,
            was_there: None,
            tickets: BTreeSet::new(),
            deletion: None,
            asked: BTreeSet::new(),
        }
    }

    /// Makes a stream.
    ///
    /// # Errors
    /// The user may not, or arguments make no sense.
    pub fn create(session: &Session, stream: &str, arguments: &[(&str, &str)]) -> Result<Self, Refused> {
        check_name(stream)?;
        let is_there = session.may_make_stream(stream)?;
        let mut steps = Self::of([declaration(stream, arguments)?]);
        // One that is there has to be as it is wanted, all the same.
        steps.after = is_there.then_some(Refused::Exists);
        Ok(steps)
    }

    /// Makes a super stream.
    ///
    /// # Errors
    /// As for a stream, or the numbers of streams and keys differ.
    pub fn create_super_stream(session: &Session, new: &NewSuperStream<'_>) -> Result<Self, Refused> {
        let count = new.partitions.len();
        new.partitions.iter().try_for_each(|stream| check_name(stream))?;
        check_name(new.name)?;
        if count > PARTITIONS_MOST || count != new.keys.len() {
            return Err(Refused::Precondition);
        }
        let mut is_there = session.may_make_stream(new.name)?;
        for stream in new.partitions {
            is_there |= session.may_make_stream(stream)?;
        }
        if is_there || session.has_exchange(new.name) {
            return Err(Refused::Exists);
        }
        let exchange = Step::Exchange(DeclareExchange {
            name: new.name.into(),
            kind: "direct".into(),
            durable: true,
            arguments: Table::new().with("x-super-stream", true),
            ..DeclareExchange::default()
        });
        let mut steps = vec![exchange];
        for stream in new.partitions {
            steps.push(declaration(stream, new.arguments)?);
        }
        for (order, (stream, key)) in new.partitions.iter().zip(new.keys).enumerate() {
            steps.push(Step::Bind {
                source: new.name.into(),
                stream: (*stream).into(),
                key: (*key).into(),
                order,
            });
        }
        Ok(Self::of(steps))
    }

    /// Takes steps until one has to wait. Says what came of them once all that was done is durable.
    pub fn go_on(&mut self, session: &Session, channel: ChannelId) -> Option<Result<(), Refused>> {
        while self.deletion.is_none()
            && let Some(step) = self.rest.front().cloned()
        {
            match self.take(&step, session, channel) {
                Ok(()) => {
                    session.settle();
                    self.was_there = None;
                    self.rest.pop_front();
                }
                Err(_) if session.must_ask() => return None,
                Err(refusal) => self.refuse(&refusal),
            }
        }
        let waits = self.deletion.is_some() || !self.asked.is_empty();
        let is_done = !waits && self.tickets.is_empty();
        is_done.then(|| self.refused.or(self.after).map_or(Ok(()), Err))
    }

    fn take(&mut self, step: &Step, session: &Session, channel: ChannelId) -> Result<(), Refusal> {
        let durable = match step {
            Step::Queue(declare) => {
                // What others have made is not undone.
                let look = || session.may_make_stream(&declare.name) == Ok(true);
                let is_there = *self.was_there.get_or_insert_with(look);
                let declared = session.declare_queue(channel, declare.clone())?;
                self.asked.extend(declared.value.question);
                if !is_there {
                    self.undo.push_front(Step::DeleteQueue(declare.name.clone()));
                }
                declared.durable
            }
            Step::Exchange(declare) => {
                let is_there = *self
                    .was_there
                    .get_or_insert_with(|| session.has_exchange(&declare.name));
                let durable = session.declare_exchange(channel, declare.clone())?.durable;
                if !is_there {
                    self.undo.push_front(Step::DeleteExchange(declare.name.clone()));
                }
                durable
            }
            Step::Bind {
                source,
                stream,
                key,
                order,
            } => {
                let binding = Binding {
                    source,
                    destination: stream,
                    routing_key: key.as_bytes(),
                    arguments: Table::new().with("x-stream-partition-order", *order as i64),
                };
                session.bind_queue(channel, binding)?.durable
            }
            Step::DeleteQueue(name) => {
                let deleting = session.delete_queue(channel, name, false, false)?;
                return self.deleting(deleting);
            }
            Step::DeleteExchange(name) => session.delete_exchange(channel, name, false)?.durable,
        };
        self.tickets.extend(durable);
        Ok(())
    }

    fn deleting(&mut self, deleting: Deleting) -> Result<(), Refusal> {
        match deleting {
            Deleting::Done(deleted) => self.tickets.extend(deleted.durable),
            Deleting::Asked(deletion) => self.deletion = Some(deletion),
        }
        Ok(())
    }

    /// A step is refused: what was done before is undone, and no step is taken any more.
    fn refuse(&mut self, refusal: &Refusal) {
        tracing::warn!(
            area = "connection",
            "a client's streams are not as it wants: {refusal}"
        );
        self.rest.pop_front();
        if self.refused.is_some() {
            // An undoing was refused. The next one may succeed.
            return;
        }
        self.refused = Some(code(refusal));
        self.rest = std::mem::take(&mut self.undo);
    }

    /// An answer has come; false if it is somebody else's.
    pub fn answered(
        &mut self,
        session: &Session,
        channel: ChannelId,
        question: QueueQuestion,
        answer: Option<QueueAnswer>,
    ) -> bool {
        if self.asked.remove(&question) {
            return true;
        }
        let Some(deletion) = self.deletion.take_if(|it| it.question() == question) else {
            return false;
        };
        let deleting = session.go_on_deleting(channel, deletion, answer);
        if let Err(refusal) = deleting.and_then(|deleting| self.deleting(deleting)) {
            self.refuse(&refusal);
        }
        true
    }

    /// This is durable now.
    pub fn durable(&mut self, ticket: Ticket) {
        self.tickets.remove(&ticket);
    }
}

/// Names that RabbitMQ does not take for streams.
fn check_name(name: &str) -> Result<(), Refused> {
    match name.is_empty() || name.starts_with("amq.") || name.contains(['\n', '\r']) {
        true => Err(Refused::Precondition),
        false => Ok(()),
    }
}

/// Arguments that are numbers, as the stream protocol calls them.
const NUMBERS: [&str; 4] = [
    "max-length-bytes",
    "stream-max-segment-size-bytes",
    "stream-filter-size-bytes",
    "initial-cluster-size",
];

fn declaration(stream: &str, arguments: &[(&str, &str)]) -> Result<Step, Refused> {
    let mut table = Table::new().with("x-queue-type", "stream");
    for (name, value) in arguments {
        let ours = format!("x-{name}");
        if NUMBERS.contains(name) {
            let number = value.parse::<i64>().map_err(|_| Refused::Precondition)?;
            table.push(ours.as_str(), number);
        } else if ["max-age", "queue-leader-locator"].contains(name) {
            table.push(ours.as_str(), *value);
        } else {
            tracing::warn!(
                area = "connection",
                "stream '{stream}': nobody knows what its argument '{name}' means; it is left out"
            );
        }
    }
    Ok(Step::Queue(DeclareQueue {
        name: stream.into(),
        durable: true,
        arguments: table,
        ..DeclareQueue::default()
    }))
}

fn code(refusal: &Refusal) -> Refused {
    match refusal.kind() {
        RefusalKind::AccessRefused => Refused::Access,
        RefusalKind::NotFound => Refused::NoStream,
        RefusalKind::Internal => Refused::Internal,
        _ => Refused::Precondition,
    }
}
