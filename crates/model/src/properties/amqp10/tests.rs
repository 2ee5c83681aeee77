use super::raw::{
    put_boolean, put_descriptor, put_fixed, put_list, put_map, put_null, put_str, put_symbol, put_uint,
};
use super::*;
use crate::limits::Limits;
use crate::properties::{BasicProperties, PropertiesBuilder};
use crate::route::RouteBuf;
use crate::table::{Table, Value};
use proptest::prelude::*;
use std::borrow::Cow;

fn written(exchange: &str, key: &str, properties: &PropertiesBuilder, body: &[u8]) -> Vec<u8> {
    let route = RouteBuf::new(exchange.as_bytes(), key.as_bytes());
    let mut out = Vec::new();
    write(
        route.as_route(),
        BasicProperties::new(&properties.encode()),
        body,
        &mut out,
    );
    out
}

fn back(bytes: &[u8]) -> FromStream<'_> {
    read(bytes, 7, &Limits::default())
}

/// The headers that came back, without the offset.
fn headers(it: &FromStream<'_>) -> Table {
    let bytes = it.properties.encode();
    let mut table = BasicProperties::new(&bytes)
        .headers_table(&Limits::STORED)
        .unwrap();
    assert_eq!(table.remove("x-stream-offset"), Some(Value::Long(7)));
    table
}

#[test]
fn a_message_of_amqp_0_9_1_always_had_these_bytes() {
    let properties = PropertiesBuilder::new()
        .delivery_mode(2)
        .priority(5)
        .message_id("m")
        .kind("t")
        .headers(&Table::new().with("a", 1_i64).with("x-b", true));
    let bytes = written("ex", "k", &properties, b"hi");
    let mut expected = b"\x00\x53\x70\xc0\x06\x04\x41\x50\x05\x40\x41".to_vec();
    expected.extend_from_slice(
        b"\x00\x53\x72\xc1\x3a\x08\xa3\x0ax-exchange\xa1\x02ex\xa3\x0dx-routing-key\xa1\x01k",
    );
    expected.extend_from_slice(b"\xa3\x0cx-basic-type\xa1\x01t\xa3\x03x-b\x41");
    expected.extend_from_slice(b"\x00\x53\x73\xc0\x04\x01\xa1\x01m");
    expected.extend_from_slice(b"\x00\x53\x74\xc1\x0d\x02\xa1\x01a\x81\0\0\0\0\0\0\0\x01");
    expected.extend_from_slice(b"\x00\x53\x75\xa0\x02hi");
    assert_eq!(bytes, expected, "{bytes:x?}");
}

#[test]
fn a_plain_message_of_a_stream_client_is_a_durable_one() {
    // What the clients write if they are given bytes only.
    let it = back(b"\x00\x53\x75\xa0\x05hello");
    assert_eq!(it.body, Cow::Borrowed(b"hello"));
    assert_eq!((it.exchange, it.routing_key), (None, None));
    assert_eq!(headers(&it), Table::new());
    assert!(BasicProperties::new(&it.properties.encode()).persistent());
}

#[test]
fn what_is_no_message_is_a_body() {
    for bytes in [
        &b""[..],
        b"hello",
        b"\x00",
        b"\x00\x53\x75\xa0\x05hell",
        b"\x00\x53\x75\xa1\x01x",
    ] {
        let it = back(bytes);
        assert_eq!(it.body, Cow::Borrowed(bytes));
        assert_eq!(headers(&it), Table::new());
    }
}

#[test]
fn bodies_that_are_no_data_go_through_as_they_are_encoded() {
    let value = b"\x00\x53\x77\xa1\x02hi\x00\x53\x78\xc1\x01\x00";
    let it = back(value);
    assert_eq!(it.body, Cow::Borrowed(value));
    let bytes = it.properties.encode();
    assert_eq!(BasicProperties::new(&bytes).kind(), Some(AMQP10_TYPE));
    let again = written("", "q", &it.properties, &it.body);
    assert!(again.ends_with(value));
    assert_eq!(back(&again).body, it.body);
    // Somebody who only says so has a body like others.
    let liar = PropertiesBuilder::new().kind(AMQP10_TYPE);
    let bytes = written("", "q", &liar, b"no section");
    let it = back(&bytes);
    assert_eq!(it.body, Cow::Borrowed(b"no section"));
    assert_eq!(
        BasicProperties::new(&it.properties.encode()).kind(),
        Some(AMQP10_TYPE)
    );
}

#[test]
fn several_pieces_of_data_are_one_body() {
    let it = back(b"\x00\x53\x75\xa0\x02he\x00\x53\x75\xa0\x03llo\x00\x53\x78\xc1\x01\x00");
    assert_eq!(it.body, Cow::Borrowed(b"hello"));
}

