//! Requests: what is answered, with the number by which the two are brought together.

use super::code::ResponseCode;
use super::field::{Field, List, Malformed, Opaque, Properties, Reader, Text, Trailing};
use super::key::{CommandVersions, Key};
use super::offset::OffsetSpec;

/// One line a request: its name, which is that of its key, and its fields in their order.
macro_rules! requests {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(<$life:lifetime>)? { $($(#[$field_doc:meta])* $field:ident: $type:ty,)* }
    )*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $variant $(<$life>)? {
                $($(#[$field_doc])* pub $field: $type,)*
            }

            impl<'a> Field<'a> for $variant $(<$life>)? {
                fn read(_reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                    Ok(Self { $($field: Field::read(_reader)?,)* })
                }

                fn write(&self, _out: &mut Vec<u8>) {
                    $(self.$field.write(_out);)*
                }
            }

            impl<'a> From<$variant $(<$life>)?> for Request<'a> {
                fn from(request: $variant $(<$life>)?) -> Self {
                    Self::$variant(request)
                }
            }
        )*

        /// Any request, with its fields where they lie in the read buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is its struct")]
        pub enum Request<'a> {
            $($variant($variant $(<$life>)?),)*
        }

        impl<'a> Request<'a> {
            /// The request's key.
            pub fn key(&self) -> Key {
                match self {
                    $(Self::$variant(_) => Key::$variant,)*
                }
            }

            /// True if commands of this key are requests.
            pub(super) fn is_of(key: Key) -> bool {
                matches!(key, $(Key::$variant)|*)
            }

            /// Reads the fields of a request of this key.
            pub(super) fn read(key: Key, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
                match key {
                    $(Key::$variant => $variant::read(reader).map(Self::$variant),)*
                    _ => Err(Malformed),
                }
            }

            /// Appends the fields.
            pub(super) fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant(request) => request.write(out),)*
                }
            }
        }
    };
}

requests! {
    /// A client will publish to a stream under this number.
    DeclarePublisher<'a> {
        /// The client's number for the publisher.
        publisher_id: u8,
        /// The name by which its messages are recognised when they are sent again, 255 bytes at most; empty if they are not.
        reference: Text<'a>,
        /// The stream.
        stream: Text<'a>,
    }
    /// Asks for the last publishing number that was stored under a reference.
    QueryPublisherSequence<'a> {
        /// The publisher's name.
        reference: Text<'a>,
        /// The stream.
        stream: Text<'a>,
    }
    /// A client will publish no more under this number.
    DeletePublisher {
        /// The client's number for the publisher.
        publisher_id: u8,
    }
    /// A client wants to be sent what is in a stream.
    Subscribe<'a> {
        /// The client's number for the subscription.
        subscription_id: u8,
        /// The stream.
        stream: Text<'a>,
        /// Where to begin.
        from: OffsetSpec,
        /// How many chunks may be sent before more credit comes.
        credit: u16,
        /// `name`, `single-active-consumer`, `super-stream`, `filter.N`, `match-unfiltered`, and what else it says of itself.
        properties: Trailing<'a>,
    }
    /// Asks how far a named consumer was.
    QueryOffset<'a> {
        /// The consumer's name.
        reference: Text<'a>,
        /// The stream.
        stream: Text<'a>,
    }
    /// A client wants no more of a stream.
    Unsubscribe {
        /// The client's number for the subscription.
        subscription_id: u8,
    }
    /// Makes a stream.
    Create<'a> {
        /// Its name.
        stream: Text<'a>,
        /// `max-length-bytes`, `max-age`, `stream-max-segment-size-bytes`, `initial-cluster-size`, `queue-leader-locator`,
        /// `stream-filter-size-bytes`; all values are strings.
        arguments: Properties<'a>,
    }
    /// Removes a stream.
    Delete<'a> {
        /// Its name.
        stream: Text<'a>,
    }
    /// Asks who has these streams.
    Metadata<'a> {
        /// Their names.
        streams: List<'a, Text<'a>>,
    }
    /// Who the client is; the answer says who the server is.
    PeerProperties<'a> {
        /// What the client says of itself.
        properties: Properties<'a>,
    }
    /// Asks how one may log in.
    SaslHandshake {}
    /// A login, or new credentials of who is logged in.
    SaslAuthenticate<'a> {
        /// The mechanism's name.
        mechanism: Text<'a>,
        /// The mechanism's response.
        response: Opaque<'a>,
    }
    /// Opens a virtual host.
    Open<'a> {
        /// Its name.
        virtual_host: Text<'a>,
    }
    /// Ends the connection; either side may.
    Close<'a> {
        /// A [`ResponseCode`], or whatever the client takes for one.
        code: u16,
        /// Why, for people.
        reason: Text<'a>,
    }
    /// Asks into which streams of a super stream something with this key goes.
    Route<'a> {
        /// The key.
        routing_key: Text<'a>,
        /// The super stream.
        super_stream: Text<'a>,
    }
    /// Asks for the streams of a super stream, in their order.
    Partitions<'a> {
        /// The super stream.
        super_stream: Text<'a>,
    }
    /// Tells a client that its single active consumer is active from now on, or is not any more. The answer says where to
    /// begin.
    ConsumerUpdate {
        /// The client's number for the subscription.
        subscription_id: u8,
        /// True if it is active.
        active: bool,
    }
    /// Tells which versions of which commands the client speaks, and asks the same.
    ExchangeCommandVersions<'a> {
        /// The client's.
        versions: List<'a, CommandVersions>,
    }
    /// Asks for figures about a stream.
    StreamStats<'a> {
        /// The stream.
        stream: Text<'a>,
    }
    /// Makes a super stream: an exchange, its streams, and a binding for each of them.
    CreateSuperStream<'a> {
        /// The super stream's name.
        super_stream: Text<'a>,
        /// The names of its streams.
        partitions: List<'a, Text<'a>>,
        /// The key that leads to each of them.
        binding_keys: List<'a, Text<'a>>,
        /// As for [`Create`], for each stream.
        arguments: Properties<'a>,
    }
    /// Removes a super stream and its streams.
    DeleteSuperStream<'a> {
        /// The super stream.
        super_stream: Text<'a>,
    }
    /// Asks for the offset of the chunk with which a subscription would begin.
    ResolveOffsetSpec<'a> {
        /// The stream.
        stream: Text<'a>,
        /// Where the subscription would begin.
        from: OffsetSpec,
        /// The filter of the subscription.
        properties: Trailing<'a>,
    }
}

impl<'a> Close<'a> {
    /// One that says why in the words of the code.
    pub fn because(code: ResponseCode) -> Self {
        Self {
            code: code.number(),
            reason: code.text().into(),
        }
    }
}
