//! One request to the HTTP API and its answer: HTTP/1.1 with one connection a request, over a Unix socket, TCP or TLS.
//!
//! The answer may be as long as the node's lists are, so it has no limit: the user trusts the node that they named.

use crate::endpoint::{Endpoint, Scheme};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::pki_types::ServerName;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

/// How long one address may take to accept a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// The longest line of a head, in bytes.
const LINE: u64 = 64 * 1024;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// HTTP's status.
    pub status: u16,
    /// The body.
    pub body: Vec<u8>,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The verb.
    pub method: &'a str,
    /// The path with its query, percent-encoded.
    pub path: &'a str,
    /// JSON to be sent.
    pub body: Option<&'a [u8]>,
    /// A user and a password, if one is to be named.
    pub credentials: Option<(&'a str, &'a str)>,
    /// Why a connection is closed.
    pub reason: Option<&'a str>,
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

/// Makes a request.
///
/// # Errors
/// The node is not reached, does not answer within `timeout`, or answers with something else than HTTP.
pub fn send(endpoint: &Endpoint, request: &Request<'_>, timeout: Option<Duration>) -> io::Result<Answer> {
    let mut stream = connect(endpoint, timeout)?;
    let sent = write(
        &mut stream,
        &head(endpoint, request),
        request.body.unwrap_or_default(),
    );
    let answer = read(&mut BufReader::new(stream));
    // A node that refuses a request need not read it to its end, and has answered then.
    match sent {
        Err(error) if answer.is_err() => Err(error),
        _ => answer,
    }
}

/// Makes a request whose answer goes on, and shows its lines as they come: until `show` answers that it has seen
/// enough, or the node ends the answer. An answer that is a refusal is returned whole.
///
/// # Errors
/// As [`send`], and when the answer breaks off.
pub fn follow(
    endpoint: &Endpoint,
    request: &Request<'_>,
    timeout: Option<Duration>,
    show: &mut dyn FnMut(&str) -> bool,
) -> io::Result<Option<Answer>> {
    let mut stream = connect(endpoint, timeout)?;
    write(&mut stream, &head(endpoint, request), &[])?;
    let mut stream = BufReader::new(stream);
    let head = read_head(&mut stream)?;
    if head.status != 200 || !head.chunked {
        return read_body(&mut stream, &head).map(Some);
    }
    follow_chunks(&mut stream, show).map(|()| None)
}

