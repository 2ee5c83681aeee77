use super::*;
use proptest::prelude::*;

fn generous() -> Limits {
    Limits {
        table_entries: 1_000_000,
        ..Limits::default()
    }
}

fn encoded(table: &Table) -> Vec<u8> {
    let mut out = Vec::new();
    table.encode(&mut out);
    out
}

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::Byte),
        any::<u8>().prop_map(Value::UnsignedByte),
        any::<i16>().prop_map(Value::Short),
        any::<u16>().prop_map(Value::UnsignedShort),
        any::<i32>().prop_map(Value::SignedInt),
        any::<u32>().prop_map(Value::UnsignedInt),
        any::<i64>().prop_map(Value::Long),
        any::<u32>().prop_map(|bits| Value::Float(f32::from_bits(bits))),
        any::<u64>().prop_map(|bits| Value::Double(f64::from_bits(bits))),
        any::<(u8, u32)>().prop_map(|(scale, value)| Value::Decimal { scale, value }),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::LongStr),
        any::<u64>().prop_map(Value::Timestamp),
        Just(Value::Void),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Binary),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            entries(inner).prop_map(Value::Table),
        ]
    })
}

fn entries(values: impl Strategy<Value = Value>) -> impl Strategy<Value = Table> {
    let name = prop::collection::vec(any::<u8>(), 0..20);
    prop::collection::vec((name, values), 0..8).prop_map(|entries| entries.into_iter().collect())
}

proptest! {
    #[test]
    fn what_is_written_reads_back(table in entries(value())) {
        let bytes = encoded(&table);
        prop_assert_eq!(Table::decode(&bytes, &generous()), Ok(table.clone()));
        prop_assert_eq!(raw::check(&bytes, &generous()), Ok(()));
        prop_assert!(table.iter().all(|(_, value)| equivalent(value, value)));
        let _ = table.to_string();
    }

    #[test]
    fn checking_and_building_agree(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let built = Table::decode(&bytes, &generous());
        prop_assert_eq!(raw::check(&bytes, &generous()), built.map(|_| ()));
    }

    #[test]
    fn a_cut_table_is_refused_or_shorter(table in entries(value()), cut in any::<prop::sample::Index>()) {
        let bytes = encoded(&table);
        if !bytes.is_empty() {
            let cut = Table::decode(&bytes[..cut.index(bytes.len())], &generous());
            prop_assert!(cut.is_err() || cut.unwrap().len() < table.len());
        }
    }
}

#[test]
fn the_bytes_are_those_of_the_errata() {
    let table = Table::new()
        .with("a", Value::Short(-2))
        .with("b", Value::Long(1))
        .with("c", "hi")
        .with("d", vec![Value::Bool(true), Value::Void]);
    let mut out = Vec::new();
    table.encode_field(&mut out);
    let expected =
        b"\x00\x00\x00\x23\x01as\xff\xfe\x01bl\0\0\0\0\0\0\0\x01\x01cS\0\0\0\x02hi\x01dA\0\0\0\x03t\x01V";
    assert_eq!(out, expected);
}

#[test]
fn both_letters_mean_64_bits() {
    let table = Table::decode(b"\x01aL\0\0\0\0\0\0\0\x07", &generous()).unwrap();
    assert_eq!(table.get("a"), Some(&Value::Long(7)));
}

#[test]
fn a_claimed_length_beyond_the_end_is_refused() {
    for tag in [b'S', b'A', b'F', b'x'] {
        let bytes = [1, b'a', tag, 0xff, 0xff, 0xff, 0xff, 0];
        assert_eq!(Table::decode(&bytes, &generous()), Err(TableError::Truncated));
    }
    assert_eq!(
        Table::decode(&[200, b'a'], &generous()),
        Err(TableError::Truncated)
    );
    assert_eq!(
        Table::decode(b"\x01aZ", &generous()),
        Err(TableError::UnknownType(b'Z'))
    );
}

fn nested(levels: usize) -> Vec<u8> {
    let mut table = Table::new();
    for level in 1..levels {
        table = Table::new().with(
            "t",
            if level % 2 == 0 {
                Value::Table(table)
            } else {
                vec![table.into()].into()
            },
        );
    }
    encoded(&table)
}

#[test]
fn deep_nesting_is_refused() {
    let limits = Limits {
        table_depth: 4,
        ..Limits::default()
    };
    // Each second level is an array around the table, so it counts twice.
    assert!(Table::decode(&nested(2), &limits).is_ok());
    assert_eq!(Table::decode(&nested(4), &limits), Err(TableError::TooDeep(4)));
    let unlimited = Limits {
        table_depth: usize::MAX,
        ..generous()
    };
    let mut bytes = Vec::new();
    for _ in 0..20_000 {
        let mut outer = b"\x00F".to_vec();
        outer.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        bytes.splice(0..0, outer);
    }
    assert_eq!(Table::decode(&bytes, &unlimited), Err(TableError::TooDeep(256)));
    assert_eq!(raw::check(&bytes, &unlimited), Err(TableError::TooDeep(256)));
}

#[test]
fn too_many_entries_are_refused() {
    let limits = Limits {
        table_entries: 10,
        ..Limits::default()
    };
    let items = |count| encoded(&Table::new().with("a", vec![Value::Void; count]));
    assert!(Table::decode(&items(9), &limits).is_ok());
    assert_eq!(
        Table::decode(&items(10), &limits),
        Err(TableError::TooManyEntries(10))
    );
}

#[test]
fn the_first_of_two_equal_names_counts() {
    let mut table: Table = [("a", 1), ("b", 2), ("a", 3)].into_iter().collect();
    assert_eq!(table.get("a"), Some(&Value::SignedInt(1)));
    assert_eq!(
        Entries::new(&encoded(&table)).find(b"a"),
        Some(RawValue::SignedInt(1))
    );
    table.insert("a", 9);
    assert_eq!(table.remove("a"), Some(Value::SignedInt(9)));
    assert_eq!(table.len(), 1);
    assert!(!table.contains("a"));
}

#[test]
fn sorted_tables_forget_their_order() {
    let one: Table = [("b", 1), ("a", 2)].into_iter().collect();
    let two: Table = [("a", 2), ("b", 1)].into_iter().collect();
    assert_ne!(one, two);
    assert_eq!(one.sorted(), two.sorted());
}
