//! Every call may fail, the power may go at any moment: what was promised is there afterwards, and nothing else is
//! invented.

#![allow(clippy::unwrap_used, reason = "test code")]

mod support;

use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use storage::faulty::{Fault, FaultyFs, Random};
use storage::{FileSystem, LogError, LogOptions, Position};
use support::{Op, Opened, Told, check_prefix, journal_id, open, wait};

fn tiny() -> LogOptions {
    LogOptions {
        file_bytes: 8 << 10,
        size_limit: 24 << 10,
        spare_files: 1,
        make_ahead: false,
        lazy_sync_ms: 60_000,
        retry_ms: 1,
        quarantine: false,
        must_exist: false,
    }
}

/// A log under test and everything that was done to it, over restarts.
#[derive(Default)]
struct Story {
    ops: Vec<Op>,
    /// So many operations were promised to be durable.
    promised: usize,
}

impl Story {
    fn put(&mut self, opened: &Opened, journal: u64, payload: Vec<u8>) -> Position {
        let position = opened.put(journal, &payload);
        self.ops
            .push(Op::Record((journal_id(journal), position, payload)));
        position
    }

    fn release(&mut self, opened: &Opened, journal: u64, before: Position) {
        opened.log.release(journal_id(journal), before);
        self.ops.push(Op::Release(journal_id(journal), before));
    }

    /// Waits until everything so far is promised. False if the log failed.
    fn settle(&mut self, opened: &Opened) -> bool {
        let promise = self.ops.len() as u64;
        opened.log.append(|batch| wait(&opened.waiting, batch, promise));
        if opened.await_promise(promise) {
            self.promised = self.ops.len();
            return true;
        }
        false
    }

    /// A fixed sequence that rolls, releases, frees and reuses files. Stops at the first failure.
    fn run(&mut self, opened: &Opened) {
        for number in 0..40_u64 {
            let journal = number % 3;
            let position = self.put(
                opened,
                journal,
                vec![number as u8; (number * 131 % 1500) as usize],
            );
            if number % 4 == 3 {
                self.release(opened, journal, position);
            }
            if number % 2 == 0 && !self.settle(opened) {
                return;
            }
        }
        self.settle(opened);
    }

    /// Checks what a restart shows; from then on that is what exists.
    fn restart(&mut self, opened: &Opened) {
        let count = check_prefix(&self.ops, self.promised, &opened.replayed);
        assert!(
            opened.log.recovery().damage.is_empty(),
            "{:?}",
            opened.log.recovery()
        );
        self.ops.truncate(count);
        self.promised = count;
    }
}

/// Runs the story with a fault at call `k`. False if the story ended before that call.
fn one_fault(k: u64, fault: Fault, seed: u64) -> bool {
    let fs = FaultyFs::new();
    let mut story = Story::default();
    drop(open(fs.clone(), tiny()).unwrap());
    let before = fs.calls();
    fs.fail_at(k, fault);
    let mut hit = true;
    let options = LogOptions {
        // Nobody waits for a machine that is off.
        retry_ms: u64::from(fault != Fault::PowerCut),
        ..tiny()
    };
    let fs = match open(fs.clone(), options) {
        Ok(opened) => {
            story.run(&opened);
            if opened.log.close().is_ok() {
                story.promised = story.ops.len();
            }
            hit = fs.calls() >= before + k;
            if opened.log.failed() {
                assert!(opened.log.sync().is_err());
                assert!(!story.settle(&opened));
            }
            fs.crash(seed)
        }
        Err(LogError::Io { .. } | LogError::Full { .. }) => fs.crash(seed),
        Err(other) => panic!("call {k}, {fault:?}: {other}"),
    };
    let again = open(fs.clone(), tiny()).unwrap_or_else(|e| panic!("call {k}, {fault:?}, seed {seed}: {e}"));
    story.restart(&again);
    // And it goes on as if nothing had been.
    story.put(&again, 1, b"afterwards".to_vec());
    assert!(story.settle(&again));
    drop(again);
    let last = open(fs, tiny()).unwrap();
    story.restart(&last);
    hit
}

