//! One value that every decoder consults before it allocates.

/// Limits on what comes from outside. Sizes are in bytes unless the name says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Largest frame after tuning, including its 8 bytes of framing (RabbitMQ: `frame_max`, 131,072).
    pub frame_max: u32,
    /// Largest frame before login (RabbitMQ: `initial_frame_max`, 8,192).
    pub initial_frame_max: u32,
    /// Highest channel number (RabbitMQ: `channel_max`, 2,047).
    pub channel_max: u16,
    /// Largest message body (RabbitMQ: `max_message_size`, 16 MiB).
    pub message_bytes: u64,
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
}

impl Default for Limits {
    fn default() -> Self {
        Self::USUAL
    }
}
