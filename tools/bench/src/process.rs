//! What the kernel says about a broker's process and its descendants, from `/proc`. Times are in seconds, sizes in bytes.

use std::fs;
use std::path::{Path, PathBuf};

/// Counters of a process and its descendants since their start.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    pub user_s: f64,
    pub system_s: f64,
    pub rss_bytes: u64,
    /// What reached the disk's layer; absent where the kernel doesn't let us read it.
    pub written_bytes: Option<u64>,
}

/// Processes and their descendants: RabbitMQ's virtual machine has a few small children, other brokers may fork workers.
#[derive(Debug, Clone)]
pub struct ProcessTree {
    proc: PathBuf,
    /// A process, or one for each node of a cluster.
    roots: Vec<u32>,
    members: Vec<u32>,
    ticks_a_second: f64,
}

impl ProcessTree {
    /// The tree below a process, or below each of several.
    ///
    /// # Errors
    /// There is no such process.
    pub fn new(roots: &[u32]) -> Result<Self, String> {
        Self::under(Path::new("/proc"), roots, rustix::param::clock_ticks_per_second())
    }

    fn under(proc: &Path, roots: &[u32], ticks_a_second: u64) -> Result<Self, String> {
        let mut tree = Self {
            proc: proc.to_owned(),
            roots: roots.to_vec(),
            members: roots.to_vec(),
            ticks_a_second: ticks_a_second.max(1) as f64,
        };
        if let Some(gone) = roots.iter().find(|root| tree.stat(**root).is_none()) {
            return Err(format!("there is no process {gone}"));
        }
        tree.find_members();
        Ok(tree)
    }

    /// Looks for new descendants. It reads a file of every process of the machine: for now and then.
    pub fn find_members(&mut self) {
        let Ok(entries) = fs::read_dir(&self.proc) else {
            return;
        };
        let pids = entries
            .flatten()
            .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
        let parents: Vec<(u32, u32)> = pids
            .filter_map(|pid| Some((pid, self.stat(pid)?.parent)))
            .collect();
        let mut members = self.roots.clone();
        let mut next = 0;
        while let Some(&parent) = members.get(next) {
            next += 1;
            let children = parents.iter().filter(|(_, p)| *p == parent).map(|(pid, _)| *pid);
            for child in children {
                if !members.contains(&child) {
                    members.push(child);
                }
            }
        }
        self.members = members;
    }

    /// What all of them have used so far; `None` when a root is gone.
    pub fn usage(&self) -> Option<Usage> {
        if self.roots.iter().any(|root| self.stat(*root).is_none()) {
            return None;
        }
        let mut sum = Usage::default();
        let mut written = Some(0);
        for &pid in &self.members {
            let Some(stat) = self.stat(pid) else {
                continue;
            };
            sum.user_s += stat.user_ticks as f64 / self.ticks_a_second;
            sum.system_s += stat.system_ticks as f64 / self.ticks_a_second;
            let memory = self.read(pid, "status").and_then(|text| memory(&text, "VmRSS"));
            sum.rss_bytes += memory.unwrap_or(0);
            let io = self.read(pid, "io").and_then(|text| written_bytes(&text));
            // A descendant of another user must not hide what the broker itself wrote.
            written = match (written, io) {
                (Some(a), Some(b)) => Some(a + b),
                (a, None) if !self.roots.contains(&pid) => a,
                _ => None,
            };
        }
        sum.written_bytes = written;
        Some(sum)
    }

    /// Context switches of all threads, voluntary or not, since their start.
    pub fn switches(&self) -> Option<u64> {
        let mut sum = 0;
        for pid in &self.members {
            let Ok(tasks) = fs::read_dir(self.proc.join(pid.to_string()).join("task")) else {
                continue;
            };
            for task in tasks.flatten() {
                let text = fs::read_to_string(task.path().join("status")).unwrap_or_default();
                sum += switches(&text);
            }
        }
        (sum > 0).then_some(sum)
    }

    /// The peaks of resident memory begin anew. Where the kernel doesn't allow it, the sampled sizes must do: `false`.
    pub fn reset_peak(&self) -> bool {
        // "5" resets the peak alone and leaves the pages' marks (proc(5), clear_refs).
        let reset = |pid: &&u32| fs::write(self.path(**pid, "clear_refs"), "5").is_ok();
        self.members.iter().filter(reset).count() == self.members.len()
    }

    /// The sum of the peaks of resident memory.
    pub fn peak_bytes(&self) -> Option<u64> {
        let peaks = self
            .members
            .iter()
            .filter_map(|pid| memory(&self.read(*pid, "status")?, "VmHWM"));
        let sum = peaks.sum::<u64>();
        (sum > 0).then_some(sum)
    }

    fn stat(&self, pid: u32) -> Option<Stat> {
        Stat::parse(&self.read(pid, "stat")?)
    }

    fn read(&self, pid: u32, file: &str) -> Option<String> {
        fs::read_to_string(self.path(pid, file)).ok()
    }

