//! What arguments and policies have had queues do. A declaration that no seed has come to feel proves nothing.

use super::history::{Gone, Row};
use super::ledger::Ledger;
use cluster::GroupId;
use model::{DeliveryLimit, Overflow, QueueSettings, Returned, Seq, Sorting};
use queue::DropReason;
use std::collections::BTreeMap;

/// What RabbitMQ's quorum queues allow if nothing is said.
const DEFAULT_LIMIT: u32 = 20;

/// Something that a queue does because somebody has said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    /// A message came back more than twenty times, and left.
    DefaultLimit,
    /// It stayed, where there is no limit.
    NoLimit,
    /// It left after less.
    SmallLimit,
    /// What a consumer gave back did not count.
    GivenBack,
    /// Messages of a higher level went first.
    Levels,
    /// The same by `x-max-priority`, or in turns by `x-fair-key`.
    Priorities,
    Groups,
    /// A duplicate was not taken.
    Duplicate,
    /// A message expired by the queue's time, and by its own.
    TimeToLive,
    Expiration,
    /// Nobody used the queue.
    Expires,
    /// The oldest left: there were too many, or they were too large.
    LengthDrops,
    BytesDrop,
    /// New ones were refused.
    LengthRefuses,
    BytesRefuse,
    /// One consumer was served alone.
    Active,
    /// It made room for one of a higher priority.
    Yields,
    /// A consumer had something for too long.
    Timeout,
    /// What came back had to wait, or had not.
    WaitsAll,
    WaitsFailed,
    WaitsGivenBack,
    WaitsNever,
    WaitsLonger,
    /// A dead letter was refused, and is gone.
    LetterLost,
    /// It was refused, kept, and arrived.
    LetterKept,
    /// Another policy came into force where the queue is.
    PolicyChanged,
    /// Members were removed, and their nodes became others later.
    Removed,
    MemberAgain,
}

impl Deed {
    /// All of them.
    pub const ALL: [Self; 28] = [
        Self::DefaultLimit,
        Self::NoLimit,
        Self::SmallLimit,
        Self::GivenBack,
        Self::Levels,
        Self::Priorities,
        Self::Groups,
        Self::Duplicate,
        Self::TimeToLive,
        Self::Expiration,
        Self::Expires,
        Self::LengthDrops,
        Self::BytesDrop,
        Self::LengthRefuses,
        Self::BytesRefuse,
        Self::Active,
        Self::Yields,
        Self::Timeout,
        Self::WaitsAll,
        Self::WaitsFailed,
        Self::WaitsGivenBack,
        Self::WaitsNever,
        Self::WaitsLonger,
        Self::LetterLost,
        Self::LetterKept,
        Self::PolicyChanged,
        Self::Removed,
        Self::MemberAgain,
    ];
}

/// How often the seeds have done what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exercised(BTreeMap<Deed, u64>);

impl Exercised {
    /// It was done once more.
    pub fn did(&mut self, deed: Deed) {
        *self.0.entry(deed).or_default() += 1;
    }

    /// Adds what another seed has done.
    pub fn add(&mut self, other: &Self) {
        for (deed, count) in &other.0 {
            *self.0.entry(*deed).or_default() += count;
        }
    }

    /// What was done less often than so, and how often.
    pub fn below(&self, times: u64) -> Vec<(u64, Deed)> {
        let count = |deed: &Deed| self.0.get(deed).copied().unwrap_or(0);
        let counted = Deed::ALL.iter().map(|deed| (count(deed), *deed));
        counted.filter(|(count, _)| *count < times).collect()
    }
}

impl std::fmt::Display for Exercised {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (deed, count) in &self.0 {
            write!(f, "{deed:?} {count}, ")?;
        }
        Ok(())
    }
}

/// A message has left.
pub fn left(ledger: &mut Ledger, group: GroupId, seq: Seq, how: Gone) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let Some(row) = book.history.rows.get(&seq) else {
        return;
    };
    let settings = book.terms.settings();
    let own = book.known.get(&row.id).and_then(|known| known.said.expiration_ms);
    let deed = match how {
        Gone::Dropped(DropReason::DeliveryLimit) => match settings.delivery_limit {
            Some(DeliveryLimit::Returns(DEFAULT_LIMIT)) => Some(Deed::DefaultLimit),
            _ => Some(Deed::SmallLimit),
        },
        Gone::Dropped(DropReason::Expired) => match own {
            Some(_) => Some(Deed::Expiration),
            None => Some(Deed::TimeToLive),
        },
        Gone::Dropped(DropReason::MaxLength) if settings.overflow == Overflow::DropHead => {
            limited(settings, Deed::LengthDrops, Deed::BytesDrop)
        }
        _ => None,
    };
    if let Some(deed) = deed {
        ledger.exercised(deed);
    }
}

/// Something did not come in.
pub fn declined(ledger: &mut Ledger, group: GroupId, refused: bool) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let deed = match refused {
        true => limited(book.terms.settings(), Deed::LengthRefuses, Deed::BytesRefuse),
        false => Some(Deed::Duplicate).filter(|_| book.terms.settings().deduplicates),
    };
    if let Some(deed) = deed {
        ledger.exercised(deed);
    }
}

/// Which of two limits it was, if there is one only.
fn limited(settings: &QueueSettings, length: Deed, bytes: Deed) -> Option<Deed> {
    match (settings.max_length, settings.max_length_bytes) {
        (Some(_), None) => Some(length),
        (None, Some(_)) => Some(bytes),
        _ => None,
    }
}

/// A message that came back is delivered again.
pub fn came_again(ledger: &mut Ledger, group: GroupId, row: &Row) {
    let Some(book) = ledger.books.get(&group) else {
        return;
    };
    let settings = book.terms.settings();
    let waits = match (&settings.delayed_retry, settings.retry_delay, row.until) {
        (Some(delayed), _, Some(_)) => Some(match delayed.of {
            Returned::All => Deed::WaitsAll,
            Returned::Failed => Deed::WaitsFailed,
            Returned::GivenBack => Deed::WaitsGivenBack,
        }),
        (None, Some(_), Some(_)) => Some(Deed::WaitsLonger),
        (None, None, None) if book.terms.declared.arguments.contains("x-delayed-retry-type") => {
            Some(Deed::WaitsNever)
        }
        _ => None,
    };
    let is_endless = settings.delivery_limit == Some(DeliveryLimit::Unlimited);
    let failures = row.failures();
    let given_back = row.given_back > 0 && settings.counts_failures;
    waits.into_iter().for_each(|deed| ledger.exercised(deed));
    if is_endless && failures > DEFAULT_LIMIT {
        ledger.exercised(Deed::NoLimit);
    }
    if given_back {
        ledger.exercised(Deed::GivenBack);
    }
}

/// Messages of several lanes were taken out.
pub fn sorted(ledger: &mut Ledger, group: GroupId) {
    let sorting = ledger
        .books
        .get(&group)
        .map(|book| &book.terms.settings().sorting);
    let deed = match sorting {
        Some(Sorting::Levels) => Deed::Levels,
        Some(Sorting::Priority(_)) => Deed::Priorities,
        Some(Sorting::FairKey(_)) => Deed::Groups,
        Some(Sorting::Arrival) | None => return,
    };
    ledger.exercised(deed);
}
