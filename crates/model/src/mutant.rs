//! What a broken queue would do that several nodes have: each of these must be found by the simulator or by a scenario, or its
//! invariants see nothing.
//!
//! Only the simulator and tests ask for the feature `mutants`. Without it nothing is ever done wrong, which the compiler knows.

#[cfg(feature = "mutants")]
use std::cell::Cell;

/// What is done wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// What a leader has decided leaves before it is committed.
    LeavesBeforeCommit,
    /// What saw nothing new leaves without a proof that nobody else leads.
    LeavesWithoutProof,
    /// A leader that is deposed goes on with what it had decided and nobody else has.
    KeepsWhatWasUndecided,
    /// A checkpoint of what is not committed counts at once.
    ChecksWhatIsUndecided,
    /// The log forgets bodies that the last checkpoint speaks of.
    ReleasesBodies,
    /// A node sends again what was taken already, under new numbers.
    SendsAgainAsNew,
    /// A node sends nothing again.
    SendsNothingAgain,
    /// A node does not say what its consumers hold.
    HoldsNothing,
    /// What consumers were done with is not said again to the next leader.
    ForgetsResolved,
    /// A new leader asks nobody what their consumers hold.
    AwaitsNobody,
    /// What is sent again is taken again.
    RecognisesNothing,
    /// That something was refused is not on record.
    ForgetsRefused,
    /// That messages were handed out is not on record.
    ForgetsHandedOut,
    /// Checkpoints don't say that messages were handed out.
    ChecksNoHandedOut,
    /// Checkpoints don't say what nodes have sent.
    ChecksNoSenders,
    /// That a node counted as down is not on record.
    ForgetsDown,
    /// Which nodes may hold messages is not on record.
    ForgetsHolders,
    /// A claim counts though the message has come back since.
    BelievesOldClaims,
    /// Transient messages have no record.
    ForgetsTransient,
    /// What consumers were done with has no record.
    ForgetsSettled,
    /// What comes back to the queue is not marked as delivered before.
    MarksNothing,
    /// What a leader has dropped for a limit has no record.
    ForgetsDropped,
    /// A new leader serves whoever comes first of those of whom one at a time is to be served.
    ForgetsActive,
    /// Bodies that a peer has sent are kept under the numbers of others.
    MisplacesBodies,
    /// Bodies that a peer has sent are remembered before they are synced.
    KeepsUnsynced,
    /// Contents that were fetched count before they are durable.
    InstallsUnsynced,
    /// What is committed behind contents is passed over while they are fetched.
    InstallsWithoutTail,
    /// Bodies of contents that were fetched are given back once those are installed.
    ReleasesFetched,
    /// That a queue was handed over to a group is on record before the group has its contents.
    HandsOverBefore,
    /// The group goes on before that is on record.
    HandsOverLater,
    /// A group is forgotten before the queue's own journal has its contents.
    ForgetsBefore,
    /// A request to the catalog that was decided already is decided again.
    CatalogForgets,
    /// Whoever changes the catalog is answered before nodes with a lease have applied that.
    CatalogAnswersEarly,
    /// A new leader of the catalog does not wait for leases that others gave.
    CatalogWaitsForNobody,
    /// A lease on the catalog is counted from when the answer came.
    LeaseFromAnswer,
    /// A lease on the catalog is given without a proof that nobody else leads.
    LeaseUnproven,
    /// What is sent on a second time is taken for a duplicate of itself.
    DropsOwnDuplicate,
    /// That a key has passed is on record before its message has arrived.
    WritesUnarrived,
    /// No key is remembered.
    RemembersNoKey,
    /// What is published on the home of a deduplicating exchange goes straight to queues elsewhere.
    PassesByMemory,
    /// Some of what has arrived is sent on once more.
    SendsArrivedAgain,
    /// Some of what is to be sent on waits, and what comes then does not.
    LetsOthersPass,
    /// A delayed message waits half its time.
    HalvesDelays,
    /// What a consumer gives back counts for the delivery limit.
    CountsGivenBack,
    /// That what came back was given back has no record.
    ForgetsGivenBack,
    /// What came back too often is delivered again.
    SparesSpent,
    /// What came back is tried again without waiting.
    NeverWaits,
    /// It is to wait, on record, and is tried again all the same.
    TriesAtOnce,
    /// All messages are of the usual level.
    IgnoresLevels,
    /// Nothing is dropped for a limit.
    KeepsTooMany,
    /// The active consumer makes room while it has something.
    YieldsAtOnce,
    /// It makes room for nobody.
    YieldsNever,
    /// What nobody was given is marked as delivered before.
    MarksNew,
    /// A dead letter that was refused is gone, though it is to arrive at least once.
    DropsRefusedLetters,
    /// A group goes on with a queue before it is durable that it has its contents.
    GrowsUnsynced,
    /// The terms of a group begin anew, though the queue's node has decided in others.
    GrowsInOldTerms,
    /// What another node had asked of a queue that has become a group's is asked once more by the queue's node.
    GrowthAsksForNodes,
    /// What was asked of a queue while it became a group's is forgotten.
    GrowthDropsWaiting,
    /// A start takes a queue that was to become a group's for one that is.
    GrowthForgetsOwn,
    /// The next group of a queue has the number of the one before.
    GroupsShareNumbers,
    /// A node that has a queue alone again decides in terms that have been.
    RetreatsInOldTerms,
    /// A start begins a queue that is to be handed back with nothing.
    RetreatForgetsGroup,
    /// A stream's files take what its log has, whether it is committed or not.
    FilesTakeUncommitted,
    /// A checkpoint of a stream counts on files that are not synced.
    CountsUnsyncedFiles,
    /// A start takes what the log has of a stream for what its files have.
    StartsBehindLog,
}

