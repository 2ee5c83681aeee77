//! How targets make something well-formed, or nearly so, of their input.

pub mod group_items;
pub mod handle_words;

/// Takes numbers and bytes from the input, zeros after its end.
pub struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    /// All of the input.
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        first
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Up to 255 bytes, with their number before them.
    pub fn bytes(&mut self) -> &'a [u8] {
        let count = usize::from(self.byte()).min(self.0.len());
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        head
    }

    /// The properties of a message: none, one, or anything.
    pub fn properties(&mut self, bits: u8) -> &'a [u8] {
        match bits & 3 {
            0 => &[0, 0],
            1 => &[0x10, 0, 2],
            _ => self.bytes(),
        }
    }

    /// Overwrites up to three of the bytes, of which there is one at least, and appends what is left of the input.
    pub fn spoil(mut self, bytes: &mut Vec<u8>) {
        for _ in 0..self.byte() % 4 {
            let at = usize::from(u16::from_be_bytes([self.byte(), self.byte()])) % bytes.len();
            bytes[at] = self.byte();
        }
        bytes.extend_from_slice(self.0);
    }
}
