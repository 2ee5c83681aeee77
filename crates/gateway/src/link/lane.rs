//! A lane of a peer: the link that it has, if it has one, what waits to be written to it, and who is told of it.

use super::options::LaneLimits;
use super::receiver::{Receiver, Sent};
use super::status::{Counts, LaneStatus, LinkStatus};
use broker::groups::NodeId;
use bytes::Bytes;
use protocol::link::{Choice, Lane, LinkNumber, Present, Refusal};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::SystemTime;
use tokio::sync::Notify;

/// A lane of a peer.
pub(super) struct PeerLane {
    peer: NodeId,
    pub lane: Lane,
    limits: LaneLimits,
    slot: Mutex<Slot>,
    /// Held while the receiver is told something, so that it is told in order. Whoever holds it may take the slot's lock, never
    /// the other way round; the receiver, which may send, takes the slot's.
    telling: Mutex<()>,
    /// There is no link any more, or none is wanted.
    emptied: Notify,
}

#[derive(Default)]
struct Slot {
    link: Option<Link>,
    /// The last link that the peer has dialled and that was used.
    knows: LinkNumber,
    counts: Counts,
    last_lost: Option<(SystemTime, String)>,
}

/// A link, as its lane has it.
struct Link {
    present: Present,
    status: LinkStatus,
    waiting: VecDeque<Vec<Bytes>>,
    /// A frame was refused; the receiver is told when there is room.
    refused: bool,
    waker: Option<Waker>,
    /// Its connection is about to look.
    woken: bool,
}

/// What is known of a link that is about to be used.
pub(super) struct New {
    pub present: Present,
    pub epoch: u64,
    pub version: u16,
    pub is_secured: bool,
    pub clock_ahead_ms: i64,
}

/// Who is told.
pub(super) type Receiving = Option<Arc<dyn Receiver>>;

impl PeerLane {
    pub fn new(peer: NodeId, lane: Lane, limits: LaneLimits) -> Self {
        Self {
            peer,
            lane,
            limits,
            slot: Mutex::default(),
            telling: Mutex::default(),
            emptied: Notify::new(),
        }
    }

