//! A wire between two nodes that can be cut: what comes to its address is passed on to another one.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const PASSES: u8 = 0;
/// Nothing is read, and whatever is sent waits.
const STALLS: u8 = 1;
/// What is sent is lost, and nobody is told.
const LOSES: u8 = 2;
const ENDS: u8 = 3;

/// The wire. Nobody who listens at its end knows of it.
pub(super) struct Wire {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    now: AtomicU8,
    lock: Mutex<()>,
    changed: Condvar,
}

impl State {
    fn set(&self, now: u8) {
        let _lock = self.lock.lock().unwrap();
        self.now.store(now, Ordering::SeqCst);
        self.changed.notify_all();
    }

    fn now(&self) -> u8 {
        self.now.load(Ordering::SeqCst)
    }
}

impl Wire {
    pub fn to(other: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for here in listener.incoming() {
                if shared.now() == ENDS {
                    return;
                }
                let (Ok(here), Ok(there)) = (here, TcpStream::connect(other)) else {
                    continue;
                };
                let back = (there.try_clone().unwrap(), here.try_clone().unwrap());
                for (from, to) in [(here, there), back] {
                    let state = shared.clone();
                    std::thread::spawn(move || pass(from, to, &state));
                }
            }
        });
        Self { address, state }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn cut(&self) {
        self.state.set(LOSES);
    }

    pub fn stall(&self) {
        self.state.set(STALLS);
    }

    pub fn mend(&self) {
        self.state.set(PASSES);
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.state.set(ENDS);
        let _ = TcpStream::connect(self.address);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, state: &State) {
    let mut buffer = vec![0; 1 << 16];
    from.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    loop {
        let mut lock = state.lock.lock().unwrap();
        while state.now() == STALLS {
            lock = state.changed.wait(lock).unwrap();
        }
        drop(lock);
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(_) if state.now() == LOSES => {}
            Ok(count) if to.write_all(&buffer[..count]).is_ok() => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            _ => break,
        }
        if state.now() == ENDS {
            break;
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
