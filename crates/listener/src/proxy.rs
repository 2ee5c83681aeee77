//! The PROXY protocol, versions 1 and 2 (HAProxy's specification): a load balancer says first for whom it connects.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::net::TcpStream;

/// What version 2 begins with; no other protocol does.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
/// The longest line of version 1, in bytes.
const LINE_MOST: usize = 107;
/// The longest header of version 2 that is read, in bytes: addresses, and extensions that nobody here looks at.
const BODY_MOST: usize = 4_096;
/// How long a header may take. It is the first thing that a load balancer sends.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Whose word is taken for where a client comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    /// Empty trusts everybody, as RabbitMQ does.
    pub trusted: Vec<Network>,
}

/// Addresses with the same beginning, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

/// For whom a connection was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// For the load balancer itself, such as a health check: the connection's own ends count.
    Itself,
    /// For a client.
    Client {
        /// Where the client is.
        source: SocketAddr,
        /// Where it connected to.
        destination: SocketAddr,
    },
}

impl Network {
    /// Reads `10.0.0.0/8`, `fd00::/8`, or one address.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            None => most,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => digits.parse().ok()?,
            Some(_) => return None,
        };
        (bits <= most).then_some(Self { address, bits })
    }

    /// True if the address is one of these.
    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |a: u128, b: u128, length: u8| {
            let rest = u32::from(length - self.bits);
            (a ^ b).checked_shr(rest).unwrap_or(0) == 0
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => same(u32::from(a).into(), u32::from(b).into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => same(a.into(), b.into(), 128),
            _ => false,
        }
    }
}

impl Proxies {
    /// True if this peer has to say for whom it connects. Others speak for themselves.
    pub fn trust(&self, peer: IpAddr) -> bool {
        self.trusted.is_empty() || self.trusted.iter().any(|network| network.contains(peer))
    }
}

/// Reads the header that a load balancer begins with, and not a byte more.
///
/// # Errors
/// There is none, it is malformed, or it took too long.
pub(crate) async fn read(stream: &TcpStream) -> io::Result<Origin> {
    match tokio::time::timeout(TIMEOUT, header(stream)).await {
        Ok(origin) => origin,
        Err(_) => Err(io::Error::new(
            io::ErrorKind::TimedOut,
            "no PROXY protocol header came in time",
        )),
    }
}

async fn header(stream: &TcpStream) -> io::Result<Origin> {
    let mut start = [0; 12];
    fill(stream, &mut start).await?;
    if start == SIGNATURE {
        let mut head = [0; 4];
        fill(stream, &mut head).await?;
        let length = usize::from(u16::from_be_bytes([head[2], head[3]]));
        if length > BODY_MOST {
            return Err(wrong("its header is too long"));
        }
        let mut body = vec![0; length];
        fill(stream, &mut body).await?;
        return binary(head[0], head[1], &body).ok_or_else(|| wrong("its header is malformed"));
    }
    if !start.starts_with(b"PROXY ") {
        return Err(wrong("the client does not begin with it"));
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == LINE_MOST {
            return Err(wrong("its line is too long"));
        }
        let mut byte = [0];
        // One at a time: what comes behind the line is not ours.
        fill(stream, &mut byte).await?;
        line.push(byte[0]);
    }
    text(&line).ok_or_else(|| wrong("its line is malformed"))
}

fn wrong(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("PROXY protocol: {what}"))
}

