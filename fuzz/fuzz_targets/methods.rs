//! Arguments of any method: what decodes encodes to what decodes the same, and what does not has a text.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Limits;
use protocol::amqp::{Method, MethodId};

fuzz_target!(|bytes: &[u8]| {
    let Some((&selector, fields)) = bytes.split_first() else {
        return;
    };
    // The first byte picks a method, or one that does not exist.
    let unknown = MethodId {
        class: 60,
        method: 99,
    };
    let id = Method::ALL.get(usize::from(selector)).copied().unwrap_or(unknown);
    match Method::decode(id, fields) {
        Ok(method) => {
            let mut out = Vec::with_capacity(fields.len());
            method.encode(&mut out);
            assert_eq!(Method::decode(id, &out), Ok(method));
            if let Method::QueueDeclare(declare) = method {
                let limits = Limits::default();
                let checked = declare.arguments.check(&limits);
                assert_eq!(checked, declare.arguments.decode(&limits).map(|_| ()));
            }
        }
        Err(error) => assert!(error.exception().reply_text().len() <= 255),
    }
});