#[test]
fn ids_of_all_types_come_out() {
    let uuid = *b"\x12\x34\x56\x78\x9a\xbc\xde\xf0\x01\x23\x45\x67\x89\xab\xcd\xef";
    let text = b"urn:uuid:12345678-9abc-def0-0123-456789abcdef";
    assert_eq!(uuid_of(text), Some(uuid));
    assert_eq!(text_of(uuid), text);
    for not in [
        &text[..44],
        b"urn:uuid:12345678-9ABC-def0-0123-456789abcdef",
        b"12345678",
    ] {
        assert_eq!(uuid_of(not), None);
    }
    let with_ids = |id: &[u8]| {
        let mut out = Vec::new();
        put_descriptor(&mut out, descriptor::PROPERTIES);
        put_list(&mut out, |out| {
            out.extend_from_slice(id);
            (0..4).for_each(|_| put_null(out));
            out.extend_from_slice(id);
            6
        });
        let it = back(&out);
        let bytes = it.properties.encode();
        let read = BasicProperties::new(&bytes);
        assert_eq!(read.message_id(), read.correlation_id());
        (read.message_id().map(<[u8]>::to_vec), headers(&it))
    };
    let mut code = vec![0x98];
    code.extend_from_slice(&uuid);
    assert_eq!(with_ids(&code), (Some(text.to_vec()), Table::new()));
    assert_eq!(with_ids(b"\x53\x2a"), (Some(b"42".to_vec()), Table::new()));
    let binary = Value::Binary(b"ab".to_vec());
    let expected = Table::new()
        .with("x-correlation-id", binary.clone())
        .with("x-message-id", binary);
    assert_eq!(with_ids(b"\xa0\x02ab"), (None, expected));
}

#[test]
fn annotations_that_begin_with_x_are_headers_and_others_are_not() {
    let mut out = Vec::new();
    put_descriptor(&mut out, descriptor::HEADER);
    put_list(&mut out, |out| {
        put_boolean(out, false);
        put_null(out);
        put_uint(out, 300);
        3
    });
    put_descriptor(&mut out, descriptor::MESSAGE_ANNOTATIONS);
    put_map(&mut out, |out| {
        for (name, put) in [
            (
                "x-opt-b",
                (|out| put_fixed(out, 0x83, &5_000_i64.to_be_bytes())) as fn(&mut Vec<u8>),
            ),
            ("other", |out| put_boolean(out, true)),
            ("x-basic-priority", |out| put_fixed(out, 0x50, &[3])),
            ("x-basic-unknown", |out| put_boolean(out, true)),
            ("x-cc", |out| {
                put_list(out, |out| {
                    put_str(out, b"one");
                    1
                })
            }),
            // As other implementations write lists of one type.
            ("x-array", |out| {
                out.extend_from_slice(b"\xe0\x04\x02\x53\x01\x02")
            }),
        ] {
            put_symbol(out, name.as_bytes());
            put(out);
        }
        12
    });
    out.extend_from_slice(b"\x00\x53\x75\xa0\x00");
    let it = back(&out);
    let expected = Table::new()
        .with("CC", Value::Array(vec![Value::LongStr(b"one".to_vec())]))
        .with("x-array", Value::Array(vec![Value::Long(1), Value::Long(2)]))
        .with("x-opt-b", Value::Timestamp(5));
    assert_eq!(headers(&it), expected);
    let bytes = it.properties.encode();
    let read = BasicProperties::new(&bytes);
    assert_eq!((read.delivery_mode(), read.priority()), (Some(1), Some(3)));
    assert_eq!(read.expiration(), Some(&b"300"[..]));
}

#[test]
fn a_count_that_lies_costs_nothing() {
    // Four thousand million nulls in an array: their type has no bytes.
    let mut out = b"\x00\x53\x74\xc1\x0f\x02\xa1\x01a\xf0\0\0\0\x05\xff\xff\xff\xff\x40".to_vec();
    out[4] = 14;
    let it = back(&out);
    match headers(&it).get("a") {
        Some(Value::Array(items)) => assert!(items.len() <= Limits::default().table_entries),
        other => panic!("{other:?}"),
    }
}

#[test]
fn headers_beyond_limits_are_left_out_and_the_message_comes() {
    let mut deep = Value::Long(1);
    (0..40).for_each(|_| deep = Value::Array(vec![deep.clone()]));
    let many: Table = (0..3_000_i64).map(|n| (format!("n{n}"), n)).collect();
    let mut table = Table::new().with("x-deep", deep).with("first", 1_i64);
    many.iter()
        .for_each(|(name, value)| table.push(name, value.clone()));
    let properties = PropertiesBuilder::new().headers(&table);
    let bytes = written("", "q", &properties, b"body");
    let it = back(&bytes);
    assert_eq!(it.body, Cow::Borrowed(b"body"));
    let headers = headers(&it);
    assert_eq!(headers.get("first"), Some(&Value::Long(1)));
    assert!(headers.len() < 1_100, "{}", headers.len());
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        5 => "[a-zA-Z0-9 é]{0,12}",
        1 => "[a-z]{256,300}",
        1 => Just("urn:uuid:12345678-9abc-def0-0123-456789abcdef".to_owned()),
    ]
}

fn simple() -> impl Strategy<Value = Value> {
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
        (0_u64..1 << 50).prop_map(Value::Timestamp),
        prop::collection::vec(any::<u8>(), 0..10).prop_map(Value::Binary),
        text().prop_map(|text| Value::LongStr(text.into_bytes())),
        Just(Value::Void),
    ]
}