impl Mutant {
    /// All of them, but for [`Self::OF_HANDOVER`], [`Self::OF_CATALOG`], [`Self::OF_EXCHANGES`], [`Self::OF_GROWTH`] and
    /// [`Self::OF_STREAMS`].
    pub const ALL: [Self; 39] = [
        Self::LeavesBeforeCommit,
        Self::LeavesWithoutProof,
        Self::KeepsWhatWasUndecided,
        Self::ChecksWhatIsUndecided,
        Self::ReleasesBodies,
        Self::SendsAgainAsNew,
        Self::SendsNothingAgain,
        Self::HoldsNothing,
        Self::ForgetsResolved,
        Self::AwaitsNobody,
        Self::RecognisesNothing,
        Self::ForgetsRefused,
        Self::ForgetsHandedOut,
        Self::ChecksNoHandedOut,
        Self::ChecksNoSenders,
        Self::ForgetsDown,
        Self::ForgetsHolders,
        Self::BelievesOldClaims,
        Self::ForgetsTransient,
        Self::ForgetsSettled,
        Self::MarksNothing,
        Self::ForgetsDropped,
        Self::ForgetsActive,
        Self::MisplacesBodies,
        Self::KeepsUnsynced,
        Self::InstallsUnsynced,
        Self::InstallsWithoutTail,
        Self::ReleasesFetched,
        Self::CountsGivenBack,
        Self::ForgetsGivenBack,
        Self::SparesSpent,
        Self::NeverWaits,
        Self::TriesAtOnce,
        Self::IgnoresLevels,
        Self::KeepsTooMany,
        Self::YieldsAtOnce,
        Self::YieldsNever,
        Self::MarksNew,
        Self::DropsRefusedLetters,
    ];

    /// Those of a queue whose journal becomes another one.
    pub const OF_HANDOVER: [Self; 3] = [Self::HandsOverBefore, Self::HandsOverLater, Self::ForgetsBefore];

    /// Those of a catalog that several nodes agree on.
    pub const OF_CATALOG: [Self; 5] = [
        Self::CatalogForgets,
        Self::CatalogAnswersEarly,
        Self::CatalogWaitsForNobody,
        Self::LeaseFromAnswer,
        Self::LeaseUnproven,
    ];

    /// Those of a queue that is one node's and several nodes' by turns.
    pub const OF_GROWTH: [Self; 8] = [
        Self::GrowsUnsynced,
        Self::GrowsInOldTerms,
        Self::GrowthAsksForNodes,
        Self::GrowthDropsWaiting,
        Self::GrowthForgetsOwn,
        Self::GroupsShareNumbers,
        Self::RetreatsInOldTerms,
        Self::RetreatForgetsGroup,
    ];

    /// Those of streams that several nodes have.
    pub const OF_STREAMS: [Self; 3] = [
        Self::FilesTakeUncommitted,
        Self::CountsUnsyncedFiles,
        Self::StartsBehindLog,
    ];

    /// Those of exchanges that keep something.
    pub const OF_EXCHANGES: [Self; 7] = [
        Self::DropsOwnDuplicate,
        Self::WritesUnarrived,
        Self::RemembersNoKey,
        Self::PassesByMemory,
        Self::SendsArrivedAgain,
        Self::LetsOthersPass,
        Self::HalvesDelays,
    ];

    /// Whether this is done wrong in this thread.
    #[inline]
    #[must_use]
    pub fn is_on(self) -> bool {
        #[cfg(feature = "mutants")]
        return NOW.get() == Some(self);
        #[cfg(not(feature = "mutants"))]
        false
    }

    /// What is done wrong in this thread from now on.
    #[cfg(feature = "mutants")]
    pub fn turn_on(mutant: Option<Self>) {
        NOW.set(mutant);
    }
}

#[cfg(feature = "mutants")]
thread_local! {
    static NOW: Cell<Option<Mutant>> = const { Cell::new(None) };
}
