//! What several nodes say to each other of one catalog, from hostile bytes: decisions, contents and frames. What decodes encodes
//! to the same, and a catalog that takes it over does not panic.
#![no_main]

use broker::groups::catalog::Frame;
use catalog::shared::{Contents, Decided, Shared};
use libfuzzer_sys::fuzz_target;
use model::Journaled;

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 3 {
        0 => {
            if let Some(decided) = Decided::decode(bytes) {
                same(&decided);
                Shared::default().apply(decided);
            }
        }
        1 => {
            if let Some(contents) = Contents::decode(bytes) {
                // Facts that contradict each other may be left out, but only once.
                let mut again = Vec::new();
                Shared::of(&contents).contents().encode(&mut again);
                if let Some(read) = Contents::decode(&again) {
                    same(&read);
                }
            }
        }
        _ => {
            if let Some(frame) = Frame::decode(&bytes.to_vec().into()) {
                assert_eq!(frame.encode(), bytes);
            }
        }
    }
});

/// Encodes and reads it, and the same once more: both times the same bytes.
fn same<T: Journaled>(value: &T) {
    let (mut once, mut twice) = (Vec::new(), Vec::new());
    value.encode(&mut once);
    if let Some(read) = T::decode(&once) {
        read.encode(&mut twice);
        assert_eq!(once, twice);
    }
}
