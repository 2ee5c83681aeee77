//! What a log does when nothing goes wrong.

#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use storage::faulty::FaultyFs;
use storage::{Callbacks, Disk, JournalId, Log, LogError, LogOptions, Position, System};
use support::{Told, dir, journal_id, open, open_in, small, wait};

#[test]
fn what_was_appended_is_replayed_in_order_after_a_restart() {
    let fs = FaultyFs::new();
    let first = open(fs.clone(), small()).unwrap();
    assert!(first.replayed.is_empty());
    let mut expected = Vec::new();
    for number in 0..300_u64 {
        let payload = vec![number as u8; (number % 97) as usize];
        let position = first.put(number % 5, &payload);
        expected.push((journal_id(number % 5), position, payload));
    }
    first.log.close().unwrap();
    let second = open(fs, small()).unwrap();
    assert_eq!(second.replayed, expected);
    assert!(second.log.recovery().clean);
    assert_eq!(second.log.recovery().records, 300);
    for (_, position, payload) in &expected {
        assert_eq!(second.log.read(*position).unwrap(), *payload);
    }
}

#[test]
fn the_same_on_a_real_disk() {
    let dir = std::env::temp_dir().join(format!("leveret-log-{}", std::process::id()));
    let first = open_in(Arc::new(Disk), &dir, small()).unwrap();
    for number in 0..100_u64 {
        assert!(first.keep(1, &[number as u8; 700], number));
    }
    let big = vec![7; 100_000];
    let position = first.put(2, &big);
    assert_eq!(first.log.read(position).unwrap(), big);
    first.log.sync().unwrap();
    assert_eq!(first.log.read(position).unwrap(), big);
    drop(first);
    let second = open_in(Arc::new(Disk), &dir, small()).unwrap();
    assert_eq!(second.payloads(1).len(), 100);
    assert_eq!(second.payloads(2), [big]);
    drop(second);
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn promises_are_kept_in_order_and_only_once() {
    let opened = open(FaultyFs::new(), small()).unwrap();
    for number in 0..50 {
        opened.log.append(|batch| {
            batch.record(journal_id(1), |out| out.push(1));
            wait(&opened.waiting, batch, number * 2);
            wait(&opened.waiting, batch, number * 2 + 1);
        });
    }
    opened.log.close().unwrap();
    let mut kept = Vec::new();
    while let Ok(told) = opened.told.try_recv() {
        if let Told::Durable(promises) = told {
            kept.extend(promises);
        }
    }
    assert_eq!(kept, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_promise_without_a_record_is_kept() {
    let opened = open(FaultyFs::new(), small()).unwrap();
    opened.log.append(|batch| wait(&opened.waiting, batch, 9));
    assert!(opened.await_promise(9));
}

#[test]
fn a_log_says_how_far_it_is_durable() {
    let opened = open(FaultyFs::new(), small()).unwrap();
    let before = opened.log.durable();
    let at = opened.put(1, b"one");
    assert!(at >= before);
    opened.log.sync().unwrap();
    assert!(opened.log.durable() > at);
    assert!(opened.log.durable() >= opened.log.end());
}

#[test]
fn released_and_forgotten_records_do_not_come_back() {
    let fs = FaultyFs::new();
    let first = open(fs.clone(), small()).unwrap();
    first.put(1, b"old");
    first.put(2, b"deleted");
    let snapshot = first.put(1, b"snapshot");
    first.put(1, b"after");
    first.log.release(journal_id(1), snapshot);
    first.log.forget(journal_id(2));
    first.put(3, b"other");
    first.log.close().unwrap();
    let second = open(fs, small()).unwrap();
    assert_eq!(second.payloads(1), [b"snapshot".to_vec(), b"after".to_vec()]);
    assert!(second.payloads(2).is_empty());
    assert_eq!(second.payloads(3), [b"other".to_vec()]);
}

#[test]
fn a_forgotten_journal_may_begin_anew() {
    let fs = FaultyFs::new();
    let first = open(fs.clone(), small()).unwrap();
    first.put(1, b"before");
    first.log.append(|batch| {
        batch.forget(journal_id(1));
        batch.record(journal_id(1), |out| out.extend_from_slice(b"anew"));
    });
    first.log.close().unwrap();
    assert_eq!(open(fs, small()).unwrap().payloads(1), [b"anew".to_vec()]);
}

#[test]
fn a_full_log_that_may_not_grow_asks_when_it_is_told_to_and_again() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), small()).unwrap();
    opened.put(7, b"an old record that nobody moves");
    for _ in 0..200 {
        opened.put(1, &[0; 1000]);
    }
    opened.log.close().unwrap();
    let reopened = open(fs, small()).unwrap();
    assert!(reopened.told.try_recv().is_err());
    for _ in 0..2 {
        reopened.log.ask_for_space();
        let told = reopened.told.recv_timeout(Duration::from_secs(30)).unwrap();
        assert!(matches!(told, Told::Reclaim(journals, _) if journals.contains(&journal_id(7))));
    }
}

