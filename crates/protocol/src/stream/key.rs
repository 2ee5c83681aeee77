//! Keys: the numbers of commands, and in which versions each is spoken.

use super::field::{Field, Malformed, Reader};
use std::fmt;

macro_rules! keys {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $last:literal, $text:literal;)*) => {
        /// A command's number, without the bit that marks an answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u16)]
        pub enum Key {
            $($(#[$doc])* $name = $number,)*
        }

        impl Key {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The command of this number; `None` if there is none.
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The latest version that is spoken; the first is 1 for all.
            pub const fn last_version(self) -> u16 {
                match self {
                    $(Self::$name => $last,)*
                }
            }

            /// RabbitMQ's name, for logs.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

keys! {
    /// A client will publish to a stream.
    DeclarePublisher = 1, 1, "declare_publisher";
    /// Messages. Version 2 (RabbitMQ 3.13) has a filter value for each.
    Publish = 2, 2, "publish";
    /// Messages are safe.
    PublishConfirm = 3, 1, "publish_confirm";
    /// Messages were not taken.
    PublishError = 4, 1, "publish_error";
    /// The last number that a named publisher used.
    QueryPublisherSequence = 5, 1, "query_publisher_sequence";
    /// A client will publish no more under a number.
    DeletePublisher = 6, 1, "delete_publisher";
    /// A client wants to be sent what is in a stream.
    Subscribe = 7, 1, "subscribe";
    /// A chunk of a stream. Version 2 (RabbitMQ 3.11) says what is committed.
    Deliver = 8, 2, "deliver";
    /// So many chunks more may be sent.
    Credit = 9, 1, "credit";
    /// How far a named consumer is.
    StoreOffset = 10, 1, "store_offset";
    /// How far a named consumer was.
    QueryOffset = 11, 1, "query_offset";
    /// A client wants no more of a stream.
    Unsubscribe = 12, 1, "unsubscribe";
    /// Makes a stream.
    Create = 13, 1, "create_stream";
    /// Removes a stream.
    Delete = 14, 1, "delete_stream";
    /// Who has which streams.
    Metadata = 15, 1, "metadata";
    /// A stream is not where it was.
    MetadataUpdate = 16, 1, "metadata_update";
    /// Who the other side is.
    PeerProperties = 17, 1, "peer_properties";
    /// How one may log in.
    SaslHandshake = 18, 1, "sasl_handshake";
    /// A login, or new credentials.
    SaslAuthenticate = 19, 1, "sasl_authenticate";
    /// Frame size and heartbeat.
    Tune = 20, 1, "tune";
    /// The virtual host.
    Open = 21, 1, "open";
    /// The end.
    Close = 22, 1, "close";
    /// A sign of life.
    Heartbeat = 23, 1, "heartbeat";
    /// Where a super stream has what bears a key.
    Route = 24, 1, "route";
    /// The streams of a super stream.
    Partitions = 25, 1, "partitions";
    /// A single active consumer begins or ends to be the active one (RabbitMQ 3.11).
    ConsumerUpdate = 26, 1, "consumer_update";
    /// Which versions each side speaks (RabbitMQ 3.11).
    ExchangeCommandVersions = 27, 1, "exchange_command_versions";
    /// Figures about a stream (RabbitMQ 3.11).
    StreamStats = 28, 1, "stream_stats";
    /// Makes a super stream with its streams (RabbitMQ 3.13).
    CreateSuperStream = 29, 1, "create_super_stream";
    /// Removes a super stream with its streams (RabbitMQ 3.13).
    DeleteSuperStream = 30, 1, "delete_super_stream";
    /// The offset at which a subscription would begin (RabbitMQ 4.3).
    ResolveOffsetSpec = 31, 1, "resolve_offset_spec";
}

impl Key {
    /// The number on the wire.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One line of what [`Key::ExchangeCommandVersions`] exchanges. The peer may name commands that are unknown here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandVersions {
    /// A command's number.
    pub key: u16,
    /// The first version that is spoken.
    pub first: u16,
    /// The last one.
    pub last: u16,
}

impl CommandVersions {
    /// What is spoken of this command here.
    pub const fn of(key: Key) -> Self {
        Self {
            key: key.number(),
            first: 1,
            last: key.last_version(),
        }
    }

    /// True if it says that this version of this command is spoken.
    pub fn speaks(&self, key: Key, version: u16) -> bool {
        self.key == key.number() && (self.first..=self.last).contains(&version)
    }
}

impl<'a> Field<'a> for CommandVersions {
    fn read(reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            key: u16::read(reader)?,
            first: u16::read(reader)?,
            last: u16::read(reader)?,
        })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.key.write(out);
        self.first.write(out);
        self.last.write(out);
    }
}

/// What a server says that it takes from clients, in RabbitMQ's order: what comes before the virtual host is open, and the
/// exchange of versions itself, is not in it.
pub const TAKEN_FROM_CLIENTS: [CommandVersions; 20] = [
    CommandVersions::of(Key::DeclarePublisher),
    CommandVersions::of(Key::Publish),
    CommandVersions::of(Key::QueryPublisherSequence),
    CommandVersions::of(Key::DeletePublisher),
    CommandVersions::of(Key::Subscribe),
    CommandVersions::of(Key::Credit),
    CommandVersions::of(Key::StoreOffset),
    CommandVersions::of(Key::QueryOffset),
    CommandVersions::of(Key::Unsubscribe),
    CommandVersions::of(Key::Create),
    CommandVersions::of(Key::Delete),
    CommandVersions::of(Key::Metadata),
    CommandVersions::of(Key::Close),
    CommandVersions::of(Key::Heartbeat),
    CommandVersions::of(Key::Route),
    CommandVersions::of(Key::Partitions),
    CommandVersions::of(Key::StreamStats),
    CommandVersions::of(Key::CreateSuperStream),
    CommandVersions::of(Key::DeleteSuperStream),
    CommandVersions::of(Key::ResolveOffsetSpec),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_numbered_from_one_without_a_gap() {
        for (at, key) in Key::ALL.iter().enumerate() {
            assert_eq!(usize::from(key.number()), at + 1);
            assert_eq!(Key::from_number(key.number()), Some(*key));
        }
        assert_eq!(Key::from_number(0), None);
        assert_eq!(Key::from_number(0x20), None);
    }

    #[test]
    fn two_commands_have_a_second_version() {
        let second: Vec<_> = Key::ALL.iter().filter(|key| key.last_version() > 1).collect();
        assert_eq!(second, [&Key::Publish, &Key::Deliver]);
        let publish = CommandVersions::of(Key::Publish);
        assert!(publish.speaks(Key::Publish, 2) && !publish.speaks(Key::Publish, 3));
        assert!(!publish.speaks(Key::Deliver, 1) && !publish.speaks(Key::Publish, 0));
    }
}