fn sweep(fault: Fault, seeds: u64) {
    let mut k = 1;
    while (0..seeds).fold(false, |hit, seed| {
        one_fault(k, fault, seed.wrapping_add(k << 8)) | hit
    }) {
        k += 1;
    }
    assert!(k > 100, "the sweep ended early, at call {k}");
}

#[test]
fn an_input_output_error_at_any_call_breaks_no_promise() {
    sweep(Fault::Io, 2);
}

#[test]
fn a_full_disk_at_any_call_breaks_no_promise() {
    sweep(Fault::Full, 1);
    sweep(Fault::ShortThenFull, 1);
}

#[test]
fn a_short_write_or_read_at_any_call_goes_unnoticed() {
    sweep(Fault::Short, 1);
}

#[test]
fn a_process_without_descriptors_at_any_call_breaks_no_promise() {
    sweep(Fault::NoDescriptor, 1);
}

#[test]
fn a_log_without_a_descriptor_for_its_next_file_waits_for_one() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), tiny()).unwrap();
    assert!(opened.keep(1, b"good", 1));
    fs.set_no_descriptor(true);
    opened.log.append(|batch| {
        batch.record(journal_id(1), |out| out.resize(out.len() + 9000, 7));
        wait(&opened.waiting, batch, 2);
    });
    opened.await_stall(true);
    assert!(!opened.log.failed());
    fs.set_no_descriptor(false);
    assert!(opened.await_promise(2));
    opened.await_stall(false);
    opened.log.close().unwrap();
    assert_eq!(open(fs, tiny()).unwrap().payloads(1).len(), 2);
}

#[test]
fn a_log_that_is_to_be_closed_does_not_wait_for_a_next_file() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), tiny()).unwrap();
    fs.set_no_descriptor(true);
    opened.put(1, &[7; 9000]);
    assert!(opened.log.close().is_err());
}

#[test]
fn a_full_disk_gets_a_smaller_file_and_a_warning_at_start_and_later() {
    let fs = FaultyFs::new();
    let options = LogOptions {
        file_bytes: 1 << 20,
        make_ahead: true,
        ..tiny()
    };
    fs.set_free_space(20_000);
    let opened = open(fs.clone(), options.clone()).unwrap();
    opened.await_stall(true);
    for number in 1..10 {
        assert!(opened.keep(1, &[1; 9000], number));
    }
    fs.set_free_space(1 << 30);
    opened.await_stall(false);
    assert!(opened.keep(1, b"as usual", 10));
    opened.log.close().unwrap();
    assert_eq!(open(fs, options).unwrap().payloads(1).len(), 10);
}

#[test]
fn a_power_cut_at_any_call_breaks_no_promise() {
    sweep(Fault::PowerCut, 5);
}

#[test]
fn a_promise_in_a_new_file_covers_what_the_older_ones_still_had_unsynced() {
    let fs = FaultyFs::new();
    let options = LogOptions {
        file_bytes: 3 << 20,
        size_limit: 1 << 30,
        ..tiny()
    };
    let opened = open(fs.clone(), options.clone()).unwrap();
    // Blocks so large that they are written at once, without a sync.
    for number in 0..5_u8 {
        opened.put(1, &vec![number; 1 << 20]);
        while opened.log.pending_bytes() > 0 {
            std::thread::yield_now();
        }
    }
    assert!(opened.keep(1, b"promised", 1));
    for seed in 0..8 {
        let after = open(fs.copy().crash(seed), options.clone()).unwrap();
        let lengths: Vec<usize> = after.payloads(1).iter().map(Vec::len).collect();
        assert_eq!(
            lengths,
            [1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 8],
            "seed {seed}"
        );
        assert!(after.log.recovery().damage.is_empty());
    }
}

