//! Properties: no getter panics on any bytes, and what passes the check reads back as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Limits;
use model::properties::{BasicProperties, PropertiesBuilder};
use model::table::Table;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let unchecked = BasicProperties::new(bytes);
    let builder = PropertiesBuilder::from_properties(unchecked);
    let headers = unchecked.headers_table(&limits);
    assert_eq!(unchecked.persistent(), unchecked.delivery_mode() == Some(2));
    if BasicProperties::check(bytes, &limits).is_err() {
        let _ = unchecked.with_headers(&Table::new());
        return;
    }
    assert_eq!(builder.encode(), bytes);
    assert!(headers.is_ok());
    let headers = Table::new().with("x", 1);
    let rewritten = unchecked.with_headers(&headers);
    assert_eq!(
        rewritten.as_deref(),
        Some(builder.headers(&headers).encode().as_slice())
    );
});
