//! From a socket to a route and back. All that is spawned stands here.

use crate::access::{self, Asker, Peer};
use crate::audit::Change;
use crate::call::{Call, Hall};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes;
use crate::web_ui;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use listener::{Arrival, Listener};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How long a client may take to send the head of a request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client may take to send a body.
const BODY_PATIENCE: Duration = Duration::from_secs(60);
/// How many connections are open at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 1024;
/// How long nothing is accepted after the system refused (mostly: too many open files).
const PAUSE: Duration = Duration::from_millis(250);

/// The doors of one node; all have the same seats.
#[derive(Debug)]
pub struct Doors {
    /// The ports for HTTP.
    pub http: Vec<Listener>,
    /// The admin socket.
    pub admin: Option<UnixListener>,
}

/// What all doors share.
#[derive(Clone)]
struct House {
    seats: Arc<Semaphore>,
    hall: Arc<Hall>,
    stop: watch::Receiver<bool>,
}

/// Serves until told to stop; connections end with the request they are at.
pub async fn serve(doors: Doors, hall: Arc<Hall>, mut stop: watch::Receiver<bool>) {
    let house = House {
        seats: Arc::new(Semaphore::new(CONNECTIONS)),
        hall,
        stop: stop.clone(),
    };
    for listener in doors.http {
        tokio::spawn(admit_network(listener, house.clone()));
    }
    if let Some(admin) = doors.admin {
        tokio::spawn(admit_machine(admin, house));
    }
    // The sender is gone if the API is.
    let _ = stop.changed().await;
}

async fn admit_network(listener: Listener, mut house: House) {
    while let Ok(seat) = house.seats.clone().acquire_owned().await {
        tokio::select! {
            arrival = listener.next() => { tokio::spawn(welcome(arrival, house.clone(), seat)); }
            _ = house.stop.changed() => return,
        }
    }
}

async fn welcome(arrival: Arrival, house: House, seat: OwnedSemaphorePermit) {
    let peer = arrival.peer();
    match arrival.enter().await {
        Ok(guest) => {
            let peer = Peer::Network(guest.peer);
            connection(guest.socket, peer, house.hall, house.stop, seat).await;
        }
        Err(error) => {
            tracing::debug!(area = "management", %peer, "an HTTP connection did not begin: {error}")
        }
    }
}

async fn admit_machine(listener: UnixListener, mut house: House) {
    while let Ok(seat) = house.seats.clone().acquire_owned().await {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = house.stop.changed() => return,
        };
        match accepted {
            Ok((socket, _)) => {
                let (hall, stop) = (house.hall.clone(), house.stop.clone());
                tokio::spawn(connection(socket, Peer::Operator, hall, stop, seat));
            }
            Err(error) => {
                tracing::warn!(
                    area = "management",
                    "an HTTP connection was not accepted: {error}"
                );
                tokio::time::sleep(PAUSE).await;
            }
        }
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
    if let Some(page) = web_ui::answer(&head.method, head.uri.path(), &head.headers) {
        return page;
    }
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
        let (name, change) = (user.name.clone(), Change::of(&head, peer));
        let view = hall.broker.view();
        let vhost = parts
            .iter()
            .find(|(name, _)| *name == "vhost")
            .map(|(_, vhost)| vhost.as_str());
        let outcome = access::check(&view, &user, right, vhost).and_then(|()| {
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
        });
        if let Some(change) = change {
            change.write(&name, &outcome);
        }
        outcome
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
