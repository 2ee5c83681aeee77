//! The threads that serve connections, and everything that is ever spawned on them.
//!
//! Each has a runtime of its own; a connection is on one of them at a time. So connections of one thread need no locks among
//! each other that anybody waits for, and a wake-up mostly stays at home. While there is little to do, all connections sit on
//! the first thread; see `balance`.

use crate::balance::{Rules, thread_for_new};
use crate::connection::{Connection, FrontEnd, Millis, Name};
use crate::connections::{Connections, Entry};
use crate::load::{Loads, measure};
use crate::serve::{Ended, Served, serve};
use listener::{Arrival, ClientConnection, Listener, Parked, Socket};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// The moment from which the clocks of all threads count: a connection takes its clock with it wherever it goes.
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// What a thread is told.
enum Order {
    /// Serve a connection that was accepted.
    Accept(Arrival<Parked>),
    /// Serve a client that came by a listener of another part of the node.
    Serve(Box<ClientConnection<Parked>>),
    /// Serve a connection that this node has made.
    Begin {
        socket: Box<Socket<Parked>>,
        core: Box<dyn Connection>,
    },
    /// Make connections.
    Run(Pin<Box<dyn Future<Output = ()> + Send>>),
    /// Go on with a connection of another thread.
    Take {
        served: Box<Served<Socket<Parked>>>,
        entry: Entry,
    },
    Stop,
}

/// What all threads share.
struct Shared {
    /// One for each thread.
    orders: Vec<UnboundedSender<Order>>,
    loads: Arc<Loads>,
    front_ends: Vec<Arc<dyn FrontEnd>>,
    connections: Arc<Connections>,
    epoch: Instant,
}

/// Takes clients that came by a listener of another part of the node: a WebSocket of the HTTP API.
#[derive(Clone)]
pub struct Acceptor(Arc<Shared>);

impl Acceptor {
    /// Serves the client. If the gateway has stopped, the connection is dropped.
    pub fn accept(&self, client: ClientConnection<Parked>) {
        let shared = &self.0;
        let _ = shared.orders[shared.thread_for_new()].send(Order::Serve(Box::new(client)));
    }

    /// Serves a connection that this node has made, which `core` speaks: it is told what time it is. If the threads have
    /// stopped, the connection is dropped.
    pub(crate) fn begin(&self, socket: Socket<Parked>, core: impl FnOnce(Millis) -> Box<dyn Connection>) {
        let shared = &self.0;
        let (socket, core) = (Box::new(socket), core(shared.now()));
        let _ = shared.orders[shared.thread_for_new()].send(Order::Begin { socket, core });
    }

    /// Goes on with a connection that other threads have served. If these have stopped, it is dropped.
    pub(crate) fn take(&self, served: Box<Served<Socket<Parked>>>, entry: Entry) {
        let shared = &self.0;
        let _ = shared.orders[shared.thread_for_new()].send(Order::Take { served, entry });
    }

    /// True until the threads have stopped.
    pub(crate) fn is_open(&self) -> bool {
        self.0.orders.iter().all(|orders| !orders.is_closed())
    }

    /// Runs on the first thread what makes connections, until it ends or the threads stop.
    pub(crate) fn run(&self, making: impl Future<Output = ()> + Send + 'static) {
        let _ = self.0.orders[0].send(Order::Run(Box::pin(making)));
    }
}

/// All threads.
pub struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts as many threads as there are `runtimes`, called `name` with a number; the first one accepts, as long as `open` says
    /// so. Connections move between them by `rules`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        name: &str,
        runtimes: Vec<tokio::runtime::Runtime>,
        listeners: Vec<Listener>,
        open: watch::Receiver<bool>,
        front_ends: Vec<Arc<dyn FrontEnd>>,
        connections: Arc<Connections>,
        rules: Rules,
    ) -> std::io::Result<Self> {
        let (orders, receivers): (Vec<_>, Vec<_>) = runtimes.iter().map(|_| unbounded_channel()).unzip();
        let shared = Arc::new(Shared {
            loads: Arc::new(Loads::new(rules, orders.len())),
            orders,
            front_ends,
            connections,
            epoch: *EPOCH,
        });
        let mut threads = Self {
            shared: shared.clone(),
            handles: Vec::new(),
        };
        let mut listeners = Some(listeners);
        for (number, (runtime, orders)) in runtimes.into_iter().zip(receivers).enumerate() {
            let (shared, open) = (shared.clone(), open.clone());
            let listeners = listeners.take().unwrap_or_default();
            let handle = std::thread::Builder::new()
                .name(format!("{name}-{number}"))
                .spawn(move || {
                    for listener in listeners {
                        runtime.spawn(accept(listener, open.clone(), shared.clone()));
                    }
                    runtime.block_on(obey(orders, shared, number));
                })?;
            threads.handles.push(handle);
        }
        Ok(threads)
    }

    /// For clients that come by other listeners.
    pub fn acceptor(&self) -> Acceptor {
        Acceptor(self.shared.clone())
    }

    /// Ends all threads. Connections that are left are dropped; they give back what they hold.
    pub fn stop(self) {
        for orders in &self.shared.orders {
            // A thread that is gone already needs no order.
            let _ = orders.send(Order::Stop);
        }
        for handle in self.handles {
            if handle.join().is_err() {
                tracing::error!(area = "connection", "a thread for connections had panicked");
            }
        }
    }
}

