//! What is known of all nodes together: which request made which version, and what anybody was told.

use catalog::shared::{Contents, Happened, Said, Sender};
use model::Journaled;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a node told of a version: it is the same on each.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    sender: Sender,
    number: u64,
    said: String,
    generation: u64,
}

/// See the module.
#[derive(Default)]
pub struct Ledger(Mutex<Book>);

#[derive(Default)]
struct Book {
    /// By version.
    history: BTreeMap<u64, Entry>,
    /// In which version a request was decided.
    decided: BTreeMap<(Sender, u64), u64>,
    /// Digests of contents, by version.
    contents: BTreeMap<u64, Vec<u8>>,
    /// The highest version of which anybody was told.
    told: u64,
    wrong: Vec<String>,
    counts: Counts,
}

/// What happened in a seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub changes: u64,
    pub refused: u64,
    pub timed_out: u64,
    pub reads: u64,
    pub unread: u64,
    pub routes: u64,
    pub stale: u64,
    pub resumed: u64,
    pub leaders: u64,
    /// In how many milliseconds after the last healing a majority served, at the most.
    pub served_ms: u64,
}

impl Counts {
    /// Those of both.
    pub fn add(&mut self, other: Self) {
        self.changes += other.changes;
        self.refused += other.refused;
        self.timed_out += other.timed_out;
        self.reads += other.reads;
        self.unread += other.unread;
        self.routes += other.routes;
        self.stale += other.stale;
        self.resumed += other.resumed;
        self.leaders += other.leaders;
        self.served_ms = self.served_ms.max(other.served_ms);
    }
}

/// An answer in words: what other nodes are told of a refusal is its text.
fn words(said: &Said) -> String {
    match said {
        Ok(answer) => format!("{answer:?}"),
        Err(refusal) => format!("{:?}: {refusal}", refusal.kind()),
    }
}

impl Ledger {
    fn lock(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something does not hold.
    pub fn violated(&self, what: String) {
        self.lock().wrong.push(what);
    }

    /// What did not hold first.
    pub fn violation(&self) -> Option<String> {
        self.lock().wrong.first().cloned()
    }

    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Somebody leads who did not.
    pub fn led(&self) {
        self.lock().counts.leaders += 1;
    }

    /// A majority serves, so long after the last healing.
    pub fn served(&self, ms: u64) {
        let mut book = self.lock();
        if book.counts.served_ms == 0 {
            book.counts.served_ms = ms;
        }
    }

    /// A node that had this version was told what happened next: the same as every other node.
    pub fn happened(&self, before: u64, happened: &Happened) {
        let mut book = self.lock();
        let version = happened.version;
        if version != before + 1 {
            book.wrong.push(format!("{version} was told behind {before}"));
        }
        let entry = Entry {
            sender: happened.sender,
            number: happened.number,
            said: words(&happened.said),
            generation: happened.view.generation(),
        };
        if let Some(known) = book.history.get(&version) {
            if *known != entry {
                let what = format!("version {version} is {known:?} and {entry:?}");
                book.wrong.push(what);
            }
            return;
        }
        let request = (entry.sender, entry.number);
        if let Some(first) = book.decided.insert(request, version) {
            let what = format!("{request:?} was decided in {first} and in {version}");
            book.wrong.push(what);
        }
        book.history.insert(version, entry);
    }

    /// A node that had this version was told everything anew.
    pub fn resumed(&self, before: u64, contents: &Contents) {
        let mut book = self.lock();
        book.counts.resumed += u64::from(before > 0);
        let version = contents.version();
        if version < before {
            book.wrong.push(format!("contents of {version} replace {before}"));
        }
        let generation = contents.view().generation();
        if let Some(entry) = book.history.get(&version)
            && entry.generation != generation
        {
            let what = format!("contents of {version} have generation {generation}");
            book.wrong.push(what);
        }
        let mut bytes = Vec::new();
        contents.encode(&mut bytes);
        if let Some(known) = book.contents.get(&version)
            && *known != bytes
        {
            book.wrong
                .push(format!("contents of {version} are not the same everywhere"));
        }
        book.contents.insert(version, bytes);
    }

    /// The highest version of which anybody was told: whoever asks from now on sees at least that.
    pub fn floor(&self) -> u64 {
        self.lock().told
    }

    /// A client has the answer to this request.
    pub fn changed(&self, sender: Sender, number: u64, said: &Said) {
        let mut book = self.lock();
        let version = book.decided.get(&(sender, number)).copied();
        let is_known = version.and_then(|version| book.history.get(&version));
        let is_right = is_known.map(|entry| entry.said == words(said));
        let timed_out = said.as_ref().is_err_and(|refusal| {
            refusal.kind() == catalog::RefusalKind::Internal && refusal.to_string().ends_with("timed out")
        });
        match is_right {
            _ if timed_out => book.counts.timed_out += 1,
            Some(true) => {
                book.told = book.told.max(version.unwrap_or(0));
                match said {
                    Ok(_) => book.counts.changes += 1,
                    Err(_) => book.counts.refused += 1,
                }
            }
            Some(false) => {
                let what = format!("request {number} of {sender:?} was answered {}", words(said));
                book.wrong.push(what);
            }
            // All nodes that live were sent contents: nobody told of it.
            None => {}
        }
    }

    /// A client that asked when `floor` was the highest version told has seen this one.
    pub fn read(&self, floor: u64, version: Option<u64>) {
        let mut book = self.lock();
        match version {
            Some(version) => {
                if version < floor {
                    book.wrong
                        .push(format!("{floor} was told, and then {version} was read"));
                }
                book.told = book.told.max(version);
                book.counts.reads += 1;
            }
            None => book.counts.unread += 1,
        }
    }

    /// A node routes by this version; `None` if it may not.
    pub fn routed(&self, version: Option<u64>) {
        let mut book = self.lock();
        match version {
            Some(version) => {
                let told = book.told;
                if version < told {
                    book.wrong
                        .push(format!("{told} was told, and then {version} was routed by"));
                }
                book.counts.routes += 1;
            }
            None => book.counts.stale += 1,
        }
    }
}
