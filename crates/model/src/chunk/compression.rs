//! What publishers compress sub-batches with, and taking it back. Readers of the stream protocol do that themselves; the broker
//! only has to where it delivers single messages, over AMQP.
//!
//! Each way is the one of RabbitMQ's clients: streams of gzip and of zstd, and the *frame* formats of snappy and LZ4.

use super::ChunkError;
use std::io::{Read, Write};

/// What one sub-batch may be once it is decompressed, in bytes (RabbitMQ 4.3: `stream.max_uncompressed_sub_entry_batch_size`).
pub const UNCOMPRESSED_MOST: usize = 64 << 20;

/// How far back a zstd stream may refer, in bytes, and so how much memory decompressing it takes beside its result: what the
/// format recommends every reader to support (RFC 8878, 3.1.1.1.2), which is also what its highest usual level needs.
const ZSTD_WINDOW_MOST: u64 = 8 << 20;

/// How the messages of a sub-batch are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy's frame format.
    Snappy,
    /// LZ4's frame format.
    Lz4,
    /// RFC 8878.
    Zstd,
}

impl Compression {
    /// Its number in the protocol, of three bits.
    pub fn to_bits(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// What has this number; 5 to 7 are reserved for what users agree on among themselves.
    pub fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::None),
            1 => Some(Self::Gzip),
            2 => Some(Self::Snappy),
            3 => Some(Self::Lz4),
            4 => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Appends what these bytes become, as clients do it: streams of gzip and zstd, the frame formats of snappy and LZ4, at the
    /// usual levels (zstd at its fastest).
    pub fn compress(self, bytes: &[u8], out: &mut Vec<u8>) {
        // Writing to memory does not fail.
        let written = match self {
            Self::None => out.write_all(bytes),
            Self::Gzip => {
                let mut to = flate2::write::GzEncoder::new(&mut *out, flate2::Compression::default());
                to.write_all(bytes).and_then(|()| to.finish()).map(|_| ())
            }
            Self::Snappy => {
                let mut to = snap::write::FrameEncoder::new(&mut *out);
                to.write_all(bytes).and_then(|()| to.flush())
            }
            Self::Lz4 => {
                let mut to = lz4_flex::frame::FrameEncoder::new(&mut *out);
                to.write_all(bytes)
                    .and_then(|()| to.finish().map_err(std::io::Error::from))
                    .map(|_| ())
            }
            Self::Zstd => {
                ruzstd::encoding::compress(bytes, &mut *out, ruzstd::encoding::CompressionLevel::Fastest);
                Ok(())
            }
        };
        debug_assert!(written.is_ok(), "{written:?}");
    }

    /// Puts into `out`, instead of what is there, what was compressed. It becomes `expected` bytes. Memory is taken as bytes
    /// come out, never on the word of a length.
    ///
    /// # Errors
    /// [`ChunkError::TooLarge`] if `expected` is above `most`, [`ChunkError::Compression`] if it cannot be decompressed, and
    /// [`ChunkError::Counts`] if it is more or less than `expected`.
    pub fn decompress(
        self,
        bytes: &[u8],
        expected: usize,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), ChunkError> {
        out.clear();
        if expected > most {
            return Err(ChunkError::TooLarge);
        }
        match self {
            Self::None => read(bytes, expected, out),
            Self::Gzip => read(flate2::read::GzDecoder::new(bytes), expected, out),
            Self::Snappy => read(snap::read::FrameDecoder::new(bytes), expected, out),
            Self::Lz4 => read(lz4_flex::frame::FrameDecoder::new(bytes), expected, out),
            Self::Zstd => {
                let decoder =
                    ruzstd::decoding::StreamingDecoder::new_with_max_window_size(bytes, ZSTD_WINDOW_MOST);
                read(decoder.map_err(|_| ChunkError::Compression)?, expected, out)
            }
        }
    }
}

