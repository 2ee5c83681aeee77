//! Memory and disk come back: a node whose queues are empty holds no body and no segment, and its log is short.

use crate::ledger::Ledger;
use broker::Broker;
use storage::faulty::FaultyFs;

/// All queues are empty, and everything that was due is done.
pub fn check(ledger: &mut Ledger, broker: &Broker, files: &FaultyFs, log_limit: u64) {
    let totals = broker.queue_totals();
    if totals.ready + totals.unacked > 0 {
        ledger.violated("memory and disk come back", format!("queues hold {totals:?}"));
    }
    let memory = broker.message_memory();
    if memory > 0 {
        ledger.violated(
            "memory and disk come back",
            format!("empty queues hold {memory} bytes of messages"),
        );
    }
    let all = files.files();
    // A queue goes on in its last file.
    let mut files_of = std::collections::BTreeMap::new();
    for path in all.iter().filter(|path| path.starts_with("/data/queues")) {
        *files_of.entry(path.parent()).or_insert(0) += 1;
    }
    if files_of.values().any(|files| *files > 1) {
        ledger.violated(
            "memory and disk come back",
            format!("empty queues have files: {files_of:?}"),
        );
    }
    let log: u64 = (all.iter())
        .filter(|path| path.starts_with("/data/log") && path.extension().is_some_and(|it| it == "wal"))
        .filter_map(|path| files.bytes(path))
        .map(|bytes| bytes.len() as u64)
        .sum();
    if log > log_limit {
        ledger.violated("memory and disk come back", format!("the log takes {log} bytes"));
    }
}
