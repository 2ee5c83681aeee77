//! Field tables: checking and building agree, the limits hold, and a table survives being written and read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Limits;
use model::table::{Table, Value, equivalent, raw};

fn entries(table: &Table) -> usize {
    table.iter().map(|(_, value)| 1 + nested(value)).sum()
}

fn nested(value: &Value) -> usize {
    match value {
        Value::Table(table) => entries(table),
        Value::Array(items) => items.iter().map(|item| 1 + nested(item)).sum(),
        _ => 0,
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        table_depth: 8,
        table_entries: 200,
        ..Limits::default()
    };
    let checked = raw::check(bytes, &limits);
    let table = match Table::decode(bytes, &limits) {
        Ok(table) => table,
        Err(error) => return assert_eq!(checked, Err(error)),
    };
    assert_eq!(checked, Ok(()));
    assert!(entries(&table) <= 200);
    let mut out = Vec::new();
    table.encode(&mut out);
    // Booleans and the two letters of the 64-bit integer have more than one form on the wire.
    assert_eq!(out.len(), bytes.len());
    assert_eq!(Table::decode(&out, &limits).as_ref(), Ok(&table));
    assert!(table.iter().all(|(_, value)| equivalent(value, value)));
    if bytes.len() < 64 {
        let _ = table.to_string();
    }
});
