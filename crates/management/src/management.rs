//! Starting and stopping the HTTP API.

use crate::admin_socket;
use crate::call::Hall;
use crate::events;
use crate::options::{Listener as Named, Options};
use crate::sampler::Sampler;
use crate::serve::{Doors, serve};
use crate::trace;
use broker::Broker;
use listener::{Listener, Opened, SocketOptions, StartError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};

/// How many requests are worked on at a time; others wait. It bounds the processors and the memory that the API takes.
const REQUESTS: usize = 4;

/// How long requests may go on after the stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// The door for people.
pub struct Management {
    doors: Vec<Opened>,
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Management {
    /// Listens and serves who comes.
    ///
    /// # Errors
    /// An address or the admin socket cannot be listened on, or a thread cannot be started.
    pub fn start(broker: Arc<Broker>, mut options: Options) -> Result<Self, StartError> {
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(REQUESTS)
            .thread_name("http")
            .build()
            .map_err(StartError::Thread)?;
        let (http, admin) = {
            let _inside = runtime.enter();
            let open = |door: &listener::Door| Listener::open(door.clone(), &SocketOptions::default());
            let http = options.doors.iter().map(open).collect::<Result<Vec<_>, _>>()?;
            let admin = options.admin_socket.as_deref().map(admin_socket::listen);
            (http, admin.transpose()?)
        };
        let doors: Vec<Opened> = http.iter().map(Listener::opened).collect();
        let named = doors.iter().map(|door| Named::new(["http", "https"], door));
        options.listeners.extend(named);
        let (stop, stopped) = watch::channel(false);
        let sampler = Sampler::start(&broker).map_err(StartError::Thread)?;
        let hall = Arc::new(Hall {
            broker,
            options,
            sampler,
            listeners: Arc::new(Semaphore::new(events::LISTENERS)),
            tracers: Arc::new(Semaphore::new(trace::LISTENERS)),
        });
        let thread = std::thread::Builder::new()
            .name("http".into())
            .spawn(move || {
                runtime.block_on(serve(Doors { http, admin }, hall, stopped));
                runtime.shutdown_timeout(PATIENCE);
            })
            .map_err(StartError::Thread)?;
        Ok(Self {
            doors,
            stop,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Where it listens.
    pub fn doors(&self) -> &[Opened] {
        &self.doors
    }

    /// Ends all threads. May be called twice.
    pub fn stop(&self) {
        let _ = self.stop.send(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Management {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Management {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HTTP API on {:?}", self.doors)
    }
}
