//! How much memory this process may use: the machine's, or what its control groups leave it if that is less.

use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of memory that this process may use; `None` if the system doesn't tell.
pub fn available() -> Option<u64> {
    available_below(Path::new("/"))
}

/// The same for a system whose files lie below `root`.
fn available_below(root: &Path) -> Option<u64> {
    let machine = fs::read_to_string(root.join("proc/meminfo"))
        .ok()
        .and_then(|text| total_of_meminfo(&text));
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    limit_files(root, &groups)
        .iter()
        .filter_map(|path| control_group_limit(path))
        .chain(machine)
        .min()
}

/// The line `MemTotal:       24671160 kB`.
fn total_of_meminfo(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The files with the limits of this process's groups and of all groups that those lie in: each of them holds. Lines of
/// `/proc/self/cgroup` are `0::/path` for version 2 and `4:memory:/path` for version 1; a system may have both. Within
/// a container the path may be that of the host, which does not exist here: then the topmost files, which are the
/// container's own, are all there is.
fn limit_files(root: &Path, groups: &str) -> Vec<PathBuf> {
    let mounted = root.join("sys/fs/cgroup");
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(number), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        if controllers.split(',').any(|name| name == "memory") {
            add_upwards(&mut files, &mounted.join("memory"), path, "memory.limit_in_bytes");
        } else if number == "0" && controllers.is_empty() {
            add_upwards(&mut files, &mounted, path, "memory.max");
            // Where both versions are there, the second has a folder of its own.
            add_upwards(&mut files, &mounted.join("unified"), path, "memory.max");
        }
    }
    files.push(mounted.join("memory.max"));
    files.push(mounted.join("memory/memory.limit_in_bytes"));
    files
}

/// The file of the group at `path`, and of every group above it.
fn add_upwards(files: &mut Vec<PathBuf>, mounted: &Path, path: &str, file: &str) {
    let path = Path::new(path.trim_start_matches('/'));
    // A path that leads out of what is mounted names nothing that could be read here.
    if path.components().any(|part| part.as_os_str() == "..") {
        return;
    }
    let groups = path.ancestors().map(|group| mounted.join(group).join(file));
    files.extend(groups);
}

/// A number, or `max` for none. Version 1 says none with a number close to the largest one, which is more than any machine has.
fn control_group_limit(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    /// A system of 16 GiB with these lines in `/proc/self/cgroup` and these limits.
    fn system(groups: &str, limits: &[(&str, &str)]) -> Option<u64> {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n");
        write("proc/self/cgroup", groups);
        for (path, limit) in limits {
            write(&format!("sys/fs/cgroup/{path}"), &format!("{limit}\n"));
        }
        available_below(root.path())
    }

    #[test]
    fn the_machine_tells_its_memory() {
        assert_eq!(system("", &[]), Some(16 * GIB));
        assert_eq!(total_of_meminfo("MemFree: 1 kB\n"), None);
        assert_eq!(total_of_meminfo("MemTotal: x kB\n"), None);
    }

    #[test]
    fn a_nested_group_of_the_first_version_bounds_it() {
        let groups = "12:cpu,cpuacct:/a\n4:memory:/outer/inner\n1:name=systemd:/a\n";
        let unlimited = "9223372036854771712";
        let limits = [
            ("memory/memory.limit_in_bytes", unlimited),
            ("memory/outer/memory.limit_in_bytes", unlimited),
            ("memory/outer/inner/memory.limit_in_bytes", "1073741824"),
        ];
        assert_eq!(system(groups, &limits), Some(GIB));
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_wins() {
        let groups = "4:memory:/outer/inner\n";
        let limits = [
            ("memory/outer/memory.limit_in_bytes", "1073741824"),
            ("memory/outer/inner/memory.limit_in_bytes", "4294967296"),
        ];
        assert_eq!(system(groups, &limits), Some(GIB));
        let groups = "1:name=x:/\n0::/system.slice/leveret.service\n";
        let limits = [
            ("system.slice/memory.max", "2147483648"),
            ("system.slice/leveret.service/memory.max", "max"),
        ];
        assert_eq!(system(groups, &limits), Some(2 * GIB));
    }

    #[test]
    fn both_versions_may_be_there_at_once() {
        let groups = "4:memory:/a\n0::/a\n";
        let limits = [
            ("memory/a/memory.limit_in_bytes", "4294967296"),
            ("unified/a/memory.max", "3221225472"),
        ];
        assert_eq!(system(groups, &limits), Some(3 * GIB));
    }

    #[test]
    fn in_a_container_the_topmost_limit_is_its_own() {
        let groups = "4:memory:/docker/0123\n0::/../..\n";
        assert_eq!(
            system(groups, &[("memory/memory.limit_in_bytes", "1073741824")]),
            Some(GIB)
        );
        assert_eq!(system(groups, &[("memory.max", "1073741824")]), Some(GIB));
    }
}
