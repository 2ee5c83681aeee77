//! A decision's bytes: format, who asked, the answer, and the records, each with its length before it.

use super::{Decided, Said, Sender};
use crate::codec::{Reader, Writer};
use crate::{Answer, NodeId, Record, Refusal, RefusalKind};
use model::Journaled;

/// The format that is written and read; the first byte of every record.
const FORMAT: u8 = 1;

mod tag {
    pub const DONE: u8 = 1;
    pub const QUEUE: u8 = 2;
    pub const CLEARED: u8 = 3;
    pub const STARTED: u8 = 4;
    pub const REFUSED: u8 = 5;
    pub const PROTECTED: u8 = 6;
    pub const JOINED: u8 = 7;
    pub const OUTDATED: u8 = 8;
}

/// The kinds of refusals, by their numbers in bytes.
const KINDS: [RefusalKind; 8] = [
    RefusalKind::NotFound,
    RefusalKind::AccessRefused,
    RefusalKind::ResourceLocked,
    RefusalKind::PreconditionFailed,
    RefusalKind::NotAllowed,
    RefusalKind::NotImplemented,
    RefusalKind::CommandInvalid,
    RefusalKind::Internal,
];

impl Journaled for Decided {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut out = Writer(out);
        out.byte(FORMAT);
        sender(&mut out, self.sender);
        out.number(self.number);
        out.number(self.below);
        encode_said(&mut out, &self.said);
        out.number(self.records.len() as u64);
        for record in &self.records {
            encode_record(&mut out, record);
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        if reader.byte()? != FORMAT {
            return None;
        }
        let (sender, number, below) = (read_sender(&mut reader)?, reader.number()?, reader.number()?);
        let (said, count) = (read_said(&mut reader)?, reader.number()?);
        let records = read_records(&mut reader)?;
        let whole = records.len() as u64 == count;
        (whole && number > 0 && below <= number).then_some(Self {
            sender,
            number,
            below,
            said,
            records,
        })
    }
}

pub(super) fn sender(out: &mut Writer<'_>, sender: Sender) {
    out.number(sender.node);
    out.number(sender.start);
}

pub(super) fn read_sender(reader: &mut Reader<'_>) -> Option<Sender> {
    Some(Sender {
        node: reader.number()?,
        start: reader.number()?,
    })
}

pub(super) fn encode_record(out: &mut Writer<'_>, record: &Record) {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    out.bytes(&bytes);
}

/// All that are left.
pub(super) fn read_records(reader: &mut Reader<'_>) -> Option<Vec<Record>> {
    let mut records = Vec::new();
    while !reader.is_done() {
        records.push(Record::decode(reader.bytes()?)?);
    }
    Some(records)
}

/// A snapshot is asked for by nobody else than the node itself, and is no answer here.
pub(super) fn encode_said(out: &mut Writer<'_>, said: &Said) {
    match said {
        Ok(Answer::Done | Answer::Snapshot(_)) => out.byte(tag::DONE),
        Ok(Answer::Queue(queue)) => out.tag(tag::QUEUE).queue(queue),
        Ok(Answer::Cleared(count)) => out.tag(tag::CLEARED).number(*count as u64),
        Ok(Answer::Started(incarnation)) => out.tag(tag::STARTED).incarnation(*incarnation),
        Ok(Answer::Joined(node)) => out.tag(tag::JOINED).number(node.0),
        Ok(Answer::Outdated) => out.byte(tag::OUTDATED),
        Err(Refusal::ProtectedVhost { vhost }) => out.tag(tag::PROTECTED).text(vhost),
        Err(refusal) => {
            let kind = KINDS.iter().position(|kind| *kind == refusal.kind());
            out.tag(tag::REFUSED).byte(kind.unwrap_or(KINDS.len() - 1) as u8);
            out.text(&refusal.to_string());
        }
    }
}

