//! What the log's thread carries out once a batch is durable: confirms first of all. One sync covers everyone who
//! waited for it, and every connection is woken once.

use crate::ends::Receipt;
use crate::outbox::{ChannelId, Event, Outbox, Ticket, Woken};
use crate::pager::{Job, Pager};
use crate::pressure::Relief;
use model::QueueId;
use queue::fifo::Place;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An effect that waits for durability.
#[derive(Debug)]
pub enum Promise {
    /// A queue has taken responsibility for these publishes.
    Confirm(Receipt),
    /// A declaration's reply may go out.
    Durable {
        outbox: Arc<Outbox>,
        channel: ChannelId,
        ticket: Ticket,
    },
    /// Nothing in these segment entries is needed any more.
    Release { queue: QueueId, places: Vec<Place> },
    /// One batch fewer is not durable yet.
    Synced(Arc<AtomicUsize>),
    /// Publishers who waited for the log to catch up may go on.
    Relieve(Arc<Relief>),
}

/// Carries out all promises that one sync made due. Leaves `promises` empty. Returns how many publishes were confirmed.
/// `now` is the time in microseconds.
pub fn fulfil(promises: &mut Vec<Promise>, pager: &Pager, now: &dyn Fn() -> u64) -> u64 {
    let mut woken = Woken::default();
    let mut confirmed = 0;
    for promise in promises.drain(..) {
        match promise {
            Promise::Confirm(receipt) => {
                receipt.note_confirmed(now);
                let Receipt {
                    outbox,
                    channel,
                    numbers,
                    ..
                } = receipt;
                confirmed += numbers.count();
                woken.push(outbox, Event::Confirm { channel, numbers });
            }
            Promise::Durable {
                outbox,
                channel,
                ticket,
            } => {
                woken.push(outbox, Event::Durable { channel, ticket });
            }
            // Deleting files takes too long for this thread.
            Promise::Release { queue, places } => pager.send(Job::Free { queue, places }),
            Promise::Synced(unsynced) => {
                unsynced.fetch_sub(1, Ordering::AcqRel);
            }
            Promise::Relieve(relief) => relief.relieve(),
        }
    }
    woken.wake();
    confirmed
}
