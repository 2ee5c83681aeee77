//! Writing properties as AMQP 0-9-1 has them: for messages that the broker itself makes, and for tests and load generators.

use super::{BasicProperties, flag};
use crate::table::Table;

/// Properties to be encoded. Strings longer than 255 bytes are cut, as the short strings of the protocol are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PropertiesBuilder {
    content_type: Option<Vec<u8>>,
    content_encoding: Option<Vec<u8>>,
    /// Encoded entries without their length.
    headers: Option<Vec<u8>>,
    delivery_mode: Option<u8>,
    priority: Option<u8>,
    correlation_id: Option<Vec<u8>>,
    reply_to: Option<Vec<u8>>,
    expiration: Option<Vec<u8>>,
    message_id: Option<Vec<u8>>,
    timestamp: Option<u64>,
    kind: Option<Vec<u8>>,
    user_id: Option<Vec<u8>>,
    app_id: Option<Vec<u8>>,
    cluster_id: Option<Vec<u8>>,
}

macro_rules! strings {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        $(
            $(#[$doc])*
            #[must_use]
            pub fn $name(mut self, it: impl AsRef<[u8]>) -> Self {
                self.$name = Some(it.as_ref().to_vec());
                self
            }
        )*
    };
}

impl PropertiesBuilder {
    /// No properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Everything that can be read from these.
    pub fn from_properties(properties: BasicProperties<'_>) -> Self {
        let owned = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        Self {
            content_type: owned(properties.content_type()),
            content_encoding: owned(properties.content_encoding()),
            headers: owned(properties.headers()),
            delivery_mode: properties.delivery_mode(),
            priority: properties.priority(),
            correlation_id: owned(properties.correlation_id()),
            reply_to: owned(properties.reply_to()),
            expiration: owned(properties.expiration()),
            message_id: owned(properties.message_id()),
            timestamp: properties.timestamp(),
            kind: owned(properties.kind()),
            user_id: owned(properties.user_id()),
            app_id: owned(properties.app_id()),
            cluster_id: owned(properties.cluster_id()),
        }
    }

    strings! {
        /// Sets the MIME type of the body.
        content_type,
        /// Sets the MIME encoding of the body.
        content_encoding,
        /// Sets what an answer refers to.
        correlation_id,
        /// Sets the queue that an answer goes to.
        reply_to,
        /// Sets the time to live: decimal digits, in milliseconds.
        expiration,
        /// Sets the application's identifier.
        message_id,
        /// Sets AMQP's `type`.
        kind,
        /// Sets who publishes it.
        user_id,
        /// Sets the application that publishes it.
        app_id,
        /// Sets the deprecated cluster id.
        cluster_id,
    }

    /// Sets the headers; an empty table is written as an empty table.
    #[must_use]
    pub fn headers(mut self, headers: &Table) -> Self {
        let mut bytes = Vec::new();
        headers.encode(&mut bytes);
        self.headers = Some(bytes);
        self
    }

    /// Sets the delivery mode: 1 is transient, 2 persistent.
    #[must_use]
    pub fn delivery_mode(mut self, mode: u8) -> Self {
        self.delivery_mode = Some(mode);
        self
    }

    /// Sets the priority.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        self.priority = Some(priority);
        self
    }

    /// Sets the time, in seconds since the Unix epoch.
    #[must_use]
    pub fn timestamp(mut self, seconds: u64) -> Self {
        self.timestamp = Some(seconds);
        self
    }

    /// Takes out the time to live, as dead-lettering does.
    #[must_use]
    pub fn without_expiration(mut self) -> Self {
        self.expiration = None;
        self
    }

    /// Appends flags and list.
    pub fn encode_into(&self, out: &mut Vec<u8>) {
        let at = out.len();
        let mut flags = 0;
        out.extend_from_slice(&[0; 2]);
        short(out, &mut flags, flag::CONTENT_TYPE, self.content_type.as_deref());
        short(
            out,
            &mut flags,
            flag::CONTENT_ENCODING,
            self.content_encoding.as_deref(),
        );
        if let Some(headers) = &self.headers {
            flags |= flag::HEADERS;
            out.extend_from_slice(&(headers.len() as u32).to_be_bytes());
            out.extend_from_slice(headers);
        }
        for (flag, octet) in [
            (flag::DELIVERY_MODE, self.delivery_mode),
            (flag::PRIORITY, self.priority),
        ] {
            if let Some(octet) = octet {
                flags |= flag;
                out.push(octet);
            }
        }
        short(
            out,
            &mut flags,
            flag::CORRELATION_ID,
            self.correlation_id.as_deref(),
        );
        short(out, &mut flags, flag::REPLY_TO, self.reply_to.as_deref());
        short(out, &mut flags, flag::EXPIRATION, self.expiration.as_deref());
        short(out, &mut flags, flag::MESSAGE_ID, self.message_id.as_deref());
        if let Some(seconds) = self.timestamp {
            flags |= flag::TIMESTAMP;
            out.extend_from_slice(&seconds.to_be_bytes());
        }
        short(out, &mut flags, flag::TYPE, self.kind.as_deref());
        short(out, &mut flags, flag::USER_ID, self.user_id.as_deref());
        short(out, &mut flags, flag::APP_ID, self.app_id.as_deref());
        short(out, &mut flags, flag::CLUSTER_ID, self.cluster_id.as_deref());
        out[at..at + 2].copy_from_slice(&flags.to_be_bytes());
    }

    /// Flags and list, for [`BasicProperties::new`].
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode_into(&mut out);
        out
    }
}

fn short(out: &mut Vec<u8>, flags: &mut u16, flag: u16, value: Option<&[u8]>) {
    if let Some(bytes) = value {
        let bytes = &bytes[..bytes.len().min(255)];
        *flags |= flag;
        out.push(bytes.len() as u8);
        out.extend_from_slice(bytes);
    }
}