    fn slot(&self) -> MutexGuard<'_, Slot> {
        self.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) -> MutexGuard<'_, ()> {
        self.telling.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is no link. For one waiter.
    pub async fn empty(&self) {
        while self.slot().link.is_some() {
            self.emptied.notified().await;
        }
    }

    /// Has whoever waits look again.
    pub fn nudge(&self) {
        self.emptied.notify_one();
    }

    /// What a greeting that dials says of the links that this end has had.
    pub fn knows(&self) -> LinkNumber {
        self.slot().knows
    }

    /// Uses a link from now on, if it is chosen beside the one that there is, which is over then.
    ///
    /// # Errors
    /// Why it is not.
    pub fn take(
        &self,
        new: New,
        choose: impl FnOnce(Option<Present>) -> Choice,
        receiver: &Receiving,
    ) -> Result<(), Refusal> {
        let _telling = self.tell();
        let incarnation = new.present.peer_incarnation;
        let former = {
            let mut slot = self.slot();
            if let Choice::Refuse(why) = choose(slot.link.as_ref().map(|link| link.present)) {
                return Err(why);
            }
            if new.present.by_peer {
                slot.knows = slot.knows.max(new.present.number);
            }
            slot.counts.links += 1;
            slot.link.replace(Link::new(new))
        };
        if let Some(former) = &former {
            former.waker.iter().for_each(Waker::wake_by_ref);
        }
        if let Some(receiver) = receiver {
            if former.is_some() {
                receiver.down(self.peer, self.lane, true);
            }
            receiver.up(self.peer, self.lane, incarnation);
        }
        Ok(())
    }

    /// A link is over. False, and nothing happens, if it was not used any more.
    pub fn lose(&self, epoch: u64, why: String, receiver: &Receiving) -> bool {
        let _telling = self.tell();
        {
            let mut slot = self.slot();
            if slot.link_of(epoch).is_none() {
                return false;
            }
            slot.link = None;
            slot.last_lost = Some((SystemTime::now(), why));
        }
        if let Some(receiver) = receiver {
            receiver.down(self.peer, self.lane, false);
        }
        self.emptied.notify_one();
        true
    }

    /// There is no link still.
    pub fn failed(&self, why: String) {
        let mut slot = self.slot();
        if slot.link.is_none() {
            slot.last_lost = Some((SystemTime::now(), why));
        }
    }

    /// Hands frames over, unless the link that they came by is not used any more.
    pub fn deliver(&self, epoch: u64, frames: Vec<Bytes>, receiver: &Receiving) {
        let _telling = self.tell();
        {
            let mut slot = self.slot();
            if slot.link_of(epoch).is_none() {
                return;
            }
            slot.counts.frames_in += frames.len() as u64;
            slot.counts.bytes_in += frames.iter().map(Bytes::len).sum::<usize>() as u64;
        }
        if let Some(receiver) = receiver {
            for frame in frames {
                receiver.frame(self.peer, self.lane, frame);
            }
            receiver.settled(self.peer, self.lane);
        }
    }

    /// Has a frame written that is made of these parts. Waits for nothing.
    pub fn send(&self, parts: Vec<Bytes>) -> Sent {
        self.send_below(self.limits.backlog, parts)
    }

    /// The same for what nobody holds back and nobody says again: it may take a quarter of the room, so that it is in
    /// nobody's way.
    pub fn send_spare(&self, parts: Vec<Bytes>) -> Sent {
        self.send_below(self.limits.backlog / 4, parts)
    }

    fn send_below(&self, most: usize, parts: Vec<Bytes>) -> Sent {
        let bytes = parts.iter().map(Bytes::len).sum::<usize>();
        let mut guard = self.slot();
        let slot = &mut *guard;
        if bytes > self.limits.frame {
            slot.counts.frames_dropped += 1;
            return Sent::TooLong;
        }
        let Some(link) = &mut slot.link else {
            slot.counts.frames_dropped += 1;
            return Sent::NoLink;
        };
        // One frame may always wait, whatever its length.
        let waiting = link.status.backlog_bytes;
        if waiting > 0 && waiting + bytes > most {
            link.refused = true;
            slot.counts.frames_dropped += 1;
            return Sent::Full;
        }
        link.status.backlog_bytes += bytes;
        link.status.backlog_frames += 1;
        link.waiting.push_back(parts);
        // The connection asks at once for what the lock guards: it is woken when that is free.
        let waker = match std::mem::replace(&mut link.woken, true) {
            true => None,
            false => link.waker.clone(),
        };
        drop(guard);
        if let Some(waker) = waker {
            waker.wake();
        }
        Sent::Queued
    }

    /// Moves what waits to the link's connection, which is woken when there is more. False if another link is used.
    pub fn pull(&self, epoch: u64, waker: &Waker, frames: &mut VecDeque<Vec<Bytes>>) -> bool {
        let mut slot = self.slot();
        let Some(link) = slot.link_of(epoch) else {
            return false;
        };
        link.woken = false;
        frames.append(&mut link.waiting);
        if !link.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            link.waker = Some(waker.clone());
        }
        true
    }

    /// Some of what was pulled does not wait any more.
    pub fn wrote(&self, epoch: u64, frames: usize, bytes: usize, receiver: &Receiving) {
        let has_room = {
            let mut slot = self.slot();
            slot.counts.frames_out += frames as u64;
            slot.counts.bytes_out += bytes as u64;
            let Some(link) = slot.link_of(epoch) else {
                return;
            };
            link.status.backlog_frames -= frames;
            link.status.backlog_bytes -= bytes;
            let has_room = link.refused && link.status.backlog_bytes <= self.limits.backlog / 2;
            link.refused &= !has_room;
            has_room
        };
        if let (true, Some(receiver)) = (has_room, receiver) {
            let _telling = self.tell();
            receiver.room(self.peer, self.lane);
        }
    }

    /// A heartbeat has come back.
    pub fn measured(&self, epoch: u64, round_trip_us: u32) {
        if let Some(link) = self.slot().link_of(epoch) {
            link.status.round_trip_us = Some(round_trip_us);
        }
    }

    /// Has the link's connection look at what it is to do.
    pub fn wake(&self) {
        let waker = self.slot().link.as_ref().and_then(|link| link.waker.clone());
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub fn status(&self) -> LaneStatus {
        let slot = self.slot();
        LaneStatus {
            lane: self.lane,
            link: slot.link.as_ref().map(|link| link.status),
            counts: slot.counts,
            last_lost: slot.last_lost.clone(),
        }
    }
}

impl Slot {
    fn link_of(&mut self, epoch: u64) -> Option<&mut Link> {
        self.link.as_mut().filter(|link| link.status.epoch == epoch)
    }
}

impl Link {
    fn new(new: New) -> Self {
        Self {
            present: new.present,
            status: LinkStatus {
                epoch: new.epoch,
                since: SystemTime::now(),
                by_peer: new.present.by_peer,
                incarnation: new.present.peer_incarnation,
                version: new.version,
                is_secured: new.is_secured,
                clock_ahead_ms: new.clock_ahead_ms,
                round_trip_us: None,
                backlog_frames: 0,
                backlog_bytes: 0,
            },
            waiting: VecDeque::new(),
            refused: false,
            waker: None,
            woken: false,
        }
    }
}