pub(super) fn read_said(reader: &mut Reader<'_>) -> Option<Said> {
    Some(match reader.byte()? {
        tag::DONE => Ok(Answer::Done),
        tag::QUEUE => Ok(Answer::Queue(reader.queue()?)),
        tag::CLEARED => Ok(Answer::Cleared(reader.count()?)),
        tag::STARTED => Ok(Answer::Started(reader.incarnation()?)),
        tag::JOINED => Ok(Answer::Joined(NodeId(reader.number()?))),
        tag::OUTDATED => Ok(Answer::Outdated),
        tag::PROTECTED => Err(Refusal::ProtectedVhost {
            vhost: reader.string()?,
        }),
        tag::REFUSED => {
            let kind = *KINDS.get(usize::from(reader.byte()?))?;
            let text = reader.string()?;
            Err(Refusal::Told { kind, text })
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(said: &Said) -> Said {
        let mut bytes = Vec::new();
        encode_said(&mut Writer(&mut bytes), said);
        let mut reader = Reader::new(&bytes);
        let read = read_said(&mut reader).unwrap();
        assert!(reader.is_done());
        read
    }

    #[test]
    fn a_refusal_has_its_kind_and_its_text_on_every_node() {
        let text = || "t".to_owned();
        let all = [
            Refusal::NoVhost { vhost: text() },
            Refusal::DefaultExchange,
            Refusal::ResourceLocked {
                queue: text(),
                vhost: text(),
            },
            Refusal::InvalidName {
                name: text(),
                reason: text(),
            },
            Refusal::ConsumerLimit { limit: 3 },
            Refusal::UnknownExchangeType { kind: text() },
            Refusal::Internal { reason: text() },
            Refusal::ProtectedVhost { vhost: text() },
        ];
        for refusal in all {
            let read = back(&Err(refusal.clone())).unwrap_err();
            assert_eq!(
                (read.kind(), read.to_string()),
                (refusal.kind(), refusal.to_string())
            );
        }
        for answer in [Answer::Cleared(7), Answer::Joined(NodeId(3)), Answer::Outdated] {
            assert_eq!(back(&Ok(answer.clone())), Ok(answer));
        }
    }

    #[test]
    fn what_several_nodes_agree_on_has_the_bytes_that_it_always_had_and_no_other_format_is_read() {
        let sender = Sender { node: 3, start: 300 };
        let decided = |said| Decided {
            sender,
            number: 7,
            below: 5,
            said,
            records: vec![Record::VhostDeleted { name: "/".into() }; 2],
        };
        let (node, number, vhost) = (NodeId(3), 300, "/".to_owned());
        let refused = |kind| {
            let text = "t".to_owned();
            Err(Refusal::Told { kind, text })
        };
        let said = [
            Ok(Answer::Done),
            Ok(Answer::Cleared(300)),
            Ok(Answer::Started(crate::Incarnation { node, number })),
            Ok(Answer::Joined(node)),
            Ok(Answer::Outdated),
            Err(Refusal::ProtectedVhost { vhost }),
        ];
        let mut contents = Vec::new();
        let mut shared = super::super::Shared::default();
        shared.apply(Decided {
            number: 1,
            below: 1,
            ..decided(Ok(Answer::Cleared(2)))
        });
        shared.contents().encode(&mut contents);
        let decided = said.into_iter().chain(KINDS.map(refused)).map(|said| {
            let mut bytes = Vec::new();
            decided(said).encode(&mut bytes);
            let mut later = bytes.clone();
            later[0] += 1;
            assert_eq!(Decided::decode(&later), None);
            bytes
        });
        let written: Vec<String> = decided
            .chain([contents])
            .map(|bytes| bytes.escape_ascii().to_string())
            .collect();
        assert_eq!(
            written,
            [
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x01\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x03,\x01\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x04\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x07\x03\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x08\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x06\x01\x00\x00\x00/\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x00\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x01\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x02\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x03\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x04\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x05\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x06\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x05\x07\x01\x00\x00\x00t\x02\x00\x00\x00\x00\x00\x00\x00\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/\x07\x00\x00\x00\x02\x02\x01\x00\x00\x00/",
                r"\x01\x01\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00,\x01\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
            ]
        );
    }
}
