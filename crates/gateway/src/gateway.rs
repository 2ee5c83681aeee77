//! Starting and stopping what serves clients.

use crate::amqp::{self, Amqp};
use crate::balance::Rules;
use crate::connection::FrontEnd;
use crate::connections::Connections;
use crate::incomplete::Incomplete;
use crate::options::Options;
use crate::stream::{self, NodeStreams, Stream};
use crate::threads::{Acceptor, Threads};
use broker::{Broker, CloseReason};
use listener::{Endpoint, Listener, Protocol, SocketOptions, StartError};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// The protocols that are spoken here.
pub const PROTOCOLS: [Protocol; 2] = [amqp::PROTOCOL, stream::PROTOCOL];

/// How long clients may take to confirm that the broker closes their connections.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(3);

/// The listeners for clients that publish and consume, and the threads that serve them.
pub struct Gateway {
    endpoints: Vec<Arc<Endpoint>>,
    acceptor: Acceptor,
    connections: Arc<Connections>,
    threads: Mutex<Option<Threads>>,
}

impl Gateway {
    /// Listens on all addresses and serves the clients that connect.
    ///
    /// # Errors
    /// An address cannot be listened on, or a thread cannot be started. Nothing is left behind then.
    pub fn start(broker: Arc<Broker>, options: Options) -> Result<Self, StartError> {
        let incomplete = Arc::<Incomplete>::default();
        let amqp = Amqp::new(Arc::clone(&broker), options.amqp.clone(), incomplete);
        broker.serve_streams(options.stream.addresses());
        let streams = Stream {
            broker: broker.clone(),
            source: Arc::new(NodeStreams),
            options: options.stream.clone(),
        };
        Self::start_with(&broker, options, vec![Arc::new(amqp), Arc::new(streams)])
    }

    /// The same with these protocols.
    pub(crate) fn start_with(
        broker: &Broker,
        options: Options,
        front_ends: Vec<Arc<dyn FrontEnd>>,
    ) -> Result<Self, StartError> {
        let runtimes = runtimes(options.threads).map_err(StartError::Thread)?;
        let listeners = open(options.endpoints, &options.sockets, &runtimes)?;
        let endpoints = listeners.iter().map(|it| it.endpoint().clone()).collect();
        let connections = Arc::new(Connections::default());
        let (sharing, rules) = (connections.clone(), Rules::default());
        let (told, open) = watch::channel(true);
        broker.watch_suspension(move |takes| {
            // Nobody listens once the threads are gone.
            let _ = told.send(takes);
        });
        let threads = Threads::start("gateway", runtimes, listeners, open, front_ends, sharing, rules)
            .map_err(StartError::Thread)?;
        Ok(Self {
            endpoints,
            acceptor: threads.acceptor(),
            connections,
            threads: Mutex::new(Some(threads)),
        })
    }

    /// Where it listens, in the order of the options.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }

    /// For clients that come by other listeners, such as those of the HTTP API.
    pub fn acceptor(&self) -> Acceptor {
        self.acceptor.clone()
    }

    /// Closes all connections and ends all threads. What clients have not settled is in its queues again when it
    /// returns. May be called twice.
    pub fn stop(&self) {
        let Some(threads) = self.threads.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        if !self.connections.close(&CloseReason::Shutdown, CLOSE_TIMEOUT) {
            tracing::warn!(
                area = "connection",
                "some clients did not confirm the end of their connections in time"
            );
        }
        threads.stop();
    }
}

/// A runtime for each of so many threads; for each processor, if it is not said how many.
pub(crate) fn runtimes(threads: Option<usize>) -> io::Result<Vec<Runtime>> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let count = threads.unwrap_or_else(processors).max(1);
    let runtime = |_| Builder::new_current_thread().enable_io().enable_time().build();
    (0..count).map(runtime).collect()
}

/// Listens on all addresses, for the first thread.
pub(crate) fn open(
    endpoints: Vec<Endpoint>,
    sockets: &SocketOptions,
    runtimes: &[Runtime],
) -> Result<Vec<Listener>, StartError> {
    let _inside = runtimes.first().map(Runtime::enter);
    let open = |endpoint| Listener::open(endpoint, sockets);
    endpoints.into_iter().map(open).collect()
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.stop();
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "gateway on {:?}", self.endpoints)
    }
}
