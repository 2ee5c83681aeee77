//! Properties: no getter panics on any bytes, and what passes the check reads back as it was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Limits;
use model::properties::{Properties, PropertiesBuilder, with_headers};
use model::table::Table;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits::default();
    let unchecked = Properties::new(bytes);
    let builder = PropertiesBuilder::from_properties(unchecked);
    let headers = unchecked.headers_table(&limits);
    assert_eq!(unchecked.persistent(), unchecked.delivery_mode() == Some(2));
    if Properties::check(bytes, &limits).is_err() {
        let _ = with_headers(bytes, &Table::new());
        return;
    }
    assert_eq!(builder.encode(), bytes);
    assert!(headers.is_ok());
    let headers = Table::new().with("x", 1);
    let rewritten = with_headers(bytes, &headers);
    assert_eq!(
        rewritten.as_deref(),
        Some(builder.headers(&headers).encode().as_slice())
    );
});
