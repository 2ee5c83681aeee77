//! Messages that are begun and not finished: what all connections may hold of them together, and the end of connections
//! that stall in the middle of one while memory is short.

use super::open::Open;
use crate::connection::Millis;
use crate::incomplete::Part;
use broker::AlarmReason;
use model::Limits;
use protocol::amqp::method::BasicPublish;
use protocol::amqp::{Arguments, Exception, ReplyCode};

/// A connection that sends nothing more of a message for so long has stalled.
const STALLED_MS: Millis = 30_000;

/// A connection's incomplete messages.
pub struct IncompleteMessages {
    part: Part,
    grew_at: Millis,
    /// When to look whether it has stalled; never too late.
    look_at: Millis,
}

impl IncompleteMessages {
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
    pub(super) fn grow_incomplete(&mut self) -> Result<(), Exception> {
        let incomplete = &mut self.incomplete;
        incomplete.part.count(self.unfinished);
        if !incomplete.part.is_large() {
            incomplete.look_at = Millis::MAX;
            return Ok(());
        }
        incomplete.grew_at = self.shared.now;
        incomplete.look_at = incomplete.look_at.min(self.shared.now + STALLED_MS);
        let most = self.incomplete_most();
        match self.incomplete.part.of_all() > most {
            true => Err(refusal(&format!(
                "messages that are still incomplete on this node take more than {most} bytes"
            ))),
            false => Ok(()),
        }
    }

    /// What all connections may hold together, in bytes: half of what the process may hold before the memory alarm, and always
    /// some of the largest messages.
    fn incomplete_most(&self) -> u64 {
        let largest = self.shared.limits.message_bytes;
        let floor = largest.saturating_mul(Limits::UNFINISHED_LARGEST);
        (self.shared.session.memory_high_watermark() / 2).max(floor)
    }

    /// Ends a connection that has stalled in the middle of a message while others need the memory: with the alarm on
    /// nobody publishes, so an alarm that comes of such parts would never end.
    pub(super) fn end_incomplete(&mut self) {
        let now = self.shared.now;
        if self.incomplete.look_at().is_none_or(|at| now < at) {
            return;
        }
        let stalled = now >= self.incomplete.grew_at + STALLED_MS;
        self.incomplete.look_at = match stalled {
            true => now + STALLED_MS / 10,
            false => self.incomplete.grew_at + STALLED_MS,
        };
        let (all, most) = (self.incomplete.part.of_all(), self.incomplete_most());
        let alarm = matches!(self.alarm, Some(AlarmReason::Memory | AlarmReason::MemoryAndDisk));
        let short = all >= most / 4 * 3 || (alarm && all >= most / 4);
        if stalled && short && self.close_request.is_none() {
            let text = "a message stayed incomplete for too long while memory was short";
            self.close_request = Some(refusal(text));
        }
    }
}

fn refusal(text: &str) -> Exception {
    Exception::new(ReplyCode::ResourceError, text.to_owned(), BasicPublish::ID)
}
