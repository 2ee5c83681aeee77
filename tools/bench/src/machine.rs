//! What the figures depend on: processor, memory, kernel, disk, and how busy the machine is with other work.

use crate::results::{Machine, Probe};
use crate::{pauses, wakes};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

/// Enough for a p99 that is not one sample's luck alone.
const SYNCS: u32 = 200;
const BLOCK: [u8; 4096] = [0x78; 4096];
/// A load average above this part of the cores speaks against a run.
const BUSY: f64 = 0.25;

/// This machine, with the disk under `directory`.
pub fn describe(directory: &Path, note: Option<&str>) -> Machine {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let uname = rustix::system::uname();
    let (system, release) = (
        uname.sysname().to_string_lossy(),
        uname.release().to_string_lossy(),
    );
    Machine {
        cpu: cpu(&read("/proc/cpuinfo")),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(&read("/proc/meminfo")).unwrap_or(0),
        kernel: format!("{system} {release}"),
        os: os(&read("/etc/os-release")),
        disk_sync_us: disk_sync(directory).ok(),
        pauses: Some(pauses::look(cores)),
        wake_us: wakes::look(cores),
        halt_poll_us: wakes::halt_poll_us(),
        load_before: busy(&read("/proc/loadavg"), cores),
        note: note.unwrap_or_default().to_owned(),
    }
}

/// Appends blocks to a file and syncs after each, as a broker's log does for a lone durable confirm.
fn disk_sync(directory: &Path) -> std::io::Result<Probe> {
    let path = directory.join("sync-probe");
    let file = File::create(&path)?;
    let mut times = Vec::new();
    for block in 0..u64::from(SYNCS) {
        let start = Instant::now();
        file.write_all_at(&BLOCK, block * BLOCK.len() as u64)?;
        file.sync_data()?;
        times.push(start.elapsed().as_secs_f64() * 1e6);
    }
    drop(file);
    fs::remove_file(&path)?;
    Ok(Probe::of(times))
}

fn cpu(cpuinfo: &str) -> String {
    let value = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim())
    };
    // Arm's kernels name no model.
    let model = value("model name").unwrap_or(std::env::consts::ARCH);
    let guest = value("flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor"));
    if guest {
        format!("{model} (virtual machine)")
    } else {
        model.to_owned()
    }
}

fn memory_bytes(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

fn os(release: &str) -> String {
    let name = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.map_or(std::env::consts::OS, |name| name.trim_matches('"'))
        .to_owned()
}

/// The load average before the run began, if it shows other work.
fn busy(loadavg: &str, cores: usize) -> Option<f64> {
    let load: f64 = loadavg.split_ascii_whitespace().next()?.parse().ok()?;
    (load > BUSY * cores as f64).then_some(load)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_texts_are_understood() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Quick One\nflags\t\t: fpu hypervisor vme\n";
        assert_eq!(cpu(cpuinfo), "Quick One (virtual machine)");
        assert_eq!(cpu(""), std::env::consts::ARCH);
        assert_eq!(
            memory_bytes("MemTotal:       2048 kB\nMemFree: 1 kB\n"),
            Some(2048 * 1024)
        );
        assert_eq!(os("ID=x\nPRETTY_NAME=\"Some Linux 12\"\n"), "Some Linux 12");
    }

    #[test]
    fn a_busy_machine_is_noticed() {
        assert_eq!(busy("3.50 1.0 1.0 1/1 1", 2), Some(3.5));
        assert_eq!(busy("0.10 1.0 1.0 1/1 1", 2), None);
        assert_eq!(busy("", 2), None);
    }

    #[test]
    fn the_disk_is_probed_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let sync = disk_sync(folder.path()).unwrap();
        assert!(sync.p50 > 0.0 && sync.p50 <= sync.p99 && sync.p99 <= sync.max);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(disk_sync(&folder.path().join("missing")).is_err());
    }
}
