//! What a service manager is told (systemd's notification socket): ready, alive, stopping.

use std::env;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// The service manager, if one started the node.
pub struct Service {
    socket: Option<(UnixDatagram, SocketAddr)>,
    /// How often the manager wants a sign of life.
    watchdog: Option<Duration>,
}

/// Signs of life, until it is dropped.
pub struct Pulse {
    over: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    /// Finds the manager by the environment that it gave the process. Without one, nobody is told anything.
    pub fn find() -> Self {
        let watchdog = env::var("WATCHDOG_USEC").ok().and_then(|text| text.parse().ok());
        let socket = env::var("NOTIFY_SOCKET").ok().and_then(|path| {
            let address = match path.strip_prefix('@') {
                Some(name) => SocketAddr::from_abstract_name(name),
                None => SocketAddr::from_pathname(&path),
            };
            Some((UnixDatagram::unbound().ok()?, address.ok()?))
        });
        Self {
            socket,
            watchdog: watchdog.map(Duration::from_micros),
        }
    }

    /// The node serves.
    pub fn ready(&self) {
        self.tell("READY=1\nSTATUS=serving clients");
    }

    /// The node closes its listeners.
    pub fn stopping(&self) {
        self.tell("STOPPING=1\nSTATUS=closing connections");
    }

    /// Tells the manager that the node lives, twice as often as it wants to know, as long as `lives` says so. `lives` that does
    /// not return is no sign of life either.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn pulse(&self, lives: impl Fn() -> bool + Send + 'static) -> io::Result<Pulse> {
        let over = Arc::new((Mutex::new(false), Condvar::new()));
        let mut pulse = Pulse {
            over: over.clone(),
            thread: None,
        };
        let (Some(every), Some((socket, address))) = (self.watchdog, &self.socket) else {
            return Ok(pulse);
        };
        let (socket, address) = (socket.try_clone()?, address.clone());
        let life = move || {
            let (ended, rung) = &*over;
            let mut guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
            while !*guard {
                drop(guard);
                if lives() {
                    // A manager that is gone watches nobody.
                    let _ = socket.send_to_addr(b"WATCHDOG=1", &address);
                }
                guard = ended.lock().unwrap_or_else(PoisonError::into_inner);
                guard = rung
                    .wait_timeout_while(guard, every / 2, |ended| !*ended)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
            }
        };
        pulse.thread = Some(std::thread::Builder::new().name("pulse".into()).spawn(life)?);
        Ok(pulse)
    }

    fn tell(&self, text: &str) {
        if let Some((socket, address)) = &self.socket
            && let Err(error) = socket.send_to_addr(text.as_bytes(), address)
        {
            tracing::warn!(area = "boot", "the service manager cannot be told: {error}");
        }
    }
}

impl Drop for Pulse {
    fn drop(&mut self) {
        let (ended, rung) = &*self.over;
        *ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        rung.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    fn manager() -> (UnixDatagram, tempfile::TempDir, Service) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notify");
        let listening = UnixDatagram::bind(&path).unwrap();
        let address = SocketAddr::from_pathname(&path).unwrap();
        let service = Service {
            socket: Some((UnixDatagram::unbound().unwrap(), address)),
            watchdog: Some(Duration::from_millis(4)),
        };
        (listening, dir, service)
    }

    fn heard(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 100];
        let count = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..count].to_vec()).unwrap()
    }

    #[test]
    fn a_manager_hears_when_the_node_is_ready_lives_and_stops() {
        let (manager, _dir, service) = manager();
        service.ready();
        assert_eq!(heard(&manager), "READY=1\nSTATUS=serving clients");
        let pulse = service.pulse(|| true).unwrap();
        for _ in 0..3 {
            assert_eq!(heard(&manager), "WATCHDOG=1");
        }
        drop(pulse);
        manager.set_nonblocking(true).unwrap();
        while manager.recv(&mut [0; 100]).is_ok() {}
        service.stopping();
        assert_eq!(heard(&manager), "STOPPING=1\nSTATUS=closing connections");
    }

    #[test]
    fn a_node_that_is_not_well_gives_no_sign_of_life() {
        let (manager, _dir, service) = manager();
        let asked = Arc::new(AtomicBool::new(false));
        let seen = asked.clone();
        let pulse = service
            .pulse(move || {
                seen.store(true, Ordering::Relaxed);
                false
            })
            .unwrap();
        while !asked.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
        drop(pulse);
        manager.set_nonblocking(true).unwrap();
        assert!(manager.recv(&mut [0; 100]).is_err());
    }
}
