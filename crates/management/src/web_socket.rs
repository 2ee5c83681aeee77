//! `/ws/amqp`: clients in browsers, which come for messages and can't open a connection of their own (RFC 6455). The handshake is HTTP's and
//! happens here; whoever has passed it is handed to the door for messages, where they log in as everybody does.

use crate::refusal::Refusal;
use crate::serve::Body;
use crate::unread::{Watched, Whole};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::{OnUpgrade, Parts};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use listener::{Guest, Security, Socket, Web, accept_key};
use std::net::SocketAddr;

/// Where it is.
pub const PATH: &str = "/ws/amqp";
/// The name of what is spoken inside.
const PROTOCOL: &str = "amqp";

/// Both ends of a connection, and how it is secured.
#[derive(Clone, Debug)]
pub struct Ends {
    /// Who came.
    pub peer: SocketAddr,
    /// Where to.
    pub local: SocketAddr,
    /// How the talk is secured, if it is.
    pub security: Option<Security>,
}

/// The answer that opens the WebSocket.
///
/// # Errors
/// The request is not one for a WebSocket that speaks AMQP.
pub fn open(request: &Request<Incoming>) -> Result<Response<Body>, Refusal> {
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
    if offers && !names(headers, &header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL) {
        return Err(Refusal::bad_request("the protocol that is spoken here is amqp"));
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
        answer.insert(header::SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}

/// The socket, once the answer has gone out. `None` if the client has gone.
pub async fn guest(upgrade: OnUpgrade, ends: Ends) -> Option<Guest> {
    let Parts { io, read_buf, .. } = upgrade.await.ok()?.downcast::<TokioIo<Watched<Socket>>>().ok()?;
    Some(Guest {
        socket: Socket::Web(Box::new(Web::new(io.into_inner().into_inner(), &read_buf))),
        peer: ends.peer,
        local: ends.local,
        security: ends.security,
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
