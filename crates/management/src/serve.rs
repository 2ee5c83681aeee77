//! From a socket to a route and back. All that is spawned stands here.

use crate::access::{self, Asker, Peer};
use crate::call::{Call, Hall};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How long a client may take to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client may take to send a body.
const BODY_PATIENCE: Duration = Duration::from_secs(60);
/// How many connections are open at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 1024;
/// How long nothing is accepted after the system refused (mostly: too many open files).
const PAUSE: Duration = Duration::from_millis(250);

/// The doors of one node; both have the same seats.
#[derive(Debug)]
pub struct Doors {
    /// The port for HTTP.
    pub http: Option<TcpListener>,
    /// The admin socket.
    pub admin: Option<UnixListener>,
}

/// Serves until told to stop; connections end with the request they are at.
pub async fn serve(doors: Doors, hall: Arc<Hall>, mut stop: watch::Receiver<bool>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(seat) = room.clone().acquire_owned().await else {
            return;
        };
        let (hall, stopped) = (hall.clone(), stop.clone());
        let outcome = tokio::select! {
            accepted = from_network(doors.http.as_ref()) => accepted.map(|(socket, peer)| {
                let _ = socket.set_nodelay(true);
                tokio::spawn(connection(socket, Peer::Network(peer), hall, stopped, seat));
            }),
            accepted = from_machine(doors.admin.as_ref()) => accepted.map(|socket| {
                tokio::spawn(connection(socket, Peer::Operator, hall, stopped, seat));
            }),
            _ = stop.changed() => return,
        };
        if let Err(error) = outcome {
            tracing::warn!(
                area = "management",
                "an HTTP connection was not accepted: {error}"
            );
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn from_network(door: Option<&TcpListener>) -> io::Result<(TcpStream, SocketAddr)> {
    match door {
        Some(door) => door.accept().await,
        None => std::future::pending().await,
    }
}

async fn from_machine(door: Option<&UnixListener>) -> io::Result<UnixStream> {
    match door {
        Some(door) => door.accept().await.map(|(socket, _)| socket),
        None => std::future::pending().await,
    }
}

async fn connection<S>(
    socket: S,
    peer: Peer,
    hall: Arc<Hall>,
    mut stop: watch::Receiver<bool>,
    _seat: OwnedSemaphorePermit,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let service = service_fn(move |request| {
        let hall = hall.clone();
        async move { Ok::<_, Infallible>(answer(request, peer, hall).await) }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .serve_connection(TokioIo::new(socket), service);
    let mut served = std::pin::pin!(served);
    let outcome = tokio::select! {
        outcome = served.as_mut() => outcome,
        _ = stop.changed() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(area = "management", ?peer, "an HTTP connection ended: {error}");
    }
}

/// Answers one request. The work is done on a thread of the budget, so that a long one holds up nobody but its like.
async fn answer(request: Request<Incoming>, peer: Peer, hall: Arc<Hall>) -> Response<Full<Bytes>> {
    let (head, body) = request.into_parts();
    let Some((route, parts)) = routes::find(head.uri.path()) else {
        return response(Refusal::NotFound.into(), "HEAD, GET, OPTIONS");
    };
    let allow = route.allow();
    if head.method == "OPTIONS" {
        return response(Reply::empty(200), &allow);
    }
    let Some((right, handler)) = route.handler(head.method.as_str()) else {
        return response(Refusal::NotAllowed.into(), &allow);
    };
    let limit = hall.options.body_limit;
    let body = match tokio::time::timeout(BODY_PATIENCE, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            return response(Refusal::TooLarge(limit).into(), &allow);
        }
        Ok(Err(_)) | Err(_) => return response(Refusal::bad_request("body not read").into(), &allow),
    };
    let query = Query::parse(head.uri.query().unwrap_or_default());
    let work = move || {
        let authorization = text_of(&head.headers, header::AUTHORIZATION);
        let Asker { user, operator } = access::identify(&hall.broker, authorization, peer)?;
        let view = hall.broker.view();
        let vhost = parts
            .iter()
            .find(|(name, _)| *name == "vhost")
            .map(|(_, vhost)| vhost.as_str());
        access::check(&view, &user, right, vhost)?;
        handler(&Call {
            hall: &hall,
            user,
            operator,
            view,
            query,
            headers: &head.headers,
            body: &body,
            parts,
        })
    };
    let reply = match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome.unwrap_or_else(Reply::from),
        Err(error) => {
            tracing::error!(area = "management", "an HTTP request failed: {error}");
            Refusal::Internal("internal error".into()).into()
        }
    };
    response(reply, &allow)
}

fn text_of(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

fn response(reply: Reply, allow: &str) -> Response<Full<Bytes>> {
    let has_body = reply.body.is_some();
    let mut response = Response::new(Full::new(Bytes::from(reply.body.unwrap_or_default())));
    *response.status_mut() = hyper::StatusCode::from_u16(reply.status).unwrap_or_default();
    let headers = response.headers_mut();
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    };
    set(header::ALLOW, allow);
    set(header::CACHE_CONTROL, "no-cache");
    set(
        header::CONTENT_SECURITY_POLICY,
        "script-src 'self'; object-src 'self'",
    );
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(header::VARY, "accept, accept-encoding, origin");
    if has_body {
        set(header::CONTENT_TYPE, "application/json");
    }
    if reply.asks_for_credentials {
        set(header::WWW_AUTHENTICATE, "Basic realm=\"RabbitMQ Management\"");
    }
    if let Some(location) = &reply.location {
        set(header::LOCATION, location);
    }
    if let Some(name) = &reply.download {
        let name: String = name
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || "-._@".contains(*c))
            .collect();
        set(
            header::CONTENT_DISPOSITION,
            &format!("attachment; filename=\"{name}\""),
        );
    }
    response
}
