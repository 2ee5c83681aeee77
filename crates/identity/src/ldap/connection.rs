//! A conversation with a directory: a connection, perhaps secured, on which one question is answered after the other (RFC 4511).

use super::search::{About, Object, Scope, Search, SearchResult, Searcher};
use rasn::error::DecodeErrorKind;
use rasn_ldap::{
    AttributeValueAssertion, AuthenticationChoice, BindRequest, ExtendedRequest, Filter, LdapMessage,
    PartialAttribute, ProtocolOp, ResultCode, SearchRequest, SearchRequestDerefAliases, SearchRequestScope,
    SearchResultDone, SearchResultEntry,
};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const VERSION: u8 = 3;
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";
/// Asks for no attributes (RFC 4511, 4.5.1.8).
const NO_ATTRIBUTES: &str = "1.1";
/// Every object has this attribute (RFC 4512, 2.3.1); there is no filter without one.
const ALWAYS_THERE: &str = "objectClass";
/// No answer of a directory is longer, in bytes.
const LONGEST: usize = 64 * 1024;
/// All objects that a search finds are not longer than this together, in bytes.
const ALL: usize = 1024 * 1024;
/// How much is read at a time, in bytes.
const PIECE: usize = 4 * 1024;
/// How many things that answer nothing may come before an answer.
const BESIDE: usize = 64;

trait Transport: Read + Write + Send {}
impl<T: Read + Write + Send> Transport for T {}

/// A connection to a directory.
pub struct Connection {
    transport: Box<dyn Transport>,
    /// The same socket, for TLS around it.
    socket: TimedSocket,
    /// What came and was not understood yet.
    came: Vec<u8>,
    number: u32,
}

