//! A stream of several nodes as a machine on their journal ([decision
//! 65](../../../../../docs/decisions/0065-streams-of-several-nodes.md)). A record is a chunk. Files are each node's own: what
//! is committed goes there, whoever has decided it ([`Effect::Committed`]), and a checkpoint counts on no more than what the
//! node says is in them, synced.

use super::deciding::{Deciding, answered, effect_of, stream_settings};
use super::feeding::Stands;
use crate::groups::{Act, Replicated};
use crate::node::ends::{Ends, Reply};
use crate::queues::host::Turned;
use crate::queues::{Follower, OfQueue, Queue};
use bytes::Bytes;
use cluster::{Committed, Mark};
use model::chunk::Tracking;
use model::{Incarnation, Index, Journaled, Machine, Outcome, QueueSettings, Ranges, Seq, Timestamp};
use queue::store::{self, LogPlace};
use queue::stream::{Contents, FilesHere, Record, Request as Ask, Stream, StreamRequest};
use queue::{Answer, HandOver, Inspect, Losses, Request};
use std::sync::Arc;

/// What the machine orders.
#[derive(Debug)]
pub enum Effect {
    /// What every queue may order.
    Queue(queue::Effect<Ends>),
    /// What concerns checkpoints.
    Store(store::Effect),
    /// This is committed, and goes to the files. The group's own entries have no bytes.
    Committed { at: Mark, record: Bytes },
    /// The machine took another one's place: behind this entry the next message has this offset.
    Stands { index: Index, next_offset: u64 },
    /// Sync the files, and say how far they go: [`Ask::HasFiles`].
    SyncFiles,
    /// What this client of this node has asked is not answered any more.
    Unanswered(Reply),
}

/// What a node remembers: the contents before a record, and how far its files were synced then.
#[derive(Debug, Default)]
pub struct Checkpoint {
    next: Index,
    synced: Index,
    contents: Contents,
}

impl Checkpoint {
    /// The first entry that the files lack, if the log has one that they lack.
    fn needed(&self) -> Option<LogPlace> {
        let first = self.synced.saturating_add(1);
        (first < self.next).then_some(LogPlace(first))
    }
}

impl Journaled for Checkpoint {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.next.to_le_bytes());
        out.extend_from_slice(&self.synced.to_le_bytes());
        self.contents.encode(out);
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (next, bytes) = bytes.split_first_chunk()?;
        let (synced, contents) = bytes.split_first_chunk()?;
        Some(Self {
            next: Index::from_le_bytes(*next),
            synced: Index::from_le_bytes(*synced),
            contents: Contents::decode(contents)?,
        })
    }
}

impl From<store::Record> for Checkpoint {
    /// A stream has no message store, so nothing of one is ever remembered.
    fn from(_: store::Record) -> Self {
        Self::default()
    }
}

/// See the module.
pub struct StreamMember {
    deciding: Deciding,
    /// The last record that is committed, or that its contents are made of.
    applied: Index,
    /// So many records that it has decided are not committed: what comes meanwhile makes one chunk.
    open: u64,
    /// A checkpoint is to be taken once the files are synced.
    is_checkpoint_due: bool,
}

impl StreamMember {
    /// What the deciding half has decided becomes this one's.
    fn carry_out(&mut self, outcome: &mut Outcome<Record, Effect>) {
        let decided = &mut self.deciding.outcome;
        self.open += decided.records.len() as u64;
        outcome.records.append(&mut decided.records);
        // Nothing is dropped here: segments are each node's own affair.
        let effect = |order| effect_of(order).ok().map(Effect::Queue);
        outcome
            .promises
            .extend(decided.promises.drain(..).filter_map(effect));
        outcome
            .effects
            .extend(decided.effects.drain(..).filter_map(effect));
    }

    fn stream(&mut self, now: Timestamp, request: Ask<Ends>, outcome: &mut Outcome<Record, Effect>) {
        match request {
            Ask::HasFiles(_) => {
                self.deciding.ask(now, request);
                if std::mem::take(&mut self.is_checkpoint_due) {
                    outcome.promises.push(Effect::Store(store::Effect::Checkpoint));
                }
            }
            // What is answered is on record by then.
            Ask::Sequence { .. } | Ask::Offset { .. } => {
                self.deciding.ask(now, Ask::EndTurn);
                self.deciding.ask(now, request);
            }
            _ => self.deciding.ask(now, request),
        }
    }
}

impl Machine for StreamMember {
    type Request = Request<Ends>;
    type Record = Record;
    type Effect = Effect;
    type Status = queue::stream::Status;

