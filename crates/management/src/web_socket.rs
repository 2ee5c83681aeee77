//! `/ws/amqp`: clients in browsers, which come for messages and can't open a connection of their own (RFC 6455). The
//! handshake is HTTP's and happens here; then the connection is handed to the gateway, where the client logs in like
//! any other.

use crate::refusal::Refusal;
use crate::unread::Answer;
use crate::unread::{Watched, Whole};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::{OnUpgrade, Parts};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use listener::{ClientConnection, Protocol, Security, Socket, Web, accept_key};
use std::net::SocketAddr;

/// Where it is.
pub const PATH: &str = "/ws/amqp";

/// The addresses of a connection's two ends, and how it is secured.
#[derive(Clone, Debug)]
pub struct Addresses {
    /// The client.
    pub peer: SocketAddr,
    /// The address that it connected to.
    pub local: SocketAddr,
    /// How TLS secures the connection, if it does.
    pub security: Option<Security>,
}

/// The answer that opens the WebSocket.
///
/// # Errors
/// The request is not one for a WebSocket on which this protocol is spoken.
pub fn open(request: &Request<Incoming>, protocol: Protocol) -> Result<Response<Answer>, Refusal> {
    let headers = request.headers();
    let asks = request.method() == Method::GET
        && names(headers, &header::UPGRADE, "websocket")
        && names(headers, &header::CONNECTION, "upgrade");
    if !asks {
        return Err(Refusal::bad_request("this address is for WebSockets"));
    }
    if headers
        .get(header::SEC_WEBSOCKET_VERSION)
        .is_none_or(|version| version != "13")
    {
        return Err(Refusal::bad_request("the version of WebSockets here is 13"));
    }
    let offers = headers.contains_key(header::SEC_WEBSOCKET_PROTOCOL);
    if offers && !names(headers, &header::SEC_WEBSOCKET_PROTOCOL, protocol.plain) {
        let text = format!("the protocol that is spoken here is {}", protocol.plain);
        return Err(Refusal::bad_request(text));
    }
    let key = headers
        .get(header::SEC_WEBSOCKET_KEY)
        .and_then(|key| key.to_str().ok());
    let key = key.filter(|key| STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16));
    let Some(accept) = key.and_then(|key| HeaderValue::from_str(&accept_key(key)).ok()) else {
        return Err(Refusal::bad_request(
            "Sec-WebSocket-Key is to be 16 bytes in base64",
        ));
    };
    let mut response = Response::new(Either::Left(Whole::default()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let answer = response.headers_mut();
    answer.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    answer.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    if offers {
        answer.insert(
            header::SEC_WEBSOCKET_PROTOCOL,
            HeaderValue::from_static(protocol.plain),
        );
    }
    Ok(response)
}

/// The client, once the answer has gone out. `None` if it has disconnected.
pub async fn client(
    upgrade: OnUpgrade,
    addresses: Addresses,
    protocol: Protocol,
) -> Option<ClientConnection> {
    let Parts { io, read_buf, .. } = upgrade.await.ok()?.downcast::<TokioIo<Watched<Socket>>>().ok()?;
    Some(ClientConnection {
        protocol,
        socket: Socket::Web(Box::new(Web::new(io.into_inner().into_inner(), &read_buf))),
        peer: addresses.peer,
        local: addresses.local,
        security: addresses.security,
    })
}

/// True if a header that is a list names this, in letters of either case.
fn names(headers: &HeaderMap, header: &HeaderName, name: &str) -> bool {
    let values = headers.get_all(header).iter();
    let mut names = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    names.any(|found| found.trim().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_be_a_list() {
        let headers = HeaderMap::from_iter([(
            header::CONNECTION,
            HeaderValue::from_static("keep-alive, Upgrade"),
        )]);
        assert!(names(&headers, &header::CONNECTION, "upgrade"));
        assert!(!names(&headers, &header::CONNECTION, "close"));
    }
}
