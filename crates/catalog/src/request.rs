//! What may be asked of the catalog. Imperative.

mod codec;

use crate::arguments;
use crate::exchange::is_reserved;
use crate::node::{Incarnation, Joined, NodeConnection, NodeId};
use crate::{
    Answer, Destination, ExchangeKind, Metadata, Name, ObjectKind, PasswordHash, PolicyKind, QueueKind,
    QuotaOf, Record, Refusal, View,
};
use model::QueueId;
use model::table::{Table, Value};

/// What `exchange.declare` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclareExchange {
    pub name: String,
    /// `direct`, `fanout`, `topic`, `headers`.
    pub kind: String,
    pub passive: bool,
    pub durable: bool,
    pub auto_delete: bool,
    pub internal: bool,
    pub arguments: Table,
    /// As [`DeclareQueue::homes`], for what the exchange keeps for itself.
    pub homes: Vec<NodeId>,
}

/// What `queue.declare` says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeclareQueue {
    /// Empty: the server makes a name.
    pub name: String,
    pub passive: bool,
    pub durable: bool,
    pub exclusive: bool,
    pub auto_delete: bool,
    pub arguments: Table,
    /// Not said by the client: what a new queue was declared with before it was converted to what it is now
    /// ([`crate::Queue::other_arguments`]).
    pub other_arguments: Option<Table>,
    /// Not said by the client: a new queue gets its home on that one of these nodes which has the fewest queues; on the node that
    /// asks if there are none.
    pub homes: Vec<NodeId>,
}

/// A policy as it is put.
#[derive(Clone, Debug, PartialEq)]
pub struct PutPolicy {
    /// A regular expression on names, unanchored; the empty one matches all.
    pub pattern: String,
    /// RabbitMQ's word for what it is for: `all`, `queues`, `classic_queues`, `quorum_queues`, `streams`, `exchanges`.
    pub apply_to: String,
    /// The highest counts.
    pub priority: i64,
    /// Keys and values.
    pub definition: Table,
}

/// A binding as somebody asks for it, or for its end.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedBinding {
    /// The exchange that messages come from.
    pub source: String,
    /// Where they go.
    pub destination: Destination,
    /// What the kinds that look at keys compare with.
    pub routing_key: Vec<u8>,
    /// What the others compare with.
    pub arguments: Table,
    /// Who asks: another connection's exclusive queue is refused.
    pub by: NodeConnection,
}

/// A request and whom to answer. `R` is the host's handle for the answer, which comes back in [`crate::Effect::Reply`].
#[derive(Clone, Debug)]
pub struct Asked<R> {
    /// Who gets the answer.
    pub reply: R,
    /// What is wanted.
    pub request: Request,
}

