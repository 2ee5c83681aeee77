//! Direct replies: answers that go from the channel of whoever answers to the channel of whoever asked, through no queue.
//!
//! A channel that consumes from [`REPLY_TO`] gets an address; requests carry it as their `reply-to`, and a message to the
//! default exchange with that routing key is handed to the channel at once. Nothing is stored: an answer to somebody who is
//! gone is dropped, as in RabbitMQ. In a cluster an address says on which start of which
//! node its client is, and answers go there.

use crate::clients::outbox::{ChannelId, Event, Outbox};
use crate::queues::Peers;
use model::{BlockBuilder, ConsumerId, Incarnation, Message, Ranges};
use queue::Delivery;
use std::collections::HashMap;
use std::sync::{
    Arc, OnceLock, PoisonError, RwLock,
    atomic::{AtomicUsize, Ordering},
};

/// The pseudo-queue that is consumed from for direct replies (RabbitMQ's name).
pub const REPLY_TO: &str = "amq.rabbitmq.reply-to";

/// So many bytes of answers may wait for one asker's socket; what comes beyond is dropped.
const UNWRITTEN_BYTES: usize = 64 * 1024 * 1024;

/// What an answer that waits costs beside its bytes.
const ANSWER_OVERHEAD: usize = 256;

/// Everyone who may be answered, by address.
#[derive(Debug, Default)]
pub struct Replies {
    askers: RwLock<HashMap<Box<str>, Arc<Requester>>>,
    /// The other nodes; nobody, before this node joins them.
    peers: OnceLock<Arc<dyn Peers>>,
}

/// A client that consumes from `amq.rabbitmq.reply-to`, so that its requests can be answered.
#[derive(Debug)]
pub(crate) struct Requester {
    vhost: Arc<str>,
    place: Place,
}

/// Where a client is that is to be answered.
#[derive(Debug)]
enum Place {
    Here(Here),
    /// On another node, which knows whether it is still there.
    Elsewhere {
        peers: Arc<dyn Peers>,
        whose: Incarnation,
        address: Box<str>,
    },
}

/// A client of this node.
#[derive(Debug)]
struct Here {
    outbox: Arc<Outbox>,
    channel: ChannelId,
    consumer: ConsumerId,
    unwritten: AtomicUsize,
}

impl Replies {
    /// Clients of these nodes are answered, too, and theirs answer this one's. Once.
    pub(crate) fn join(&self, peers: Arc<dyn Peers>) {
        let _ = self.peers.set(peers);
    }

    /// Who has this address in this virtual host. One of another node counts as somebody's as long as that start of the node
    /// can be spoken to: whose it is there, nobody is asked.
    pub(crate) fn find(&self, vhost: &str, address: &[u8]) -> Option<Arc<Requester>> {
        self.find_here(vhost, address).or_else(|| {
            let peers = self.peers.get()?;
            let address = std::str::from_utf8(address).ok()?;
            let (_, whose) = address
                .strip_prefix(REPLY_TO)?
                .strip_prefix('.')?
                .split_once('.')?;
            let whose = Incarnation(u64::from_str_radix(whose, 16).ok()?);
            let place = Place::Elsewhere {
                peers: peers.clone(),
                whose,
                address: address.into(),
            };
            let vhost = vhost.into();
            peers.runs(whose).then(|| Arc::new(Requester { vhost, place }))
        })
    }

    /// The client of this node that has this address in this virtual host.
    pub(crate) fn find_here(&self, vhost: &str, address: &[u8]) -> Option<Arc<Requester>> {
        let address = std::str::from_utf8(address).ok()?;
        if !address.starts_with(REPLY_TO) {
            return None;
        }
        let askers = self.askers.read().unwrap_or_else(PoisonError::into_inner);
        askers
            .get(address)
            .filter(|asker| &*asker.vhost == vhost)
            .cloned()
    }
}

impl Replies {
    /// Gives a channel an address of which this is the secret part, and the consumer whose deliveries answers are.
    pub(crate) fn open(
        self: &Arc<Self>,
        secret: [u8; 16],
        vhost: &str,
        (outbox, channel): (Arc<Outbox>, ChannelId),
        consumer: ConsumerId,
    ) -> ReplyAddress {
        let digits: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        let name: Box<str> = match self.peers.get().and_then(|peers| peers.own()) {
            Some(own) => format!("{REPLY_TO}.{digits}.{:x}", own.0),
            None => format!("{REPLY_TO}.{digits}"),
        }
        .into();
        let here = Here {
            outbox,
            channel,
            consumer,
            unwritten: AtomicUsize::new(0),
        };
        let asker = Arc::new(Requester {
            vhost: vhost.into(),
            place: Place::Here(here),
        });
        let mut askers = self.askers.write().unwrap_or_else(PoisonError::into_inner);
        askers.insert(name.clone(), asker.clone());
        drop(askers);
        ReplyAddress {
            replies: self.clone(),
            name,
            asker,
            consumer,
        }
    }
}

impl Requester {
    /// Hands an answer over.
    pub(crate) fn answer(&self, message: &Message<'_>) {
        match &self.place {
            Place::Here(here) => here.answer(message),
            Place::Elsewhere {
                peers,
                whose,
                address,
            } => peers.reply(*whose, &self.vhost, address, message),
        }
    }
}

impl Here {
    fn answer(&self, message: &Message<'_>) {
        let bytes = message.properties.len() + message.body.len();
        if self.unwritten.load(Ordering::Relaxed) + bytes > UNWRITTEN_BYTES {
            return;
        }
        let mut builder = BlockBuilder::with_capacity(bytes + 600, 1);
        builder.push_message(message);
        let delivery = Delivery {
            block: Arc::new(builder.finish(false, Default::default())),
            base: 0,
            seqs: Ranges::one(0),
            redelivered: false,
            returns: 0,
            failures: None,
        };
        self.unwritten.fetch_add(
            delivery.bytes_of(0, 0) as usize + ANSWER_OVERHEAD,
            Ordering::Relaxed,
        );
        self.outbox.send(Event::Deliver {
            channel: self.channel,
            consumer: self.consumer,
            delivery,
        });
    }
}

/// A channel's address for direct replies. It is nobody's once this is dropped.
#[derive(Debug)]
pub struct ReplyAddress {
    replies: Arc<Replies>,
    name: Box<str>,
    asker: Arc<Requester>,
    consumer: ConsumerId,
}

impl ReplyAddress {
    /// The routing key to answer to.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The consumer that deliveries of answers name.
    pub fn consumer(&self) -> ConsumerId {
        self.consumer
    }

    /// An answer of so many bytes (counted as [`Delivery::bytes_of`] does) left for the client.
    pub fn written(&self, bytes: u64) {
        if let Place::Here(here) = &self.asker.place {
            let bytes = bytes as usize + ANSWER_OVERHEAD;
            here.unwritten.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for ReplyAddress {
    fn drop(&mut self) {
        let askers = &self.replies.askers;
        let mut askers = askers.write().unwrap_or_else(PoisonError::into_inner);
        askers.remove(&self.name);
    }
}