#[test]
fn failure_is_told_once_and_nothing_is_kept_afterwards() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), tiny()).unwrap();
    assert!(opened.keep(1, b"good", 1));
    // The next calls are the write and the sync.
    fs.fail_at(2, Fault::Io);
    opened.log.append(|batch| {
        batch.record(journal_id(1), |out| out.extend_from_slice(b"doomed"));
        wait(&opened.waiting, batch, 2);
    });
    let told = opened.told.recv().unwrap();
    assert!(
        matches!(told, Told::Failed(LogError::Io { action: "sync", .. })),
        "{told:?}"
    );
    assert!(opened.log.failed());
    for promise in 3..10 {
        opened.log.append(|batch| {
            batch.record(journal_id(1), |out| out.extend_from_slice(&[0; 5000]));
            wait(&opened.waiting, batch, promise);
        });
    }
    assert_eq!(opened.log.pending_bytes(), 0);
    let error = opened.log.close().unwrap_err();
    assert!(error.to_string().contains("cannot sync /data/log/"), "{error}");
    assert!(opened.told.try_recv().is_err());
}

#[test]
fn an_encoder_that_removes_what_others_appended_stops_the_log() {
    let fs = FaultyFs::new();
    let opened = open(fs.clone(), tiny()).unwrap();
    assert!(opened.keep(1, b"good", 1));
    opened.log.append(|batch| {
        batch.record(journal_id(1), |out| out.extend_from_slice(b"also good"));
        batch.record(journal_id(2), Vec::clear);
        wait(&opened.waiting, batch, 2);
    });
    assert!(!opened.await_promise(2));
    assert!(matches!(opened.log.close(), Err(LogError::Misuse { .. })));
    assert_eq!(open(fs, tiny()).unwrap().payloads(1), [b"good".to_vec()]);
}

/// What a random story does next.
#[derive(Debug, Clone)]
enum Step {
    Put { journal: u64, length: usize },
    Release { journal: u64 },
    Forget { journal: u64 },
    Settle,
    Close,
    Kill,
    Crash { seed: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..4_u64, 0..2500_usize).prop_map(|(journal, length)| Step::Put { journal, length }),
        3 => (0..4_u64).prop_map(|journal| Step::Release { journal }),
        1 => (0..4_u64).prop_map(|journal| Step::Forget { journal }),
        5 => Just(Step::Settle),
        1 => Just(Step::Close),
        1 => Just(Step::Kill),
        2 => any::<u64>().prop_map(|seed| Step::Crash { seed }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn any_story_with_restarts_matches_the_naive_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut fs = FaultyFs::new();
        let mut story = Story::default();
        let mut opened = open(fs.clone(), tiny()).unwrap();
        for (number, step) in steps.into_iter().enumerate() {
            match step {
                Step::Put { journal, length } => {
                    let position = story.put(&opened, journal, vec![number as u8; length]);
                    prop_assert_eq!(opened.log.read(position).unwrap(), vec![number as u8; length]);
                }
                Step::Release { journal } => {
                    let before = story.put(&opened, journal, b"snapshot".to_vec());
                    story.release(&opened, journal, before);
                }
                Step::Forget { journal } => {
                    let before = opened.log.end();
                    opened.log.forget(journal_id(journal));
                    story.ops.push(Op::Release(journal_id(journal), before));
                }
                Step::Settle => prop_assert!(story.settle(&opened)),
                Step::Close | Step::Kill | Step::Crash { .. } => {
                    fs = match step {
                        Step::Close => {
                            opened.log.close().unwrap();
                            story.promised = story.ops.len();
                            fs.copy()
                        }
                        Step::Crash { seed } => fs.crash(seed),
                        _ => fs.kill(),
                    };
                    opened = open(fs.clone(), tiny()).unwrap();
                    story.restart(&opened);
                }
            }
        }
    }
}