impl Shared {
    fn now(&self) -> u64 {
        self.epoch.elapsed().as_millis() as u64
    }

    /// The thread for a new connection.
    fn thread_for_new(&self) -> usize {
        let shares = self.loads.shares(self.now());
        thread_for_new(&self.loads.rules, &shares)
    }
}

/// Accepts connections and hands each to a thread with processor time to spare. While the node takes no clients, the listener is
/// shut: the system refuses new connections, as with RabbitMQ's suspended listeners, and clients go to another node.
async fn accept(mut listener: Listener, mut open: watch::Receiver<bool>, shared: Arc<Shared>) {
    loop {
        if !*open.borrow_and_update() {
            listener.shut();
            if open.wait_for(|open| *open).await.is_err() {
                return;
            }
            listener.reopen().await;
        }
        let arrival = tokio::select! {
            arrival = listener.next() => arrival,
            changed = open.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok(arrival) = arrival.into_std() else {
            continue;
        };
        if shared.orders[shared.thread_for_new()]
            .send(Order::Accept(arrival))
            .is_err()
        {
            return;
        }
    }
}

/// A thread's life.
async fn obey(mut orders: UnboundedReceiver<Order>, shared: Arc<Shared>, number: usize) {
    measure(shared.loads.clone(), number, shared.now());
    while let Some(order) = orders.recv().await {
        match order {
            Order::Accept(arrival) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let peer = arrival.peer();
                    let entered = async { arrival.from_std()?.enter().await };
                    let served = match entered.await {
                        Ok(client) => attend_new(client, &shared).await,
                        Err(error) => Err(error),
                    };
                    told(peer, served);
                });
            }
            Order::Serve(client) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let peer = client.peer;
                    let served = match client.from_std() {
                        Ok(client) => attend_new(client, &shared).await,
                        Err(error) => Err(error),
                    };
                    told(peer, served);
                });
            }
            Order::Begin { socket, core } => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let served = match socket.from_std() {
                        Ok(socket) => attend_core(socket, core, &shared).await,
                        Err(error) => Err(error),
                    };
                    if let Err(error) = served {
                        tracing::error!(
                            area = "connection",
                            "a connection of this node's could not be served: {error}"
                        );
                    }
                });
            }
            Order::Run(making) => drop(tokio::spawn(making)),
            Order::Take { served, entry } => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let arrived = served.with_socket(Socket::from_std);
                    let gone = match arrived {
                        Ok(served) => attend(served, entry, &shared).await.err(),
                        Err(error) => Some(error),
                    };
                    if let Some(error) = gone {
                        tracing::warn!(
                            area = "connection",
                            "a connection could not change its thread: {error}"
                        );
                    }
                });
            }
            Order::Stop => return,
        }
    }
}

/// Logs how a connection failed, if it did.
fn told(peer: SocketAddr, served: std::io::Result<()>) {
    match served {
        Ok(()) => {}
        // A health check that only connects says nothing; that is not worth a line.
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            tracing::debug!(
                area = "connection",
                "{peer} disconnected before the handshake: {error}"
            );
        }
        Err(error) => tracing::error!(
            area = "connection",
            "a connection from {peer} could not be served: {error}"
        ),
    }
}

async fn attend_new(client: ClientConnection, shared: &Shared) -> std::io::Result<()> {
    let name = Name {
        peer: client.peer,
        local: client.local,
    };
    let mut front_ends = shared.front_ends.iter();
    let Some(front_end) = front_ends.find(|it| it.protocol() == client.protocol) else {
        let text = format!("nothing here speaks {}", client.protocol.name);
        return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, text));
    };
    let core = front_end.clone().connect(name, client.security, shared.now());
    attend_core(client.socket, core, shared).await
}

async fn attend_core(socket: Socket, core: Box<dyn Connection>, shared: &Shared) -> std::io::Result<()> {
    let Some(entry) = shared.connections.enter(core.outbox().clone()) else {
        return Ok(());
    };
    attend(Served::new(socket, core, shared.epoch), entry, shared).await
}

/// Serves a connection for as long as it is this thread's.
async fn attend(served: Served, entry: Entry, shared: &Shared) -> std::io::Result<()> {
    match serve(served).await? {
        Ended::Over => {}
        Ended::Elsewhere(to, served) => {
            // A thread that is gone takes nobody: the gateway stops.
            let _ = shared.orders[to].send(Order::Take { served, entry });
        }
        Ended::Among(threads, served) => {
            // Connections know of no others.
            if let Ok(acceptor) = threads.downcast::<Acceptor>() {
                acceptor.take(served, entry);
            }
        }
    }
    Ok(())
}