    fn handle(&mut self, now: Timestamp, request: Request<Ends>, outcome: &mut Outcome<Record, Effect>) {
        match request {
            Request::Enqueue { block, receipt } => self.deciding.enqueue(now, &block, receipt),
            Request::EnqueueFrom {
                origin,
                block,
                receipt,
            } => {
                let told = self.deciding.enqueue_from(now, *origin, &block, receipt);
                outcome.effects.extend(told.map(Effect::Queue));
            }
            Request::Recall { sender, from, reply } => {
                let answer = self.deciding.recall(now, sender, from);
                self.carry_out(outcome);
                let answered = queue::Effect::Reply(reply, answer);
                outcome.promises.push(Effect::Queue(answered));
            }
            Request::IncarnationEnded { incarnation } => self.deciding.ended(incarnation),
            Request::Configure { settings } => {
                let settings = stream_settings(&settings);
                self.deciding.ask(now, Ask::Configure { settings });
            }
            Request::Stream(request) => {
                if let StreamRequest::Machine(request) = *request {
                    self.stream(now, request, outcome);
                }
            }
            Request::Store(store::Request::Checkpoint { .. }) => {
                self.is_checkpoint_due = true;
                outcome.effects.push(Effect::SyncFiles);
            }
            // Answered where it is led: who has declared it waits until it is.
            Request::Use { reply: Some(reply) } => {
                let status = self.deciding.machine.status();
                let ready = status.next_offset.saturating_sub(status.first_offset);
                let stands = Answer::Stands { ready, consumers: 0 };
                let answered = queue::Effect::Reply(reply, stands);
                outcome.effects.push(Effect::Queue(answered));
            }
            request => {
                let answered = answered(request).ok().map(Effect::Queue);
                outcome.effects.extend(answered);
            }
        }
        self.carry_out(outcome);
    }

    fn apply(&mut self, index: Index, record: Record, outcome: &mut Outcome<Record, Effect>) {
        self.applied = index;
        self.deciding
            .machine
            .apply(index, record, &mut self.deciding.outcome);
        self.carry_out(outcome);
    }

    fn recovered(&mut self, closed: bool) {
        self.deciding.machine.recovered(closed);
    }

    fn follow(&mut self) {
        self.deciding.machine.follow();
    }

    /// What is due by the clock, each node does with its files.
    fn wakes_at_ms(&self) -> u64 {
        u64::MAX
    }

    fn status(&self) -> queue::stream::Status {
        self.deciding.machine.status()
    }
}

impl Replicated for StreamMember {
    type Settings = QueueSettings;
    type Local = Checkpoint;

    fn new(settings: QueueSettings) -> Self {
        Self {
            deciding: Deciding::new(Stream::of_several(stream_settings(&settings))),
            applied: 0,
            open: 0,
            is_checkpoint_due: false,
        }
    }

    fn checkpoint(&self, next: Index) -> (Checkpoint, Option<LogPlace>) {
        let checkpoint = Checkpoint {
            next,
            synced: self.deciding.machine.files_here().synced,
            contents: self.deciding.machine.contents(),
        };
        let needed = checkpoint.needed();
        (checkpoint, needed)
    }

    fn complete(checkpoint: &mut Checkpoint, next: Index, _: &[(Seq, LogPlace)]) -> Option<LogPlace> {
        checkpoint.next = next;
        checkpoint.needed()
    }

    fn hand_over(&self, _: Index) -> HandOver<Checkpoint> {
        HandOver::Waits
    }

    fn apply_local(&mut self, checkpoint: Checkpoint) -> Option<Index> {
        let (next, synced) = (checkpoint.next, checkpoint.synced);
        let machine = &mut self.deciding.machine;
        machine.restore(checkpoint.contents);
        let first = machine.files_here().first;
        let files = Ask::HasFiles(FilesHere { first, synced });
        machine.handle(Timestamp(0), files, &mut self.deciding.outcome);
        self.applied = next.saturating_sub(1);
        Some(next)
    }

    /// What the files lack that go with these contents is fetched from other nodes' files, not from this one's log.
    fn without_places(checkpoint: Checkpoint) -> Option<Checkpoint> {
        Some(Checkpoint {
            synced: checkpoint.next.saturating_sub(1),
            ..checkpoint
        })
    }

    fn ask_store(request: store::Request) -> Request<Ends> {
        Request::Store(request)
    }

