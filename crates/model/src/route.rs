//! Where a message was published to: an exchange's name and a routing key, in one piece.

use std::fmt;

/// The longest name and the longest key, in bytes: AMQP's short strings have one octet for the length.
const LONGEST: usize = 255;

/// Exchange and routing key as two AMQP short strings (a length octet before each), one behind the other: as
/// `basic.publish` brings them, a [`crate::Block`] keeps them and `basic.deliver` takes them out, so they are copied in one go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Route<'a>(&'a [u8]);

impl<'a> Route<'a> {
    /// The route that `bytes` begin with, and what follows it; `None` if they end within it.
    #[inline]
    pub fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let key = 1 + usize::from(*bytes.first()?);
        let end = key + 1 + usize::from(*bytes.get(key)?);
        let (route, rest) = bytes.split_at_checked(end)?;
        Some((Self(route), rest))
    }

    /// For bytes that were a route when they were read or stored.
    #[inline]
    pub fn stored(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Both short strings.
    #[inline]
    pub fn as_bytes(self) -> &'a [u8] {
        self.0
    }

    /// The exchange's name; empty for the default exchange. Any bytes, as in RabbitMQ.
    #[inline]
    pub fn exchange(self) -> &'a [u8] {
        let length = self.0.first().copied().unwrap_or(0) as usize;
        self.0.get(1..1 + length).unwrap_or_default()
    }

    /// The routing key. Any bytes, as in RabbitMQ.
    #[inline]
    pub fn routing_key(self) -> &'a [u8] {
        let length = self.0.first().copied().unwrap_or(0) as usize;
        self.0.get(2 + length..).unwrap_or_default()
    }
}

impl fmt::Debug for Route<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = String::from_utf8_lossy;
        write!(f, "{:?} {:?}", text(self.exchange()), text(self.routing_key()))
    }
}

/// A route that was put together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteBuf(Box<[u8]>);

impl RouteBuf {
    /// Of a name and a key of at most 255 bytes; longer ones are cut.
    pub fn new(exchange: &[u8], routing_key: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(2 + exchange.len() + routing_key.len());
        for text in [exchange, routing_key] {
            let text = &text[..text.len().min(LONGEST)];
            bytes.push(text.len() as u8);
            bytes.extend_from_slice(text);
        }
        Self(bytes.into_boxed_slice())
    }

    /// The route.
    pub fn as_route(&self) -> Route<'_> {
        Route(&self.0)
    }
}

impl From<Route<'_>> for RouteBuf {
    fn from(route: Route<'_>) -> Self {
        Self(route.0.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_two_short_strings_and_what_follows_is_not_its_own() {
        let (route, rest) = Route::split(b"\x04logs\x03a.bmore").unwrap();
        assert_eq!(
            (route.exchange(), route.routing_key(), rest),
            (&b"logs"[..], &b"a.b"[..], &b"more"[..])
        );
        assert_eq!(RouteBuf::new(b"logs", b"a.b").as_route(), route);
        assert_eq!(RouteBuf::from(route).as_route(), route);
        for cut in 0..route.as_bytes().len() {
            assert_eq!(Route::split(&route.as_bytes()[..cut]), None);
        }
        let (nothing, _) = Route::split(b"\0\0").unwrap();
        assert!(nothing.exchange().is_empty() && nothing.routing_key().is_empty());
    }

    #[test]
    fn what_is_too_long_for_a_short_string_is_cut() {
        let long = RouteBuf::new(&[b'x'; 300], &[b'y'; 256]);
        assert_eq!(long.as_route().exchange().len(), 255);
        assert_eq!(long.as_route().routing_key().len(), 255);
    }
}
