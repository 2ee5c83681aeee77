//! The network interfaces of this machine and their addresses, as the kernel tells them (rtnetlink).
//!
//! The messages are read by their offsets, each of which is checked: what is shorter than it says is left out.

use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Kinds of messages (`RTM_…`, `NLMSG_…`).
const NEW_LINK: u16 = 16;
const GET_LINK: u16 = 18;
const NEW_ADDRESS: u16 = 20;
const GET_ADDRESS: u16 = 22;
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// A request for everything of a kind (`NLM_F_REQUEST | NLM_F_DUMP`).
const ALL: u16 = 0x301;
/// The length of a message's head, in bytes.
const HEAD: usize = 16;
/// The kernel sends no more at a time, in bytes.
const BUFFER: usize = 64 * 1024;

/// Flags of an interface by their bits, in the order and words of RabbitMQ's runtime.
const FLAGS: [(u32, &str); 6] = [
    (0x1, "up"),
    (0x2, "broadcast"),
    (0x8, "loopback"),
    (0x10, "pointtopoint"),
    (0x40, "running"),
    (0x1000, "multicast"),
];

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interface {
    /// Such as `eth0`.
    pub name: String,
    /// What is set of `up`, `broadcast`, `loopback`, `pointtopoint`, `running`, `multicast`.
    pub flags: Vec<&'static str>,
    /// The address of the hardware; empty if it has none.
    pub hardware: Vec<u8>,
    /// Its addresses, in the kernel's order.
    pub addresses: Vec<Address>,
    index: u32,
}

/// An address of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    /// The address.
    pub ip: IpAddr,
    /// How many bits of it name the network.
    pub prefix: u8,
    /// Where everybody in the network is reached.
    pub broadcast: Option<Ipv4Addr>,
}

impl Address {
    /// The address with ones where it names the network.
    pub fn netmask(&self) -> IpAddr {
        let (prefix, ones) = (u32::from(self.prefix), u128::MAX);
        match self.ip {
            IpAddr::V4(_) => {
                Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - prefix.min(32)).unwrap_or(0)).into()
            }
            IpAddr::V6(_) => Ipv6Addr::from_bits(ones.checked_shl(128 - prefix.min(128)).unwrap_or(0)).into(),
        }
    }
}

/// All interfaces, by name.
///
/// # Errors
/// The kernel does not tell, as in some sandboxes.
pub fn all() -> io::Result<Vec<Interface>> {
    let mut found: Vec<Interface> = Vec::new();
    dump(GET_LINK, |kind, payload| {
        if kind == NEW_LINK {
            found.extend(interface(payload));
        }
    })?;
    dump(GET_ADDRESS, |kind, payload| {
        if let Some((index, address)) = address(payload).filter(|_| kind == NEW_ADDRESS)
            && let Some(interface) = found.iter_mut().find(|interface| interface.index == index)
        {
            interface.addresses.push(address);
        }
    })?;
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

/// Asks for everything of a kind and shows each message.
fn dump(kind: u16, mut show: impl FnMut(u16, &[u8])) -> io::Result<()> {
    let socket = socket_with(
        AddressFamily::NETLINK,
        SocketType::RAW,
        SocketFlags::CLOEXEC,
        // The protocol for interfaces and routes is the first.
        None,
    )?;
    // A head, and a body of zeros: any family, any interface.
    let mut request = [0; HEAD + 16];
    let length = request.len() as u32;
    request[..4].copy_from_slice(&length.to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&ALL.to_ne_bytes());
    sendto(
        &socket,
        &request,
        SendFlags::empty(),
        &SocketAddrNetlink::new(0, 0),
    )?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let (received, _) = recv(&socket, buffer.as_mut_slice(), RecvFlags::empty())?;
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for (kind, payload) in messages(&buffer[..received.min(BUFFER)]) {
            match kind {
                DONE => return Ok(()),
                ERROR => {
                    let code = payload.first_chunk().map_or(0, |code| i32::from_ne_bytes(*code));
                    return Err(io::Error::from_raw_os_error(code.saturating_neg()));
                }
                kind => show(kind, payload),
            }
        }
    }
}

