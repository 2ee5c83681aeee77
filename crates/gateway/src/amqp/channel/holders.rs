//! Who holds a channel's unsettled messages: its consumers, and its gets from each queue.

use super::unacked::HolderId;
use broker::QueueRef;
use model::ConsumerId;

/// One of them.
#[derive(Debug)]
pub struct Holder {
    /// Where its messages come from.
    pub queue: QueueRef,
    /// The consumer; `None` for gets.
    pub consumer: Option<ConsumerId>,
    /// How many messages it holds unsettled.
    held: u64,
    /// A consumer that may still get more: its entry is kept although it holds nothing.
    consuming: bool,
}

/// All of a channel's. Numbers are used again once nothing is held and nothing can come.
#[derive(Debug, Default)]
pub struct Holders {
    entries: Vec<Option<Holder>>,
    /// Numbers that may be used again.
    vacant: Vec<HolderId>,
}

impl Holders {
    /// A new consumer.
    pub fn consumer(&mut self, queue: QueueRef, consumer: ConsumerId) -> HolderId {
        self.insert(Holder {
            queue,
            consumer: Some(consumer),
            held: 0,
            consuming: true,
        })
    }

    /// The holder of what was fetched from this queue by `basic.get`.
    pub fn getter(&mut self, queue: &QueueRef) -> HolderId {
        let known = self.entries.iter().position(|entry| {
            entry
                .as_ref()
                .is_some_and(|holder| holder.consumer.is_none() && holder.queue.is(queue))
        });
        match known {
            Some(at) => at as HolderId,
            None => self.insert(Holder {
                queue: queue.clone(),
                consumer: None,
                held: 0,
                consuming: false,
            }),
        }
    }

    fn insert(&mut self, holder: Holder) -> HolderId {
        match self.vacant.pop() {
            Some(id) => {
                self.entries[id as usize] = Some(holder);
                id
            }
            None => {
                self.entries.push(Some(holder));
                (self.entries.len() - 1) as HolderId
            }
        }
    }

    /// The holder got so many messages more.
    pub fn add(&mut self, id: HolderId, count: u64) {
        if let Some(Some(holder)) = self.entries.get_mut(id as usize) {
            holder.held += count;
        }
    }

    /// So many of its messages are settled: calls `then` with the holder, which may be gone afterwards.
    pub fn settle(&mut self, id: HolderId, count: u64, then: impl FnOnce(&Holder)) {
        let Some(entry) = self.entries.get_mut(id as usize) else {
            return;
        };
        let Some(holder) = entry else { return };
        holder.held = holder.held.saturating_sub(count);
        then(holder);
        if holder.held == 0 && !holder.consuming {
            *entry = None;
            self.vacant.push(id);
        }
    }

    /// The consumer gets nothing more.
    pub fn cancelled(&mut self, id: HolderId) {
        if let Some(Some(holder)) = self.entries.get_mut(id as usize) {
            holder.consuming = false;
        }
        self.settle(id, 0, |_| ());
    }
}
