//! A stream's files of hostile bytes: opening, finding and reading them is an answer or an error, never a panic, and gives out
//! nothing that has no checksum.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::Arc;
use storage::StreamFiles;
use storage::faulty::FaultyFs;

fuzz_target!(|input: (Vec<u8>, Vec<u8>, Vec<u8>)| {
    let (first, second, index) = input;
    let fs = FaultyFs::new();
    let dir = Path::new("/s");
    let Ok(whole) = StreamFiles::open(Arc::new(fs.clone()), dir, 1) else {
        return;
    };
    drop(whole);
    fs.plant(&dir.join("00000000000000000000.chunks"), first);
    fs.plant(&dir.join("00000000000000000005.chunks"), second);
    fs.plant(&dir.join("00000000000000000005.index"), index);
    let Ok(files) = StreamFiles::open(Arc::new(fs), dir, 1) else {
        return;
    };
    let found = [files.find(3), files.find_time(9), files.segment_start(5)];
    for mut cursor in found.into_iter().flatten().flatten() {
        for _ in 0..20 {
            match files.read(&mut cursor, u64::MAX, 1 << 16) {
                Ok(page) if page.is_empty() => break,
                Ok(_) => {}
                Err(_) if files.skip(&mut cursor).is_ok() => {}
                Err(_) => break,
            }
        }
    }
});
