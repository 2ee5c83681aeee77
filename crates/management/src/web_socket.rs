//! `/ws/amqp`: clients in browsers, which come for messages and can't open a connection of their own (RFC 6455). The handshake is HTTP's and
//! happens here; whoever has passed it is handed to the door for messages, where they log in as everybody does.

use crate::refusal::Refusal;
use crate::serve::Body;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::upgrade::{OnUpgrade, Parts};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use listener::{Guest, Security, Socket, Web};
use std::net::SocketAddr;

/// Where it is.
pub const PATH: &str = "/ws/amqp";
/// The name of what is spoken inside.
const PROTOCOL: &str = "amqp";
/// What the answer to a key is made with (RFC 6455, 1.3).
const SALT: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

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
    let Some(accept) = key.and_then(|key| HeaderValue::from_str(&accept(key)).ok()) else {
        return Err(Refusal::bad_request(
            "Sec-WebSocket-Key is to be 16 bytes in base64",
        ));
    };
    let mut response = Response::new(Either::Left(Full::default()));
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
    let Parts { io, read_buf, .. } = upgrade.await.ok()?.downcast::<TokioIo<Socket>>().ok()?;
    Some(Guest {
        socket: Socket::Web(Box::new(Web::new(io.into_inner(), &read_buf))),
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

/// By what a server shows that it has read the key.
fn accept(key: &str) -> String {
    STANDARD.encode(sha1(format!("{key}{SALT}").as_bytes()))
}

/// SHA-1 (FIPS 180-4), which WebSockets ask for. It guards nothing here: any number that follows from the key would do.
fn sha1(text: &[u8]) -> [u8; 20] {
    let mut state: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words = [0u32; 80];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        for at in 16..80 {
            words[at] = (words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16]).rotate_left(1);
        }
        let [mut a, mut b, mut c, mut d, mut e] = state;
        for (at, word) in words.iter().enumerate() {
            let (mixed, constant) = match at {
                0..20 => ((b & c) | (!b & d), 0x5a82_7999),
                20..40 => (b ^ c ^ d, 0x6ed9_eba1),
                40..60 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
                _ => (b ^ c ^ d, 0xca62_c1d6_u32),
            };
            let next = a.rotate_left(5);
            let next = next.wrapping_add(mixed).wrapping_add(e).wrapping_add(constant);
            let next = next.wrapping_add(*word);
            (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
        }
        for (sum, part) in state.iter_mut().zip([a, b, c, d, e]) {
            *sum = sum.wrapping_add(part);
        }
    }
    let mut digest = [0; 20];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_answered_as_in_the_standard() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let hex = |text: &[u8]| sha1(text).map(|byte| format!("{byte:02x}")).concat();
        assert_eq!(hex(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        assert_eq!(
            hex(b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
        );
        assert_eq!(hex(b""), "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    }

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
