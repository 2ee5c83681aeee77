//! Methods: numbers, names, arguments, all from the one table in [`table`].

pub mod table;

pub use table::*;

use super::field::{Field, FieldError, FieldReader, FieldWriter};
use super::reply::{Exception, ReplyCode};
use std::fmt::{self, Write};

/// A method's number: its class and its place in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MethodId {
    /// 10 connection, 20 channel, 30 access, 40 exchange, 50 queue, 60 basic, 85 confirm, 90 tx.
    pub class: u16,
    /// The number within the class.
    pub method: u16,
}

impl MethodId {
    /// What stands in a close that no method caused.
    pub const NONE: Self = Self { class: 0, method: 0 };

    /// The number and the arguments of a method frame's payload; `None` if it is too short for a number.
    pub fn split(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (id, fields) = payload.split_first_chunk::<4>()?;
        let [c0, c1, m0, m1] = *id;
        Some((
            Self {
                class: u16::from_be_bytes([c0, c1]),
                method: u16::from_be_bytes([m0, m1]),
            },
            fields,
        ))
    }

    /// The four bytes before the arguments.
    pub const fn to_bytes(self) -> [u8; 4] {
        let ([c0, c1], [m0, m1]) = (self.class.to_be_bytes(), self.method.to_be_bytes());
        [c0, c1, m0, m1]
    }

    /// True for the methods that a header and a body follow: publish, return, deliver, get-ok.
    pub fn has_content(self) -> bool {
        self.class == 60 && matches!(self.method, 40 | 50 | 60 | 71)
    }
}

/// The dotted name, as in `basic.publish`; the two numbers if there is no such method.
impl fmt::Display for MethodId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "{}.{}", self.class, self.method),
        }
    }
}

/// Why a method cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MethodError<'a> {
    /// There is no method of this number.
    Unknown(MethodId),
    /// The arguments end too early or too late.
    Undecodable(MethodId, &'a [u8]),
    /// A name is not UTF-8.
    MalformedUtf8(MethodId),
}

impl MethodError<'_> {
    /// The connection error for it.
    ///
    /// For arguments that cannot be read it is RabbitMQ's 501. At an unknown method RabbitMQ drops the
    /// connection without a word; the specification's 540 says the same in a clearer way.
    pub fn exception(&self) -> Exception {
        match self {
            Self::Unknown(id) => Exception::new(
                ReplyCode::NotImplemented,
                format!("unknown method {} of class {}", id.method, id.class),
                *id,
            ),
            Self::Undecodable(id, fields) => {
                let mut text = String::from("cannot decode <<");
                // A reply text has room for no more than this.
                for (at, byte) in fields.iter().take(128).enumerate() {
                    let _ = write!(text, "{}{byte}", if at == 0 { "" } else { "," });
                }
                text.push_str(">>");
                Exception::new(ReplyCode::FrameError, text, *id)
            }
            // RabbitMQ names the method here only on channel 0.
            Self::MalformedUtf8(id) => {
                let id = if id.class == 10 { *id } else { MethodId::NONE };
                Exception::new(ReplyCode::FrameError, "Malformed UTF-8 in shortstr", id)
            }
        }
    }
}

/// A method as a struct of its arguments.
pub trait Arguments<'a>: Sized {
    /// The method's number.
    const ID: MethodId;
    /// The method's dotted name.
    const NAME: &'static str;

    /// Reads all arguments; nothing may be left over.
    ///
    /// # Errors
    /// If they end too early or too late, or if a name is not UTF-8.
    fn decode(fields: &'a [u8]) -> Result<Self, MethodError<'a>>;

    /// Appends the arguments, without the number before them.
    fn encode(&self, out: &mut Vec<u8>);
}

/// One line a method: number, variant, name, arguments. Arguments in `[brackets]` come first on the wire and
/// those in `(parentheses)` last; both are reserved: skipped when read, zero or empty when written.
macro_rules! methods {
    ($(
        $class:literal $number:literal $variant:ident $(<$life:lifetime>)? $name:literal {
            $([$lead:ty])*
            $($field:ident: $type:ty,)*
            $(($trail:ty))*
        }
    )*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[allow(missing_docs, reason = "the arguments' names are the specification's")]
            pub struct $variant $(<$life>)? {
                $(pub $field: $type,)*
            }

            impl<'a> Arguments<'a> for $variant $(<$life>)? {
                const ID: MethodId = MethodId { class: $class, method: $number };
                const NAME: &'static str = $name;

                fn decode(fields: &'a [u8]) -> Result<Self, MethodError<'a>> {
                    read_all(Self::ID, fields, |_reader| {
                        $(<$lead as Field>::read(_reader)?;)*
                        $(let $field = Field::read(_reader)?;)*
                        $(<$trail as Field>::read(_reader)?;)*
                        Ok(Self { $($field),* })
                    })
                }

                fn encode(&self, out: &mut Vec<u8>) {
                    let mut _writer = FieldWriter::new(out);
                    $(<$lead as Default>::default().write(&mut _writer);)*
                    $(self.$field.write(&mut _writer);)*
                    $(<$trail as Default>::default().write(&mut _writer);)*
                }
            }

            impl<'a> From<$variant $(<$life>)?> for Method<'a> {
                fn from(method: $variant $(<$life>)?) -> Self {
                    Self::$variant(method)
                }
            }
        )*

        /// Any method, with its arguments where they lie in the read buffer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each variant is its struct")]
        pub enum Method<'a> {
            $($variant($variant $(<$life>)?),)*
        }

        impl<'a> Method<'a> {
            /// The numbers of all methods.
            pub const ALL: &'static [MethodId] = &[$(MethodId { class: $class, method: $number }),*];

            /// Reads the arguments of method `id`; [`Part::Method`](crate::amqp::Part::Method) gives both.
            ///
            /// # Errors
            /// If there is no such method, or if its arguments cannot be read.
            pub fn decode(id: MethodId, fields: &'a [u8]) -> Result<Self, MethodError<'a>> {
                match (id.class, id.method) {
                    $(($class, $number) => $variant::decode(fields).map(Self::$variant),)*
                    _ => Err(MethodError::Unknown(id)),
                }
            }

            /// The method's number.
            pub fn id(&self) -> MethodId {
                match self {
                    $(Self::$variant(_) => $variant::ID,)*
                }
            }

            /// Appends the arguments, without the number before them.
            pub fn encode(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant(method) => method.encode(out),)*
                }
            }
        }

        impl MethodId {
            /// The dotted name, as in `basic.publish`; `None` if there is no such method.
            pub fn name(self) -> Option<&'static str> {
                match (self.class, self.method) {
                    $(($class, $number) => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}
pub(crate) use methods;

/// Reads arguments and makes sure that they end where the frame ends.
fn read_all<'a, T>(
    id: MethodId,
    fields: &'a [u8],
    read: impl FnOnce(&mut FieldReader<'a>) -> Result<T, FieldError>,
) -> Result<T, MethodError<'a>> {
    let mut reader = FieldReader::new(fields);
    match read(&mut reader) {
        Ok(method) if reader.is_empty() => Ok(method),
        Ok(_) | Err(FieldError::Truncated) => Err(MethodError::Undecodable(id, fields)),
        Err(FieldError::MalformedUtf8) => Err(MethodError::MalformedUtf8(id)),
    }
}

#[cfg(test)]
mod tests;
