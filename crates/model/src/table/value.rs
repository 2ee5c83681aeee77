//! The field types of AMQP 0-9-1 as RabbitMQ has them.

use super::Table;
use super::raw::with_length;
use std::hash::{Hash, Hasher};

/// One value of a field table. The names are RabbitMQ's, since they appear in its error texts.
#[derive(Clone, Debug)]
pub enum Value {
    /// `t`
    Bool(bool),
    /// `b`
    Byte(i8),
    /// `B`
    UnsignedByte(u8),
    /// `s`: 16 bits in RabbitMQ and all clients that were written for it.
    Short(i16),
    /// `u`
    UnsignedShort(u16),
    /// `I`
    SignedInt(i32),
    /// `i`
    UnsignedInt(u32),
    /// `l` or `L`; written as `l`.
    Long(i64),
    /// `f`
    Float(f32),
    /// `d`
    Double(f64),
    /// `D`: `value` times ten to the power of minus `scale`.
    Decimal {
        /// How many decimal places.
        scale: u8,
        /// All digits; RabbitMQ reads them as unsigned.
        value: u32,
    },
    /// `S`: any bytes, mostly UTF-8.
    LongStr(Vec<u8>),
    /// `A`
    Array(Vec<Value>),
    /// `T`: seconds since the Unix epoch.
    Timestamp(u64),
    /// `F`
    Table(Table),
    /// `V`
    Void,
    /// `x`
    Binary(Vec<u8>),
}

impl Value {
    /// The type's name as RabbitMQ writes it in its error texts.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Bool(_) => "bool",
            Self::Byte(_) => "byte",
            Self::UnsignedByte(_) => "unsignedbyte",
            Self::Short(_) => "short",
            Self::UnsignedShort(_) => "unsignedshort",
            Self::SignedInt(_) => "signedint",
            Self::UnsignedInt(_) => "unsignedint",
            Self::Long(_) => "long",
            Self::Float(_) => "float",
            Self::Double(_) => "double",
            Self::Decimal { .. } => "decimal",
            Self::LongStr(_) => "longstr",
            Self::Array(_) => "array",
            Self::Timestamp(_) => "timestamp",
            Self::Table(_) => "table",
            Self::Void => "void",
            Self::Binary(_) => "binary",
        }
    }

    /// The value of any of the seven integer types, which RabbitMQ accepts wherever it asks for a number.
    /// Timestamps and decimals are not among them.
    pub fn as_integer(&self) -> Option<i64> {
        match *self {
            Self::Byte(it) => Some(it.into()),
            Self::UnsignedByte(it) => Some(it.into()),
            Self::Short(it) => Some(it.into()),
            Self::UnsignedShort(it) => Some(it.into()),
            Self::SignedInt(it) => Some(it.into()),
            Self::UnsignedInt(it) => Some(it.into()),
            Self::Long(it) => Some(it),
            _ => None,
        }
    }

    /// The bytes of a `longstr`.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::LongStr(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The text of a `longstr` that is valid UTF-8.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self.as_bytes()?).ok()
    }

    /// The value of a `bool`.
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Self::Bool(it) => Some(it),
            _ => None,
        }
    }

    /// The entries of a `table`.
    pub fn as_table(&self) -> Option<&Table> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// The items of an `array`.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// Appends the type's letter and the value.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bool(it) => out.extend_from_slice(&[b't', u8::from(*it)]),
            Self::Byte(it) => tagged(out, b'b', &it.to_be_bytes()),
            Self::UnsignedByte(it) => tagged(out, b'B', &[*it]),
            Self::Short(it) => tagged(out, b's', &it.to_be_bytes()),
            Self::UnsignedShort(it) => tagged(out, b'u', &it.to_be_bytes()),
            Self::SignedInt(it) => tagged(out, b'I', &it.to_be_bytes()),
            Self::UnsignedInt(it) => tagged(out, b'i', &it.to_be_bytes()),
            Self::Long(it) => tagged(out, b'l', &it.to_be_bytes()),
            Self::Float(it) => tagged(out, b'f', &it.to_be_bytes()),
            Self::Double(it) => tagged(out, b'd', &it.to_be_bytes()),
            Self::Decimal { scale, value } => {
                tagged(out, b'D', &[*scale]);
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::LongStr(bytes) => counted(out, b'S', bytes),
            Self::Array(items) => {
                out.push(b'A');
                with_length(out, |out| items.iter().for_each(|item| item.encode(out)));
            }
            Self::Timestamp(it) => tagged(out, b'T', &it.to_be_bytes()),
            Self::Table(table) => {
                out.push(b'F');
                table.encode_field(out);
            }
            Self::Void => out.push(b'V'),
            Self::Binary(bytes) => counted(out, b'x', bytes),
        }
    }
}

fn tagged(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

fn counted(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    with_length(out, |out| out.extend_from_slice(bytes));
}

/// Exact: types count, and floating-point numbers are the same if their bits are, so that tables can be keys.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Byte(a), Self::Byte(b)) => a == b,
            (Self::UnsignedByte(a), Self::UnsignedByte(b)) => a == b,
            (Self::Short(a), Self::Short(b)) => a == b,
            (Self::UnsignedShort(a), Self::UnsignedShort(b)) => a == b,
            (Self::SignedInt(a), Self::SignedInt(b)) => a == b,
            (Self::UnsignedInt(a), Self::UnsignedInt(b)) => a == b,
            (Self::Long(a), Self::Long(b)) => a == b,
            (Self::Float(a), Self::Float(b)) => a.to_bits() == b.to_bits(),
            (Self::Double(a), Self::Double(b)) => a.to_bits() == b.to_bits(),
            (Self::Decimal { scale: s, value: v }, Self::Decimal { scale, value }) => {
                s == scale && v == value
            }
            (Self::LongStr(a), Self::LongStr(b)) | (Self::Binary(a), Self::Binary(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Timestamp(a), Self::Timestamp(b)) => a == b,
            (Self::Table(a), Self::Table(b)) => a == b,
            (Self::Void, Self::Void) => true,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Bool(it) => it.hash(state),
            Self::Byte(it) => it.hash(state),
            Self::UnsignedByte(it) => it.hash(state),
            Self::Short(it) => it.hash(state),
            Self::UnsignedShort(it) => it.hash(state),
            Self::SignedInt(it) => it.hash(state),
            Self::UnsignedInt(it) => it.hash(state),
            Self::Long(it) => it.hash(state),
            Self::Float(it) => it.to_bits().hash(state),
            Self::Double(it) => it.to_bits().hash(state),
            Self::Decimal { scale, value } => (scale, value).hash(state),
            Self::LongStr(bytes) | Self::Binary(bytes) => bytes.hash(state),
            Self::Array(items) => items.hash(state),
            Self::Timestamp(it) => it.hash(state),
            Self::Table(table) => table.hash(state),
            Self::Void => {}
        }
    }
}

impl From<bool> for Value {
    fn from(it: bool) -> Self {
        Self::Bool(it)
    }
}

impl From<i32> for Value {
    fn from(it: i32) -> Self {
        Self::SignedInt(it)
    }
}

impl From<i64> for Value {
    fn from(it: i64) -> Self {
        Self::Long(it)
    }
}

impl From<f64> for Value {
    fn from(it: f64) -> Self {
        Self::Double(it)
    }
}

impl From<&str> for Value {
    fn from(it: &str) -> Self {
        Self::LongStr(it.as_bytes().to_vec())
    }
}

impl From<String> for Value {
    fn from(it: String) -> Self {
        Self::LongStr(it.into_bytes())
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Self {
        Self::Array(items)
    }
}

impl From<Table> for Value {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}