/// A request.
///
/// Permissions are not checked here: whoever asks has asked [`Request::check`] and then [`crate::View::may`] before.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Create a virtual host with its predeclared exchanges. Done if it exists.
    CreateVhost { name: Name },
    /// Delete a virtual host and everything in it, permissions included. Done if there is none.
    DeleteVhost { name: Name },
    /// Create a user, or replace password and tags of one. Without a password nobody can log in by password.
    PutUser {
        name: Name,
        password: Option<PasswordHash>,
        tags: Vec<String>,
    },
    /// Delete a user and its permissions. Done if there is none.
    DeleteUser { name: Name },
    /// Let a user into a virtual host; the three are regular expressions on object names.
    SetPermissions {
        user: Name,
        vhost: Name,
        configure: String,
        write: String,
        read: String,
    },
    /// Take a user's permissions in a virtual host away. Done if there are none.
    ClearPermissions { user: Name, vhost: Name },
    /// `exchange.declare`.
    DeclareExchange {
        vhost: Name,
        declare: DeclareExchange,
        /// Where that is asked: an exchange that is not durable ends with this.
        by: Incarnation,
    },
    /// `exchange.delete`. Done if there is none.
    DeleteExchange {
        vhost: Name,
        name: String,
        if_unused: bool,
    },
    /// `queue.declare`. Answered with `Answer::Queue`.
    DeclareQueue {
        vhost: Name,
        declare: DeclareQueue,
        /// Who asks: an exclusive queue is this connection's, another one that is not durable its node's.
        by: NodeConnection,
        /// Random bytes, of which a name is made if there is none.
        unique: [u8; 16],
    },
    /// Delete a queue, whose messages and consumers the host has dealt with (`if-unused`, `if-empty`). Done if there is none.
    DeleteQueue { id: QueueId },
    /// `queue.bind`, `exchange.bind`. Done if the binding exists.
    Bind { vhost: Name, binding: WantedBinding },
    /// `queue.unbind`, `exchange.unbind`. Done if there is no such binding.
    Unbind { vhost: Name, binding: WantedBinding },
    /// Put a policy, in place of any of its kind and name.
    PutPolicy {
        vhost: Name,
        kind: PolicyKind,
        name: Name,
        policy: PutPolicy,
    },
    /// Delete a policy. Done if there is none.
    DeletePolicy {
        vhost: Name,
        kind: PolicyKind,
        name: Name,
    },
    /// Set limits of a user or a virtual host, or take them away: all of them or, if one makes no sense, none.
    SetLimits {
        of: QuotaOf,
        /// By RabbitMQ's names for them, such as `max-connections`.
        limits: Vec<(String, Option<i64>)>,
    },
    /// Set a global parameter, or take it away.
    SetGlobal { name: Name, value: Option<Value> },
    /// Say what a virtual host is for.
    DescribeVhost { vhost: Name, metadata: Metadata },
    /// Let a user publish and bind only certain routing keys on a topic exchange.
    SetTopicPermission {
        user: Name,
        vhost: Name,
        exchange: Name,
        write: String,
        read: String,
    },
    /// Take topic permissions away: on one exchange, or on all of a virtual host. Done if there are none.
    ClearTopicPermissions {
        user: Name,
        vhost: Name,
        exchange: Option<Name>,
    },
    /// A connection is gone: delete its exclusive queues, so many of them and of their bindings, so that no turn is
    /// long. Answered with `Answer::Cleared`.
    CloseConnection {
        connection: NodeConnection,
        at_most: usize,
    },
    /// A node begins a run; what ended with the last one is to be deleted. Answered with `Answer::Started`.
    StartNode {
        node: NodeId,
        name: Name,
        /// New queues may get their home there.
        takes_queues: bool,
    },
    /// A node wants to be a member of the cluster, and is one if it was already. Answered with `Answer::Joined`. Refused if
    /// another node has the name, or this one was forgotten.
    JoinNode { name: Name, joined: Joined },
    /// A node is no member any more; its queues are to be deleted ([`Request::EndTransient`]). Done if there is none.
    ForgetNode { node: NodeId },
    /// This run of a node is in maintenance from now on, or no more. Done if it is so already, or there is no such node.
    DrainNode { node: NodeId, drained: bool },
    /// Delete up to so many objects that ended with a run of a node or with the node, so that no turn is long. Answered with
    /// `Answer::Cleared`.
    EndTransient { at_most: usize },
    /// A node is to have a copy of a queue that several nodes have, or none any more. Answered with the queue as it is then.
    ChangeMember {
        id: QueueId,
        node: NodeId,
        is_member: bool,
    },
    /// A queue that several nodes have, of this generation, goes on with this node's copy alone, whatever the others have: their
    /// majority is lost for good. Refused if the node has no copy of it. Answered with the queue as it is then.
    RefoundQueue {
        id: QueueId,
        node: NodeId,
        generation: u16,
    },
    /// One of these nodes is to have a copy, too, of a queue that several have, if fewer than so many do: that which has the
    /// fewest queues. Answered with the queue as it is then.
    AddMember {
        id: QueueId,
        nodes: Vec<NodeId>,
        size: usize,
    },
    /// Exactly these nodes are to have copies of a classic queue, that which it is on among them if it is on one alone. `epoch`
    /// is the number of the one that whoever asks has seen: a queue that has become one node's own since is not yet handed back.
    /// Answered with the queue as it is then.
    Mirror {
        id: QueueId,
        nodes: Vec<NodeId>,
        epoch: u16,
    },
    /// A classic queue of which no node but this one has a copy is to be that node's own again. Terms up to this one have been.
    /// Answered with the queue as it is then.
    Unmirror { id: QueueId, node: NodeId, behind: u64 },
    /// A queue is to be one of this kind, in its place and by its name. Done if it is one. Answered with the queue as it is then.
    ConvertQueue {
        vhost: Name,
        name: String,
        kind: QueueKind,
    },
    /// A queue that began on one node is a group's by now, in the epoch of this number: from then on that node may leave it. Done
    /// if that is on record already, or said of itself. Answered with the queue as it is then.
    SayGrown { id: QueueId, epoch: u16 },
    /// Take away so many bindings of a queue that is being deleted, so that no turn is long. Answered with `Answer::Cleared`.
    /// From the first of these on the deletion is to be finished: [`crate::View::doomed_queues`].
    ClearBindings { id: QueueId, at_most: usize },
    /// All of these, in this order, or none: the first refusal is the answer. If a generation is said, and what exists is of
    /// another one, nothing is done: `Answer::Outdated`. One such request has no other in it.
    All { of: Option<u64>, requests: Vec<Request> },
    /// Begin to write everything durable down again, so that the journal can be cut before `Record::SnapshotStarted`.
    /// Answered with `Answer::Snapshot`. One at a time.
    StartSnapshot,
    /// Go on with it: with the next of its view's facts ([`crate::View::facts`]). Other requests may come in between.
    ContinueSnapshot { facts: Vec<Record> },
    /// End it: all facts are written down.
    FinishSnapshot,
}