impl Connection {
    /// Connects to the first address of `host` that answers; everything that is said later must be answered by then, too.
    ///
    /// # Errors
    /// Nobody answers in time.
    pub fn open(host: &str, port: u16, timeout: Duration) -> Result<Self> {
        let until = Instant::now() + timeout;
        let mut last = Error::new(ErrorKind::NotFound, "its name has no address");
        for address in (host, port).to_socket_addrs()? {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    let until = Arc::new(Mutex::new(until));
                    let socket = TimedSocket { socket, until };
                    return Ok(Self {
                        transport: Box::new(socket.try_clone()?),
                        socket,
                        came: Vec::new(),
                        number: 0,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// What is said from now on must be answered within this time.
    pub fn within(&mut self, timeout: Duration) {
        *self.socket.until.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now() + timeout;
    }

    /// From here on everything is secret, and the directory is the one of this name.
    ///
    /// # Errors
    /// It is not, or it speaks no TLS.
    pub fn secure(self, host: &str, config: &Arc<ClientConfig>) -> Result<Self> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| Error::new(ErrorKind::InvalidInput, "its name is none for a certificate"))?;
        let client = ClientConnection::new(config.clone(), name)
            .map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
        let transport = Box::new(StreamOwned::new(client, self.socket.try_clone()?));
        // Whatever was said in the clear behind the agreement is not of the one who is secured.
        let came = Vec::new();
        Ok(Self {
            transport,
            came,
            ..self
        })
    }

    /// Asks for TLS on this connection; [`Connection::secure`] begins it.
    ///
    /// # Errors
    /// The directory does not want to.
    pub fn start_tls(&mut self) -> Result<()> {
        self.say(ProtocolOp::ExtendedReq(ExtendedRequest {
            request_name: START_TLS.to_vec().into(),
            request_value: None,
        }))?;
        match self.hear()? {
            ProtocolOp::ExtendedResp(answer) if answer.result_code == ResultCode::Success => Ok(()),
            ProtocolOp::ExtendedResp(_) => Err(Error::new(ErrorKind::Unsupported, "it refuses StartTLS")),
            _ => Err(malformed()),
        }
    }

    /// Tries a name and a password, and gives the directory's answer.
    ///
    /// # Errors
    /// There is none.
    pub fn bind(&mut self, name: &str, password: &[u8]) -> Result<ResultCode> {
        let secret = AuthenticationChoice::Simple(password.to_vec().into());
        let request = BindRequest::new(VERSION, name.into(), secret);
        self.say(ProtocolOp::BindRequest(request))?;
        match self.hear()? {
            ProtocolOp::BindResponse(answer) => Ok(answer.result_code),
            _ => Err(malformed()),
        }
    }

    fn say(&mut self, request: ProtocolOp) -> Result<()> {
        self.number += 1;
        let message = rasn::ber::encode(&LdapMessage::new(self.number, request));
        self.transport.write_all(&message.map_err(Error::other)?)?;
        self.transport.flush()
    }

    /// The next answer to what was asked last.
    fn hear(&mut self) -> Result<ProtocolOp> {
        loop {
            if let Some((message, length)) = whole(&self.came)? {
                self.came.drain(..length);
                return match message.message_id == self.number {
                    true => Ok(message.protocol_op),
                    false => Err(malformed()),
                };
            }
            if self.came.len() >= LONGEST {
                return Err(too_long());
            }
            let mut piece = [0; PIECE];
            let count = self.transport.read(&mut piece)?;
            if count == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            self.came.extend_from_slice(&piece[..count]);
        }
    }
}

/// The message at the front and its length, once it is there.
fn whole(came: &[u8]) -> Result<Option<(LdapMessage, usize)>> {
    if came.is_empty() {
        return Ok(None);
    }
    match rasn::ber::decode_with_remainder(came) {
        Ok((message, rest)) => Ok(Some((message, came.len() - rest.len()))),
        Err(error) if matches!(*error.kind, DecodeErrorKind::Incomplete { .. }) => Ok(None),
        Err(_) => Err(malformed()),
    }
}

/// What came is no answer of a directory.
fn malformed() -> Error {
    Error::new(ErrorKind::InvalidData, "its answer is malformed")
}

impl Searcher for Connection {
    fn search(&mut self, search: &Search<'_>) -> Result<SearchResult> {
        let (seconds, only_types) = (0, false);
        let filter = match search.about {
            About::Anything => Filter::Present(ALWAYS_THERE.into()),
            About::Equals(attribute, value) => Filter::EqualityMatch(AttributeValueAssertion::new(
                attribute.into(),
                value.as_bytes().to_vec().into(),
            )),
        };
        self.say(ProtocolOp::SearchRequest(SearchRequest::new(
            search.base.into(),
            match search.scope {
                Scope::There => SearchRequestScope::BaseObject,
                Scope::RightBelow => SearchRequestScope::SingleLevel,
                Scope::Below => SearchRequestScope::WholeSubtree,
            },
            SearchRequestDerefAliases::NeverDerefAliases,
            u32::try_from(search.most).unwrap_or(u32::MAX),
            // How long it may take, our own clock says.
            seconds,
            only_types,
            filter,
            vec![search.attribute.unwrap_or(NO_ATTRIBUTES).into()],
        )))?;
        let mut objects = Vec::new();
        let mut left = ALL;
        for _ in 0..search.most + BESIDE {
            match self.hear()? {
                ProtocolOp::SearchResEntry(entry) if objects.len() < search.most => {
                    let object = object(entry, search.attribute);
                    let values: usize = object.values.iter().map(String::len).sum();
                    left = left
                        .checked_sub(object.name.len() + values)
                        .ok_or_else(too_long)?;
                    objects.push(object);
                }
                ProtocolOp::SearchResEntry(_) | ProtocolOp::SearchResRef(_) => {}
                ProtocolOp::SearchResDone(SearchResultDone(end)) => {
                    let end = end.result_code;
                    return Ok(SearchResult { objects, end });
                }
                _ => break,
            }
        }
        Err(malformed())
    }
}

fn object(entry: SearchResultEntry, attribute: Option<&str>) -> Object {
    let wanted = |it: &PartialAttribute| attribute.is_some_and(|name| it.r#type.0.eq_ignore_ascii_case(name));
    let values = entry.attributes.into_iter().filter(wanted).flat_map(|it| {
        let values = it.vals.into_vec().into_iter();
        values.filter_map(|value| String::from_utf8(value.to_vec()).ok())
    });
    Object {
        values: values.collect(),
        name: entry.object_name.0,
    }
}

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidData, "its answer is too long")
}

fn too_late() -> Error {
    Error::new(ErrorKind::TimedOut, "it took too long")
}

/// A socket that is waited for until a time, however often it is read.
struct TimedSocket {
    socket: TcpStream,
    /// The same for everybody who has the socket.
    until: Arc<Mutex<Instant>>,
}

impl TimedSocket {
    fn left(&self) -> Result<Option<Duration>> {
        let until = *self.until.lock().unwrap_or_else(PoisonError::into_inner);
        match until.saturating_duration_since(Instant::now()) {
            Duration::ZERO => Err(too_late()),
            left => Ok(Some(left)),
        }
    }

