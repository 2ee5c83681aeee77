//! Starting and stopping the doors for messages.

use crate::amqp::connection::Hall;
use crate::balance::Rules;
use crate::connections::Connections;
use crate::options::Options;
use crate::threads::{SideDoor, Threads};
use broker::Broker;
use listener::{Listener, Opened, StartError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long clients may take to confirm that the broker closes their connections.
const PATIENCE: Duration = Duration::from_secs(3);

/// The doors for messages.
pub struct Gateway {
    doors: Vec<Opened>,
    side_door: SideDoor,
    connections: Arc<Connections>,
    threads: Mutex<Option<Threads>>,
}

impl Gateway {
    /// Listens on all addresses and serves who comes.
    ///
    /// # Errors
    /// An address cannot be listened on, or a thread cannot be started. Nothing is left behind then.
    pub fn start(broker: Arc<Broker>, options: Options) -> Result<Self, StartError> {
        let count = options
            .threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
            .max(1);
        let runtimes: Vec<Runtime> = (0..count)
            .map(|_| Builder::new_current_thread().enable_io().enable_time().build())
            .collect::<Result<_, _>>()
            .map_err(StartError::Thread)?;
        let listeners = {
            let _inside = runtimes.first().map(Runtime::enter);
            let open = |door: &listener::Door| Listener::open(door.clone(), &options.sockets);
            options.doors.iter().map(open).collect::<Result<Vec<_>, _>>()?
        };
        let doors = listeners.iter().map(Listener::opened).collect();
        let connections = Arc::new(Connections::default());
        let hall = Arc::new(Hall::new(broker, options));
        let threads = Threads::start(runtimes, listeners, hall, connections.clone(), Rules::default())
            .map_err(StartError::Thread)?;
        Ok(Self {
            doors,
            side_door: threads.side_door(),
            connections,
            threads: Mutex::new(Some(threads)),
        })
    }

    /// Where it listens, in the order of the options.
    pub fn doors(&self) -> &[Opened] {
        &self.doors
    }

    /// For those who came in by another door, such as the one of the HTTP API.
    pub fn side_door(&self) -> SideDoor {
        self.side_door.clone()
    }

    /// Closes all connections with 320 and ends all threads. What clients have not settled is in its queues again when it
    /// returns. May be called twice.
    pub fn stop(&self) {
        let Some(threads) = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let reason = "broker forced connection closure with reason 'shutdown'";
        if !self.connections.close(reason, PATIENCE) {
            tracing::warn!(
                area = "connection",
                "some clients did not confirm the end of their connections in time"
            );
        }
        threads.stop();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gateway on {:?}", self.doors)
    }
}
