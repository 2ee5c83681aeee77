//! Starting and stopping the doors for messages.

use crate::amqp::connection::Hall;
use crate::balance::Rules;
use crate::connections::Connections;
use crate::options::{Options, StartError};
use crate::threads::Threads;
use broker::Broker;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};

/// How long clients may take to confirm that the broker closes their connections.
const PATIENCE: Duration = Duration::from_secs(3);

/// The doors for messages.
pub struct Gateway {
    addresses: Vec<SocketAddr>,
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
            options
                .listeners
                .iter()
                .map(|&address| {
                    listen(address, &options).map_err(|error| StartError::Listen { address, error })
                })
                .collect::<Result<Vec<_>, _>>()?
        };
        let addresses = listeners
            .iter()
            .map(TcpListener::local_addr)
            .collect::<Result<_, _>>()
            .map_err(StartError::Thread)?;
        let connections = Arc::new(Connections::default());
        let hall = Arc::new(Hall { broker, options });
        let threads = Threads::start(runtimes, listeners, hall, connections.clone(), Rules::default())
            .map_err(StartError::Thread)?;
        Ok(Self {
            addresses,
            connections,
            threads: Mutex::new(Some(threads)),
        })
    }

    /// Where it listens, in the order of the options; ports that the system chose are filled in.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
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
        write!(f, "gateway on {:?}", self.addresses)
    }
}

fn listen(address: SocketAddr, options: &Options) -> std::io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    socket.set_reuseaddr(true)?;
    // Connections inherit the sizes from the socket that they come in by.
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes)?;
    }
    if let Some(bytes) = options.receive_buffer {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.bind(address)?;
    socket.listen(options.backlog)
}