async fn fill(stream: &TcpStream, mut space: &mut [u8]) -> io::Result<()> {
    while !space.is_empty() {
        stream.readable().await?;
        match stream.try_read(space) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => space = &mut space[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 56324 5672`.
fn text(line: &[u8]) -> Option<Origin> {
    let line = std::str::from_utf8(line.strip_suffix(b"\r\n")?).ok()?;
    let mut words = line.split(' ');
    if words.next()? != "PROXY" {
        return None;
    }
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(Origin::Itself);
    }
    let (source, destination): (IpAddr, IpAddr) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let port = |word: &str| {
        word.bytes()
            .all(|it| it.is_ascii_digit())
            .then(|| word.parse().ok())?
    };
    let (from, to): (u16, u16) = (port(words.next()?)?, port(words.next()?)?);
    let fits = match family {
        "TCP4" => source.is_ipv4() && destination.is_ipv4(),
        "TCP6" => source.is_ipv6() && destination.is_ipv6(),
        _ => false,
    };
    (fits && words.next().is_none()).then(|| Origin::Client {
        source: SocketAddr::new(source, from),
        destination: SocketAddr::new(destination, to),
    })
}

/// Version 2, behind its signature.
fn binary(version_and_command: u8, family: u8, body: &[u8]) -> Option<Origin> {
    match version_and_command {
        0x20 => return Some(Origin::Itself),
        0x21 => {}
        _ => return None,
    }
    let port = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let v4 = |at: usize| Some(Ipv4Addr::from(<[u8; 4]>::try_from(body.get(at..at + 4)?).ok()?));
    let v6 = |at: usize| Some(Ipv6Addr::from(<[u8; 16]>::try_from(body.get(at..at + 16)?).ok()?));
    match family >> 4 {
        1 => Some(Origin::Client {
            source: SocketAddr::new(v4(0)?.into(), port(8)?),
            destination: SocketAddr::new(v4(4)?.into(), port(10)?),
        }),
        2 => Some(Origin::Client {
            source: SocketAddr::new(v6(0)?.into(), port(32)?),
            destination: SocketAddr::new(v6(16)?.into(), port(34)?),
        }),
        // Unspecified, or sockets of the load balancer's own machine.
        0 | 3 => Some(Origin::Itself),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(source: &str, destination: &str) -> Option<Origin> {
        let (source, destination) = (source.parse().unwrap(), destination.parse().unwrap());
        Some(Origin::Client { source, destination })
    }

    #[test]
    fn lines_of_version_1_are_understood() {
        let line = b"PROXY TCP4 192.0.2.1 192.0.2.2 56324 5672\r\n";
        assert_eq!(text(line), client("192.0.2.1:56324", "192.0.2.2:5672"));
        let line = b"PROXY TCP6 2001:db8::1 ::1 1 65535\r\n";
        assert_eq!(text(line), client("[2001:db8::1]:1", "[::1]:65535"));
        assert_eq!(text(b"PROXY UNKNOWN\r\n"), Some(Origin::Itself));
        assert_eq!(text(b"PROXY UNKNOWN a b c d\r\n"), Some(Origin::Itself));
        for bad in [
            "PROXY TCP4 ::1 ::1 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2 3\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 +1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 65536\r\n",
            "PROXY UDP4 1.2.3.4 1.2.3.4 1 2\r\n",
            "PROXY TCP4 1.2.3.4 1.2.3.4 1 2",
        ] {
            assert_eq!(text(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn headers_of_version_2_are_understood() {
        let mut body = vec![192, 0, 2, 1, 192, 0, 2, 2, 0xdc, 4, 0x16, 0x28];
        assert_eq!(
            binary(0x21, 0x11, &body),
            client("192.0.2.1:56324", "192.0.2.2:5672")
        );
        assert_eq!(binary(0x20, 0, &[]), Some(Origin::Itself));
        assert_eq!(binary(0x11, 0x11, &body), None, "version 1 has no binary form");
        body.truncate(11);
        assert_eq!(binary(0x21, 0x11, &body), None);
        let mut six = Vec::from([0; 15]);
        six.push(1);
        six.extend_from_slice(&[0; 15]);
        six.extend_from_slice(&[2, 0, 1, 0, 2]);
        assert_eq!(binary(0x21, 0x21, &six), client("[::1]:1", "[::2]:2"));
        assert_eq!(binary(0x21, 0x31, &[0; 216]), Some(Origin::Itself));
    }

    #[test]
    fn only_trusted_peers_are_asked_for_whom_they_come() {
        let trusted = ["10.0.0.0/8", "192.0.2.7", "fd00::/8"].map(|text| Network::parse(text).unwrap());
        let proxies = Proxies {
            trusted: trusted.to_vec(),
        };
        for (address, is) in [
            ("10.1.2.3", true),
            ("11.1.2.3", false),
            ("192.0.2.7", true),
            ("192.0.2.8", false),
            ("::ffff:10.1.1.1", true),
            ("fd12::1", true),
            ("fe80::1", false),
        ] {
            assert_eq!(proxies.trust(address.parse().unwrap()), is, "{address}");
        }
        assert!(Proxies::default().trust("8.8.8.8".parse().unwrap()));
        assert!(
            Network::parse("0.0.0.0/0")
                .unwrap()
                .contains("8.8.8.8".parse().unwrap())
        );
        for bad in [
            "10.0.0.0/33",
            "::/129",
            "10.0.0/8",
            "10.0.0.0/",
            "10.0.0.0/+8",
            "localhost",
        ] {
            assert_eq!(Network::parse(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes: Vec<u8>, command: u8, family: u8) {
            let _ = (text(&bytes), binary(command, family, &bytes));
        }
    }
}
