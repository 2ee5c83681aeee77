//! AMQP field tables: what arguments, headers and client properties are made of.
//!
//! A [`Table`] is an ordered list of named [`Value`]s. Order is kept, since RabbitMQ keeps it; a name may even
//! come twice, and the first one counts, as in RabbitMQ. Reading order: [`value`] (the field types),
//! [`raw`] (walking encoded tables without building them), this file (tables that are built),
//! [`equivalence`] (when two arguments count as the same), [`text`] (how RabbitMQ prints values).
//!
//! The wire form is AMQP 0-9-1 section 4.2.5 with RabbitMQ's errata: `s` is a 16-bit integer (never a short
//! string), `l` and `L` are both signed 64-bit integers, `i` is unsigned 32-bit, `u` unsigned 16-bit and `x` a
//! byte string.

pub mod equivalence;
pub mod raw;
pub mod text;
pub mod value;

pub use equivalence::{equivalent, inequivalent_arg, inequivalent_field};
pub use raw::{Entries, Items, RawValue, TableError};
pub use value::Value;

use crate::limits::Limits;

/// An ordered list of named values.
///
/// Equality is exact (order and types count); see [`equivalent`] for the looser comparison that a repeated
/// declaration asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Table {
    entries: Vec<(Vec<u8>, Value)>,
}

impl Table {
    /// The empty table; allocates nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads an encoded table, `bytes` being its entries without the four-byte length before them.
    ///
    /// Nothing is allocated on the word of a claimed length: memory grows with entries that were really read.
    ///
    /// # Errors
    /// If the bytes are not a table, or if it nests deeper than `limits.table_depth` or has more entries,
    /// nested ones included, than `limits.table_entries`.
    pub fn decode(bytes: &[u8], limits: &Limits) -> Result<Self, TableError> {
        let mut budget = raw::Budget::new(limits);
        build_table(bytes, &mut budget, 1)
    }

    /// Appends the entries without a length before them: what [`Table::decode`] reads.
    ///
    /// The form is canonical: equal tables give equal bytes. Names are cut at 255 bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.entries {
            let name = &name[..name.len().min(255)];
            out.push(name.len() as u8);
            out.extend_from_slice(name);
            value.encode(out);
        }
    }

    /// Appends the four-byte length and the entries: a table as a method argument or in a content header.
    pub fn encode_field(&self, out: &mut Vec<u8>) {
        raw::with_length(out, |out| self.encode(out));
    }

    /// The value of the first entry of this name.
    pub fn get(&self, name: impl AsRef<[u8]>) -> Option<&Value> {
        let name = name.as_ref();
        self.entries
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value)
    }

    /// True if there is an entry of this name.
    pub fn contains(&self, name: impl AsRef<[u8]>) -> bool {
        self.get(name).is_some()
    }

    /// Replaces the first entry of this name where it stands, or adds one at the end.
    pub fn insert(&mut self, name: impl Into<Vec<u8>>, value: impl Into<Value>) {
        let name = name.into();
        let value = value.into();
        match self.entries.iter_mut().find(|(known, _)| *known == name) {
            Some(entry) => entry.1 = value,
            None => self.entries.push((name, value)),
        }
    }

    /// Adds an entry at the end, whether or not the name is taken.
    pub fn push(&mut self, name: impl Into<Vec<u8>>, value: impl Into<Value>) {
        self.entries.push((name.into(), value.into()));
    }

    /// [`Table::insert`] as a chain, for tables written down in code.
    #[must_use]
    pub fn with(mut self, name: impl Into<Vec<u8>>, value: impl Into<Value>) -> Self {
        self.insert(name, value);
        self
    }

    /// Takes out all entries of this name and gives the first one's value.
    pub fn remove(&mut self, name: impl AsRef<[u8]>) -> Option<Value> {
        let name = name.as_ref();
        let mut first = None;
        self.entries.retain_mut(|(known, value)| {
            if known != name {
                return true;
            }
            first.get_or_insert_with(|| std::mem::replace(value, Value::Void));
            false
        });
        first
    }

    /// The same entries ordered by name, so that tables that differ in order only become equal. RabbitMQ
    /// identifies a binding by its arguments in this order; nested tables keep theirs, as there.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.entries.sort_by(|a, b| a.0.cmp(&b.0));
        self
    }

    /// The entries in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], &Value)> + '_ {
        self.entries.iter().map(|(name, value)| (name.as_slice(), value))
    }

    /// How many entries there are, nested ones not counted.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// True if there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl<N: Into<Vec<u8>>, V: Into<Value>> FromIterator<(N, V)> for Table {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(entries: I) -> Self {
        Self {
            entries: entries
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        }
    }
}

impl RawValue<'_> {
    /// The value, built.
    ///
    /// # Errors
    /// As [`Table::decode`].
    pub fn decode(self, limits: &Limits) -> Result<Value, TableError> {
        build_value(self, &mut raw::Budget::new(limits), 0)
    }
}

fn build_table(bytes: &[u8], budget: &mut raw::Budget, depth: usize) -> Result<Table, TableError> {
    budget.enter(depth)?;
    // Most tables that are kept, such as the arguments of a queue, have one.
    let mut entries = Vec::with_capacity(usize::from(!bytes.is_empty()));
    for entry in Entries::new(bytes) {
        let (name, value) = entry?;
        budget.spend()?;
        entries.push((name.to_vec(), build_value(value, budget, depth)?));
    }
    Ok(Table { entries })
}

fn build_array(bytes: &[u8], budget: &mut raw::Budget, depth: usize) -> Result<Vec<Value>, TableError> {
    budget.enter(depth)?;
    let mut items = Vec::new();
    for value in Items::new(bytes) {
        let value = value?;
        budget.spend()?;
        items.push(build_value(value, budget, depth)?);
    }
    Ok(items)
}

/// Recursion is bounded by the budget's depth, which [`raw::Budget`] caps whatever the limits say.
fn build_value(value: RawValue<'_>, budget: &mut raw::Budget, depth: usize) -> Result<Value, TableError> {
    Ok(match value {
        RawValue::Array(bytes) => Value::Array(build_array(bytes, budget, depth + 1)?),
        RawValue::Table(bytes) => Value::Table(build_table(bytes, budget, depth + 1)?),
        RawValue::Bool(it) => Value::Bool(it),
        RawValue::Byte(it) => Value::Byte(it),
        RawValue::UnsignedByte(it) => Value::UnsignedByte(it),
        RawValue::Short(it) => Value::Short(it),
        RawValue::UnsignedShort(it) => Value::UnsignedShort(it),
        RawValue::SignedInt(it) => Value::SignedInt(it),
        RawValue::UnsignedInt(it) => Value::UnsignedInt(it),
        RawValue::Long(it) => Value::Long(it),
        RawValue::Float(it) => Value::Float(it),
        RawValue::Double(it) => Value::Double(it),
        RawValue::Decimal { scale, value } => Value::Decimal { scale, value },
        RawValue::LongStr(bytes) => Value::LongStr(bytes.to_vec()),
        RawValue::Binary(bytes) => Value::Binary(bytes.to_vec()),
        RawValue::Timestamp(it) => Value::Timestamp(it),
        RawValue::Void => Value::Void,
    })
}

#[cfg(test)]
mod tests;
