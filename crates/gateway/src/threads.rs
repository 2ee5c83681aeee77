//! The threads that serve connections, and everything that is ever spawned on them.
//!
//! Each has a runtime of its own; a connection is on one of them at a time. So connections of one thread need no locks among
//! each other that anybody waits for, and a wake-up mostly stays at home. While there is little to do, all connections sit on
//! the first thread; see `balance`.

use crate::amqp::connection::{Core, Hall, Name};
use crate::amqp::serve::{Ended, Served, serve};
use crate::balance::{Rules, newcomers_seat};
use crate::connections::{Connections, Entry};
use crate::load::{Loads, measure};
use listener::{Arrival, Guest, Listener, Parked, Socket};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

/// What a thread is told.
enum Order {
    Serve(Arrival<Parked>),
    /// Serve somebody who came in by the door for people.
    Greet(Box<Guest<Parked>>),
    /// Go on with a connection of another thread.
    Take {
        served: Box<Served<Socket<Parked>>>,
        entry: Entry,
    },
    Stop,
}

/// What all threads share.
struct Shared {
    /// The threads' ears.
    orders: Vec<UnboundedSender<Order>>,
    loads: Arc<Loads>,
    hall: Arc<Hall>,
    connections: Arc<Connections>,
    epoch: Instant,
}

/// For those who came in by another door.
#[derive(Clone)]
pub struct SideDoor(Arc<Shared>);

impl SideDoor {
    /// Serves the guest. Nobody is told if the gateway has stopped.
    pub fn admit(&self, guest: Guest<Parked>) {
        let shared = &self.0;
        let _ = shared.orders[shared.seat()].send(Order::Greet(Box::new(guest)));
    }
}

/// All threads.
pub struct Threads {
    shared: Arc<Shared>,
    handles: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts as many threads as there are `runtimes`; the first one accepts. Connections move between them by `rules`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub fn start(
        runtimes: Vec<tokio::runtime::Runtime>,
        listeners: Vec<Listener>,
        hall: Arc<Hall>,
        connections: Arc<Connections>,
        rules: Rules,
    ) -> std::io::Result<Self> {
        let (orders, receivers): (Vec<_>, Vec<_>) = runtimes.iter().map(|_| unbounded_channel()).unzip();
        let shared = Arc::new(Shared {
            loads: Arc::new(Loads::new(rules, orders.len())),
            orders,
            hall,
            connections,
            epoch: Instant::now(),
        });
        let mut threads = Self {
            shared: shared.clone(),
            handles: Vec::new(),
        };
        let (told, open) = watch::channel(true);
        shared.hall.broker.tell_porter(move |takes| {
            // The threads are gone once nobody hears it.
            let _ = told.send(takes);
        });
        let mut listeners = Some(listeners);
        for (number, (runtime, orders)) in runtimes.into_iter().zip(receivers).enumerate() {
            let (shared, open) = (shared.clone(), open.clone());
            let listeners = listeners.take().unwrap_or_default();
            let handle = std::thread::Builder::new()
                .name(format!("gateway-{number}"))
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

    /// For those who come in by another door.
    pub fn side_door(&self) -> SideDoor {
        SideDoor(self.shared.clone())
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

    /// The thread for a newcomer.
    fn seat(&self) -> usize {
        let shares = self.loads.shares(self.now());
        newcomers_seat(&self.loads.rules, &shares)
    }
}

/// Accepts connections and hands each to a thread that has room. While the node takes no clients, the door is shut: whoever comes is refused
/// by the system, as by RabbitMQ's suspended listeners, and goes to another node.
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
        if shared.orders[shared.seat()].send(Order::Serve(arrival)).is_err() {
            return;
        }
    }
}

/// A thread's life.
async fn obey(mut orders: UnboundedReceiver<Order>, shared: Arc<Shared>, number: usize) {
    measure(shared.loads.clone(), number, shared.now());
    while let Some(order) = orders.recv().await {
        match order {
            Order::Serve(arrival) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let peer = arrival.peer();
                    let entered = async { arrival.from_std()?.enter().await };
                    let served = match entered.await {
                        Ok(guest) => welcome(guest, &shared).await,
                        Err(error) => Err(error),
                    };
                    told(peer, served);
                });
            }
            Order::Greet(guest) => {
                let shared = shared.clone();
                tokio::spawn(async move {
                    let peer = guest.peer;
                    let served = match guest.from_std() {
                        Ok(guest) => welcome(guest, &shared).await,
                        Err(error) => Err(error),
                    };
                    told(peer, served);
                });
            }
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
        // Whoever looks whether the port is open says nothing; that is not worth a line.
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

async fn welcome(guest: Guest, shared: &Shared) -> std::io::Result<()> {
    let name = Name {
        peer: guest.peer,
        local: guest.local,
    };
    let core = Core::new(shared.hall.clone(), name, guest.security, shared.now());
    let Some(entry) = shared.connections.enter(core.outbox().clone()) else {
        return Ok(());
    };
    attend(Served::new(guest.socket, core, shared.epoch), entry, shared).await
}

/// Serves a connection for as long as it is this thread's.
async fn attend(served: Served, entry: Entry, shared: &Shared) -> std::io::Result<()> {
    if let Ended::Elsewhere(to, served) = serve(served).await? {
        // A thread that is gone takes nobody: the gateway stops.
        let _ = shared.orders[to].send(Order::Take { served, entry });
    }
    Ok(())
}
