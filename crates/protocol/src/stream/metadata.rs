//! Who has which streams: the answer to [`Key::Metadata`](super::Key::Metadata).

use super::code::ResponseCode;
use super::field::{Field, List, ListBuf, Malformed, Reader, Text};

/// The reference of a leader that nobody knows.
pub const NO_LEADER: u16 = u16::MAX;

/// Nodes, and streams that refer to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Places<'a> {
    /// Each node that has one of the streams.
    pub nodes: List<'a, Node<'a>>,
    /// The streams that were asked for.
    pub streams: List<'a, Place<'a>>,
}

/// A node, where clients reach it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// Its number in this answer.
    pub reference: u16,
    /// The advertised host.
    pub host: Text<'a>,
    /// The advertised port.
    pub port: u32,
}

/// Who has a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The stream.
    pub stream: Text<'a>,
    /// [`ResponseCode::Ok`], [`ResponseCode::StreamDoesNotExist`] or [`ResponseCode::StreamNotAvailable`].
    pub code: ResponseCode,
    /// The node to publish to, or [`NO_LEADER`].
    pub leader: u16,
    /// The other nodes that have it.
    pub replicas: List<'a, u16>,
}

impl<'a> Field<'a> for Places<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            nodes: List::read(reader)?,
            streams: List::read(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.nodes.write(out);
        self.streams.write(out);
    }
}

impl<'a> Field<'a> for Node<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            reference: u16::read(reader)?,
            host: Text::read(reader)?,
            port: u32::read(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.reference.write(out);
        self.host.write(out);
        self.port.write(out);
    }
}

impl<'a> Field<'a> for Place<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            stream: Text::read(reader)?,
            code: ResponseCode::from_number(u16::read(reader)?).ok_or(Malformed)?,
            leader: u16::read(reader)?,
            replicas: List::read(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.stream.write(out);
        self.code.number().write(out);
        self.leader.write(out);
        self.replicas.write(out);
    }
}

/// Such an answer in the making. Each address becomes one node, however many streams are there.
#[derive(Debug, Default)]
pub struct PlacesBuf<'a> {
    nodes: Vec<(&'a str, u32)>,
    streams: Vec<(Text<'a>, ResponseCode, u16, ListBuf)>,
    encoded: (ListBuf, ListBuf),
}

impl<'a> PlacesBuf<'a> {
    /// A stream that these nodes have.
    pub fn found(
        &mut self,
        stream: Text<'a>,
        leader: Option<(&'a str, u32)>,
        replicas: impl IntoIterator<Item = (&'a str, u32)>,
    ) {
        let leader = leader.map_or(NO_LEADER, |address| self.reference(address));
        let replicas: Vec<u16> = replicas
            .into_iter()
            .map(|address| self.reference(address))
            .collect();
        let replicas = ListBuf::of(replicas);
        self.streams.push((stream, ResponseCode::Ok, leader, replicas));
    }

    /// A stream that nobody has, for the reason of this code.
    pub fn missing(&mut self, stream: Text<'a>, code: ResponseCode) {
        self.streams.push((stream, code, NO_LEADER, ListBuf::default()));
    }

    fn reference(&mut self, address: (&'a str, u32)) -> u16 {
        let known = self.nodes.iter().position(|it| *it == address);
        known.unwrap_or_else(|| {
            self.nodes.push(address);
            self.nodes.len() - 1
        }) as u16
    }

    /// The answer.
    pub fn as_places(&mut self) -> Places<'_> {
        let nodes = self.nodes.iter().enumerate();
        let nodes = nodes.map(|(reference, (host, port))| Node {
            reference: reference as u16,
            host: (*host).into(),
            port: *port,
        });
        let streams = self.streams.iter().map(|(stream, code, leader, replicas)| Place {
            stream: *stream,
            code: *code,
            leader: *leader,
            replicas: replicas.as_list(),
        });
        self.encoded = (ListBuf::of(nodes), ListBuf::of(streams));
        Places {
            nodes: self.encoded.0.as_list(),
            streams: self.encoded.1.as_list(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_named_once_however_many_streams_it_has() {
        let (one, two) = (("one.example", 5552), ("two.example", 5552));
        let mut answer = PlacesBuf::default();
        answer.found("a".into(), Some(one), [two]);
        answer.found("b".into(), None, [two, one]);
        answer.missing("c".into(), ResponseCode::StreamDoesNotExist);
        let places = answer.as_places();
        let nodes: Vec<_> = places.nodes.iter().map(|it| (it.reference, it.host)).collect();
        assert_eq!(nodes, [(0, "one.example".into()), (1, "two.example".into())]);
        let streams: Vec<_> = places.streams.iter().collect();
        assert_eq!((streams[0].leader, streams[1].leader), (0, NO_LEADER));
        assert_eq!(streams[1].replicas.iter().collect::<Vec<_>>(), [1, 0]);
        assert_eq!(streams[2].code, ResponseCode::StreamDoesNotExist);
        assert!(streams[2].replicas.is_empty() && streams[2].leader == NO_LEADER);
    }
}
