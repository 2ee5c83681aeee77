//! Readers of nodes' copies, and looks at whole ones.

use super::super::{Brokers, Client};
use super::book::{Copy, Message};
use crate::world::until_power_cut;
use broker::{NextChunk, ReadChunk, StreamReader, StreamStart};
use model::ConsumerId;
use model::chunk::{Chunk, Entry, Header};
use model::limits::Limits;
use model::properties::amqp10;

/// Somebody takes chunks of a node's copy.
pub struct Reading {
    pub at: usize,
    pub id: ConsumerId,
    reader: StreamReader,
    position: u64,
}

/// Which message this is.
fn message_of(body: &[u8]) -> Option<Message> {
    let text = std::str::from_utf8(body).ok()?;
    let (publisher, rest) = text.split_once(' ')?;
    let (number, rest) = rest.split_once(' ')?;
    let is_whole = rest.bytes().all(|byte| byte == b'x');
    is_whole.then_some((publisher.parse().ok()?, number.parse().ok()?))
}

/// The offset of a chunk as it is sent, and its messages.
fn messages(chunk: &ReadChunk) -> Result<(u64, Vec<Message>), String> {
    let mut header = Header::read(&chunk.header).map_err(|error| format!("{error:?}"))?;
    (header.filter_bytes, header.trailer_bytes) = (0, 0);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(&chunk.entries);
    let chunk = Chunk::read(&bytes).map_err(|error| format!("a chunk is not whole: {error:?}"))?;
    let limits = Limits::default();
    let message = |(offset, entry): (u64, Entry<'_>)| match entry {
        Entry::Message(message) => {
            let read = amqp10::read(message, offset, &limits);
            message_of(&read.body).ok_or_else(|| format!("nobody has published what is at {offset}"))
        }
        Entry::SubBatch(_) => Err(format!("nobody has sent the batch at {offset}")),
    };
    let all: Result<Vec<_>, _> = chunk.entries().map(message).collect();
    Ok((chunk.header().first_offset, all?))
}

impl Brokers {
    /// Somebody begins to read a node's copy, or goes on.
    pub(super) fn read_on(&mut self, at: usize) -> Result<(), String> {
        let (begins, part) = (self.random.below(3) == 0, self.random.below(101));
        let stream = self.places[at].client().and_then(Client::stream_to_read);
        if let Some(stream) = stream.filter(|_| begins) {
            let numbers = stream.numbers();
            let end = numbers.committed.map_or(0, |last| last + 1);
            let first = numbers.first.unwrap_or(end);
            let position = first + (end - first) * part / 100;
            if let Some((id, reader)) = until_power_cut(|| stream.read(StreamStart::Offset(position), None)) {
                let reading = &mut self.streaming().reading;
                reading.push(Reading {
                    at,
                    id,
                    reader,
                    position,
                });
                if reading.len() > 4 {
                    let gone = reading.remove(0);
                    until_power_cut(|| drop(gone));
                }
            }
        }
        let streaming = self.streaming();
        let (book, reading) = (&mut streaming.book, &mut streaming.reading);
        for it in reading.iter_mut().filter(|it| it.at == at) {
            while let Some(NextChunk::Here(chunk)) = until_power_cut(|| it.reader.read()) {
                let (first, messages) = messages(&chunk)?;
                let next = first + messages.len() as u64;
                if next <= it.position || first > it.position && !book.drops {
                    return Err(format!("{first} to {next} for a reader at {}", it.position));
                }
                it.position = next;
                for (offset, message) in (first..).zip(messages) {
                    book.read(offset, message)?;
                }
            }
        }
        Ok(())
    }

    /// Looks at all that a node's copy has.
    pub(super) fn look(&mut self, at: usize) -> Result<Option<Copy>, String> {
        let id = self.places[at].id;
        let Some(stream) = self.places[at].client().and_then(Client::stream_to_read) else {
            return Ok(None);
        };
        let read = until_power_cut(|| {
            let (_, mut reader) = stream.read(StreamStart::First, None);
            let mut chunks = Vec::new();
            loop {
                match reader.read() {
                    NextChunk::Here(chunk) => chunks.push(chunk),
                    NextChunk::AskAgain => {}
                    NextChunk::Later => return (chunks, stream.numbers()),
                }
            }
        });
        let Some((chunks, numbers)) = read.filter(|_| !self.places[at].files.is_off()) else {
            return Ok(None);
        };
        let streaming = self.streaming();
        if chunks.is_empty() && streaming.book.drops && streaming.seen[at] > 0 {
            // It begins anew: others have let go of what it lacks.
            return Ok(None);
        }
        let end = numbers.committed.map_or(0, |last| last + 1);
        let mut copy = Copy {
            first: numbers.first.unwrap_or(end),
            messages: Vec::new(),
        };
        for chunk in &chunks {
            let (first, messages) = messages(chunk)?;
            if first != copy.next() {
                return Err(format!("{id:?} has {first} behind {}", copy.next()));
            }
            for (offset, message) in (first..).zip(&messages) {
                self.streaming().book.read(offset, *message)?;
            }
            copy.messages.extend(messages);
        }
        if copy.next() != end && numbers.committed.is_some() {
            return Err(format!(
                "{id:?} has {end} as its next offset, and {} was read",
                copy.next()
            ));
        }
        let takes_back = self.streaming().takes_back[at];
        let seen = &mut self.streaming().seen[at];
        if *seen > copy.next() && !takes_back {
            return Err(format!("{id:?} had {seen} in this life, and has {}", copy.next()));
        }
        *seen = copy.next();
        Ok(Some(copy))
    }
}
