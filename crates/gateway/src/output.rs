//! What a connection has to write, and how much of it has left.

use crate::pool;

/// Deliveries are written into the buffer until it holds so many bytes; the rest waits as blocks that are shared with the
/// queue.
pub const PIECE: usize = 64 * 1024;

/// With so many bytes unwritten nothing more is read: the client asks faster than it listens.
pub const BACKLOG: usize = 4 * 1024 * 1024;

/// Bytes on their way to the socket. Borrows its memory from the thread's pool while there are some.
#[derive(Debug, Default)]
pub struct Output {
    /// All that was put in since the buffer was last empty.
    bytes: Vec<u8>,
    written: usize,
}

impl Output {
    /// Where to append.
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        if self.bytes.capacity() == 0 {
            self.bytes = pool::take_write();
        }
        &mut self.bytes
    }

    /// What has not left yet.
    pub fn unwritten(&self) -> &[u8] {
        &self.bytes[self.written..]
    }

    /// How many bytes have not left yet.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.written
    }

    /// True if everything has left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How long the buffer may get when deliveries are written into it.
    pub fn limit(&self) -> usize {
        self.written + PIECE
    }

    /// So many bytes have left.
    pub fn wrote(&mut self, count: usize) {
        self.written += count;
        if self.is_empty() {
            self.clear();
        } else if self.written >= 4 * PIECE && self.written >= self.bytes.len() / 2 {
            self.bytes.drain(..self.written);
            self.written = 0;
        }
    }

    /// Forgets everything and gives the memory back.
    pub fn clear(&mut self) {
        self.written = 0;
        pool::give_write(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_stays_in_order() {
        let mut output = Output::default();
        let all: Vec<u8> = (0..PIECE * 9).map(|n| (n % 251) as u8).collect();
        output.bytes().extend_from_slice(&all);
        let mut left = Vec::new();
        while !output.is_empty() {
            let count = output.unwritten().len().min(10_007);
            left.extend_from_slice(&output.unwritten()[..count]);
            output.wrote(count);
            if left.len() == 10_007 * 30 {
                output.bytes().extend_from_slice(b"tail");
            }
        }
        assert!(left.starts_with(&all) && left.ends_with(b"tail") && left.len() == all.len() + 4);
        assert_eq!(output.written, 0);
    }
}
