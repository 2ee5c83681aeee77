//! Measures the log against bare `pwrite` + `fdatasync` of the same bytes:
//! `cargo run --release -p leveret-storage --example log_bench -- <directory> [seconds]`

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement that cannot go on has nothing to say"
)]

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use storage::{
    Access, Callbacks, Disk, FileSystem, JournalId, Kind, Log, LogError, LogOptions, Position, System,
};

const RECORD: usize = 1000;
const BATCH: usize = 100;

struct Report {
    what: String,
    batches: u64,
    took: Duration,
}

impl Report {
    fn print(&self) {
        let per_second = self.batches as f64 / self.took.as_secs_f64();
        let records = per_second * BATCH as f64;
        println!(
            "{:44} {per_second:9.0} batches/s {records:10.0} records/s {:7.0} MB/s",
            self.what,
            records * RECORD as f64 / 1e6
        );
    }
}

/// Who waits: a channel to wake, or a counter.
enum Waiter {
    Wake(SyncSender<()>),
    Count(Arc<AtomicU64>),
}

/// Those who wait until the log is durable up to a position.
type Waiting = Arc<Mutex<VecDeque<(Position, Waiter)>>>;

struct Keep(Waiting);

impl Callbacks for Keep {
    fn durable(&self, up_to: Position) {
        let mut waiting = self.0.lock().unwrap();
        let due = waiting.partition_point(|(position, _)| *position <= up_to);
        for (_, waiter) in waiting.drain(..due) {
            match waiter {
                Waiter::Wake(waiter) => waiter.send(()).unwrap(),
                Waiter::Count(counter) => {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn failed(&self, error: &LogError) {
        eprintln!("the log failed: {error}");
    }

    fn reclaim(&self, _journals: Vec<JournalId>, _before: Position) {}
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = PathBuf::from(arguments.next().expect("a directory to write to"));
    let seconds = arguments.next().map_or(3, |text| text.parse().expect("seconds"));
    let span = Duration::from_secs(seconds);
    std::fs::create_dir_all(&dir).unwrap();
    bare(&dir, span, false).print();
    bare(&dir, span, true).print();
    for threads in [1, 4, 16] {
        waiting(&dir, span, threads).print();
    }
    flowing(&dir, span, 1).print();
    flowing(&dir, span, 2).print();
    opening(&dir);
}

/// Recovery of what a full log holds.
fn opening(dir: &Path) {
    let (log, _) = open(dir);
    let payload = vec![7; RECORD];
    for number in 0..2_500 {
        log.append(|batch| {
            for _ in 0..BATCH {
                batch.record(JournalId::new(Kind::QUEUE, number), |out| {
                    out.extend_from_slice(&payload)
                });
            }
            batch.await_sync();
        });
        if number % 100 == 0 {
            log.sync().unwrap();
        }
    }
    log.close().unwrap();
    let begin = Instant::now();
    let mut records = 0;
    let again = Log::open(
        System::real(),
        &dir.join("log"),
        LogOptions::default(),
        Keep(Waiting::default()),
        &mut |_, _, _| records += 1,
    );
    println!(
        "opening a log of {records} records and {} MB: {:?}",
        again.unwrap().size() >> 20,
        begin.elapsed()
    );
}

/// One batch's bytes, written and synced one after the other; into fresh space, or over what is there.
fn bare(dir: &Path, span: Duration, reused: bool) -> Report {
    let path = dir.join("bare");
    let file = Disk.open(&path, Access::Create).unwrap();
    let size = 64 << 20;
    file.allocate(size).unwrap();
    let bytes = vec![7; BATCH * RECORD];
    let fill = |sync: bool, until: Option<Instant>| {
        let mut batches = 0;
        let mut offset = 0;
        while until.map_or(offset + bytes.len() as u64 <= size, |until| {
            Instant::now() < until
        }) {
            if offset + bytes.len() as u64 > size {
                offset = 0;
            }
            file.write_at(&bytes, offset).unwrap();
            if sync {
                file.sync_data().unwrap();
            }
            offset += bytes.len() as u64;
            batches += 1;
        }
        batches
    };
    if reused {
        fill(false, None);
        file.sync_data().unwrap();
    }
    let begin = Instant::now();
    let batches = if reused {
        fill(true, Some(begin + span))
    } else {
        fill(true, None)
    };
    let took = begin.elapsed();
    std::fs::remove_file(&path).unwrap();
    let what = if reused {
        "bare pwrite + fdatasync, reused space"
    } else {
        "bare pwrite + fdatasync, fresh space"
    };
    Report {
        what: what.to_owned(),
        batches,
        took,
    }
}

fn open(dir: &Path) -> (Log, Waiting) {
    let waiting = Waiting::default();
    let log_dir = dir.join("log");
    let _ = std::fs::remove_dir_all(&log_dir);
    let log = Log::open(
        System::real(),
        &log_dir,
        LogOptions::default(),
        Keep(waiting.clone()),
        &mut |_, _, _| {},
    );
    (log.unwrap(), waiting)
}

fn append((log, waiting): &(Log, Waiting), journal: u64, payload: &[u8], waiter: Waiter) {
    log.append(|batch| {
        for _ in 0..BATCH {
            batch.record(JournalId::new(Kind::QUEUE, journal), |out| {
                out.extend_from_slice(payload)
            });
        }
        let up_to = batch.await_sync();
        waiting.lock().unwrap().push_back((up_to, waiter));
        // What is consumed at once: the log stays small and its files are reused.
        batch.forget(JournalId::new(Kind::QUEUE, journal));
    });
}

/// Each thread waits for its batch before it appends the next.
fn waiting(dir: &Path, span: Duration, threads: u64) -> Report {
    let log = open(dir);
    let done = AtomicU64::new(0);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (log, done) = (&log, &done);
            scope.spawn(move || {
                let payload = vec![7; RECORD];
                let (waiter, woken) = sync_channel(1);
                while begin.elapsed() < span {
                    append(log, thread + 1, &payload, Waiter::Wake(waiter.clone()));
                    woken.recv().unwrap();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let took = begin.elapsed();
    Report {
        what: format!("log, {threads} threads that wait"),
        batches: done.load(Ordering::Relaxed),
        took,
    }
}

/// Threads append as fast as 32 MiB of pending bytes allow.
fn flowing(dir: &Path, span: Duration, threads: u64) -> Report {
    let log = open(dir);
    let kept = Arc::new(AtomicU64::new(0));
    let stop = AtomicBool::new(false);
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (log, kept, stop) = (&log, &kept, &stop);
            scope.spawn(move || {
                let payload = vec![7; RECORD];
                while !stop.load(Ordering::Relaxed) {
                    if log.0.pending_bytes() > 32 << 20 {
                        std::thread::sleep(Duration::from_micros(200));
                    } else {
                        append(log, thread + 1, &payload, Waiter::Count(kept.clone()));
                    }
                    if begin.elapsed() > span {
                        stop.store(true, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let batches = kept.load(Ordering::Relaxed);
    let took = begin.elapsed();
    log.0.close().unwrap();
    Report {
        what: format!("log, {threads} threads that do not wait"),
        batches,
        took,
    }
}
