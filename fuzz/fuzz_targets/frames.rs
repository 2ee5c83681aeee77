//! A stream of frames, cut anywhere: never a panic, never a frame beyond the limit, and the same frames whether
//! the bytes come at once or in two pieces. Each channel's frames go through its assembler.
#![no_main]

use libfuzzer_sys::fuzz_target;
use model::Limits;
use protocol::amqp::{Assembler, Frame, next_frame};

const FRAME_MAX: u32 = 4096;

fn frame_at(bytes: &[u8]) -> Option<(Frame<'_>, usize)> {
    match next_frame(bytes, FRAME_MAX) {
        Ok(found) => found,
        Err(error) => {
            assert!(error.exception().reply_text().len() <= 255);
            None
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        message_bytes: 1000,
        ..Limits::default()
    };
    let mut assemblers = [Assembler::new(), Assembler::new()];
    let mut at = 0;
    while let Some((frame, used)) = frame_at(&bytes[at..]) {
        assert!(frame.payload.len() <= FRAME_MAX as usize && used <= bytes.len() - at);
        // A frame is complete exactly when its last byte is there.
        assert_eq!(next_frame(&bytes[at..at + used - 1], FRAME_MAX), Ok(None));
        at += used;
        let assembler = &mut assemblers[usize::from(frame.channel & 1)];
        if let Err(exception) = assembler.feed(&frame, &limits) {
            assert!(exception.reply_text().len() <= 255);
            break;
        }
        assert!(assembler.held_bytes() <= 2 * (bytes.len() + 1000));
    }
});
