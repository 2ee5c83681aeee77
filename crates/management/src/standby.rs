//! The admin socket of a process whose broker is stopped: it tells that, starts the broker, has everything forgotten, and refuses
//! the rest.

use crate::application;
use crate::served::{self, Served};
use crate::{StartError, admin_socket};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use listener::Listener;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a client may take to send a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The largest body: a flag, or the name of a node.
const BODY: usize = 1024;
/// How long an answer may take after the end.
const GRACE: Duration = Duration::from_secs(1);

/// What an operator wants of a stopped node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    /// The broker runs again.
    Start,
    /// Everything durable is forgotten; the node's cluster forgets it before, unless that is not to be waited for.
    Reset { force: bool },
    /// The next start is to ask this node to be let into its cluster: a name such as `rabbit@n1`, or a name and a port.
    Join(String),
}

/// What carries orders out; it says why it can't.
pub type Carry = Arc<dyn Fn(Order) -> Result<(), String> + Send + Sync>;

/// The socket.
#[derive(Debug)]
pub struct Standby {
    _served: Served,
}

impl Standby {
    /// Listens on the admin socket.
    ///
    /// # Errors
    /// The socket or a thread can't be made.
    pub fn start(socket: &Path, node: &str, carry: Carry) -> Result<Self, StartError> {
        let runtime = served::runtime("standby", 1)?;
        let listener = {
            let _inside = runtime.enter();
            admin_socket::listen(socket)?
        };
        let node = node.to_owned();
        let served = Served::start("standby", runtime, GRACE, |stop| {
            serve(listener, node, carry, stop)
        })?;
        Ok(Self { _served: served })
    }
}

async fn serve(listener: Listener, node: String, carry: Carry, mut stop: watch::Receiver<bool>) {
    loop {
        tokio::select! {
            arrival = listener.next() => {
                if let Ok(guest) = arrival.enter().await {
                    let (node, carry) = (node.clone(), carry.clone());
                    let service = service_fn(move |request| {
                        let (node, carry) = (node.clone(), carry.clone());
                        async move { Ok::<_, Infallible>(answer(request, &node, carry).await) }
                    });
                    let served = hyper::server::conn::http1::Builder::new()
                        .timer(TokioTimer::new())
                        .header_read_timeout(TIMEOUT)
                        .serve_connection(TokioIo::new(guest.socket), service);
                    // One operator at a time is enough here, and a silent one is sent away.
                    let _ = tokio::time::timeout(TIMEOUT, served).await;
                }
            }
            _ = stop.changed() => return,
        }
    }
}

async fn answer(request: Request<Incoming>, node: &str, carry: Carry) -> Response<Full<Bytes>> {
    let path = request
        .uri()
        .path()
        .strip_prefix("/api")
        .unwrap_or_default()
        .to_owned();
    let method = request.method().clone();
    let order = match (&method, path.as_str()) {
        (&Method::GET, application::PATH) => return document(200, &application::state(node, false)),
        (&Method::PUT, application::PATH) => match wants_running(request).await {
            Some(true) => Order::Start,
            Some(false) => return document(204, &Value::Null),
            None => return refusal(400, "bad_request", "running is true or false"),
        },
        (&Method::DELETE, application::PATH) => Order::Reset {
            force: request.uri().query() == Some(application::FORCE),
        },
        (&Method::PUT, application::CLUSTER) => match named(request).await {
            Some(node) => Order::Join(node),
            None => return refusal(400, "bad_request", "node is the name of a node"),
        },
        _ => {
            let reason = "the broker is stopped (stop_app); start_app starts it again";
            return refusal(503, "application_stopped", reason);
        }
    };
    // Nobody else waits for this thread.
    match carry(order) {
        Ok(()) => document(204, &Value::Null),
        Err(reason) => refusal(500, "failed", &reason),
    }
}

async fn wants_running(request: Request<Incoming>) -> Option<bool> {
    json_of(request).await?.get("running")?.as_bool()
}

async fn named(request: Request<Incoming>) -> Option<String> {
    Some(json_of(request).await?.get("node")?.as_str()?.to_owned())
}

async fn json_of(request: Request<Incoming>) -> Option<Value> {
    let body = Limited::new(request.into_body(), BODY).collect().await.ok()?;
    serde_json::from_slice(&body.to_bytes()).ok()
}

fn refusal(status: u16, error: &str, reason: &str) -> Response<Full<Bytes>> {
    document(status, &json!({"error": error, "reason": reason}))
}

fn document(status: u16, document: &Value) -> Response<Full<Bytes>> {
    let body = match document {
        Value::Null => Bytes::new(),
        document => Bytes::from(document.to_string()),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or_default();
    let kind = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, kind);
    response
}
