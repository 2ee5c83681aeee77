//! What the process uses of the machine, as the system tells it.

use broker::NodeStatus;

/// What the node uses at this moment, by RabbitMQ's names: bytes of memory and of free disk, open files, connections and threads.
pub fn uses(status: &NodeStatus) -> [(&'static str, u64); 5] {
    [
        ("mem_used", status.memory),
        ("disk_free", status.disk_free),
        ("fd_used", open_files()),
        ("sockets_used", status.sessions as u64),
        ("proc_used", threads()),
    ]
}

/// How many files the process has open; 0 where the system does not tell.
pub fn open_files() -> u64 {
    // Linux tells their number as the directory's size since 6.2; before, they have to be counted.
    let told = std::fs::metadata("/proc/self/fd").map_or(0, |fd| fd.len());
    match told {
        0 => std::fs::read_dir("/proc/self/fd").map_or(0, |files| files.count() as u64),
        told => told,
    }
}

/// How many files the process may open; 0 where the system does not tell.
pub fn file_limit() -> u64 {
    limit("Max open files")
}

/// How many processes and threads the process's user may have; 0 where the system does not tell.
pub fn process_limit() -> u64 {
    limit("Max processes")
}

/// How many threads the process has, which stand for Erlang's processes: tools ask for them.
fn threads() -> u64 {
    std::fs::read_dir("/proc/self/task").map_or(0, |threads| threads.count() as u64)
}

/// How much of something the process may have; 0 where the system does not tell, or sets no limit.
fn limit(name: &str) -> u64 {
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix(name));
    let soft = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
    soft.unwrap_or(0)
}