    fn path(&self, pid: u32, file: &str) -> PathBuf {
        self.proc.join(pid.to_string()).join(file)
    }
}

/// What we need of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    parent: u32,
    /// Its own and that of children who ended: those are no members any more, but their time was spent.
    user_ticks: u64,
    system_ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name stands in parentheses and may contain blanks and parentheses itself.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        Some(Self {
            parent: fields.get(1)?.parse().ok()?,
            user_ticks: number(11)? + number(13)?,
            system_ticks: number(12)? + number(14)?,
        })
    }
}

/// A line of `/proc/PID/status` such as `VmRSS:  123 kB`.
fn memory(status: &str, key: &str) -> Option<u64> {
    let value = field(status, key)?;
    let kib: u64 = value.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// `write_bytes` of `/proc/PID/io`: what went to the disk's layer, not what was handed to `write`.
fn written_bytes(io: &str) -> Option<u64> {
    field(io, "write_bytes")?.parse().ok()
}

fn switches(status: &str) -> u64 {
    ["voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"]
        .iter()
        .filter_map(|key| field(status, key)?.parse::<u64>().ok())
        .sum()
}

fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tbeam.smp\nVmHWM:\t  204800 kB\nVmRSS:\t  102400 kB\n\
                          voluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t7\n";

    fn stat(pid: u32, name: &str, parent: u32, times: [u64; 4]) -> String {
        let [user, system, children_user, children_system] = times;
        format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 4194560 1 2 3 4 {user} {system} {children_user} {children_system} 20 0 30 0 99\n"
        )
    }

    fn put(proc: &Path, pid: u32, stat: &str, io: Option<&str>) {
        let folder = proc.join(pid.to_string());
        fs::create_dir_all(folder.join("task").join(pid.to_string())).unwrap();
        fs::write(folder.join("stat"), stat).unwrap();
        fs::write(folder.join("status"), STATUS).unwrap();
        fs::write(folder.join("task").join(pid.to_string()).join("status"), STATUS).unwrap();
        if let Some(io) = io {
            fs::write(folder.join("io"), io).unwrap();
        }
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let parsed = Stat::parse(&stat(9, "a (b) c 1", 3, [100, 50, 7, 2])).unwrap();
        let expected = Stat {
            parent: 3,
            user_ticks: 107,
            system_ticks: 52,
        };
        assert_eq!(parsed, expected);
        assert_eq!(Stat::parse("9 (cut"), None);
    }

    #[test]
    fn the_whole_tree_is_counted_and_strangers_are_not() {
        let proc = tempfile::tempdir().unwrap();
        let io = "rchar: 1\nwchar: 2\nread_bytes: 3\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n";
        put(
            proc.path(),
            10,
            &stat(10, "beam.smp", 1, [100, 200, 0, 0]),
            Some(io),
        );
        put(
            proc.path(),
            11,
            &stat(11, "erl_child_setup", 10, [10, 0, 0, 0]),
            None,
        );
        put(
            proc.path(),
            12,
            &stat(12, "inet_gethost", 11, [5, 5, 0, 0]),
            Some(io),
        );
        put(
            proc.path(),
            13,
            &stat(13, "stranger", 1, [999, 999, 0, 0]),
            Some(io),
        );
        let tree = ProcessTree::under(proc.path(), &[10], 100).unwrap();
        let usage = tree.usage().unwrap();
        assert!((usage.user_s - 1.15).abs() < 1e-9, "{usage:?}");
        assert!((usage.system_s - 2.05).abs() < 1e-9, "{usage:?}");
        assert_eq!(usage.rss_bytes, 3 * 102_400 * 1024);
        assert_eq!(usage.written_bytes, Some(8192));
        assert_eq!(tree.switches(), Some(3 * 157));
        assert_eq!(tree.peak_bytes(), Some(3 * 204_800 * 1024));
        let both = ProcessTree::under(proc.path(), &[10, 13], 100).unwrap();
        assert_eq!(both.usage().unwrap().rss_bytes, 4 * 102_400 * 1024);
        assert!(ProcessTree::under(proc.path(), &[10, 99], 100).is_err());
    }

    #[test]
    fn what_the_kernel_hides_is_absent_and_not_zero() {
        let proc = tempfile::tempdir().unwrap();
        put(proc.path(), 10, &stat(10, "broker", 1, [1, 1, 0, 0]), None);
        let tree = ProcessTree::under(proc.path(), &[10], 100).unwrap();
        assert_eq!(tree.usage().unwrap().written_bytes, None);
        fs::remove_dir_all(proc.path().join("10")).unwrap();
        assert_eq!(tree.usage(), None);
        assert!(ProcessTree::under(proc.path(), &[10], 100).is_err());
    }

    #[test]
    fn our_own_process_can_be_read() {
        let tree = ProcessTree::new(&[std::process::id()]).unwrap();
        assert!(tree.usage().unwrap().rss_bytes > 0);
        assert!(tree.peak_bytes().unwrap() > 0);
    }
}
