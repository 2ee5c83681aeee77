//! Alarms of nodes, as others hear of them: who publishes to a queue of a node that is short of something waits until it is not,
//! wherever they are connected.
//!
//! A node says at once that it has an alarm, or none any more, says to whom it can speak anew that it has one, and says that
//! again each second. What it said counts for three seconds and ends with the link: so neither a frame that is lost or overtaken
//! nor a node that stands still leaves publishers blocked for good, and without alarms nothing is said.

use crate::clients::alarms::AlarmReason;
use crate::clients::pressure::{Pressure, Release};
use model::QueueId;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A node that has an alarm says so each so many ticks, of 100 ms each.
const SAYS_AGAIN_AFTER: u32 = 10;

/// What it said counts for so many.
const COUNTS_FOR: u32 = 30;

/// The alarm of this node, and when it is to be said again.
#[derive(Debug, Default)]
pub(super) struct OwnAlarm(Mutex<(Option<AlarmReason>, u32)>);

impl OwnAlarm {
    /// This is so from now on.
    pub fn set(&self, reason: Option<AlarmReason>) {
        *self.lock() = (reason, 0);
    }

    /// The alarm, if there is one.
    pub fn get(&self) -> Option<AlarmReason> {
        self.lock().0
    }

    /// A tick of the clock. The alarm, if it is to be said now.
    pub fn tick(&self) -> Option<AlarmReason> {
        let mut own = self.lock();
        own.1 += 1;
        if own.1 < SAYS_AGAIN_AFTER {
            return None;
        }
        own.1 = 0;
        own.0
    }

    fn lock(&self) -> MutexGuard<'_, (Option<AlarmReason>, u32)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The alarm of another node.
#[derive(Debug, Default)]
pub(super) struct PeerAlarm {
    /// There is one: looked at with each publish.
    is_on: AtomicBool,
    raised: Mutex<Option<Raised>>,
}

#[derive(Debug)]
struct Raised {
    /// What publishers are told.
    text: Arc<str>,
    reason: AlarmReason,
    /// What they wait for: for each queue that the node leads another one, as it may lead it no longer before the alarm ends.
    releases: BTreeMap<Option<QueueId>, Arc<Release>>,
    /// For so many ticks it counts.
    left: u32,
}

impl PeerAlarm {
    /// The node, of this name, says this.
    pub fn said(&self, reason: Option<AlarmReason>, name: impl FnOnce() -> String) {
        let mut raised = self.lock();
        let Some(reason) = reason else {
            return self.release(raised);
        };
        match raised.as_mut().filter(|known| known.reason == reason) {
            Some(known) => known.left = COUNTS_FOR,
            None => {
                let name = name();
                tracing::warn!(
                    area = "alarm",
                    "publishers to queues on node {name} are blocked: {reason}"
                );
                let earlier = raised.take();
                *raised = Some(Raised {
                    // RabbitMQ's words come first: there are clients that look for them.
                    text: format!("{reason} (node {name})").into(),
                    reason,
                    releases: earlier.map(|earlier| earlier.releases).unwrap_or_default(),
                    left: COUNTS_FOR,
                });
                self.is_on.store(true, Ordering::Release);
            }
        }
    }

    /// There is none any more, or nobody knows.
    pub fn end(&self) {
        self.release(self.lock());
    }

    fn release(&self, mut raised: MutexGuard<'_, Option<Raised>>) {
        self.is_on.store(false, Ordering::Release);
        let ended = raised.take();
        drop(raised);
        if let Some(ended) = ended {
            tracing::warn!(area = "alarm", "this blocks publishers no more: {}", ended.text);
            ended.releases.values().for_each(|release| release.release());
        }
    }

    /// The node does not lead this queue: its publishers wait no longer.
    pub fn ends_of(&self, queue: QueueId) {
        if self.is_on.load(Ordering::Acquire) {
            let release = self
                .lock()
                .as_mut()
                .and_then(|it| it.releases.remove(&Some(queue)));
            if let Some(release) = release {
                release.release();
            }
        }
    }

    /// A tick of the clock.
    pub fn tick(&self) {
        if !self.is_on.load(Ordering::Relaxed) {
            return;
        }
        let mut raised = self.lock();
        let is_over = raised.as_mut().is_some_and(|known| {
            known.left = known.left.saturating_sub(1);
            known.left == 0
        });
        if is_over {
            self.release(raised);
        }
    }

    /// Why publishers to queues of the node are to wait, if they are: to those that are at home there, or to one that it leads.
    #[inline]
    pub fn pressure(&self, led: Option<QueueId>) -> Option<Pressure> {
        match self.is_on.load(Ordering::Acquire) {
            false => None,
            true => self.look(led),
        }
    }

    #[cold]
    fn look(&self, led: Option<QueueId>) -> Option<Pressure> {
        let mut raised = self.lock();
        let known = raised.as_mut()?;
        let release = known.releases.entry(led).or_default();
        Some(Pressure::by_alarm(known.text.clone(), release.clone()))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Raised>> {
        self.raised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    fn said(alarm: &PeerAlarm, reason: Option<AlarmReason>) {
        alarm.said(reason, || "rabbit@n2".to_owned());
    }

    fn text(alarm: &PeerAlarm) -> String {
        alarm.pressure(None).unwrap().alarm().unwrap().to_string()
    }

    #[test]
    fn publishers_wait_for_the_end_of_an_alarm_and_are_told_whose_it_is() {
        let alarm = PeerAlarm::default();
        assert!(alarm.pressure(None).is_none());
        said(&alarm, Some(AlarmReason::Memory));
        let waits = alarm.pressure(None).unwrap();
        assert_eq!(waits.alarm(), Some(&Arc::from("low on memory (node rabbit@n2)")));
        said(&alarm, Some(AlarmReason::MemoryAndDisk));
        assert_eq!(text(&alarm), "low on memory & disk (node rabbit@n2)");
        assert!(!waits.poll(Waker::noop()), "there still is one");
        said(&alarm, None);
        assert!(waits.poll(Waker::noop()) && alarm.pressure(None).is_none());
    }

    #[test]
    fn publishers_to_a_queue_wait_no_longer_once_another_node_leads_it() {
        let alarm = PeerAlarm::default();
        said(&alarm, Some(AlarmReason::Disk));
        let waits = [None, Some(QueueId(1)), Some(QueueId(2))].map(|led| alarm.pressure(led).unwrap());
        let go_on = || waits.each_ref().map(|waits| waits.poll(Waker::noop()));
        alarm.ends_of(QueueId(2));
        assert_eq!(go_on(), [false, false, true]);
        said(&alarm, Some(AlarmReason::MemoryAndDisk));
        assert_eq!(go_on(), [false, false, true]);
        said(&alarm, None);
        assert_eq!(go_on(), [true; 3]);
    }

    #[test]
    fn what_is_not_said_again_counts_for_three_seconds_and_a_node_says_it_each_second() {
        let (own, alarm) = (OwnAlarm::default(), PeerAlarm::default());
        own.set(Some(AlarmReason::Disk));
        said(&alarm, own.get());
        let waits = alarm.pressure(None).unwrap();
        for _ in 0..10 * COUNTS_FOR {
            if let Some(reason) = own.tick() {
                said(&alarm, Some(reason));
            }
            alarm.tick();
        }
        assert!(!waits.poll(Waker::noop()));
        (0..COUNTS_FOR).for_each(|_| alarm.tick());
        assert!(waits.poll(Waker::noop()) && alarm.pressure(None).is_none());
        own.set(None);
        assert!((0..20).all(|_| own.tick().is_none()));
    }
}
