//! Buffers that a connection borrows while it has something to read or to write, one pool a thread.
//!
//! An idle connection holds no buffer at all: a thousand of them must cost next to nothing. Fresh pages are dear,
//! so what is given back is used again, up to a bound.

use std::cell::RefCell;

/// The size of a read buffer, in bytes: 128 KiB, and room for the largest frame of RabbitMQ's default size with the
/// eight bytes too many that it tolerates.
pub const READ_BYTES: usize = 132 * 1024;

/// How many buffers of each kind a thread keeps.
const KEPT: usize = 8;

/// A larger buffer is not kept, in bytes: it was for an exceptional message.
const LARGEST: usize = 256 * 1024;

#[derive(Default)]
struct Pool {
    reads: Vec<Vec<u8>>,
    writes: Vec<Vec<u8>>,
}

thread_local! {
    static POOL: RefCell<Pool> = RefCell::default();
}

/// A buffer to read into: its length is its size, at least [`READ_BYTES`] and at least `bytes`.
pub fn take_read(bytes: usize) -> Vec<u8> {
    if bytes > READ_BYTES {
        return vec![0; bytes];
    }
    POOL.with_borrow_mut(|pool| pool.reads.pop())
        .unwrap_or_else(|| vec![0; READ_BYTES])
}

/// Gives a read buffer back.
pub fn give_read(buffer: Vec<u8>) {
    if buffer.len() == READ_BYTES {
        POOL.with_borrow_mut(|pool| keep(&mut pool.reads, buffer));
    }
}

/// An empty buffer to write into.
pub fn take_write() -> Vec<u8> {
    POOL.with_borrow_mut(|pool| pool.writes.pop()).unwrap_or_default()
}

/// Gives a write buffer back, whatever is in it.
pub fn give_write(mut buffer: Vec<u8>) {
    if buffer.capacity() == 0 || buffer.capacity() > LARGEST {
        return;
    }
    buffer.clear();
    POOL.with_borrow_mut(|pool| keep(&mut pool.writes, buffer));
}

fn keep(kept: &mut Vec<Vec<u8>>, buffer: Vec<u8>) {
    if kept.len() < KEPT {
        kept.push(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_huge_ones_do_not() {
        let mut read = take_read(0);
        assert_eq!(read.len(), READ_BYTES);
        read[0] = 7;
        give_read(read);
        assert_eq!(take_read(100)[0], 7);
        assert_eq!(take_read(READ_BYTES + 1).len(), READ_BYTES + 1);
        let mut write = Vec::with_capacity(LARGEST + 1);
        write.push(1);
        give_write(write);
        assert_eq!(take_write().capacity(), 0);
    }
}