    fn of_store(request: &Request<Ends>) -> Option<&store::Request> {
        match request {
            Request::Store(request) => Some(request),
            _ => None,
        }
    }

    fn ordered_by_store(effect: &Effect) -> Option<&store::Effect> {
        match effect {
            Effect::Store(effect) => Some(effect),
            _ => None,
        }
    }

    fn into_store(effect: Effect) -> Result<store::Effect, Effect> {
        match effect {
            Effect::Store(effect) => Ok(effect),
            other => Err(other),
        }
    }

    /// There is nothing to give up.
    fn give_up(seqs: Ranges) -> Request<Ends> {
        Request::GiveUp { seqs }
    }

    fn ends_something(_: &Request<Ends>) -> bool {
        false
    }

    fn committed_here(entry: &Committed) -> Option<Effect> {
        Some(Effect::Committed {
            at: entry.at,
            record: entry.record.clone(),
        })
    }

    fn is_read_anywhere() -> bool {
        true
    }

    fn is_of_this_node(request: &Request<Ends>) -> bool {
        match request {
            Request::Store(_) => true,
            Request::Stream(request) => matches!(**request, StreamRequest::Machine(Ask::HasFiles(_))),
            _ => false,
        }
    }

    fn record_committed(&mut self, index: Index) {
        self.applied = index;
        self.open = self.open.saturating_sub(1);
    }

    fn ends_turn(&self) -> Option<Request<Ends>> {
        let is_due = self.open == 0 && self.deciding.machine.has_draft();
        is_due.then(|| Request::Stream(Box::new(StreamRequest::Machine(Ask::EndTurn))))
    }

    /// Numbers are asked for by clients of the stream protocol, and of this node alone. What else is held goes to a session,
    /// whose node goes on with the next leader, or it confirms what such a client has published: that may be there or not, and
    /// the client is told that it publishes here no more.
    fn given_up(held: Effect) -> Option<Effect> {
        match held {
            Effect::Queue(queue::Effect::Reply(reply, Answer::Number(_))) => Some(Effect::Unanswered(reply)),
            _ => None,
        }
    }

    fn resumed(&self) -> Option<Effect> {
        Some(Effect::Stands {
            index: self.applied,
            next_offset: self.deciding.machine.status().next_offset,
        })
    }
}

impl OfQueue for StreamMember {
    fn act(follower: Arc<Follower>) -> Act<Effect> {
        Box::new(move |effect| {
            let log = |queue: &Arc<Queue>| queue.stream_log().cloned();
            match effect {
                Effect::Queue(effect) => follower.arrange(effect),
                Effect::Unanswered(reply) => follower.decline(reply),
                // What cannot be written now is read of the log once it can be.
                effect => {
                    let Some(log) = follower.queue().as_ref().and_then(log) else {
                        return;
                    };
                    match effect {
                        Effect::Committed { at, record } => log.committed_here(at, record),
                        Effect::Stands { index, next_offset } => log.stands(index, next_offset),
                        Effect::SyncFiles => log.sync_files(),
                        Effect::Queue(_) | Effect::Store(_) | Effect::Unanswered(_) => {}
                    }
                }
            }
        })
    }

    /// The queue's numbers are those of this node's files.
    fn turned(&self, _: bool) -> Option<Turned> {
        None
    }

    fn stands(&self) -> Option<Stands> {
        let next_offset = self.deciding.machine.status().next_offset;
        Some(Stands {
            synced: self.deciding.machine.files_here().synced,
            index: self.applied,
            next_offset: (self.open == 0).then_some(next_offset),
        })
    }
}

impl Inspect for StreamMember {
    fn losses(&self) -> Losses {
        Losses::default()
    }

    fn lost(&self) -> u64 {
        0
    }

    fn senders(&self) -> Vec<Incarnation> {
        self.deciding.senders()
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        let status = self.deciding.machine.status();
        Some((status.first_offset, status.next_offset))
    }

