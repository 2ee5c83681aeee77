//! A queue ends unused once nobody has used it for so long, whoever decides, and not before.

use crate::cluster::ledger::{Book, Leadership, Ledger};
use std::time::Duration;

/// What a leader has decided may leave it so much later: whoever came meanwhile is not known to have been there when it decided.
pub const LATE: Duration = Duration::from_secs(6);

/// Clocks count in milliseconds, and make up for small differences: something may be due so much earlier.
const EARLY: Duration = Duration::from_millis(30);

/// A leader says that nobody uses its queue. Somebody consumes from it all the time since `consumed`, if that is known.
pub fn ended(ledger: &mut Ledger, by: Leadership, consumed: Option<Duration>) {
    let (now, latest) = (ledger.now, ledger.latest + EARLY);
    let Some(book) = ledger.books.get_mut(&by.group) else {
        return;
    };
    // It was declared again when that was said last; what is said now may have been decided before.
    let is_known = book.ended.is_some_and(|at| at >= book.used && at + LATE > now);
    book.ended = Some(now);
    let is_over = |lives| book.used + Duration::from_millis(lives) <= latest;
    let is_due = book
        .terms
        .may(|settings| settings.expires_ms.is_some_and(is_over));
    let lives = book.terms.settings().expires_ms;
    let used = book.used;
    if !is_due && !is_known {
        let what = format!("{by:?} at {now:?} ends what lives for {lives:?} ms, and was used at {used:?}");
        ledger.violated("a queue that is used does not end", what);
    }
    if let Some(since) = consumed.filter(|since| *since + LATE <= now) {
        let what = format!("{by:?} at {now:?}: somebody consumes since {since:?}");
        ledger.violated("a queue that is used does not end", what);
    }
}

/// Nobody has used any queue since then, and each is led: those that end unused have ended.
pub fn all_have_ended(ledger: &Ledger, since: Duration) -> bool {
    let ends = |book: &&Book| book.terms.settings().expires_ms.is_some();
    let mut books = ledger.books.values().filter(ends);
    books.all(|book| book.ended.is_some_and(|at| at >= since))
}
