//! Somebody who looks at messages of a stream and is no reader: nothing waits for it, and nothing of it is left afterwards.

use super::log::{StreamLog, parts};
use super::messages;
use model::Message;
use std::ops::ControlFlow;
use std::time::Duration;
use storage::StorageError;

impl StreamLog {
    /// Shows the messages that are safe from this offset on, in their order and as they are over AMQP 0-9-1, until `visit`
    /// breaks, all that are there at the start were shown, or so much time has passed: false if nothing was shown until then. It
    /// reads files, on the thread that asks: the newest chunks in memory count those who read them.
    ///
    /// # Errors
    /// A file cannot be read. What is damaged is passed over.
    pub fn browse(
        &self,
        from: u64,
        stream: &str,
        within: Duration,
        mut visit: impl FnMut(&Message<'_>) -> ControlFlow<()>,
    ) -> Result<bool, StorageError> {
        let (below, until) = (self.committed(), self.node.world.elapsed() + within);
        let mut has_shown = false;
        let (mut at, mut cursor) = (from, None);
        while at < below {
            let page = self.read(&mut cursor, at, below)?;
            let before = at;
            for bytes in page {
                let Some((header, ..)) = parts(&bytes) else {
                    continue;
                };
                let mut rest = (header.next_offset() > at).then_some(at);
                while let Some(first) = rest {
                    if self.node.world.elapsed() >= until {
                        return Ok(has_shown);
                    }
                    let (block, more) = messages::some(&bytes, first, stream);
                    for number in 0..block.len() {
                        has_shown = true;
                        if visit(&block.message(number)).is_break() {
                            return Ok(true);
                        }
                    }
                    rest = more;
                }
                at = at.max(header.next_offset());
            }
            if at == before {
                // What is below was dropped meanwhile, or is damaged to its end.
                break;
            }
        }
        Ok(true)
    }
}
