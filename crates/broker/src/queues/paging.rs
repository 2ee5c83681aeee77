//! What the pager does for a queue: reads and writes its segments.

use super::Queue;
use crate::node::pager::{Found, Pager, StoreFiles, Unread, segment_owner};
use model::{QueueId, Ranges, Seq};
use queue::Request;
use queue::store::{self, Bytes, EntryBuilder, Piece, Place, Read, Source, Stored};
use std::sync::Arc;
use storage::Position;

/// Something that the pager is to do.
pub enum Paging {
    /// Read a block back; answered by `Request::FinishLoad`.
    Load {
        queue: Arc<Queue>,
        first: Seq,
        source: Source,
        failures: u32,
    },
    /// Write pieces to the queue's segments; answered by `Request::FinishStore`, in the order of the jobs.
    Store {
        queue: Arc<Queue>,
        pieces: Vec<Piece>,
        durable: bool,
    },
    /// These entries are not needed any more.
    Free { queue: QueueId, places: Vec<Place> },
    /// See whether a file of the queue is worth rewriting, after entries were freed.
    Rewrite { queue: Arc<Queue> },
    /// Handle what waits in the queue's mailbox.
    Turn { queue: Arc<Queue> },
    /// Have the queue move what it needs of the log before this position, so that the log may use the file again.
    Checkpoint { queue: Arc<Queue>, before: Position },
}

impl Paging {
    /// Has the pager do it.
    pub fn send(self, pager: &Pager) {
        match self {
            Self::Load { .. } => pager.read(move |files| self.carry_out(files)),
            _ => pager.write(move |files| self.carry_out(files)),
        }
    }

    fn carry_out(self, files: &StoreFiles) {
        match self {
            Self::Load {
                queue,
                first,
                source,
                failures,
            } => queue.load(files, first, source, failures),
            Self::Store {
                queue,
                pieces,
                durable,
            } => {
                queue.store(files, &pieces, durable);
                queue.rewrite_sparse(files);
            }
            Self::Free { queue, places } => files.free(queue, places),
            Self::Rewrite { queue } => queue.rewrite_sparse(files),
            Self::Turn { queue } => queue.turn_mail(),
            Self::Checkpoint { queue, before } => {
                queue.checkpoint(before);
                queue.rewrite_sparse(files);
            }
        }
    }
}

impl Queue {
    fn load(self: &Arc<Self>, files: &StoreFiles, first: Seq, source: Source, failures: u32) {
        let read = match self.read_for(files, source, failures) {
            Ok(Found { block, damaged }) => Read::Found { block, damaged },
            Err(Unread::Damaged(_)) => Read::Damaged,
            Err(Unread::Failed(_)) => Read::Failed,
        };
        self.submit(Request::Store(store::Request::FinishLoad { first, read }));
    }

    /// Writes the pieces in order, one after the other, so that only one is in memory twice. What cannot be written is left out
    /// of the answer; the store keeps it where it is.
    fn store(self: &Arc<Self>, files: &StoreFiles, pieces: &[Piece], durable: bool) {
        // What a queue that is deleted still wanted written would never be deleted.
        let pieces = if self.is_retired() { &[] } else { pieces };
        let mut stored = Vec::with_capacity(pieces.len());
        let mut unreadable = Ranges::new();
        let mut places = Vec::with_capacity(1);
        let mut result = Ok(());
        for piece in pieces {
            let Some(entry) = self.entry(files, piece, &mut unreadable) else {
                continue;
            };
            places.clear();
            result = files
                .segments
                .append(segment_owner(self.id), [entry.parts()], &mut places);
            match (&result, places.first()) {
                (Ok(()), Some(place)) => stored.push(Stored {
                    first: piece.first,
                    count: piece.count,
                    place: store_place(*place),
                }),
                _ => break,
            }
        }
        if durable {
            result = result.and(
                files
                    .segments
                    .sync(segment_owner(self.id))
                    .inspect_err(|_| stored.clear()),
            );
        } else {
            files.segments.let_go(segment_owner(self.id));
        }
        if let Err(error) = result {
            tracing::error!(area = "storage", "{self:?} cannot be paged out: {error}");
        }
        self.submit(Request::Store(store::Request::FinishStore {
            pieces: stored,
            unreadable,
        }));
    }

    /// Has the queue move what little is left of a file, so that the file goes: a stuck message doesn't keep its
    /// neighbours' space. Asked when the queue writes more files and when transient messages free some; and each time
    /// the log comes round, which it does for queues at rest too.
    fn rewrite_sparse(self: &Arc<Self>, files: &StoreFiles) {
        if let Some(segment) = files.segments.sparse(segment_owner(self.id)) {
            self.submit(Request::Store(store::Request::Compact { segment }));
        }
    }

    /// The bytes of an entry; `None` if a part cannot be read. What is damaged of it is added to `unreadable`.
    fn entry(&self, files: &StoreFiles, piece: &Piece, unreadable: &mut Ranges) -> Option<EntryBuilder> {
        let mut entry: Option<EntryBuilder> = None;
        let mut first = piece.first;
        let mut whole = true;
        for part in &piece.parts {
            let last = first + u64::from(part.count) - 1;
            let found = match &part.bytes {
                Bytes::Memory(block) => Ok(Found::intact(block.clone())),
                Bytes::Source(source) => self.read_for(files, *source, 0),
            };
            match found {
                Ok(Found { block, damaged }) => {
                    for (seq, at) in (first..=last).zip(u64::from(part.from)..) {
                        if damaged.contains(at) || at >= block.len() as u64 {
                            unreadable.push(seq);
                            whole = false;
                        }
                    }
                    if whole {
                        entry
                            .get_or_insert_with(|| EntryBuilder::new(block.persistent(), block.received()))
                            .push(&block, part.from as usize, part.count as usize);
                    }
                }
                Err(Unread::Damaged(_)) => {
                    unreadable.push_span(first, last);
                    whole = false;
                }
                Err(Unread::Failed(_)) => whole = false,
            }
            first = last + 1;
        }
        let mut entry = entry.filter(|_| whole)?;
        entry.finish();
        Some(entry)
    }

    /// Reads a block of its messages.
    ///
    /// # Errors
    /// It cannot be read.
    pub(crate) fn read(&self, files: &StoreFiles, source: Source) -> Result<Found, Unread> {
        files.read(self.id, source, |record| self.made().block(record))
    }

    /// Reads a block that the queue's store asked for. If it cannot be read, why is in the log.
    fn read_for(&self, files: &StoreFiles, source: Source, failures: u32) -> Result<Found, Unread> {
        let read = self.read(files, source);
        match &read {
            Err(Unread::Damaged(reason)) => {
                tracing::error!(
                    area = "storage",
                    "{self:?}: what was paged out is damaged: {reason}"
                );
            }
            Err(Unread::Failed(reason)) => tracing::warn!(
                area = "storage",
                "{self:?}: what was paged out cannot be read just now ({} times by now), it is tried again: {reason}",
                failures + 1
            ),
            Ok(_) => {}
        }
        read
    }
}

/// The store's word for a place in segments.
fn store_place(place: storage::Place) -> Place {
    Place {
        segment: place.segment,
        offset: place.offset,
        length: place.length,
    }
}
