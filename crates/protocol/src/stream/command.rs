//! Everything that either side may send: requests, answers, and what has neither an answer nor a number.

use super::answer::Answer;
use super::code::ResponseCode;
use super::field::{Field, List, Malformed, Reader, Text};
use super::frame::{ANSWER, Frame, HEAD, put_frame};
use super::key::Key;
use super::publish::Publish;
use super::request::Request;

/// The content of a frame, where it lies in the read buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command<'a> {
    /// Asks for an answer.
    Request {
        /// The answer has the same number.
        correlation_id: u32,
        /// What is asked.
        request: Request<'a>,
    },
    /// The answer.
    Answer {
        /// The number of the request.
        correlation_id: u32,
        /// What came of it.
        answer: Answer<'a>,
    },
    /// A client publishes.
    Publish(Publish<'a>),
    /// Messages are safe.
    PublishConfirm {
        /// The client's number for the publisher.
        publisher_id: u8,
        /// The publisher's numbers for the messages.
        publishing_ids: List<'a, u64>,
    },
    /// Messages were not taken.
    PublishError {
        /// The client's number for the publisher.
        publisher_id: u8,
        /// Which ones, and why.
        errors: List<'a, PublishingError>,
    },
    /// A chunk of a stream. Its bytes are as they are stored, but for the filter and the trailer.
    Deliver {
        /// The client's number for the subscription.
        subscription_id: u8,
        /// The first offset of the last chunk that is committed; in version 2 only.
        committed_chunk_id: Option<u64>,
        /// The chunk.
        chunk: &'a [u8],
    },
    /// So many chunks more may be sent.
    Credit {
        /// The client's number for the subscription.
        subscription_id: u8,
        /// How many.
        credit: u16,
    },
    /// A credit that meant nothing: the one answer without a number.
    CreditError {
        /// Why.
        code: ResponseCode,
        /// The client's number for the subscription.
        subscription_id: u8,
    },
    /// How far a named consumer is. Nothing is answered.
    StoreOffset {
        /// The consumer's name, 255 bytes at most.
        reference: Text<'a>,
        /// The stream.
        stream: Text<'a>,
        /// The offset.
        offset: u64,
    },
    /// A stream is not where it was: publishers and subscriptions of it have ended.
    MetadataUpdate {
        /// Why.
        code: ResponseCode,
        /// The stream.
        stream: Text<'a>,
    },
    /// What the server offers, or what the client makes of it. As an answer it means the same.
    Tune {
        /// The largest frame, in bytes; 0 is no limit.
        frame_max: u32,
        /// How long a side may be silent, in seconds; 0 is for ever.
        heartbeat_s: u32,
    },
    /// A sign of life.
    Heartbeat,
}

/// A message that was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishingError {
    /// The publisher's number for it.
    pub publishing_id: u64,
    /// Why.
    pub code: ResponseCode,
}

impl<'a> Field<'a> for PublishingError {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            publishing_id: u64::read(reader)?,
            code: ResponseCode::from_number(u16::read(reader)?).ok_or(Malformed)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.publishing_id.write(out);
        self.code.number().write(out);
    }
}

impl<'a> Command<'a> {
    /// What a frame has in it. Nothing may be left over.
    ///
    /// # Errors
    /// If there is no such command in this version, or if its fields cannot be read.
    #[inline]
    pub fn decode(frame: &Frame<'a>) -> Result<Self, Malformed> {
        let key = Key::from_number(frame.key & !ANSWER).ok_or(Malformed)?;
        if !(1..=key.last_version()).contains(&frame.version) {
            return Err(Malformed);
        }
        let mut reader = Reader::new(frame.payload);
        let command = match frame.key & ANSWER {
            0 => Self::read(key, frame.version, &mut reader),
            _ => Self::read_answer(key, &mut reader),
        }?;
        match reader.is_empty() {
            true => Ok(command),
            false => Err(Malformed),
        }
    }

    fn read(key: Key, version: u16, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(match key {
            Key::Publish => Self::Publish(Publish::read(version, reader)?),
            Key::PublishConfirm => Self::PublishConfirm {
                publisher_id: u8::read(reader)?,
                publishing_ids: List::read(reader)?,
            },
            Key::PublishError => Self::PublishError {
                publisher_id: u8::read(reader)?,
                errors: List::read(reader)?,
            },
            Key::Deliver => Self::Deliver {
                subscription_id: u8::read(reader)?,
                committed_chunk_id: match version {
                    1 => None,
                    _ => Some(u64::read(reader)?),
                },
                chunk: reader.take(reader.rest().len())?,
            },
            Key::Credit => Self::Credit {
                subscription_id: u8::read(reader)?,
                credit: u16::read(reader)?,
            },
            Key::StoreOffset => Self::StoreOffset {
                reference: Text::read(reader)?,
                stream: Text::read(reader)?,
                offset: u64::read(reader)?,
            },
            Key::MetadataUpdate => Self::MetadataUpdate {
                code: ResponseCode::from_number(u16::read(reader)?).ok_or(Malformed)?,
                stream: Text::read(reader)?,
            },
            Key::Tune => Self::read_tune(reader)?,
            Key::Heartbeat => Self::Heartbeat,
            _ => Self::Request {
                correlation_id: u32::read(reader)?,
                request: Request::read(key, reader)?,
            },
        })
    }

