//! Makes a data directory that has lost something whole again: what is left is written anew, and what was there before
//! is kept aside.

use crate::broker::Broker;
use crate::options::{OpenError, Options};
use crate::queues::JournalOf;
use crate::recovery::{LOG, Losses, SET_ASIDE, inspect};
use std::path::PathBuf;
use storage::StorageError;

/// How often all journals are asked to write themselves anew. Once does, unless a disk is slow.
const ROUNDS: usize = 20;

/// Looks what a data directory has lost, shows it to `agree`, and goes on without that if the answer is true. Returns
/// the folder that keeps what was there before. The node must not run.
///
/// # Errors
/// The data directory is in use, or cannot be read or written.
pub fn repair(
    mut options: Options,
    agree: impl FnOnce(&Losses) -> bool,
) -> Result<Option<PathBuf>, OpenError> {
    let losses = inspect(&options)?;
    if !agree(&losses) || losses.is_nothing() {
        return Ok(None);
    }
    let now_s = options.world.wall_ms() / 1000;
    let aside = options.data_dir.join(SET_ASIDE).join(now_s.to_string());
    // The log's files are about to be used again.
    let fs = options.world.files();
    storage::copy_files(fs.as_ref(), &options.data_dir.join(LOG), &aside.join(LOG))
        .map_err(OpenError::Storage)?;
    options.set_aside = Some(aside.clone());
    options.create_defaults = false;
    let broker = Broker::open(options)?;
    let written = broker.write_all_anew();
    broker.close();
    written.map_err(OpenError::Storage)?;
    Ok(Some(aside))
}

impl Broker {
    /// Has every journal write down what it holds, so that no file of the log that was there before is needed.
    fn write_all_anew(&self) -> Result<(), StorageError> {
        let node = self.node();
        let before = node.log.end();
        for journal in node.log.recovery().damage.iter().filter_map(|it| it.journal) {
            let known = match JournalOf::known(journal) {
                Some(JournalOf::Catalog | JournalOf::Cache(_)) => true,
                Some(JournalOf::Queue(_, id)) => self.registry().get(id).is_some(),
                None => false,
            };
            if !known {
                node.log.forget(journal);
            }
        }
        for _ in 0..ROUNDS {
            self.registry()
                .all()
                .iter()
                .for_each(|queue| queue.checkpoint(before));
            self.topology().checkpoint();
            self.caches().restate_all();
            node.pager.wait();
            // The second one comes after the first one's consequences.
            node.log.sync()?;
            node.log.sync()?;
            if node.log.begin() >= node.log.recovery().end {
                return Ok(());
            }
        }
        Err(StorageError::Gone {
            what: "the log could not be rewritten; nothing more is lost, try again".to_owned(),
        })
    }
}
