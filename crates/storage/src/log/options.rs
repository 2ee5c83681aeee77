//! How a log is laid out and how hard it tries.

/// Settings of a log. The defaults suit a node's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogOptions {
    /// Size of one file, preallocated. A single batch larger than this gets a file of its own size.
    pub file_bytes: u64,
    /// Above this size of all files in use, journals are asked to make the oldest file free.
    pub size_limit: u64,
    /// How many free files are kept for reuse. What was written once needs no allocation: its syncs take half the time and half
    /// the processor. A checkpoint frees many files at once, so there should be room for all within `size_limit`.
    pub spare_files: usize,
    /// Whether the next file is written with zeros ahead, on a thread of its own, when there is no free one. Syncs of the log's
    /// first files then take no longer than those of files in reuse.
    pub make_ahead: bool,
    /// How long an append that nobody waits for may stay unsynced, in milliseconds.
    pub lazy_sync_ms: u64,
    /// How long a step that lost nothing, and failed, waits at first before it is tried again, in milliseconds. Each
    /// time it waits twice as long, up to 64 times as long. 0: it is not tried again, the log fails.
    pub retry_ms: u64,
    /// Opens a log with damage that cannot be attributed to a journal, or with files missing, leaving out what cannot
    /// be read. Damage is reported in any case; see [`Recovery`](super::Recovery).
    pub quarantine: bool,
    /// The caller knows of something that only a log explains: one without any file is refused instead of begun anew.
    pub must_exist: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self {
            file_bytes: 64 << 20,
            size_limit: 256 << 20,
            spare_files: 4,
            make_ahead: true,
            lazy_sync_ms: 100,
            retry_ms: 100,
            quarantine: false,
            must_exist: false,
        }
    }
}
