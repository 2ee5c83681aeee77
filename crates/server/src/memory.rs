//! How much memory this process may use: the machine's, or the control group's limit if that is less.

use std::fs;
use std::path::Path;

/// Limits of control groups, version 2 and version 1, as seen from inside a container.
const CONTROL_GROUP_LIMITS: [&str; 2] = [
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
];

/// Bytes of memory that this process may use; `None` if the system doesn't tell.
pub fn available() -> Option<u64> {
    let machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| total_of_meminfo(&text));
    let limits = CONTROL_GROUP_LIMITS
        .iter()
        .filter_map(|path| control_group_limit(Path::new(path)));
    limits
        .chain(own_group().and_then(|path| control_group_limit(Path::new(&path))))
        .chain(machine)
        .min()
}

/// The line `MemTotal:       24671160 kB`.
fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The limit file of this process's own group (version 2), which is where systemd puts a service's limit.
fn own_group() -> Option<String> {
    let text = fs::read_to_string("/proc/self/cgroup").ok()?;
    limit_file_of_group(&text)
}

/// The version 2 line is `0::/path`.
fn limit_file_of_group(text: &str) -> Option<String> {
    let group = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(format!(
        "/sys/fs/cgroup{}/memory.max",
        group.trim_end_matches('/')
    ))
}

/// A number, or `max` for none.
fn control_group_limit(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_memory() {
        assert_eq!(
            total_of_meminfo("MemTotal:       24671160 kB\nMemFree: 1 kB\n"),
            Some(24_671_160 * 1024)
        );
        assert_eq!(total_of_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(total_of_meminfo("MemTotal: x kB\n"), None);
    }

    #[test]
    fn the_group_of_this_process_is_found() {
        let file = limit_file_of_group("1:name=x:/\n0::/system.slice/leveret.service\n");
        assert_eq!(
            file.as_deref(),
            Some("/sys/fs/cgroup/system.slice/leveret.service/memory.max")
        );
        assert_eq!(
            limit_file_of_group("0::/\n").as_deref(),
            Some("/sys/fs/cgroup/memory.max")
        );
        assert_eq!(limit_file_of_group("4:memory:/x\n"), None);
    }
}