/// What stands at the beginning of a part: how long that is, its kind, and where its payload begins.
type PartHead = fn(&[u8]) -> Option<(usize, u16, usize)>;

/// Takes what begins with its length apart: the parts of a length that makes sense, at steps of four bytes.
fn parts(mut rest: &[u8], head: PartHead) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let (length, kind, begin) = head(rest)?;
        let payload = rest.get(begin..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, payload))
    })
}

fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    parts(bytes, |rest| {
        let length = u32::from_ne_bytes(*rest.first_chunk()?) as usize;
        Some((length, half(rest, 4)?, HEAD))
    })
}

fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    parts(bytes, |rest| Some((half(rest, 0)?.into(), half(rest, 2)?, 4)))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// An interface: its index and flags, then attributes (1 its hardware's address, 3 its name).
fn interface(payload: &[u8]) -> Option<Interface> {
    let (index, bits) = (word(payload, 4)?, word(payload, 8)?);
    let mut found = Interface {
        flags: FLAGS
            .iter()
            .filter(|(bit, _)| bits & bit != 0)
            .map(|(_, name)| *name)
            .collect(),
        index,
        ..Interface::default()
    };
    for (kind, value) in attributes(payload.get(16..)?) {
        match kind {
            1 => found.hardware = value.to_vec(),
            3 => found.name = String::from_utf8_lossy(value).trim_end_matches('\0').to_owned(),
            _ => {}
        }
    }
    Some(found)
}

/// An address and the index of its interface: a family, the length of the network's part, then attributes (1 the
/// address, or the other end of a line between two; 2 this end; 4 where everybody is reached).
fn address(payload: &[u8]) -> Option<(u32, Address)> {
    let (prefix, index) = (*payload.get(1)?, word(payload, 4)?);
    let (mut ip, mut broadcast) = (None, None);
    for (kind, value) in attributes(payload.get(8..)?) {
        match kind {
            1 => ip = ip.or(ip_of(value)),
            2 => ip = ip_of(value),
            4 => broadcast = <[u8; 4]>::try_from(value).ok().map(Ipv4Addr::from),
            _ => {}
        }
    }
    let address = Address {
        ip: ip?,
        prefix,
        broadcast,
    };
    Some((index, address))
}

fn ip_of(bytes: &[u8]) -> Option<IpAddr> {
    let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_among_the_interfaces_with_its_address() {
        let found = all().unwrap();
        let loopback = found.iter().find(|interface| interface.name == "lo").unwrap();
        assert!(loopback.flags.contains(&"loopback"), "{loopback:?}");
        let own = loopback
            .addresses
            .iter()
            .find(|address| address.ip == IpAddr::from([127, 0, 0, 1]));
        assert_eq!(own.map(Address::netmask), Some(IpAddr::from([255, 0, 0, 0])));
    }

    #[test]
    fn netmasks_are_ones_as_far_as_the_network_is_named() {
        let mask = |ip: &str, prefix| {
            let ip = ip.parse().unwrap();
            Address {
                ip,
                prefix,
                broadcast: None,
            }
            .netmask()
            .to_string()
        };
        assert_eq!(mask("10.0.0.1", 20), "255.255.240.0");
        assert_eq!(mask("10.0.0.1", 0), "0.0.0.0");
        assert_eq!(mask("fd00::2", 64), "ffff:ffff:ffff:ffff::");
        assert_eq!(mask("::1", 200), "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    }

    #[test]
    fn messages_that_lie_about_their_length_end_the_list() {
        let mut bytes = vec![20, 0, 0, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4];
        assert_eq!(messages(&bytes).collect::<Vec<_>>(), [(16, &[1, 2, 3, 4][..])]);
        for length in [0, 15, 21, 255] {
            bytes[0] = length;
            assert_eq!(messages(&bytes).count(), 0, "{length}");
        }
        for end in 0..bytes.len() {
            let _ = (interface(&bytes[..end]), address(&bytes[..end]));
        }
    }
}