fn any_value() -> impl Strategy<Value = Value> {
    simple().prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec(("[a-z]{0,5}", inner), 0..4)
                .prop_map(|t| Value::Table(t.into_iter().collect())),
        ]
    })
}

/// What a value is after both ways: long texts count as binary.
fn there_and_back(value: &Value) -> Value {
    match value {
        Value::LongStr(bytes) if !is_short_text(bytes) => Value::Binary(bytes.clone()),
        Value::Array(items) => Value::Array(items.iter().map(there_and_back).collect()),
        Value::Table(table) => {
            let entries = table.iter().map(|(name, value)| (name, there_and_back(value)));
            Value::Table(entries.collect())
        }
        other => other.clone(),
    }
}

prop_compose! {
    fn some_headers()(
        plain in prop::collection::vec(("[a-d]{0,3}", any_value()), 0..4),
        x in prop::collection::vec(("x-[e-h]{0,3}", any_value()), 0..4),
        cc in prop::option::of(prop::collection::vec("[a-z]{0,4}", 0..3)),
    ) -> Table {
        let mut table = Table::new();
        for (name, value) in plain.into_iter().chain(x) {
            table.insert(name, value);
        }
        if let Some(cc) = cc {
            let keys = cc.into_iter().map(|key| Value::LongStr(key.into_bytes()));
            table.insert("CC", Value::Array(keys.collect()));
        }
        table
    }
}

proptest! {
    #[test]
    fn what_has_a_place_in_amqp_1_0_comes_back(
        strings in prop::collection::vec(prop::option::of("[a-zA-Z0-9:é-]{0,20}"), 8),
        uuid in prop::option::of(any::<[u8; 16]>()),
        table in some_headers(),
        mode in prop::option::of(1_u8..3),
        priority in any::<Option<u8>>(),
        ttl in prop::option::of(0_u64..crate::LONGEST_MS),
        seconds in prop::option::of(0_u64..1 << 50),
        (exchange, key) in ("[a-z]{0,9}", "[a-z.]{0,300}"),
        body in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let setters: [fn(PropertiesBuilder, &str) -> PropertiesBuilder; 8] = [
            |b, s| b.content_type(s), |b, s| b.content_encoding(s), |b, s| b.correlation_id(s),
            |b, s| b.reply_to(s), |b, s| b.message_id(s), |b, s| b.kind(s), |b, s| b.user_id(s), |b, s| b.app_id(s),
        ];
        let mut it = PropertiesBuilder::new();
        for (string, set) in strings.iter().zip(setters) {
            if let Some(string) = string {
                it = set(it, string);
            }
        }
        if let Some(uuid) = uuid {
            it = it.correlation_id(text_of(uuid));
        }
        it = match priority {
            Some(priority) => it.priority(priority),
            None => it,
        };
        it = match ttl {
            Some(ttl) => it.expiration(ttl.to_string()),
            None => it,
        };
        it = match seconds {
            Some(seconds) => it.timestamp(seconds),
            None => it,
        };
        // No mode is as good as 1 when it goes in.
        let sent = match mode {
            Some(mode) => it.clone().delivery_mode(mode),
            None => it.clone(),
        };
        let key: String = key.chars().take(255).collect();
        let bytes = written(&exchange, &key, &sent.headers(&table), &body);
        let came = read(&bytes, 1 << 40, &Limits::default());
        prop_assert_eq!(came.exchange, Some(exchange.as_bytes()));
        prop_assert_eq!(came.routing_key, Some(key.as_bytes()));
        prop_assert_eq!(&*came.body, &body[..]);
        // The naive mapping: what has no place is gone, the rest is sorted.
        let kept = table.iter().filter(|(name, value)| {
            name.starts_with(b"x-") || *name == b"CC" || !matches!(value, Value::Array(_) | Value::Table(_))
        });
        let mut expected: Table = kept.map(|(name, value)| (name, there_and_back(value))).collect();
        expected.insert("x-stream-offset", Value::Long(1 << 40));
        let expected = it.delivery_mode(mode.unwrap_or(1)).headers(&expected.sorted());
        prop_assert_eq!(came.properties, expected);
    }

    #[test]
    fn whatever_bytes_are_there_something_is_delivered(
        start in prop::sample::select(vec![&b""[..], b"\x00\x53\x70", b"\x00\x53\x72", b"\x00\x53\x73\xd0", b"\x00\x53\x74\xc1"]),
        bytes in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let bytes = [start, &bytes].concat();
        let it = back(&bytes);
        prop_assert!(it.body.len() <= bytes.len());
        // And it may be published again.
        written("", "", &it.properties, &it.body);
    }

    #[test]
    fn cut_messages_are_bodies(table in some_headers(), body in prop::collection::vec(any::<u8>(), 1..20)) {
        let whole = written("", "q", &PropertiesBuilder::new().headers(&table), &body);
        for cut in 0..whole.len() {
            let it = back(&whole[..cut]);
            // Between two sections it is a message without a body.
            prop_assert!(it.body.is_empty() || it.body == Cow::Borrowed(&whole[..cut]));
        }
    }
}