    fn tracking(&self) -> Option<Tracking> {
        Some(self.deciding.machine.tracking().clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::outbox::{ChannelId, Outbox, Question};
    use crate::groups::{Found, Hosted, Identity, Links, Member, News, NodeId};
    use crate::node::ends::Receipt;
    use crate::{Broker, Options};
    use cluster::{GroupId, Groups, MemberId, Membership, Settings};
    use model::chunk::{Batch, Entry};
    use std::sync::{Mutex, PoisonError};

    struct Nowhere;

    impl Links for Nowhere {
        fn send(&self, _: NodeId, _: Bytes) {}

        fn bulk(&self, _: NodeId, _: Bytes) {}
    }

    /// A stream that this node leads, and can't prove it: the other member is not reached.
    struct Leader {
        broker: Arc<Broker>,
        stream: Arc<Hosted<StreamMember>>,
        left: Arc<Mutex<Vec<Effect>>>,
        _data: tempfile::TempDir,
    }

    impl Leader {
        fn new() -> Self {
            let data = tempfile::tempdir().unwrap();
            let broker = Broker::open(Options::new(data.path())).unwrap();
            let here = NodeId(1);
            let groups = broker.replicate(Groups::new(here, 1, Settings::default()), Arc::new(Nowhere));
            let members = [here, NodeId(2)].map(MemberId::first);
            let identity = Identity {
                group: GroupId(7),
                me: members[0],
                members: Membership::of(&members),
            };
            let left = Arc::<Mutex<Vec<Effect>>>::default();
            let leaves = left.clone();
            let act = Box::new(move |effect| {
                leaves.lock().unwrap_or_else(PoisonError::into_inner).push(effect);
            });
            let stream =
                Found::default().open::<StreamMember>(&groups, identity, QueueSettings::default(), act);
            let leader = Self {
                broker,
                stream: stream.unwrap(),
                left,
                _data: data,
            };
            leader.tell(News::Leads { term: 1 });
            leader
        }

        fn tell(&self, news: News) {
            self.stream.tell(vec![news]);
            Member::turn(self.stream.clone());
        }

        fn ask(&self, request: Request<Ends>) -> bool {
            self.stream.submit(Timestamp(1), request).is_ok()
        }

        /// A client of the stream protocol asks for both numbers, and publishes; another node asks what is known of it.
        fn is_asked(&self) {
            let reference: Arc<[u8]> = Arc::from(&b"me"[..]);
            let (sequence, offset) = (reference.clone(), reference.clone());
            let mut entry = Vec::new();
            Entry::Message(b"one").write(&mut entry);
            let mut batch = Batch::default();
            batch.push(1, None, &entry).unwrap();
            let receipt = Receipt {
                outbox: Arc::new(Outbox::new()),
                channel: ChannelId(1),
                numbers: Ranges::one(1),
                queue: None,
                timed: None,
            };
            let publish = Ask::Publish {
                reference: Some(reference),
                batch,
                receipt: Some(receipt),
            };
            for request in [
                of_machine(publish),
                of_machine(Ask::Sequence {
                    reference: sequence,
                    reply: reply(1),
                }),
                Request::Recall {
                    sender: Incarnation(1),
                    from: 1,
                    reply: reply(2),
                },
                of_machine(Ask::Offset {
                    reference: offset,
                    reply: reply(3),
                }),
            ] {
                assert!(self.ask(request));
            }
            assert_eq!(self.left().len(), 0, "it may lead no more");
        }

        /// What has left, but for what goes to files.
        fn left(&self) -> Vec<String> {
            let left = std::mem::take(&mut *self.left.lock().unwrap());
            let words = left.iter().filter_map(|effect| match effect {
                Effect::Unanswered(reply) => Some(format!("{} is not answered", reply.question.0)),
                Effect::Queue(effect) => Some(format!("{effect:?}")),
                _ => None,
            });
            words.collect()
        }
    }

    impl Drop for Leader {
        fn drop(&mut self) {
            self.broker.close();
        }
    }

    fn of_machine(request: Ask<Ends>) -> Request<Ends> {
        Request::Stream(Box::new(StreamRequest::Machine(request)))
    }

    fn reply(question: u64) -> Reply {
        Reply {
            outbox: Arc::new(Outbox::new()),
            channel: ChannelId(1),
            question: Question(question),
            no_ack: false,
        }
    }

    #[test]
    fn clients_of_a_deposed_leader_are_told_that_there_is_no_answer_and_sessions_ask_the_next_one() {
        let leader = Leader::new();
        leader.is_asked();
        leader.tell(News::Deposed);
        assert_eq!(leader.left(), ["1 is not answered", "3 is not answered"]);
    }

    #[test]
    fn nobody_waits_for_a_stream_that_is_deleted() {
        let leader = Leader::new();
        leader.is_asked();
        leader.stream.retire();
        assert_eq!(leader.left(), ["1 is not answered", "3 is not answered"]);
        let late = of_machine(Ask::Sequence {
            reference: Arc::from(&b"me"[..]),
            reply: reply(4),
        });
        assert!(!leader.ask(late), "it is handed back to whoever asks");
    }
}