/// Reads all there is, which has to be `expected` bytes: one more is asked for and no more than that.
fn read(from: impl Read, expected: usize, out: &mut Vec<u8>) -> Result<(), ChunkError> {
    let mut from = from.take(expected as u64 + 1);
    from.read_to_end(out).map_err(|_| ChunkError::Compression)?;
    if out.len() == expected {
        Ok(())
    } else {
        out.clear();
        Err(ChunkError::Counts)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const ALL: [Compression; 5] = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];

    /// As clients do it.
    pub(crate) fn compress(compression: Compression, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        compression.compress(bytes, &mut out);
        out
    }

    #[test]
    fn what_clients_compress_comes_back() {
        let mut out = b"something else".to_vec();
        for text in [&b""[..], b"x", &b"the same again and again, ".repeat(10_000)] {
            for compression in ALL {
                let bytes = compress(compression, text);
                let done = compression.decompress(&bytes, text.len(), UNCOMPRESSED_MOST, &mut out);
                assert_eq!(done, Ok(()), "{compression:?} of {} bytes", text.len());
                assert_eq!(out, text, "{compression:?}");
                assert_eq!(Compression::from_bits(compression.to_bits()), Some(compression));
            }
        }
        assert_eq!((5..8).find_map(Compression::from_bits), None);
    }

    #[test]
    fn what_other_libraries_have_compressed_is_read() {
        // From the command line tools `gzip -n`, `lz4` and `zstd`, which are libraries in C.
        let text = b"leveret leveret leveret leveret leveret";
        let gzip: &[u8] = &[
            0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xcb, 0x49, 0x2d, 0x4b, 0x2d, 0x4a,
            0x2d, 0x51, 0xc8, 0xc1, 0x4f, 0x03, 0x00, 0x85, 0x1a, 0xa2, 0x4b, 0x27, 0x00, 0x00, 0x00,
        ];
        let lz4: &[u8] = &[
            0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0x12, 0x00, 0x00, 0x00, 0x8f, 0x6c, 0x65, 0x76, 0x65,
            0x72, 0x65, 0x74, 0x20, 0x08, 0x00, 0x07, 0x50, 0x76, 0x65, 0x72, 0x65, 0x74, 0x00, 0x00, 0x00,
            0x00, 0x1e, 0xd3, 0xd4, 0x82,
        ];
        let zstd: &[u8] = &[
            0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58, 0x75, 0x00, 0x00, 0x40, 0x6c, 0x65, 0x76, 0x65, 0x72, 0x65,
            0x74, 0x20, 0x01, 0x00, 0x6b, 0x0a, 0x17, 0xe7, 0x81, 0x1a, 0x9f,
        ];
        let mut out = Vec::new();
        for (compression, bytes) in [
            (Compression::Gzip, gzip),
            (Compression::Lz4, lz4),
            (Compression::Zstd, zstd),
        ] {
            let done = compression.decompress(bytes, text.len(), UNCOMPRESSED_MOST, &mut out);
            assert_eq!((done, &out[..]), (Ok(()), &text[..]), "{compression:?}");
        }
    }

    #[test]
    fn what_becomes_more_than_it_says_costs_no_more_than_it_says() {
        let bomb = vec![0; 1 << 20];
        let mut out = Vec::new();
        for compression in ALL {
            let bytes = compress(compression, &bomb);
            let counts = compression.decompress(&bytes, 1_000, UNCOMPRESSED_MOST, &mut out);
            assert_eq!(counts, Err(ChunkError::Counts), "{compression:?}");
            assert!(out.capacity() < 64 << 10, "{compression:?}: {}", out.capacity());
            let less = compression.decompress(&bytes, bomb.len() + 1, UNCOMPRESSED_MOST, &mut out);
            assert_eq!(less, Err(ChunkError::Counts), "{compression:?}");
            out = Vec::new();
            let limit = compression.decompress(&bytes, bomb.len(), bomb.len() - 1, &mut out);
            assert_eq!(limit, Err(ChunkError::TooLarge), "{compression:?}");
            assert_eq!(out.capacity(), 0);
        }
    }

    #[test]
    fn what_is_cut_is_an_error_and_no_panic() {
        let text = b"a text that is long enough to be worth it, and long enough once more".repeat(4);
        let mut out = Vec::new();
        for compression in ALL {
            let bytes = compress(compression, &text);
            for cut in 0..bytes.len() {
                // Without its checksum at the end, it may still be complete.
                let done = compression.decompress(&bytes[..cut], text.len(), UNCOMPRESSED_MOST, &mut out);
                assert!(done.is_err() || out == text, "{compression:?} cut at {cut}");
            }
        }
    }
}