    /// What the system says when a wait has ended is not for people.
    fn said<T>(done: Result<T>) -> Result<T> {
        done.map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => too_late(),
            _ => error,
        })
    }

    fn try_clone(&self) -> Result<Self> {
        let socket = self.socket.try_clone()?;
        let until = Arc::clone(&self.until);
        Ok(Self { socket, until })
    }
}

impl Read for TimedSocket {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.socket.set_read_timeout(self.left()?)?;
        Self::said(self.socket.read(buffer))
    }
}

impl Write for TimedSocket {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        self.socket.set_write_timeout(self.left()?)?;
        Self::said(self.socket.write(bytes))
    }

    fn flush(&mut self) -> Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rasn::types::SetOf;
    use rasn_ldap::LdapResult;
    use std::net::TcpListener;
    use std::thread::{self, JoinHandle};

    /// A directory that answers the first request with these bytes, in pieces, and what came of asking it.
    fn asked_of(answer: Vec<Vec<u8>>) -> Result<Vec<Object>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let directory: JoinHandle<()> = thread::spawn(move || {
            let (mut client, _) = listener.accept().unwrap();
            let _ = client.read(&mut [0; 1024]);
            for piece in answer {
                if client.write_all(&piece).is_err() {
                    return;
                }
            }
        });
        let mut connection = Connection::open("127.0.0.1", port, Duration::from_secs(20)).unwrap();
        let found = connection.search(&Search {
            about: About::Equals("uid", "jane"),
            attribute: Some("mail"),
            most: 100,
            ..Search::of_object("dc=example")
        });
        drop(connection);
        directory.join().unwrap();
        found.map(|found| found.objects)
    }

    fn done(number: u32) -> Vec<u8> {
        let result = LdapResult::new(ResultCode::Success, "".into(), "".into());
        let end = ProtocolOp::SearchResDone(SearchResultDone(result));
        rasn::ber::encode(&LdapMessage::new(number, end)).unwrap()
    }

    #[test]
    fn an_answer_is_put_together_of_pieces() {
        let pieces = done(1).into_iter().map(|byte| vec![byte]).collect();
        assert_eq!(asked_of(pieces).unwrap(), Vec::new());
    }

    fn entry(name: &str, values: &[&[u8]]) -> Vec<u8> {
        let set = |values: &[&[u8]]| SetOf::from_vec(values.iter().map(|it| it.to_vec().into()).collect());
        let mail = PartialAttribute::new("MAIL".into(), set(values));
        let other = PartialAttribute::new("cn".into(), set(&[b"jane"]));
        let found = SearchResultEntry::new(name.into(), vec![mail, other]);
        rasn::ber::encode(&LdapMessage::new(1, ProtocolOp::SearchResEntry(found))).unwrap()
    }

    #[test]
    fn what_was_asked_for_is_taken_of_what_is_found() {
        let values: [&[u8]; 3] = [b"a@example", b"\xff", b"b@example"];
        let mut objects = asked_of(vec![entry("cn=jane", &values), done(1)]).unwrap();
        let object = objects.pop().unwrap();
        assert_eq!(object.name, "cn=jane");
        let mut values = object.values;
        values.sort();
        assert_eq!(values, ["a@example", "b@example"], "and only text");
        assert_eq!(objects, []);
    }

    #[test]
    fn all_that_is_found_is_not_longer_than_a_limit() {
        let long = entry("cn=jane", &[&[b'x'; 60_000]]);
        let mut answer = vec![long; 20];
        answer.push(done(1));
        let error = asked_of(answer).unwrap_err().to_string();
        assert!(error.contains("too long"), "{error}");
    }

    #[test]
    fn what_is_no_answer_is_said_to_be_none() {
        let cases = [
            (done(2), "malformed"),
            (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), "malformed"),
            (done(1)[..4].to_vec(), "end of file"),
            ([0x30, 0x84, 0x7f, 0xff, 0xff, 0xff].repeat(64 * 1024), "too long"),
            (
                [&[0x30, 0x84, 0, 0, 0xff, 0xff], &[0x30, 0x80].repeat(32_000)[..]].concat(),
                "end of file",
            ),
        ];
        for (answer, words) in cases {
            let error = asked_of(vec![answer]).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn values_within_values_within_values_end_nothing() {
        for inner in [[0x30, 0x80], [0xa0, 0x80], [0x24, 0x80], [0xa3, 0x80]] {
            let nested = inner.repeat(32_000);
            assert!(whole(&nested).is_err() || whole(&nested).unwrap().is_none());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = whole(&bytes);
            let mut message = done(1);
            let at = bytes.len() % message.len();
            message.truncate(at);
            message.extend(bytes);
            let _ = whole(&message);
        }
    }
}