impl Request {
    /// The longest request that has bytes, and the longest that is read. Declarations from clients are far below. What
    /// is read takes at most a fixed multiple of its bytes in memory.
    pub const MOST_BYTES: usize = 1024 * 1024;

    /// The request's bytes, for the node that decides about it. `None` for what a node asks of its own journal, and for a request
    /// beyond [`Request::MOST_BYTES`].
    pub fn encode(&self) -> Option<Vec<u8>> {
        codec::encode(self)
    }

    /// Reads a request back. `None` if the bytes are no request, one of a later version, or longer than [`Request::MOST_BYTES`].
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        codec::decode(bytes)
    }

    /// This request, of somebody who is answered by `reply`.
    pub fn asked_by<R>(self, reply: R) -> Asked<R> {
        Asked { reply, request: self }
    }

    /// True if it changes nothing and only asks what there is: a passive declaration.
    pub fn is_question(&self) -> bool {
        match self {
            Self::DeclareQueue { declare, .. } => declare.passive,
            Self::DeclareExchange { declare, .. } => declare.passive,
            _ => false,
        }
    }

    /// What a question is answered where this exists; `None` if it is none.
    pub fn look(&self, view: &View) -> Option<Result<Answer, Refusal>> {
        match self {
            Self::DeclareQueue {
                vhost, declare, by, ..
            } if declare.passive => {
                let queue = view.find_queue(vhost, &strip(&declare.name), *by);
                Some(queue.map(|queue| Answer::Queue(queue.clone())))
            }
            Self::DeclareExchange { vhost, declare, .. } if declare.passive => {
                let exchange = view.find_exchange(vhost, &strip(&declare.name));
                Some(exchange.map(|()| Answer::Done))
            }
            _ => None,
        }
    }

    /// What RabbitMQ refuses before it looks at permissions and at what exists. Handling checks this again.
    ///
    /// # Errors
    /// Declaring or deleting the default exchange, deleting an `amq.` exchange, an unknown exchange type, or declaring
    /// a queue by a name that begins with `amq.` (even one that exists).
    pub fn check(&self) -> Result<(), Refusal> {
        match self {
            Self::DeclareExchange { declare, .. } => {
                if !declare.passive && ExchangeKind::from_name(&declare.kind).is_none() {
                    let kind = declare.kind.clone();
                    return Err(Refusal::UnknownExchangeType { kind });
                }
                if strip(&declare.name).is_empty() {
                    Err(Refusal::DefaultExchange)
                } else {
                    Ok(())
                }
            }
            Self::DeleteExchange { vhost, name, .. } => {
                let name = strip(name);
                if name.is_empty() {
                    Err(Refusal::DefaultExchange)
                } else if is_reserved(&name) {
                    Err(Refusal::SystemExchange {
                        exchange: name,
                        vhost: vhost.to_string(),
                    })
                } else {
                    Ok(())
                }
            }
            Self::DeclareQueue { declare, .. } if !declare.passive => {
                let name = strip(&declare.name);
                if is_reserved(&name) {
                    return Err(Refusal::ReservedName {
                        kind: ObjectKind::Queue,
                        name,
                    });
                }
                let kind = arguments::kind_of(&declare.arguments);
                match name.is_empty() && !kind.may_be_unnamed() {
                    true => Err(Refusal::UnnamedQueue { kind }),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }
}

/// A name as it counts: RabbitMQ takes line ends out of the names of queues and exchanges.
pub fn strip(name: &str) -> String {
    name.replace(['\r', '\n'], "")
}