#[test]
fn what_was_written_but_not_synced_when_the_process_ended_is_durable_after_the_next_start() {
    for (k, seed) in (1..200).flat_map(|k| (0..4).map(move |seed| (k, seed))) {
        let fs = FaultyFs::new();
        let mut story = Story::default();
        let opened = open(fs.clone(), tiny()).unwrap();
        fs.fail_at(k, Fault::Io);
        story.run(&opened);
        // Everything that was written can still be read, even where the sync has failed.
        let fs = fs.kill();
        drop(opened);
        let again = open(fs.clone(), tiny()).unwrap();
        story.restart(&again);
        story.put(&again, 1, b"afterwards".to_vec());
        assert!(story.settle(&again));
        let fs = fs.crash(seed);
        drop(again);
        let last = open(fs, tiny()).unwrap_or_else(|e| panic!("call {k}, seed {seed}: {e}"));
        story.restart(&last);
    }
}

#[test]
fn what_was_written_when_closing_failed_is_durable_after_the_next_start() {
    for (k, seed) in (1..12).flat_map(|k| (0..4).map(move |seed| (k, seed))) {
        let fs = FaultyFs::new();
        let opened = open(fs.clone(), tiny()).unwrap();
        assert!(opened.keep(1, b"kept", 1));
        opened.put(1, b"put");
        fs.fail_at(k, Fault::Io);
        let _ = opened.log.close();
        let fs = fs.kill();
        drop(opened);
        let again = open(fs.clone(), tiny()).unwrap_or_else(|e| panic!("call {k}: {e}"));
        let replayed = again.payloads(1);
        let fs = fs.crash(seed);
        drop(again);
        let last = open(fs, tiny()).unwrap_or_else(|e| panic!("call {k}, seed {seed}: {e}"));
        assert_eq!(last.payloads(1), replayed, "call {k}, seed {seed}");
    }
}

#[test]
fn what_a_killed_process_had_half_done_to_the_files_is_no_loss_after_a_power_cut() {
    let once = LogOptions {
        retry_ms: 0,
        ..tiny()
    };
    let faults = [Fault::Io, Fault::Full, Fault::ShortThenFull];
    for (k, fault) in (1..200).flat_map(|k| faults.map(|fault| (k, fault))) {
        for seed in 0..2 {
            let fs = FaultyFs::new();
            let mut story = Story::default();
            let opened = open(fs.clone(), once.clone()).unwrap();
            fs.fail_at(k, fault);
            story.run(&opened);
            let fs = fs.kill();
            drop(opened);
            fs.fail_at(1 + Random(seed + k * 16).below(250), Fault::PowerCut);
            if let Ok(again) = open(fs.clone(), once.clone()) {
                story.restart(&again);
                story.run(&again);
            }
            let fs = fs.crash(seed);
            let last = open(fs, tiny()).unwrap_or_else(|e| panic!("call {k}, {fault:?}, seed {seed}: {e}"));
            story.restart(&last);
        }
    }
}

/// A first start fails with its `k`th call, a second one is told that something is safe, and then the power fails.
fn what_is_kept_after_a_failed_start_stays(fs: FaultyFs, k: u64, seed: u64) {
    fs.fail_at(k, Fault::Io);
    drop(open(fs.clone(), tiny()));
    let fs = fs.kill();
    let again = open(fs.clone(), tiny()).unwrap();
    assert!(again.keep(1, b"good", 1));
    let fs = fs.crash(seed);
    drop(again);
    let last = open(fs, tiny()).unwrap_or_else(|e| panic!("call {k}, seed {seed}: {e}"));
    assert_eq!(last.payloads(1), [b"good"], "call {k}, seed {seed}");
}

#[test]
fn a_log_whose_making_was_cut_short_is_whole_after_the_next_start_and_a_power_cut() {
    for (k, seed) in (1..20).flat_map(|k| (0..8).map(move |seed| (k, seed))) {
        let fs = FaultyFs::new();
        fs.create_dir(&support::dir()).unwrap();
        for dir in support::dir().ancestors() {
            fs.sync_dir(dir).unwrap();
        }
        what_is_kept_after_a_failed_start_stays(fs, k, seed);
    }
}

#[test]
fn a_directory_whose_making_failed_is_there_after_the_next_start_and_a_power_cut() {
    for (k, seed) in (1..20).flat_map(|k| (0..8).map(move |seed| (k, seed))) {
        what_is_kept_after_a_failed_start_stays(FaultyFs::new(), k, seed);
    }
}

