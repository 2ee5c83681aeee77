//! Messages that are begun and not finished: what all connections may hold of them together, and the end of who sits on them while
//! memory is short.

use super::open::Open;
use crate::connection::Millis;
use crate::incomplete::Part;
use broker::AlarmReason;
use model::Limits;
use protocol::amqp::method::BasicPublish;
use protocol::amqp::{Arguments, Exception, ReplyCode};

/// Nothing came of what a connection has begun for so long: it sits on it.
const SITTING: Millis = 30_000;

/// A connection's incomplete messages.
pub struct Hoard {
    part: Part,
    grew_at: Millis,
    /// When to look whether it sits on them; never too late.
    look_at: Millis,
}

impl Hoard {
    /// Nothing yet.
    pub fn new(part: Part) -> Self {
        Self {
            part,
            grew_at: 0,
            look_at: Millis::MAX,
        }
    }

    /// The connection holds so many bytes now.
    #[inline]
    pub fn count(&mut self, held: usize) {
        self.part.count(held);
    }

    /// When to look next; `None` while there is little.
    pub fn look_at(&self) -> Option<Millis> {
        (self.part.is_large() && self.look_at < Millis::MAX).then_some(self.look_at)
    }
}

impl Open {
    /// More of a message has come.
    ///
    /// # Errors
    /// 506 if all connections together hold too much, and this one more than a little.
    pub(super) fn hoard(&mut self) -> Result<(), Exception> {
        let hoard = &mut self.hoard;
        hoard.part.count(self.unfinished);
        if !hoard.part.is_large() {
            hoard.look_at = Millis::MAX;
            return Ok(());
        }
        hoard.grew_at = self.ground.now;
        hoard.look_at = hoard.look_at.min(self.ground.now + SITTING);
        let most = self.hoards_most();
        match self.hoard.part.of_all() > most {
            true => Err(refusal(&format!(
                "messages that are still incomplete on this node take more than {most} bytes"
            ))),
            false => Ok(()),
        }
    }

    /// What all connections may hold together, in bytes: half of what the process may hold before the memory alarm, and always
    /// some of the largest messages.
    fn hoards_most(&self) -> u64 {
        let largest = self.ground.limits.message_bytes;
        let floor = largest.saturating_mul(Limits::UNFINISHED_LARGEST);
        (self.ground.session.memory_high_watermark() / 2).max(floor)
    }

    /// Ends a connection that sits on a part of a message while others need the memory: with the alarm on nobody publishes, so an alarm
    /// that comes of such parts would never end.
    pub(super) fn end_hoard(&mut self) {
        let now = self.ground.now;
        if self.hoard.look_at().is_none_or(|at| now < at) {
            return;
        }
        let sits = now >= self.hoard.grew_at + SITTING;
        self.hoard.look_at = match sits {
            true => now + SITTING / 10,
            false => self.hoard.grew_at + SITTING,
        };
        let (all, most) = (self.hoard.part.of_all(), self.hoards_most());
        let alarm = matches!(self.alarm, Some(AlarmReason::Memory | AlarmReason::MemoryAndDisk));
        let short = all >= most / 4 * 3 || (alarm && all >= most / 4);
        if sits && short && self.close_request.is_none() {
            let text = "a message stayed incomplete for too long while memory was short";
            self.close_request = Some(refusal(text));
        }
    }
}

fn refusal(text: &str) -> Exception {
    Exception::new(ReplyCode::ResourceError, text.to_owned(), BasicPublish::ID)
}
