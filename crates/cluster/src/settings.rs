//! What may be chosen. Times are in ticks of the node, of which the host brings one each 100 ms.

/// The limits and times of a node's groups.
#[derive(Debug, Clone)]
pub struct Settings {
    /// So long nothing was heard of a peer: it is suspected, and whoever follows it looks for another leader.
    pub suspect_after: u32,
    /// The least time in which a group that is awake misses its leader; also how long a leader holds out without a majority.
    pub election: u32,
    /// So many groups ask for votes at once when their leader's node is lost.
    pub elections_at_once: usize,
    /// If there are more, they do so within so many ticks.
    pub elections_spread: u32,
    /// How often the leader of a group that is awake says that it leads.
    pub heartbeat: u32,
    /// A log that has not synced for so long hands over what its node leads.
    pub hang_after: u32,
    /// A member that has been cut off from its leader for so long, but not from all others, gets another leader if one
    /// reaches all. With `suspect_after`, an election and the leases of the leader before, this is less than the two seconds for
    /// which publishes wait.
    pub cut_after: u32,
    /// So many leaderships are handed over in a tick.
    pub handovers_a_tick: usize,
    /// A snapshot that a follower was offered is offered once more each time that so long has passed without an answer.
    pub snapshot_again: u32,
    /// After this time it is offered a later one, if there is one.
    pub snapshot_timeout: u32,
    /// So many bytes of a group a member takes into memory whose log does not sync: what comes beyond is said again.
    pub unsynced_bytes: usize,
    /// How many bytes of records a group takes that aren't committed yet.
    pub uncommitted_bytes: usize,
    /// The least size at which a message with entries is cut.
    pub message_bytes: u64,
    /// Messages with entries under way to a member.
    pub in_flight: usize,
    /// So many bytes of what is applied stay in a group's memory for members that are a little behind.
    pub kept_bytes: usize,
    /// The groups of a node that are awake share so many of these bytes.
    pub kept_bytes_a_node: usize,
    /// So many digests are said to a peer in a tick when its link is new.
    pub digests_a_tick: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            suspect_after: 4,
            election: 10,
            elections_at_once: 500,
            elections_spread: 4,
            heartbeat: 2,
            hang_after: 10,
            cut_after: 8,
            handovers_a_tick: 2_000,
            snapshot_again: 10,
            snapshot_timeout: 100,
            unsynced_bytes: 32 << 20,
            uncommitted_bytes: 8 << 20,
            message_bytes: 256 << 10,
            in_flight: 32,
            kept_bytes: 2 << 20,
            kept_bytes_a_node: 64 << 20,
            digests_a_tick: 4_000,
        }
    }
}
