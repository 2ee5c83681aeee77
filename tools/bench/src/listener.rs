//! Finds the process that listens on a port of this machine, so that nobody has to look up a broker's process id.

use std::fs;
use std::path::Path;

/// TCP's state `LISTEN` in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The process that listens on a port.
///
/// # Errors
/// A line that says why none can be told.
pub fn listening(port: u16) -> Result<u32, String> {
    find(Path::new("/proc"), port)
}

fn find(proc: &Path, port: u16) -> Result<u32, String> {
    let mut inodes = Vec::new();
    for file in ["net/tcp", "net/tcp6"] {
        let text = fs::read_to_string(proc.join(file)).unwrap_or_default();
        inodes.extend(listening_inodes(&text, port));
    }
    if inodes.is_empty() {
        return Err(format!("nothing on this machine listens on port {port}"));
    }
    let mut holders = holders(proc, &inodes);
    // Workers that inherited the socket are younger than the process that opened it, except where numbers wrapped.
    holders.sort_unstable();
    holders
        .first()
        .copied()
        .ok_or_else(|| format!("the process that listens on port {port} belongs to another user"))
}

/// The inodes of sockets that listen on the port, from the text of `/proc/net/tcp` or `/proc/net/tcp6`.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, local_port) = fields.get(1)?.rsplit_once(':')?;
        let matches = u16::from_str_radix(local_port, 16).ok()? == port && *fields.get(3)? == LISTEN;
        matches.then(|| fields.get(9)?.parse().ok()).flatten()
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// Processes with one of the sockets open. Those of other users can't be looked into and are passed over.
fn holders(proc: &Path, inodes: &[u64]) -> Vec<u32> {
    let names: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    let Ok(entries) = fs::read_dir(proc) else {
        return Vec::new();
    };
    let pids = entries
        .flatten()
        .filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    let holds = |pid: &u32| {
        let Ok(files) = fs::read_dir(proc.join(pid.to_string()).join("fd")) else {
            return false;
        };
        let mut links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
        links.any(|link| names.iter().any(|name| link.as_os_str() == name.as_str()))
    };
    pids.filter(holds).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::os::unix::fs::symlink;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1628 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0000 100 0 0 10 0
   1: 0100007F:1628 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0000 20 4 30 10 -1
   2: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0000 100 0 0 10 0
";

    #[test]
    fn only_sockets_that_listen_on_the_port_count() {
        assert_eq!(listening_inodes(TABLE, 5672), [4711]);
        assert_eq!(listening_inodes(TABLE, 22), [4713]);
        assert!(listening_inodes(TABLE, 80).is_empty());
    }

    #[test]
    fn the_eldest_holder_of_the_socket_is_taken() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir_all(proc.path().join("net")).unwrap();
        fs::write(proc.path().join("net/tcp"), TABLE).unwrap();
        for (pid, inode) in [(300, 4711), (120, 4711), (50, 4713)] {
            let fd = proc.path().join(pid.to_string()).join("fd");
            fs::create_dir_all(&fd).unwrap();
            symlink(format!("socket:[{inode}]"), fd.join("7")).unwrap();
        }
        assert_eq!(find(proc.path(), 5672), Ok(120));
        assert!(find(proc.path(), 80).unwrap_err().contains("port 80"));
    }

    #[test]
    fn a_socket_of_somebody_else_is_told_apart_from_no_socket() {
        let proc = tempfile::tempdir().unwrap();
        fs::create_dir_all(proc.path().join("net")).unwrap();
        fs::write(proc.path().join("net/tcp"), TABLE).unwrap();
        assert!(find(proc.path(), 5672).unwrap_err().contains("another user"));
    }

    #[test]
    fn our_own_listener_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(listening(port), Ok(std::process::id()));
    }
}
