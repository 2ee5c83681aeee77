//! The threads that serve connections, and everything that is ever spawned on them.
//!
//! Each has a runtime of its own; a connection stays on its thread. So connections of one thread need no locks among each
//! other that anybody waits for, and a wake-up mostly stays at home.

use crate::amqp::connection::{Core, Hall, Name};
use crate::amqp::serve::serve;
use crate::connections::Connections;
use std::net::SocketAddr;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long nothing is accepted after the system refused (mostly: too many open files).
const PAUSE: Duration = Duration::from_millis(250);

/// What a thread is told.
enum Order {
    Serve {
        socket: std::net::TcpStream,
        peer: SocketAddr,
    },
    Stop,
}

/// One thread, as the others see it.
struct Server {
    orders: UnboundedSender<Order>,
    connections: AtomicUsize,
}

/// What all threads share.
struct Shared {
    servers: Vec<Server>,
    hall: Arc<Hall>,
    connections: Arc<Connections>,
    epoch: Instant,
}

/// All threads.
pub struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts as many threads as there are `runtimes`; the first one accepts.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        runtimes: Vec<tokio::runtime::Runtime>,
        listeners: Vec<TcpListener>,
        hall: Arc<Hall>,
        connections: Arc<Connections>,
    ) -> std::io::Result<Self> {
        let (servers, receivers): (Vec<_>, Vec<_>) = runtimes
            .iter()
            .map(|_| {
                let (orders, receiver) = unbounded_channel();
                (
                    Server {
                        orders,
                        connections: AtomicUsize::new(0),
                    },
                    receiver,
                )
            })
            .unzip();
        let shared = Arc::new(Shared {
            servers,
            hall,
            connections,
            epoch: Instant::now(),
        });
        let mut threads = Self {
            shared: shared.clone(),
            handles: Vec::new(),
        };
        let mut listeners = Some(listeners);
        for (number, (runtime, orders)) in runtimes.into_iter().zip(receivers).enumerate() {
            let shared = shared.clone();
            let listeners = listeners.take().unwrap_or_default();
            let handle = std::thread::Builder::new()
                .name(format!("gateway-{number}"))
                .spawn(move || {
                    for listener in listeners {
                        runtime.spawn(accept(listener, shared.clone()));
                    }
                    runtime.block_on(obey(orders, shared, number));
                })?;
            threads.handles.push(handle);
        }
        Ok(threads)
    }

    /// Ends all threads. Connections that are left are dropped; they give back what they hold.
    pub fn stop(self) {
        for server in &self.shared.servers {
            // A thread that is gone already needs no order.
            let _ = server.orders.send(Order::Stop);
        }
        for handle in self.handles {
            if handle.join().is_err() {
                tracing::error!(area = "connection", "a thread for connections had panicked");
            }
        }
    }
}

/// Accepts connections and hands each to the thread with the fewest.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        match listener.accept().await {
            Ok((socket, peer)) => {
                let Some(server) = shared
                    .servers
                    .iter()
                    .min_by_key(|it| it.connections.load(Ordering::Relaxed))
                else {
                    return;
                };
                let Ok(socket) = socket.into_std() else { continue };
                server.connections.fetch_add(1, Ordering::Relaxed);
                if server.orders.send(Order::Serve { socket, peer }).is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::error!(area = "connection", "a connection could not be accepted: {error}");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// A thread's life.
async fn obey(mut orders: UnboundedReceiver<Order>, shared: Arc<Shared>, number: usize) {
    while let Some(Order::Serve { socket, peer }) = orders.recv().await {
        let shared = shared.clone();
        tokio::spawn(async move {
            if let Err(error) = serve_socket(socket, peer, &shared).await {
                tracing::warn!(
                    area = "connection",
                    "a connection from {peer} could not be served: {error}"
                );
            }
            shared.servers[number].connections.fetch_sub(1, Ordering::Relaxed);
        });
    }
}

async fn serve_socket(socket: std::net::TcpStream, peer: SocketAddr, shared: &Shared) -> std::io::Result<()> {
    let stream = TcpStream::from_std(socket)?;
    stream.set_nodelay(shared.hall.options.nodelay)?;
    let name = Name {
        peer,
        local: stream.local_addr()?,
    };
    let core = Core::new(
        shared.hall.clone(),
        name,
        shared.epoch.elapsed().as_millis() as u64,
    );
    let Some(entry) = shared.connections.enter(core.outbox().clone()) else {
        return Ok(());
    };
    serve(stream, core, shared.epoch).await;
    drop(entry);
    Ok(())
}