#[test]
fn a_full_log_asks_for_its_oldest_file_and_shrinks() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), small()).unwrap();
    opened.put(7, b"an old record that nobody moves");
    for number in 0..200 {
        assert!(opened.keep(1, &[0; 1000], number) || number == u64::MAX);
        let end = opened.log.end();
        opened.log.release(journal_id(1), end);
    }
    opened.log.sync().unwrap();
    let large = opened.log.size();
    assert!(large > 64 << 10);
    let reopened = {
        opened.log.close().unwrap();
        open(fs, small()).unwrap()
    };
    assert!(reopened.told.try_recv().is_err());
    reopened.log.append(|batch| wait(&reopened.waiting, batch, 0));
    let (asked, before) = loop {
        match reopened.told.recv().unwrap() {
            Told::Reclaim(journals, before) => break (journals, before),
            _ => continue,
        }
    };
    assert_eq!(asked, [journal_id(7)]);
    let snapshot = reopened.put(7, b"a snapshot");
    assert!(snapshot > before);
    reopened.log.release(journal_id(7), snapshot);
    assert!(reopened.keep(1, b"x", 1));
    reopened.log.append(|batch| wait(&reopened.waiting, batch, 2));
    assert!(reopened.await_promise(2));
    assert!(reopened.log.size() < large / 2);
}

#[test]
fn files_are_reused_and_what_they_held_before_is_unreadable() {
    let fs = FaultyFs::new();
    let options = LogOptions {
        spare_files: 2,
        ..small()
    };
    let opened = open(fs.clone(), options.clone()).unwrap();
    for number in 0..500 {
        assert!(opened.keep(1, &[number as u8; 900], number));
        let end = opened.log.end();
        opened.log.release(journal_id(1), end);
    }
    assert!(
        fs.files()
            .iter()
            .any(|path| path.to_string_lossy().contains("spare-"))
    );
    assert!(opened.log.size() <= 5 * (16 << 10), "{}", opened.log.size());
    let last = opened.put(2, b"last");
    opened.log.sync().unwrap();
    let after = open(fs.kill(), options).unwrap();
    assert_eq!(after.payloads(2), [b"last".to_vec()]);
    assert!(after.payloads(1).len() <= 1);
    assert_eq!(after.log.read(last).unwrap(), b"last");
    assert!(matches!(after.log.read(Position(40)), Err(LogError::Gone { .. })));
    assert!(after.log.recovery().damage.is_empty());
}

#[test]
fn a_record_larger_than_a_file_gets_a_file_of_its_size() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), small()).unwrap();
    let big: Vec<u8> = (0..(3_u32 << 20)).map(|n| (n >> 3) as u8).collect();
    opened.put(1, b"before");
    let at = opened.put(1, &big);
    opened.put(1, b"after");
    assert_eq!(opened.log.read(at).unwrap(), big);
    opened.log.sync().unwrap();
    assert_eq!(opened.log.read(at).unwrap(), big);
    let after = open(fs.kill(), small()).unwrap();
    assert_eq!(after.payloads(1), [b"before".to_vec(), big, b"after".to_vec()]);
}

#[test]
fn what_nobody_waits_for_is_synced_soon_all_the_same() {
    let fs = FaultyFs::new();
    let opened = open(
        fs.clone(),
        LogOptions {
            lazy_sync_ms: 1,
            ..small()
        },
    )
    .unwrap();
    let at = opened.put(1, b"lazy");
    while opened.log.pending_bytes() > 0 {
        std::thread::yield_now();
    }
    assert_eq!(opened.log.read(at).unwrap(), b"lazy");
    opened.log.sync().unwrap();
    let after = open(fs.crash(1), small()).unwrap();
    assert_eq!(after.payloads(1), [b"lazy".to_vec()]);
}

#[test]
fn an_encoder_that_panics_leaves_nothing_behind() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), small()).unwrap();
    opened.put(1, b"one");
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        opened.log.append(|batch| {
            batch.record(journal_id(1), |out| {
                out.push(1);
                std::panic::resume_unwind(Box::new("no"));
            });
        });
    }));
    assert!(caught.is_err());
    opened.put(1, b"two");
    opened.log.close().unwrap();
    assert_eq!(
        open(fs, small()).unwrap().payloads(1),
        [b"one".to_vec(), b"two".to_vec()]
    );
}

