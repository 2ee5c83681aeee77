//! One value that every decoder consults before it allocates.

/// Limits on what comes from outside. Sizes are in bytes unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest frame after tuning, including its 8 bytes of framing (RabbitMQ: `frame_max`, 131,072).
    pub frame_max: u32,
    /// Largest frame before login (RabbitMQ: `initial_frame_max`, 8,192).
    pub initial_frame_max: u32,
    /// How many channels a connection may open (RabbitMQ: `channel_max`, 2,047).
    pub channel_max: u16,
    /// Largest message body (RabbitMQ: `max_message_size`, 16 MiB).
    pub message_bytes: u64,
    /// What a connection's messages that are still coming in may take together (`max_unfinished_size`, 512 MiB; RabbitMQ has
    /// no such limit). [`Limits::unfinished_most`] counts.
    pub unfinished_bytes: u64,
    /// How deep tables and arrays may nest.
    pub table_depth: usize,
    /// How many entries a table or array may have in all, nested ones counted.
    pub table_entries: usize,
    /// From accept to a finished login, in milliseconds (RabbitMQ: `handshake_timeout`, 10,000).
    pub handshake_ms: u64,
}

impl Limits {
    const USUAL: Self = Self {
        frame_max: 131_072,
        initial_frame_max: 8_192,
        channel_max: 2_047,
        message_bytes: 16 * 1024 * 1024,
        unfinished_bytes: 512 * 1024 * 1024,
        table_depth: 32,
        table_entries: 1_024,
        handshake_ms: 10_000,
    };

    /// For what was taken already: what the broker adds to a message's headers, such as a long history of deaths, may take
    /// them beyond what a client may send, and arguments may have been declared within wider limits. They must be read all
    /// the same, and cannot be larger than their bytes.
    pub const STORED: Self = Self {
        table_depth: usize::MAX,
        table_entries: usize::MAX,
        ..Self::USUAL
    };

    /// So many messages of the largest size may always come in at the same time on different channels of one connection: less
    /// would be met by clients who do nothing wrong.
    pub const UNFINISHED_LARGEST: u64 = 8;

    /// What a connection's messages that are still coming in may take together, in bytes.
    pub fn unfinished_most(&self) -> u64 {
        let largest = self.message_bytes.saturating_mul(Self::UNFINISHED_LARGEST);
        self.unfinished_bytes.max(largest)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_of_the_largest_messages_may_always_come_at_the_same_time() {
        let most = |message_bytes, unfinished_bytes| {
            let limits = Limits {
                message_bytes,
                unfinished_bytes,
                ..Limits::default()
            };
            limits.unfinished_most()
        };
        assert_eq!(most(1_000, 10_000), 10_000);
        assert_eq!(most(1_000, 7_000), 8_000);
        assert_eq!(most(u64::MAX, 1), u64::MAX);
        assert_eq!(Limits::default().unfinished_most(), 512 * 1024 * 1024);
    }
}
