//! A store's records and tables as bytes; numbers as in `encoding`.
//!
//! ```text
//! Moved   count, then first, count, place
//! Table   count, then each row: first, count, source, first - base, body_bytes, weight
//! source  0 and a place in the log, 1 and a place, or 2: nowhere
//! place   segment, offset, length
//! ```

use super::{LogPlace, Place, Record, Row, Source, Stored, Table};
use crate::encoding::{Input, put};

impl Record {
    /// Appends the record's bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        let Self::Moved { pieces } = self;
        put(out, pieces.len() as u64);
        for piece in pieces {
            put(out, piece.first);
            put(out, u64::from(piece.count));
            put_place(out, piece.place);
        }
    }

    /// Reads a record back.
    pub(crate) fn get(input: &mut Input<'_>) -> Option<Self> {
        let pieces = input.list(5, stored)?;
        Some(Self::Moved { pieces })
    }
}

impl Table {
    /// Appends the table's bytes.
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put(out, self.rows.len() as u64);
        for row in &self.rows {
            put(out, row.first);
            put(out, u64::from(row.count));
            match row.source {
                Some(Source::Log(place)) => {
                    out.push(0);
                    put(out, place.0);
                }
                Some(Source::Segment(place)) => {
                    out.push(1);
                    put_place(out, place);
                }
                None => out.push(2),
            }
            put(out, row.first.saturating_sub(row.base));
            put(out, row.body_bytes);
            put(out, row.weight);
        }
    }

    /// Reads a table back.
    pub(crate) fn get(input: &mut Input<'_>) -> Option<Self> {
        let rows = input.list(6, row)?;
        Some(Self { rows })
    }
}

fn put_place(out: &mut Vec<u8>, place: Place) {
    put(out, u64::from(place.segment));
    put(out, u64::from(place.offset));
    put(out, u64::from(place.length));
}

fn place(input: &mut Input<'_>) -> Option<Place> {
    Some(Place {
        segment: input.short()?,
        offset: input.short()?,
        length: input.short()?,
    })
}

fn stored(input: &mut Input<'_>) -> Option<Stored> {
    let stored = Stored {
        first: input.number()?,
        count: input.short()?,
        place: place(input)?,
    };
    (stored.first > 0 && stored.count > 0).then_some(stored)
}

fn row(input: &mut Input<'_>) -> Option<Row> {
    let first = input.number()?;
    let count = input.short()?;
    let source = match input.octet()? {
        0 => Some(Source::Log(LogPlace(input.number()?))),
        1 => Some(Source::Segment(place(input)?)),
        2 => None,
        _ => return None,
    };
    Some(Row {
        first,
        count,
        source,
        base: first.checked_sub(input.number()?)?,
        body_bytes: input.number()?,
        weight: input.number()?,
    })
}
