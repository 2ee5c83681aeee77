//! Requests to the catalog, from hostile bytes: what decodes encodes to the same request, and a catalog that decides
//! it, whatever it asks for, does not panic and comes to hold what a replay of its records holds.
#![no_main]

use catalog::{Catalog, Record, Request};
use libfuzzer_sys::fuzz_target;
use model::{Machine, Outcome, Timestamp};

fuzz_target!(|bytes: &[u8]| {
    let Some(request) = Request::decode(bytes) else {
        return;
    };
    // A value may take more bytes than it was read from, never so many that it cannot be read again.
    if let Some(again) = request.encode() {
        let read = Request::decode(&again).and_then(|request| request.encode());
        assert_eq!(read.as_ref(), Some(&again));
    }
    let (mut live, mut replayed) = (Catalog::new(), Catalog::<()>::new());
    let vhost = Request::CreateVhost { name: "/".into() };
    let mut outcome = Outcome::default();
    for request in [vhost, request.clone(), request] {
        live.handle(Timestamp(0), request.asked_by(()), &mut outcome);
    }
    for (at, record) in outcome.records.into_iter().enumerate() {
        replayed.apply(at as u64 + 1, record, &mut Outcome::default());
    }
    let facts = |catalog: &Catalog<()>| catalog.view().facts().collect::<Vec<Record>>();
    assert_eq!(facts(&live), facts(&replayed));
});
