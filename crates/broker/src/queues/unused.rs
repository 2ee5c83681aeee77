//! The host of a queue that a group's member turns: nobody asks it anything, so there is no machine until somebody does all the
//! same. A node with ten thousand of them would spend 20 MB on these.

use super::host::{QueueHost, Turned};
use super::{QueueJournal, QueueType};
use crate::node::ends::Ends;
use model::{Incarnation, QueueSettings, Seq, Timestamp};
use queue::{Effect, HandOver, Inspect, Losses, OwnConsumer, Request, Status};
use storage::JournalId;

/// See the module.
pub struct Unused {
    made: &'static dyn QueueType,
    /// Once something was asked of it.
    host: Option<Box<dyn QueueHost>>,
}

impl Unused {
    /// Of a queue of this kind.
    pub fn new(made: &'static dyn QueueType) -> Self {
        Self { made, host: None }
    }

    fn start(&self) -> Box<dyn QueueHost> {
        self.made.start(QueueSettings::default(), QueueJournal::None)
    }
}

impl QueueHost for Unused {
    fn plain(self: Box<Self>) -> Box<dyn QueueHost> {
        self
    }

    fn handle(&mut self, now: Timestamp, request: Request<Ends>) {
        let mut host = self.host.take().unwrap_or_else(|| self.start());
        host.handle(now, request);
        self.host = Some(host);
    }

    fn commit(&mut self, act: &mut dyn FnMut(Effect<Ends>)) -> Turned {
        match &mut self.host {
            Some(host) => host.commit(act),
            None => self.turned(),
        }
    }

    fn turned(&self) -> Turned {
        let nothing = || Turned {
            status: Status {
                next_seq: 1,
                ..Status::default()
            },
            lost: 0,
            wakes_at_ms: u64::MAX,
        };
        self.host.as_ref().map_or_else(nothing, |host| host.turned())
    }

    fn inspect(&self) -> &dyn Inspect {
        match &self.host {
            Some(host) => host.inspect(),
            None => &Nothing,
        }
    }

    fn hand_over(&self) -> HandOver<Vec<u8>> {
        match &self.host {
            Some(host) => host.hand_over(),
            None => self.start().hand_over(),
        }
    }

    fn segments(&self) -> Option<JournalId> {
        None
    }

    fn own_consumers(&self) -> Vec<OwnConsumer<Ends>> {
        self.host
            .as_ref()
            .map_or_else(Vec::new, |host| host.own_consumers())
    }
}

/// A machine that has nothing yet.
struct Nothing;

impl Inspect for Nothing {
    fn losses(&self) -> Losses {
        Losses::default()
    }

    fn lost(&self) -> u64 {
        0
    }

    fn back(&self, _: Option<Seq>, _: u64) -> Option<Seq> {
        Some(1)
    }

    fn senders(&self) -> Vec<Incarnation> {
        Vec::new()
    }

    fn bounds(&self) -> Option<(Seq, Seq)> {
        Some((1, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queues::queue_type;
    use catalog::QueueKind;

    #[test]
    fn it_looks_like_an_empty_queue_and_answers_like_one() {
        let made = queue_type(QueueKind::Quorum).unwrap();
        let mut plain = made.start(QueueSettings::default(), QueueJournal::None);
        let mut unused = Unused::new(made);
        let same = |plain: &dyn QueueHost, unused: &Unused| {
            let (this, that) = (plain.turned(), unused.turned());
            assert_eq!(this.status, that.status);
            assert_eq!((this.lost, this.wakes_at_ms), (that.lost, that.wakes_at_ms));
            let (this, that) = (plain.inspect(), unused.inspect());
            assert_eq!(
                this.look(None, 0, 1).spans.len(),
                that.look(None, 0, 1).spans.len()
            );
            assert_eq!(this.back(None, 1), that.back(None, 1));
            assert_eq!(this.bounds(), that.bounds());
            assert_eq!(this.losses(), that.losses());
            assert_eq!(this.is_sorted(), that.is_sorted());
            assert_eq!(plain.hand_over(), unused.hand_over());
        };
        same(&*plain, &unused);
        assert!(unused.host.is_none());
        for host in [&mut *plain, &mut unused as &mut dyn QueueHost] {
            host.handle(Timestamp(1), Request::Retire);
            host.commit(&mut |_| {});
        }
        same(&*plain, &unused);
        assert!(unused.host.is_some());
    }
}
