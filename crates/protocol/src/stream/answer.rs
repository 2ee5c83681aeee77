//! Answers to requests: a code, and what was asked for.

use super::code::ResponseCode;
use super::field::{Field, List, Malformed, Opaque, Properties, Reader, Text};
use super::key::{CommandVersions, Key};
use super::metadata::Places;
use super::offset::{OffsetSpec, Resolved};

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The request's key.
    pub key: Key,
    /// Whether it was done, and if not, why. [`Key::Metadata`] is always answered with [`ResponseCode::Ok`].
    pub code: ResponseCode,
    /// What was asked for.
    pub content: Content<'a>,
}

/// What an answer has besides its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// Nothing. Any answer may be of this kind, above all if it is not [`ResponseCode::Ok`].
    Nothing,
    /// To [`Key::QueryPublisherSequence`] and [`Key::QueryOffset`]; 0 if there is none.
    Number(u64),
    /// To [`Key::PeerProperties`] and [`Key::Open`].
    Properties(Properties<'a>),
    /// To [`Key::SaslHandshake`] (mechanisms), [`Key::Route`] and [`Key::Partitions`] (streams).
    Names(List<'a, Text<'a>>),
    /// To [`Key::SaslAuthenticate`], if the mechanism has one more question.
    Challenge(Opaque<'a>),
    /// To [`Key::Metadata`].
    Places(Places<'a>),
    /// To [`Key::ConsumerUpdate`]: where to begin, if not where the subscription says.
    From(Option<OffsetSpec>),
    /// To [`Key::ExchangeCommandVersions`].
    Versions(List<'a, CommandVersions>),
    /// To [`Key::StreamStats`].
    Stats(List<'a, Stat<'a>>),
    /// To [`Key::ResolveOffsetSpec`].
    Resolved(Resolved),
}

/// A figure about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// What is counted.
    pub name: Text<'a>,
    /// How much it is; −1 where there is nothing.
    pub value: i64,
}

impl<'a> Field<'a> for Stat<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            name: Text::read(reader)?,
            value: i64::read(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.name.write(out);
        self.value.write(out);
    }
}

impl<'a> Answer<'a> {
    /// One that is nothing but a code.
    pub fn code(key: Key, code: ResponseCode) -> Self {
        Self {
            key,
            code,
            content: Content::Nothing,
        }
    }

    /// What the answer to a request that was done has in it.
    pub fn ok(key: Key, content: Content<'a>) -> Self {
        Self {
            key,
            code: ResponseCode::Ok,
            content,
        }
    }

    /// Reads what stands behind the number of the request.
    pub(super) fn read(key: Key, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        if key == Key::Metadata {
            return Places::read(reader).map(|places| Self::ok(key, Content::Places(places)));
        }
        let code = ResponseCode::from_number(u16::read(reader)?).ok_or(Malformed)?;
        if reader.is_empty() {
            return Ok(Self::code(key, code));
        }
        let content = match key {
            Key::QueryPublisherSequence | Key::QueryOffset => Content::Number(u64::read(reader)?),
            Key::PeerProperties | Key::Open => Content::Properties(List::read(reader)?),
            Key::SaslHandshake | Key::Route | Key::Partitions => Content::Names(List::read(reader)?),
            Key::SaslAuthenticate => Content::Challenge(Opaque::read(reader)?),
            Key::ConsumerUpdate => Content::From(Field::read(reader)?),
            Key::ExchangeCommandVersions => Content::Versions(List::read(reader)?),
            Key::StreamStats => Content::Stats(List::read(reader)?),
            Key::ResolveOffsetSpec => Content::Resolved(Resolved::read(reader)?),
            _ => return Err(Malformed),
        };
        Ok(Self { key, code, content })
    }

    /// Appends what stands behind the number of the request.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        if self.key != Key::Metadata {
            self.code.number().write(out);
        }
        match &self.content {
            Content::Nothing => {}
            Content::Number(number) => number.write(out),
            Content::Properties(properties) => properties.write(out),
            Content::Names(names) => names.write(out),
            Content::Challenge(challenge) => challenge.write(out),
            Content::Places(places) => places.write(out),
            Content::From(from) => from.write(out),
            Content::Versions(versions) => versions.write(out),
            Content::Stats(stats) => stats.write(out),
            Content::Resolved(resolved) => resolved.write(out),
        }
    }
}
