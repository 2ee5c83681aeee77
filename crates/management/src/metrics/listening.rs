//! The port for Prometheus. Whoever reaches it may read it, as in RabbitMQ.

use super::collect::Identity;
use super::pages::{self, PageQuery};
use crate::gzip;
use crate::options::Members;
use crate::query::Query;
use crate::served::{self, Served};
use crate::unread::{Reservation, Unread, Watched, Whole};
use broker::Broker;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, VARY};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use listener::{Arrival, Endpoint, Listener, StartError};
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, watch};

/// How many pages are written at a time; others wait.
const PAGES: usize = 2;
/// How many connections are open at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long pages may go on after the stop.
const GRACE: Duration = Duration::from_millis(250);

/// How the page of metrics is set up.
#[derive(Clone, Debug)]
pub struct MetricsOptions {
    /// Where to listen, and whether TLS is spoken there.
    pub endpoints: Vec<Endpoint>,
    /// Where the page is, such as `/metrics` (`prometheus.path`). The other pages are below it.
    pub path: String,
    /// That page shows single objects too (`prometheus.return_per_object_metrics`).
    pub per_object: bool,
    /// So many objects of a kind are shown at most, one by one.
    pub object_limit: usize,
    /// The node's name.
    pub node: String,
    /// The version of RabbitMQ whose behaviour clients may expect.
    pub rabbitmq_version: String,
    /// Who is of the node's cluster, if it is one of several.
    pub members: Option<Members>,
}

/// The listener for Prometheus. It closes when dropped.
pub struct Metrics {
    endpoints: Vec<Arc<Endpoint>>,
    _served: Served,
}

struct Shared {
    broker: Arc<Broker>,
    identity: Identity,
    path: String,
    per_object: bool,
    object_limit: usize,
    /// Pages that wait to be read.
    unread: Arc<Unread>,
}

impl Metrics {
    /// Listens and serves the clients that connect.
    ///
    /// # Errors
    /// An address cannot be listened on, or a thread cannot be started.
    pub fn start(broker: Arc<Broker>, options: MetricsOptions) -> Result<Self, StartError> {
        let runtime = served::runtime("metrics", PAGES)?;
        let listeners = {
            let _inside = runtime.enter();
            served::open(&options.endpoints)?
        };
        let endpoints = listeners.iter().map(|it| it.endpoint().clone()).collect();
        let shared = Arc::new(Shared {
            identity: Identity {
                node: options.node,
                rabbitmq_version: options.rabbitmq_version,
                started: started(broker.status().uptime_ms),
                members: options.members,
            },
            broker,
            path: options.path,
            per_object: options.per_object,
            object_limit: options.object_limit,
            unread: Arc::default(),
        });
        let served = Served::start("metrics", runtime, GRACE, |stopped| {
            serve(listeners, shared, stopped)
        })?;
        Ok(Self {
            endpoints,
            _served: served,
        })
    }

    /// Where it listens.
    pub fn endpoints(&self) -> &[Arc<Endpoint>] {
        &self.endpoints
    }
}

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "metrics on {:?}", self.endpoints)
    }
}

/// When a node started that has run for so many milliseconds, in seconds since 1970. To be asked once: the clock of the
/// day may be set.
fn started(uptime_ms: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from_millis(uptime_ms)).as_secs()
}

async fn serve(listeners: Vec<Listener>, shared: Arc<Shared>, mut stop: watch::Receiver<bool>) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    for listener in listeners {
        tokio::spawn(accept(listener, connections.clone(), shared.clone()));
    }
    // The sender is gone if the page is.
    let _ = stop.changed().await;
}

async fn accept(listener: Listener, connections: Arc<Semaphore>, shared: Arc<Shared>) {
    while let Ok(permit) = connections.clone().acquire_owned().await {
        let arrival = listener.next().await;
        let shared = shared.clone();
        tokio::spawn(async move {
            connection(arrival, shared).await;
            drop(permit);
        });
    }
}

async fn connection(arrival: Arrival, shared: Arc<Shared>) {
    let (socket, peer) = match arrival.enter().await {
        Ok(client) => (client.socket, client.peer.ip()),
        Err(error) => {
            tracing::debug!(area = "metrics", "a connection did not begin: {error}");
            return;
        }
    };
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(&request, peer, shared).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(Watched::new(socket)), service);
    if let Err(error) = served.await {
        tracing::debug!(area = "metrics", "a connection ended: {error}");
    }
}

async fn answer(request: &Request<Incoming>, peer: IpAddr, shared: Arc<Shared>) -> Response<Whole> {
    let query = Query::parse(request.uri().query().unwrap_or_default());
    let below = request.uri().path().strip_prefix(&shared.path);
    let Some(wanted) = below.and_then(|below| PageQuery::of(below, &query, shared.per_object)) else {
        return empty(StatusCode::NOT_FOUND);
    };
    if !matches!(request.method().as_str(), "GET" | "HEAD") {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let Some(reserved) = shared.unread.reserve(peer).await else {
        return empty(StatusCode::SERVICE_UNAVAILABLE);
    };
    let asked = request.headers().clone();
    let write = move || {
        let page = pages::write(&shared.broker, &shared.identity, &wanted, shared.object_limit);
        (gzip::squeeze(&asked, &page), page)
    };
    match tokio::task::spawn_blocking(write).await {
        Ok((Some(squeezed), _)) => {
            let mut response = plain(StatusCode::OK, squeezed, Some(reserved));
            let headers = response.headers_mut();
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            response
        }
        Ok((None, page)) => plain(StatusCode::OK, page, Some(reserved)),
        Err(error) => {
            tracing::error!(area = "metrics", "a page was not written: {error}");
            empty(StatusCode::INTERNAL_SERVER_ERROR)
        }
    }
}

fn empty(status: StatusCode) -> Response<Whole> {
    plain(status, Vec::new(), None)
}

fn plain(status: StatusCode, body: Vec<u8>, reserved: Option<Reservation>) -> Response<Whole> {
    let mut response = Response::new(Whole::new(body, reserved));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    let by = HeaderValue::from_static("accept-encoding");
    response.headers_mut().insert(VARY, by);
    response
}
