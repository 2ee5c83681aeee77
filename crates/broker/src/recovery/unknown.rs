//! What the log has of journals that the catalog does not name: what belonged to deleted queues goes, everything else
//! is kept in files of its own and told of. A catalog that is older than its queues must not cost their messages.

use super::{LOG, log_options, set_aside_dir};
use crate::node::Node;
use crate::options::Options;
use model::QueueId;
use model::words::counted;
use std::collections::BTreeSet;
use std::sync::Arc;
use storage::{FileSystem, JournalId, SetAside, StorageError};

/// Journals of queues and caches that the catalog does not name, with the ids of those.
pub(super) type Left = Vec<(JournalId, QueueId)>;

/// Has the log forget them (`next` is the id that the next queue gets); what nobody knows is set aside before. Returns that.
pub(super) fn sort_out(
    node: &Node,
    fs: &Arc<dyn FileSystem>,
    options: &Options,
    next: QueueId,
    left: Left,
    mut unknown: BTreeSet<JournalId>,
) -> Result<Vec<SetAside>, StorageError> {
    // Where definitions are lost, nobody knows what was deleted.
    let damage = &node.log.recovery().damage;
    let complete = !damage.iter().any(|it| {
        it.journal
            .is_none_or(|journal| journal.kind == storage::Kind::CATALOG)
    });
    let mut deleted = 0;
    for (journal, id) in left {
        if complete && id < next {
            node.log.forget(journal);
            deleted += 1;
        } else {
            unknown.insert(journal);
        }
    }
    if deleted > 0 {
        tracing::info!(
            area = "storage",
            "the log still had something of {} whose deletion came before the node's end; it is released",
            counted(deleted, "queue")
        );
    }
    if unknown.is_empty() {
        return Ok(Vec::new());
    }
    let to = set_aside_dir(node, options).join("journals");
    let which = |journal| unknown.contains(&journal);
    let log_options = log_options(options, &node.segments, false);
    let dir = options.data_dir.join(LOG);
    let told = storage::set_journals_aside(fs.as_ref(), &dir, &log_options, &which, &to)?;
    for SetAside {
        journal,
        file,
        records,
        bytes,
    } in &told
    {
        tracing::error!(
            area = "storage",
            "the log has {} ({}) of {journal}, which no definition names: they are kept in {}; a newer version, \
             or definitions that were lost, may explain them",
            counted(*records, "record"),
            counted(*bytes, "byte"),
            file.display()
        );
        node.log.forget(*journal);
    }
    Ok(told)
}

#[cfg(test)]
mod tests {
    use crate::queues::{JournalOf, queue_type};
    use crate::{Broker, Options};
    use catalog::QueueKind;
    use model::{Journaled, QueueId};
    use std::path::Path;
    use std::sync::Arc;
    use storage::{Callbacks, JournalId, Kind, Log, LogOptions, Position, StorageError};

    struct Deaf;

    impl Callbacks for Deaf {
        fn durable(&self, _up_to: Position) {}
        fn failed(&self, _error: &StorageError) {}
        fn reclaim(&self, _journals: Vec<JournalId>, _before: Position) {}
    }

    /// The journal of a classic queue of this number.
    fn journal(id: QueueId) -> JournalId {
        JournalOf::Queue(queue_type(QueueKind::Classic).unwrap(), id).id()
    }

    fn open(dir: &Path) -> Arc<Broker> {
        Broker::open(Options::new(dir)).unwrap()
    }

    /// Writes a record of this journal into a closed node's log.
    fn write(dir: &Path, journal: JournalId) {
        let options = LogOptions::default();
        let log = Log::open(
            storage::System::real(),
            &dir.join("log"),
            options,
            Deaf,
            &mut |_, _, _| {},
        )
        .unwrap();
        let record = queue::fifo::Record::Settled {
            seqs: model::Ranges::one(1),
        };
        log.append(|batch| {
            batch.record(journal, |out| {
                out.extend_from_slice(&1_u64.to_le_bytes());
                record.encode(out);
            })
        });
        log.close().unwrap();
    }

    #[test]
    fn what_no_definition_names_is_kept_beside_the_log_and_told_of() {
        let dir = tempfile::tempdir().unwrap();
        open(dir.path()).close();
        write(dir.path(), JournalId::new(Kind(77), 5));
        write(dir.path(), journal(QueueId(1_000_000)));
        let broker = open(dir.path());
        let files: Vec<String> = broker.set_aside_journals().collect();
        assert!(files[0].ends_with("journals/2-1000000.journal"), "{files:?}");
        assert!(files[1].ends_with("journals/77-5.journal"), "{files:?}");
        assert!(files.iter().all(|file| Path::new(file).exists()));
        broker.close();
        drop(broker);
        let again = open(dir.path());
        assert_eq!(
            again.set_aside_journals().count(),
            0,
            "the log has forgotten them"
        );
        again.close();
    }

    #[test]
    fn what_a_deleted_queue_left_behind_is_released() {
        let dir = tempfile::tempdir().unwrap();
        let broker = open(dir.path());
        let session = {
            let user = broker
                .authenticate("guest", b"guest", "127.0.0.1".parse().unwrap())
                .unwrap();
            broker.connect(user, "/", Arc::new(crate::Outbox::new())).unwrap()
        };
        let channel = crate::ChannelId(1);
        let declared = crate::DeclareQueue {
            name: "gone".into(),
            durable: true,
            ..crate::DeclareQueue::default()
        };
        session.declare_queue(channel, declared).unwrap();
        let id = broker.view().queue("/", "gone").unwrap().id;
        let asked = session.delete_queue(channel, "gone", false, false).unwrap();
        if let crate::Deleting::Asked(deletion) = asked {
            let answer = Some(queue::Answer::MayRetire(0));
            session.go_on_deleting(channel, deletion, answer).unwrap();
        }
        session.close();
        broker.close();
        drop((session, broker));
        write(dir.path(), journal(id));
        let again = open(dir.path());
        assert_eq!(again.set_aside_journals().count(), 0);
        again.close();
    }
}
