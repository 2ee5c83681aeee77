//! Records of what deduplication exchanges remember, from hostile bytes: what decodes encodes to the same record, and a
//! machine that replays it, before keys pass and it is written down again, does not panic and holds no more than it
//! may.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{DeduplicationKey, Journaled, Machine, Outcome, QueueId, Timestamp};
use queue::seen::{Bearer, Record, Request, Seen, SeenSettings};

fuzz_target!(|bytes: &[u8]| {
    let Some(record) = Record::decode(bytes) else {
        return;
    };
    let mut again = Vec::new();
    record.encode(&mut again);
    assert_eq!(Record::decode(&again).as_ref(), Some(&record));
    let settings = SeenSettings {
        size: 4,
        lifetime_ms: Some(10),
    };
    let mut seen = Seen::new(settings);
    let mut outcome = Outcome::default();
    seen.apply(1, record, &mut outcome);
    seen.recovered(true);
    seen.configure(settings);
    for at in 0..8 {
        let key = DeduplicationKey(at % 5);
        let lifetime_ms = (at % 2 == 0).then_some(u64::MAX);
        // Some of them have not arrived yet, one has, and one is refused.
        let by = (at % 3 == 0).then_some(Bearer {
            queue: QueueId(1),
            seq: at as u64,
        });
        let request = Request::See { key, lifetime_ms, by };
        let now = Timestamp(at as u64 * 3);
        seen.handle(now, request, &mut outcome);
        match (at, by) {
            (3, Some(by)) => seen.handle(now, Request::Arrived { key, by }, &mut outcome),
            (4, _) => seen.handle(now, Request::Refused { key }, &mut outcome),
            _ => {}
        }
        assert!(seen.len() <= 4);
    }
    seen.handle(Timestamp(0), Request::Write, &mut outcome);
    seen.handle(Timestamp(0), Request::WriteAll, &mut outcome);
    seen.handle(Timestamp(0), Request::Restate, &mut outcome);
});