    fn read_answer(key: Key, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        match key {
            Key::Tune => Self::read_tune(reader),
            Key::Credit => Ok(Self::CreditError {
                code: ResponseCode::from_number(u16::read(reader)?).ok_or(Malformed)?,
                subscription_id: u8::read(reader)?,
            }),
            key if Request::is_of(key) => Ok(Self::Answer {
                correlation_id: u32::read(reader)?,
                answer: Answer::read(key, reader)?,
            }),
            _ => Err(Malformed),
        }
    }

    fn read_tune(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self::Tune {
            frame_max: u32::read(reader)?,
            heartbeat_s: u32::read(reader)?,
        })
    }

    /// Appends the frame, in the first version that can say all of it.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (key, version) = self.head();
        put_frame(out, key, version, |out| self.write(out));
    }

    /// The key, with its mark, and the version.
    fn head(&self) -> (u16, u16) {
        let (key, version) = match self {
            Self::Request { request, .. } => (request.key(), 1),
            Self::Answer { answer, .. } => return (answer.key.number() | ANSWER, 1),
            Self::CreditError { .. } => return (Key::Credit.number() | ANSWER, 1),
            Self::Publish(publish) => (Key::Publish, publish.version()),
            Self::PublishConfirm { .. } => (Key::PublishConfirm, 1),
            Self::PublishError { .. } => (Key::PublishError, 1),
            Self::Deliver {
                committed_chunk_id, ..
            } => (Key::Deliver, 1 + u16::from(committed_chunk_id.is_some())),
            Self::Credit { .. } => (Key::Credit, 1),
            Self::StoreOffset { .. } => (Key::StoreOffset, 1),
            Self::MetadataUpdate { .. } => (Key::MetadataUpdate, 1),
            Self::Tune { .. } => (Key::Tune, 1),
            Self::Heartbeat => (Key::Heartbeat, 1),
        };
        (key.number(), version)
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Request {
                correlation_id,
                request,
            } => {
                correlation_id.write(out);
                request.write(out);
            }
            Self::Answer {
                correlation_id,
                answer,
            } => {
                correlation_id.write(out);
                answer.write(out);
            }
            Self::Publish(publish) => publish.write(out),
            Self::PublishConfirm {
                publisher_id,
                publishing_ids,
            } => {
                publisher_id.write(out);
                publishing_ids.write(out);
            }
            Self::PublishError { publisher_id, errors } => {
                publisher_id.write(out);
                errors.write(out);
            }
            Self::Deliver {
                subscription_id,
                committed_chunk_id,
                chunk,
            } => {
                subscription_id.write(out);
                if let Some(id) = committed_chunk_id {
                    id.write(out);
                }
                out.extend_from_slice(chunk);
            }
            Self::Credit {
                subscription_id,
                credit,
            } => {
                subscription_id.write(out);
                credit.write(out);
            }
            Self::CreditError {
                code,
                subscription_id,
            } => {
                code.number().write(out);
                subscription_id.write(out);
            }
            Self::StoreOffset {
                reference,
                stream,
                offset,
            } => {
                reference.write(out);
                stream.write(out);
                offset.write(out);
            }
            Self::MetadataUpdate { code, stream } => {
                code.number().write(out);
                stream.write(out);
            }
            Self::Tune {
                frame_max,
                heartbeat_s,
            } => {
                frame_max.write(out);
                heartbeat_s.write(out);
            }
            Self::Heartbeat => {}
        }
    }
}

/// Appends what stands before a chunk of so many bytes that is written from where it is: [`Command::Deliver`] without the
/// chunk. A chunk has less than 4 GiB, its length being counted in four bytes.
pub fn deliver_head(out: &mut Vec<u8>, subscription_id: u8, committed_chunk_id: Option<u64>, chunk: u32) {
    let head = Command::Deliver {
        subscription_id,
        committed_chunk_id,
        chunk: &[],
    };
    let at = out.len();
    head.encode(out);
    let size = (out.len() - at - HEAD) as u32;
    out[at..at + HEAD].copy_from_slice(&size.saturating_add(chunk).to_be_bytes());
}

/// Appends a [`Command::PublishConfirm`] of these, without a copy of them in between. A frame has room for four bytes of
/// size, so there must be less than 500 million of them.
pub fn publish_confirm(out: &mut Vec<u8>, publisher_id: u8, publishing_ids: &[u64]) {
    put_frame(out, Key::PublishConfirm.number(), 1, |out| {
        publisher_id.write(out);
        (publishing_ids.len() as u32).write(out);
        out.reserve(8 * publishing_ids.len());
        for id in publishing_ids {
            id.write(out);
        }
    });
}

#[cfg(test)]
mod tests;