fn follow_chunks(stream: &mut impl BufRead, show: &mut dyn FnMut(&str) -> bool) -> io::Result<()> {
    let mut waiting = Vec::new();
    while read_chunk(stream, &mut waiting)? {
        let end = waiting
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |at| at + 1);
        let whole: Vec<u8> = waiting.drain(..end).collect();
        for line in String::from_utf8_lossy(&whole).lines() {
            if !show(line) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn write(stream: &mut dyn Stream, head: &[u8], body: &[u8]) -> io::Result<()> {
    stream.write_all(head)?;
    stream.write_all(body)?;
    stream.flush()
}

fn connect(endpoint: &Endpoint, timeout: Option<Duration>) -> io::Result<Box<dyn Stream>> {
    let (scheme, host, port) = match endpoint {
        Endpoint::Socket(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(timeout)?;
            return Ok(Box::new(stream));
        }
        Endpoint::Web {
            scheme, host, port, ..
        } => (scheme, host, *port),
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let mut outcome = Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    for address in (bare, port).to_socket_addrs()? {
        outcome = TcpStream::connect_timeout(&address, CONNECT);
        if outcome.is_ok() {
            break;
        }
    }
    let stream = outcome?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(timeout)?;
    match scheme {
        Scheme::Http => Ok(Box::new(stream)),
        Scheme::Https { ca } => {
            let name = ServerName::try_from(bare.to_owned()).map_err(io::Error::other)?;
            let session = ClientConnection::new(Arc::new(trust(ca.as_deref())?), name);
            Ok(Box::new(StreamOwned::new(
                session.map_err(io::Error::other)?,
                stream,
            )))
        }
    }
}

/// Trusts the certificates of a file, or those that the system trusts.
fn trust(file: Option<&str>) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(file) => {
            let certificates = rustls::pki_types::CertificateDer::pem_file_iter(file)
                .map_err(|error| io::Error::other(format!("{file}: {error}")))?;
            for certificate in certificates {
                let certificate =
                    certificate.map_err(|error| io::Error::other(format!("{file}: {error}")))?;
                roots.add(certificate).map_err(io::Error::other)?;
            }
        }
        None => {
            let _ = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn head(endpoint: &Endpoint, request: &Request<'_>) -> Vec<u8> {
    let (host, prefix) = match endpoint {
        Endpoint::Socket(_) => ("localhost".to_owned(), ""),
        Endpoint::Web {
            host, port, prefix, ..
        } => (format!("{host}:{port}"), prefix.as_str()),
    };
    let mut head = format!(
        "{} {prefix}{} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\naccept: application/json\r\n",
        request.method, request.path
    );
    if let Some((user, password)) = request.credentials {
        let credentials = STANDARD.encode(format!("{user}:{password}"));
        head.push_str(&format!("authorization: Basic {credentials}\r\n"));
    }
    if let Some(reason) = request.reason {
        let reason: String = reason.chars().filter(|c| !c.is_control()).collect();
        head.push_str(&format!("x-reason: {reason}\r\n"));
    }
    if let Some(body) = request.body {
        head.push_str(&format!(
            "content-type: application/json\r\ncontent-length: {}\r\n",
            body.len()
        ));
    } else if request.method != "GET" {
        head.push_str("content-length: 0\r\n");
    }
    head.push_str("\r\n");
    head.into_bytes()
}

/// What stands before a body.
struct Head {
    status: u16,
    length: Option<u64>,
    chunked: bool,
}

fn read(stream: &mut impl BufRead) -> io::Result<Answer> {
    let head = read_head(stream)?;
    read_body(stream, &head)
}

fn read_head(stream: &mut impl BufRead) -> io::Result<Head> {
    let status = line(stream)?;
    let status = status
        .strip_prefix("HTTP/1.")
        .and_then(|rest| rest.get(2..5)?.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "this is not an HTTP server"))?;
    let (mut length, mut chunked) = (None, false);
    loop {
        let header = line(stream)?;
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':').unwrap_or((&header, ""));
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse::<u64>().ok(),
            "transfer-encoding" => chunked = value.to_ascii_lowercase().contains("chunked"),
            _ => {}
        }
    }
    Ok(Head {
        status,
        length,
        chunked,
    })
}

fn read_body(stream: &mut impl BufRead, head: &Head) -> io::Result<Answer> {
    let (status, mut body) = (head.status, Vec::new());
    if status == 204 || status == 304 {
    } else if head.chunked {
        while read_chunk(stream, &mut body)? {}
    } else if let Some(length) = head.length {
        if stream.take(length).read_to_end(&mut body)? as u64 != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    } else {
        stream.read_to_end(&mut body)?;
    }
    Ok(Answer { status, body })
}

/// Reads one chunk behind what is there; false if it was the last one.
fn read_chunk(stream: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<bool> {
    let size = line(stream)?;
    let size = size.split(';').next().unwrap_or_default().trim();
    let size = u64::from_str_radix(size, 16)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "a chunk without a size"))?;
    if size == 0 {
        return Ok(false);
    }
    if stream.take(size).read_to_end(body)? as u64 != size {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line(stream)?;
    Ok(true)
}

fn line(stream: &mut impl BufRead) -> io::Result<String> {
    let mut bytes = Vec::new();
    stream.take(LINE).read_until(b'\n', &mut bytes)?;
    match bytes.pop() {
        Some(b'\n') => {}
        _ => return Err(io::ErrorKind::UnexpectedEof.into()),
    }
    if bytes.last() == Some(&b'\r') {
        bytes.pop();
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_by_length_in_chunks_and_to_the_end() {
        let read = |text: &str| read(&mut text.as_bytes());
        let answer = |text: &str| {
            let answer = read(text).unwrap();
            (answer.status, String::from_utf8(answer.body).unwrap())
        };
        assert_eq!(
            answer("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok..."),
            (200, "ok".into())
        );
        assert_eq!(
            answer(
                "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n3;x=y\r\nabc\r\n0\r\n\r\n"
            ),
            (200, "okabc".into())
        );
        assert_eq!(answer("HTTP/1.0 404 no\r\n\r\nrest"), (404, "rest".into()));
        assert_eq!(answer("HTTP/1.1 204 No Content\r\n\r\n"), (204, String::new()));
        for broken in [
            "",
            "SSH-2.0\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort",
        ] {
            assert!(read(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn lines_that_come_in_pieces_are_shown_whole_until_it_is_enough() {
        let answer = "4\r\none\n\r\n2\r\ntw\r\n6\r\no\nthre\r\n5\r\ne\nfou\r\n";
        let mut seen = Vec::new();
        let outcome = follow_chunks(&mut answer.as_bytes(), &mut |line| {
            seen.push(line.to_owned());
            line != "three"
        });
        assert!(outcome.is_ok());
        assert_eq!(seen, ["one", "two", "three"]);
        let broken = follow_chunks(&mut answer.as_bytes(), &mut |_| true);
        assert_eq!(broken.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_reason_starts_no_header_of_its_own() {
        let request = Request {
            method: "DELETE",
            path: "/api/x",
            body: None,
            credentials: None,
            reason: Some("a\r\nb: c"),
        };
        let head = String::from_utf8(head(&Endpoint::Socket("s".into()), &request)).unwrap();
        assert!(head.contains("x-reason: ab: c\r\n"), "{head}");
    }
}
