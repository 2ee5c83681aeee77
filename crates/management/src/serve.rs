//! From a socket to a route and back. All that is spawned stands here.

use crate::access::{Peer, Right};
use crate::call::Api;
use crate::errand::Errand;
use crate::event_tail::REST;
use crate::guesses::{Login, Turn};
use crate::listening::Listening;
use crate::long_answer::LongAnswer;
use crate::pieces::Cut;
use crate::prefix;
use crate::query::Query;
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::routes;
use crate::telling::Telling;
use crate::unread::{Answer, Reservation, Watched, Whole};
use crate::visit::Visit;
use crate::web_socket::{self, Addresses};
use crate::{WebClients, sign_on, web_ui};
use http_body_util::channel::Channel;
use http_body_util::{BodyExt, Either, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use listener::{Arrival, ClientConnection, Listener, Socket};
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a listener of events may take to read those of one turn.
const EVENT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long there is between two looks at a firehose, at what happens or at the log.
const TRACE_INTERVAL: Duration = Duration::from_secs(1);
/// A form with a token is not larger, in bytes.
const TOKEN_FORM_LARGEST: usize = 128 * 1024;
/// How many connections are open at a time; further ones wait to be accepted.
const CONNECTIONS: usize = 1024;
/// How long a login waits for its refusal when too many others wait for their turn.
const REFUSAL_DELAY: Duration = Duration::from_secs(1);

/// Marks an answer of a node that may know less than others: see [`broker::Broker::is_stale`].
const STALE: HeaderName = HeaderName::from_static("x-leveret-stale");

/// Tells that the API stops.
type Stop = watch::Receiver<bool>;

/// What the API listens on.
#[derive(Debug)]
pub struct Listeners {
    /// The ports for HTTP.
    pub http: Vec<Listener>,
    /// The admin socket.
    pub admin: Option<Listener>,
}

/// By which kind of listener a client comes.
#[derive(Clone, Copy)]
enum Via {
    /// A port for HTTP: somebody on the network.
    Network,
    /// The admin socket: the node's operator.
    AdminSocket,
}

/// Who is at the other end of a connection.
struct Client {
    peer: Peer,
    /// `None` at the admin socket.
    addresses: Option<Addresses>,
}

/// What all connections share.
#[derive(Clone)]
struct Shared {
    /// One for each connection that may be open.
    permits: Arc<Semaphore>,
    api: Arc<Api>,
    stop: watch::Receiver<bool>,
}

/// Serves until told to stop; connections end with the request they are at.
pub async fn serve(listeners: Listeners, api: Arc<Api>, mut stop: watch::Receiver<bool>) {
    let shared = Shared {
        permits: Arc::new(Semaphore::new(CONNECTIONS)),
        api,
        stop: stop.clone(),
    };
    let http = listeners
        .http
        .into_iter()
        .map(|listener| (listener, Via::Network));
    let admin = listeners
        .admin
        .into_iter()
        .map(|listener| (listener, Via::AdminSocket));
    for (listener, via) in http.chain(admin) {
        tokio::spawn(accept(listener, via, shared.clone()));
    }
    loop {
        tokio::select! {
            () = tokio::time::sleep(REST) => shared.api.event_tail.rest(Instant::now()),
            // The sender is gone if the API is.
            _ = stop.changed() => return,
        }
    }
}

async fn accept(listener: Listener, via: Via, mut shared: Shared) {
    while let Ok(permit) = shared.permits.clone().acquire_owned().await {
        tokio::select! {
            arrival = listener.next() => { tokio::spawn(begin(arrival, via, shared.clone(), permit)); }
            _ = shared.stop.changed() => return,
        }
    }
}

async fn begin(arrival: Arrival, via: Via, shared: Shared, permit: OwnedSemaphorePermit) {
    let peer = arrival.peer();
    let connected = match arrival.enter().await {
        Ok(connected) => connected,
        Err(error) => {
            tracing::debug!(area = "management", %peer, "an HTTP connection did not begin: {error}");
            return;
        }
    };
    let client = match via {
        Via::Network => Client {
            peer: Peer::Network(connected.peer),
            addresses: Some(Addresses {
                peer: connected.peer,
                local: connected.local,
                security: connected.security,
            }),
        },
        Via::AdminSocket => Client {
            peer: Peer::Operator,
            addresses: None,
        },
    };
    connection(connected.socket, client, shared.api, shared.stop, permit).await;
}

async fn connection(
    socket: Socket,
    client: Client,
    api: Arc<Api>,
    mut stop: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
) {
    let peer = client.peer;
    let told = stop.clone();
    let service = service_fn(move |request| {
        let (api, stop, addresses) = (api.clone(), told.clone(), client.addresses.clone());
        async move {
            Ok::<_, Infallible>(match (addresses, &api.options.web_clients) {
                (Some(addresses), Some(clients)) if request.uri().path() == web_socket::PATH => {
                    open_web_socket(request, addresses, clients.clone(), &api)
                }
                (Some(_), _) => below_prefix(request, peer, api, stop).await,
                (None, _) => answer(request, peer, api, stop).await,
            })
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .serve_connection(TokioIo::new(Watched::new(socket)), service)
        .with_upgrades();
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

/// Opens a WebSocket for a client that speaks a messaging protocol on it, and hands the socket to the front end once
/// the client has the answer.
fn open_web_socket(
    mut request: Request<Incoming>,
    addresses: Addresses,
    clients: WebClients,
    api: &Api,
) -> Response<Answer> {
    let opened = match () {
        // Whatever page it is that asks, its browser may be on the machine that `guest` may come from.
        () if api.options.origins.are_foreign(request.headers()) => Err(Refusal::Foreign),
        () if !api.broker.takes_clients() => Err(Refusal::Suspended),
        () => web_socket::open(&request, clients.protocol),
    };
    let response = match opened {
        Ok(response) => response,
        Err(refusal) => return response(refusal.into(), "GET"),
    };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let client = web_socket::client(upgrade, addresses, clients.protocol).await;
        if let Some(Ok(client)) = client.map(ClientConnection::into_std) {
            (clients.accept)(client);
        }
    });
    response
}

/// Answers one request from the network, where all paths may begin with something.
async fn below_prefix(
    mut request: Request<Incoming>,
    peer: Peer,
    api: Arc<Api>,
    stop: Stop,
) -> Response<Answer> {
    match prefix::take(request.uri(), &api.options.path_prefix) {
        prefix::PathMatch::Below(uri) => *request.uri_mut() = uri,
        prefix::PathMatch::Elsewhere(location) => {
            let moved = Reply {
                location: Some(location),
                ..Reply::empty(301)
            };
            return response(moved, "HEAD, GET, OPTIONS");
        }
        prefix::PathMatch::Outside => return response(Refusal::NotFound.into(), "HEAD, GET, OPTIONS"),
    }
    let mut answer = answer(request, peer, api.clone(), stop).await;
    if api.broker.is_stale() {
        answer
            .headers_mut()
            .insert(STALE, HeaderValue::from_static("true"));
    }
    for (name, value) in &api.options.headers {
        if let Ok(value) = HeaderValue::from_str(value) {
            answer.headers_mut().insert(*name, value);
        }
    }
    answer
}

/// Answers one request, and tells a browser which pages may see the answer.
async fn answer(request: Request<Incoming>, peer: Peer, api: Arc<Api>, stop: Stop) -> Response<Answer> {
    let options = &api.options;
    let signs_on = !options.sign_on.resource_servers.is_empty();
    if signs_on && request.method() == Method::POST && request.uri().path() == sign_on::LOGIN {
        return forward(request.into_body()).await;
    }
    let origins = &options.origins;
    let Some(origin) = origins.admitted(request.headers()) else {
        if origins.refuses(request.method(), request.headers()) {
            return response(Refusal::Foreign.into(), "HEAD, GET, OPTIONS");
        }
        return work(request, peer, api, stop).await;
    };
    let (asked, is_question) = (request.headers().clone(), request.method() == "OPTIONS");
    let mut answer = work(request, peer, api.clone(), stop).await;
    origins.admit(origin, &asked, is_question, answer.headers_mut());
    answer
}

/// Sends a browser that comes with a token from a provider's page to our pages. Whose page it was is not asked: the
/// pages take a token only if somebody there wants it.
async fn forward(body: Incoming) -> Response<Answer> {
    let form = read(body, TOKEN_FORM_LARGEST).await.unwrap_or_default();
    let target = sign_on::forward(&form).and_then(|target| HeaderValue::try_from(target).ok());
    let Some(target) = target else {
        return response(Refusal::bad_request("no access_token").into(), "POST");
    };
    let mut response = response(Reply::empty(303), "POST");
    response.headers_mut().insert(header::LOCATION, target);
    response
}

/// The work is done on a thread of the budget, so that a long one holds up nobody but its like.
async fn work(request: Request<Incoming>, peer: Peer, api: Arc<Api>, stop: Stop) -> Response<Answer> {
    let (head, body) = request.into_parts();
    if let Some(page) = web_ui::answer(&head.method, head.uri.path(), &head.headers) {
        return page.map(Either::Left);
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
    let body = match read(body, api.options.body_limit).await {
        Ok(body) => body,
        Err(refusal) => return response(refusal.into(), &allow),
    };
    let errand = Errand {
        right,
        handler,
        path: head.uri.path().to_owned(),
        parts,
        query: Query::parse(head.uri.query().unwrap_or_default()),
        reads: matches!(head.method, Method::GET | Method::HEAD),
        cut: Cut::From(0),
    };
    let headers = head.headers.clone();
    let visit = Visit::of(head, body, peer, route.path, right, &api);
    let counted = match admit_login(&api, visit.login).await {
        Ok(counted) => counted,
        Err(refusal) => return response(refusal.into(), &allow),
    };
    let reserved = match reserve(&api, peer, right).await {
        Ok(reserved) => reserved,
        Err(refusal) => return response(refusal.into(), &allow),
    };
    let inside = api.clone();
    let answered = tokio::task::spawn_blocking(move || visit.reply(errand, counted, &inside)).await;
    let (reply, rest) = answered.unwrap_or_else(|error| {
        tracing::error!(area = "management", "an HTTP request failed: {error}");
        (Refusal::Internal("internal error".into()).into(), None)
    });
    if let Some(rest) = rest {
        return in_pieces(reply, rest, reserved, &allow);
    }
    match &reply.events {
        Some(telling) => events(
            Listening {
                telling: telling.clone(),
                tap: None,
                api,
                headers,
                peer,
            },
            stop,
            &allow,
        ),
        None => reserved_response(reply, &allow, reserved),
    }
}

/// Begins an answer whose pieces are made as the connection takes them.
fn in_pieces(
    mut reply: Reply,
    mut rest: LongAnswer,
    mut reserved: Option<Reservation>,
    allow: &str,
) -> Response<Answer> {
    if let Some(reserved) = &mut reserved {
        reserved.resize(rest.bytes());
    }
    let (mut sender, body) = Channel::new(1);
    let mut piece = reply.body.replace(Vec::new()).unwrap_or_default();
    tokio::spawn(async move {
        let _reserved = reserved;
        let mut is_last = false;
        loop {
            if !piece.is_empty() && sender.send_data(piece.into()).await.is_err() || is_last {
                return;
            }
            let made = tokio::task::spawn_blocking(move || (rest.piece(), rest)).await;
            let Ok((Some(next), after)) = made else {
                // Whoever has a part of it must not take it for the whole.
                return sender.abort(io::Error::other("the rest of an answer can't be made"));
            };
            ((piece, is_last), rest) = (next, after);
        }
    });
    response(reply, allow).map(|_| Either::Right(body))
}

/// Waits until it is a login's turn; true if it has been counted as a wrong one by then.
async fn admit_login(api: &Api, login: Option<Login>) -> Result<bool, Refusal> {
    let turn = login.map(|login| api.guesses.turn(login, Instant::now()));
    match turn {
        None => Ok(false),
        Some(Turn::After(wait, counted)) => {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(counted)
        }
        Some(Turn::Never) => {
            // Whoever asks again at once is no quicker for it.
            tokio::time::sleep(REFUSAL_DELAY).await;
            Err(Refusal::Guesses)
        }
    }
}

/// Memory for an answer. What anyone may ask for is small, and probes ask for it: it needs no reservation.
async fn reserve(api: &Api, peer: Peer, right: Right) -> Result<Option<Reservation>, Refusal> {
    match peer {
        Peer::Network(address) if right != Right::Anyone => {
            let reserved = api.unread.reserve(address.ip()).await;
            reserved.map(Some).ok_or(Refusal::Unread)
        }
        _ => Ok(None),
    }
}

/// A request's body, of at most `limit` bytes.
async fn read(body: Incoming, limit: usize) -> Result<Bytes, Refusal> {
    // What is announced needs not be waited for; it is not read, so the connection ends with the answer.
    if body.size_hint().lower() > limit as u64 {
        return Err(Refusal::TooLarge);
    }
    match tokio::time::timeout(BODY_TIMEOUT, Limited::new(body, limit).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::TooLarge),
        Ok(Err(_)) | Err(_) => Err(Refusal::bad_request("body not read")),
    }
}

/// Begins an answer that goes on until the listener goes, is too slow, may no longer listen, or the API stops.
fn events(listening: Listening, mut stop: Stop, allow: &str) -> Response<Answer> {
    let permits = match &listening.telling {
        Telling::Changes(_) => &listening.api.listeners,
        _ => &listening.api.tracers,
    };
    let Ok(permit) = permits.clone().try_acquire_owned() else {
        let words = "as many pages as may be are told what changes; ask for it";
        let body = serde_json::json!({"error": "service_unavailable", "reason": words});
        return response(Reply::with_status(503, &body), allow);
    };
    // What waits to be sent is one turn; the next one is not begun before it is gone.
    let (mut sender, body) = Channel::new(1);
    let (every, later) = match &listening.telling {
        Telling::Changes(subscription) => (subscription.every, subscription.later),
        _ => (TRACE_INTERVAL, false),
    };
    tokio::spawn(async move {
        let _permit = permit;
        let mut listening = listening;
        let mut wait = if later { every } else { Duration::ZERO };
        loop {
            tokio::select! {
                () = tokio::time::sleep(wait) => wait = every,
                _ = stop.changed() => return,
            }
            let turn = tokio::task::spawn_blocking(move || {
                let told = listening.turn();
                (told, listening)
            });
            let Ok((told, after)) = turn.await else { return };
            listening = after;
            let (text, last) = match told {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            let sent = tokio::time::timeout(EVENT_TIMEOUT, sender.send_data(text.into()));
            if !matches!(sent.await, Ok(Ok(()))) || last {
                return;
            }
        }
    });
    let mut response = response(Reply::empty(200), allow);
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/event-stream"),
    );
    response.map(|_| Either::Right(body))
}

fn response(reply: Reply, allow: &str) -> Response<Answer> {
    reserved_response(reply, allow, None)
}

/// The same, holding its reservation until it is read.
fn reserved_response(reply: Reply, allow: &str, reserved: Option<Reservation>) -> Response<Answer> {
    let content_type = reply.body.as_ref().map(|_| reply.content_type);
    let body = Whole::new(reply.body.unwrap_or_default(), reserved);
    let mut response = Response::new(Either::Left(body));
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
    if let Some(content_type) = content_type {
        set(header::CONTENT_TYPE, content_type);
    }
    if reply.squeezed {
        set(header::CONTENT_ENCODING, "gzip");
    }
    if reply.asks_for_credentials {
        set(header::WWW_AUTHENTICATE, "Basic realm=\"RabbitMQ Management\"");
    }
    if let Some(etag) = &reply.etag {
        set(header::ETAG, etag);
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
