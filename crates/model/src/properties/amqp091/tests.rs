use super::*;
use crate::table::Value;
use proptest::prelude::*;

fn limits() -> Limits {
    Limits::default()
}

fn string() -> impl Strategy<Value = Option<Vec<u8>>> {
    prop::option::of(prop::collection::vec(any::<u8>(), 0..30))
}

prop_compose! {
    fn builders()(
        strings in prop::collection::vec(string(), 10),
        headers in prop::option::of(prop::collection::vec((".{0,8}", any::<i64>()), 0..4)),
        mode in any::<Option<u8>>(),
        priority in any::<Option<u8>>(),
        timestamp in any::<Option<u64>>(),
    ) -> PropertiesBuilder {
        let setters: [fn(PropertiesBuilder, Vec<u8>) -> PropertiesBuilder; 10] = [
            |b, s| b.content_type(s), |b, s| b.content_encoding(s), |b, s| b.correlation_id(s),
            |b, s| b.reply_to(s), |b, s| b.expiration(s), |b, s| b.message_id(s), |b, s| b.kind(s),
            |b, s| b.user_id(s), |b, s| b.app_id(s), |b, s| b.cluster_id(s),
        ];
        let mut builder = PropertiesBuilder::new();
        for (string, set) in strings.into_iter().zip(setters) {
            if let Some(string) = string {
                builder = set(builder, string);
            }
        }
        if let Some(headers) = headers {
            builder = builder.headers(&headers.into_iter().collect());
        }
        if let Some(mode) = mode {
            builder = builder.delivery_mode(mode);
        }
        if let Some(priority) = priority {
            builder = builder.priority(priority);
        }
        match timestamp {
            Some(seconds) => builder.timestamp(seconds),
            None => builder,
        }
    }
}

/// Every getter; must never panic, whatever the bytes.
fn read_all(properties: BasicProperties<'_>) -> PropertiesBuilder {
    let _ = properties.headers_table(&limits());
    let _ = properties.persistent();
    PropertiesBuilder::from_properties(properties)
}

proptest! {
    #[test]
    fn what_is_written_reads_back(builder in builders()) {
        let bytes = builder.encode();
        let properties = BasicProperties::check(&bytes, &limits()).unwrap();
        prop_assert_eq!(read_all(properties), builder);
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        read_all(BasicProperties::new(&bytes));
        if let Ok(properties) = BasicProperties::check(&bytes, &limits()) {
            prop_assert_eq!(read_all(properties).encode(), bytes);
        }
    }

    #[test]
    fn cut_and_extended_properties_are_refused(builder in builders(), cut in any::<prop::sample::Index>()) {
        let mut bytes = builder.encode();
        let cut = &bytes[..cut.index(bytes.len())];
        read_all(BasicProperties::new(cut));
        prop_assert!(BasicProperties::check(cut, &limits()).is_err());
        bytes.push(0);
        prop_assert_eq!(BasicProperties::check(&bytes, &limits()), Err(PropertiesError::TrailingBytes));
    }

    #[test]
    fn rewriting_headers_leaves_the_rest(builder in builders(), name in ".{1,8}") {
        let headers = Table::new().with(name, 7);
        let bytes = BasicProperties::new(&builder.encode()).with_headers(&headers).unwrap();
        prop_assert_eq!(&bytes, &builder.clone().headers(&headers).encode());
        let none = BasicProperties::new(&bytes).with_headers(&Table::new()).unwrap();
        prop_assert_eq!(BasicProperties::check(&none, &limits()).unwrap().headers(), None);
        prop_assert_eq!(BasicProperties::new(&none).with_headers(&headers).unwrap(), bytes);
    }
}

#[test]
fn the_bytes_are_those_of_the_specification() {
    let headers = Table::new().with("a", Value::Bool(true));
    let builder = PropertiesBuilder::new()
        .content_type("x/y")
        .headers(&headers)
        .delivery_mode(2)
        .cluster_id("c");
    assert_eq!(builder.encode(), b"\xb0\x04\x03x/y\0\0\0\x04\x01at\x01\x02\x01c");
    assert_eq!(PropertiesBuilder::new().encode(), b"\0\0");
    assert_eq!(PropertiesBuilder::new().delivery_mode(2).encode(), b"\x10\0\x02");
}

#[test]
fn the_delivery_mode_is_found_behind_everything_before_it() {
    let builder = PropertiesBuilder::new().delivery_mode(2).priority(3);
    assert_eq!(BasicProperties::new(&builder.encode()).delivery_mode(), Some(2));
    let builder = builder.content_type("a").headers(&Table::new().with("h", "v"));
    assert_eq!(BasicProperties::new(&builder.encode()).delivery_mode(), Some(2));
    assert_eq!(BasicProperties::new(b"\0\0").delivery_mode(), None);
    assert_eq!(BasicProperties::new(b"\x10\0").delivery_mode(), None);
    assert_eq!(BasicProperties::new(b"\x80\0\x02aa").delivery_mode(), None);
    assert_eq!(BasicProperties::new(b"").delivery_mode(), None);
}

#[test]
fn unknown_flags_and_bad_headers_are_refused() {
    assert_eq!(
        BasicProperties::check(b"\0\x01", &limits()),
        Err(PropertiesError::UnknownFlag)
    );
    assert_eq!(
        BasicProperties::check(b"\0\x02", &limits()),
        Err(PropertiesError::UnknownFlag)
    );
    assert_eq!(
        BasicProperties::check(b"\0", &limits()),
        Err(PropertiesError::Truncated)
    );
    assert_eq!(
        BasicProperties::check(b"\x20\0\0\0\0\x03\x01aZ", &limits()),
        Err(PropertiesError::Headers(TableError::UnknownType(b'Z')))
    );
    assert_eq!(
        BasicProperties::check(b"\x20\0\xff\xff\xff\xff", &limits()),
        Err(PropertiesError::Truncated)
    );
}