#[test]
fn many_threads_append_at_once() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), small()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (log, waiting) = (&opened.log, &opened.waiting);
            scope.spawn(move || {
                for number in 0..500_u64 {
                    let at = log.append(|batch| {
                        let at = batch.record(journal_id(thread), |out| {
                            out.extend_from_slice(&number.to_le_bytes())
                        });
                        wait(waiting, batch, thread << 32 | number);
                        at
                    });
                    if number % 50 == 0 {
                        assert_eq!(log.read(at).unwrap(), number.to_le_bytes());
                    }
                }
            });
        }
    });
    opened.log.sync().unwrap();
    opened.log.close().unwrap();
    let mut kept: Vec<u64> = Vec::new();
    while let Ok(told) = opened.told.try_recv() {
        if let Told::Durable(promises) = told {
            kept.extend(promises);
        }
    }
    assert_eq!(kept.len(), 2000);
    let after = open(fs, small()).unwrap();
    for thread in 0..4 {
        let expected: Vec<Vec<u8>> = (0..500_u64).map(|n| n.to_le_bytes().to_vec()).collect();
        assert_eq!(after.payloads(thread), expected);
        let mine: Vec<u64> = kept
            .iter()
            .filter(|k| **k >> 32 == thread)
            .map(|k| k & 0xffff_ffff)
            .collect();
        assert_eq!(mine, (0..500).collect::<Vec<_>>());
    }
}

#[test]
fn a_read_only_directory_is_named() {
    let fs = FaultyFs::new();
    drop(open(fs.clone(), small()).unwrap());
    fs.set_read_only();
    let error = open(fs, small()).err().unwrap();
    assert!(matches!(&error, LogError::NotWritable { .. }), "{error}");
    assert!(error.to_string().contains(&dir().display().to_string()));
}

#[test]
fn a_log_that_grows_has_its_next_file_made_ahead() {
    let fs = FaultyFs::new();
    let options = LogOptions {
        make_ahead: true,
        ..small()
    };
    let opened = open(fs.clone(), options.clone()).unwrap();
    let is_there = || fs.files().iter().any(|path| path.ends_with("spare-ahead.wal"));
    let mut kept = 0;
    let mut grow_while = |there: bool| {
        while is_there() == there {
            assert!(opened.keep(1, &[7; 700], kept));
            kept += 1;
        }
    };
    // Made and taken, twice: the second one is no leftover of the first.
    for _ in 0..2 {
        grow_while(false);
        grow_while(true);
    }
    let after = open(fs.kill(), options).unwrap();
    assert_eq!(after.payloads(1).len() as u64, kept);
}

/// Holds a sync up until it is let go.
struct Hanging {
    began: Sender<()>,
    go_on: Mutex<Receiver<()>>,
    durable: Sender<()>,
}

impl Callbacks for Hanging {
    fn durable(&self, _up_to: Position) {
        self.durable.send(()).unwrap();
    }

    fn synced(&self, _took: Duration) {
        self.began.send(()).unwrap();
        self.go_on.lock().unwrap().recv().unwrap();
    }

    fn failed(&self, error: &LogError) {
        panic!("{error}");
    }

    fn reclaim(&self, _journals: Vec<JournalId>, _before: Position) {}
}

#[test]
fn a_sync_that_hangs_is_seen_while_it_does() {
    let ((began, hangs), (let_go, go_on), (durable, told)) = (channel(), channel(), channel());
    let go_on = Mutex::new(go_on);
    let hanging = Hanging {
        began,
        go_on,
        durable,
    };
    let world = System::over(Arc::new(FaultyFs::new()));
    let log = Log::open(world, &dir(), small(), hanging, &mut |_, _, _| {}).unwrap();
    assert_eq!(log.busy_for(), None);
    for _ in 0..3 {
        log.append(|batch| {
            batch.record(journal_id(1), |out| out.push(1));
            batch.await_sync();
        });
        hangs.recv().unwrap();
        let so_long = log.busy_for().unwrap();
        assert!(log.busy_for().unwrap() >= so_long);
        let_go.send(()).unwrap();
        told.recv().unwrap();
        assert_eq!(log.busy_for(), None);
    }
    // The block with which the log ends is synced, too.
    let_go.send(()).unwrap();
    log.close().unwrap();
}