#[test]
fn a_file_that_the_list_may_name_is_not_removed_when_the_next_attempt_to_make_it_fails() {
    let patient = LogOptions {
        retry_ms: 60_000,
        ..tiny()
    };
    for (first, second) in (1..12).flat_map(|first| (1..12).map(move |second| (first, second))) {
        let fs = FaultyFs::new();
        let opened = open(fs.clone(), patient.clone()).unwrap();
        assert!(opened.keep(1, b"good", 1));
        fs.fail_at(first, Fault::Io);
        opened.log.append(|batch| {
            batch.record(journal_id(1), |out| out.resize(out.len() + 9000, 7));
            wait(&opened.waiting, batch, 2);
        });
        opened.told.recv().unwrap();
        fs.fail_at(second, Fault::Io);
        let _ = opened.log.close();
        let again = open(fs.kill(), tiny()).unwrap_or_else(|e| panic!("calls {first} and {second}: {e}"));
        assert_eq!(again.payloads(1)[0], b"good");
    }
}

#[test]
fn a_log_whose_process_ended_while_a_new_file_was_made_opens_again() {
    for (k, power) in (1..200).flat_map(|k| [(k, false), (k, true)]) {
        let fs = FaultyFs::new();
        let mut story = Story::default();
        let once = LogOptions {
            retry_ms: 0,
            ..tiny()
        };
        let opened = open(fs.clone(), once).unwrap();
        fs.fail_at(k, Fault::Io);
        story.run(&opened);
        let fs = if power { fs.crash(k) } else { fs.kill() };
        drop(opened);
        let again = open(fs, tiny()).unwrap_or_else(|e| panic!("call {k}, power cut {power}: {e}"));
        story.restart(&again);
    }
}

#[test]
fn a_power_cut_amid_busy_threads_breaks_no_promise() {
    for seed in 0..60_u64 {
        let random = &mut Random(seed);
        let fs = FaultyFs::new();
        let opened = open_shared(&fs);
        let stop = AtomicBool::new(false);
        let after = std::thread::scope(|scope| {
            for thread in 1..4_u64 {
                let (log, waiting, stop) = (&opened.log, &opened.waiting, &stop);
                scope.spawn(move || {
                    let mut number = 0_u64;
                    while !stop.load(Ordering::Relaxed) {
                        if log.pending_bytes() > 100_000 {
                            std::thread::yield_now();
                            continue;
                        }
                        number += 1;
                        log.append(|batch| {
                            batch.record(journal_id(thread), |out| {
                                out.extend_from_slice(&number.to_le_bytes());
                                out.resize(out.len() + (number % 300) as usize, thread as u8);
                            });
                            wait(waiting, batch, thread << 32 | number);
                        });
                    }
                });
            }
            fs.fail_at(1 + random.below(60), Fault::PowerCut);
            while !opened.log.failed() {
                std::thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
            fs.crash(seed)
        });
        let mut kept = [0; 4];
        while let Ok(told) = opened.told.try_recv() {
            if let Told::Durable(promises) = told {
                for promise in promises {
                    let (thread, number) = ((promise >> 32) as usize, promise & 0xffff_ffff);
                    assert_eq!(
                        number,
                        kept[thread] + 1,
                        "promises of one thread are kept in order"
                    );
                    kept[thread] = number;
                }
            }
        }
        let again = open_shared(&after);
        for (thread, kept) in kept.iter().enumerate().skip(1) {
            let payloads = again.payloads(thread as u64);
            assert!(
                payloads.len() as u64 >= *kept,
                "seed {seed}: a promise was broken"
            );
            for (at, payload) in payloads.iter().enumerate() {
                assert_eq!(payload[..8], (at as u64 + 1).to_le_bytes());
            }
        }
    }
}

fn open_shared(fs: &FaultyFs) -> Opened {
    open(
        fs.clone(),
        LogOptions {
            file_bytes: 64 << 10,
            size_limit: 1 << 30,
            retry_ms: 0,
            ..LogOptions::default()
        },
    )
    .unwrap()
}
