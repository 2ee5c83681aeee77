//! A conversation with a directory: a connection, perhaps secured, on which one question is answered after the other (RFC 4511).

use super::ber::{self, ENUMERATED, INTEGER, OCTETS, SEQUENCE};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

const VERSION: u8 = 3;
const BIND: u8 = 0x60;
const BOUND: u8 = 0x61;
const SEARCH: u8 = 0x63;
const ENTRY: u8 = 0x64;
const SEARCHED: u8 = 0x65;
const REFERENCE: u8 = 0x73;
const EXTENDED: u8 = 0x77;
const EXTENDED_ANSWER: u8 = 0x78;
const START_TLS: &[u8] = b"1.3.6.1.4.1.1466.20037";
/// The password of a bind; the name of an extended request.
const CONTEXT: u8 = 0x80;
/// A filter: an attribute has this value.
const EQUALS: u8 = 0xa3;

/// A directory's word for success.
pub const SUCCESS: u8 = 0;
/// A directory's word for a name or password that is no good.
pub const INVALID_CREDENTIALS: u8 = 49;
/// There is no such object.
pub const NO_SUCH_OBJECT: u8 = 32;

trait Wire: Read + Write + Send {}
impl<T: Read + Write + Send> Wire for T {}

/// A connection to a directory.
pub struct Talk {
    wire: Box<dyn Wire>,
    /// The same socket, for its patience.
    socket: TcpStream,
    until: Instant,
    number: u8,
}

impl Talk {
    /// Connects to the first address of `host` that answers; everything that is said later must be answered by then, too.
    ///
    /// # Errors
    /// Nobody answers in time.
    pub fn open(host: &str, port: u16, patience: Duration) -> Result<Self> {
        let until = Instant::now() + patience;
        let mut last = Error::new(ErrorKind::NotFound, "its name has no address");
        for address in (host, port).to_socket_addrs()? {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            match TcpStream::connect_timeout(&address, left) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    let wire = Box::new(socket.try_clone()?);
                    return Ok(Self {
                        wire,
                        socket,
                        until,
                        number: 0,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
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
        let wire = Box::new(StreamOwned::new(client, self.socket.try_clone()?));
        Ok(Self { wire, ..self })
    }

    /// Asks for TLS on this connection; [`Talk::secure`] begins it.
    ///
    /// # Errors
    /// The directory does not want to.
    pub fn start_tls(&mut self) -> Result<()> {
        let request = ber::composed(EXTENDED, &[ber::value(CONTEXT, START_TLS)]);
        self.say(&request)?;
        match self.hear()? {
            (EXTENDED_ANSWER, answer) if code(&answer)? == SUCCESS => Ok(()),
            (EXTENDED_ANSWER, _) => Err(Error::new(ErrorKind::Unsupported, "it refuses StartTLS")),
            _ => Err(ber::malformed()),
        }
    }

    /// Tries a name and a password, and gives the directory's answer.
    ///
    /// # Errors
    /// There is none.
    pub fn bind(&mut self, name: &str, password: &[u8]) -> Result<u8> {
        let request = [
            ber::small(INTEGER, VERSION),
            ber::value(OCTETS, name.as_bytes()),
            ber::value(CONTEXT, password),
        ];
        self.say(&ber::composed(BIND, &request))?;
        match self.hear()? {
            (BOUND, answer) => code(&answer),
            _ => Err(ber::malformed()),
        }
    }

    /// The names of the objects below `base` whose attribute has this value, two at the most.
    ///
    /// # Errors
    /// The directory does not search, or gives no answer.
    pub fn search(&mut self, base: &str, attribute: &str, is: &str) -> Result<Vec<String>> {
        let filter = [
            ber::value(OCTETS, attribute.as_bytes()),
            ber::value(OCTETS, is.as_bytes()),
        ];
        let (whole_subtree, never) = (2, 0);
        let request = [
            ber::value(OCTETS, base.as_bytes()),
            ber::small(ENUMERATED, whole_subtree),
            ber::small(ENUMERATED, never),
            // Two would be one too many; how long it may take, our own clock says.
            ber::small(INTEGER, 2),
            ber::small(INTEGER, 0),
            ber::value(0x01, &[0]),
            ber::composed(EQUALS, &filter),
            // "1.1": no attributes.
            ber::composed(SEQUENCE, &[ber::value(OCTETS, b"1.1")]),
        ];
        self.say(&ber::composed(SEARCH, &request))?;
        let mut found = Vec::new();
        loop {
            let (tag, answer) = self.hear()?;
            match tag {
                ENTRY if found.len() < 2 => {
                    let (_, name) = ber::take(&mut answer.as_slice())?;
                    found.push(String::from_utf8(name.to_vec()).map_err(|_| ber::malformed())?);
                }
                ENTRY | REFERENCE => {}
                SEARCHED => match code(&answer)? {
                    SUCCESS | NO_SUCH_OBJECT => return Ok(found),
                    // The limit of two was reached.
                    4 if found.len() > 1 => return Ok(found),
                    other => {
                        let text = format!("it does not search for '{attribute}' (code {other})");
                        return Err(Error::other(text));
                    }
                },
                _ => return Err(ber::malformed()),
            }
        }
    }

    fn say(&mut self, request: &[u8]) -> Result<()> {
        self.number += 1;
        let message = [ber::small(INTEGER, self.number), request.to_vec()];
        self.wait_until_the_end()?;
        self.wire.write_all(&ber::composed(SEQUENCE, &message))?;
        self.wire.flush()
    }

    fn hear(&mut self) -> Result<(u8, Vec<u8>)> {
        self.wait_until_the_end()?;
        let (tag, message) = ber::read(&mut self.wire)?;
        let mut rest = message.as_slice();
        match (tag, ber::take(&mut rest)?) {
            (SEQUENCE, (INTEGER, number)) if number == [self.number] => {
                let (tag, answer) = ber::take(&mut rest)?;
                Ok((tag, answer.to_vec()))
            }
            _ => Err(ber::malformed()),
        }
    }

    fn wait_until_the_end(&self) -> Result<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(Error::new(ErrorKind::TimedOut, "it took too long"));
        }
        self.socket.set_read_timeout(Some(left))?;
        self.socket.set_write_timeout(Some(left))
    }
}

/// The code at the front of an answer.
fn code(answer: &[u8]) -> Result<u8> {
    match ber::take(&mut &answer[..])? {
        (ENUMERATED, [code]) => Ok(*code),
        _ => Err(ber::malformed()),
    }
}
