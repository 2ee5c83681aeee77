//! With `--verify`: a number and a checksum in each body, so that every message can be accounted for.

use std::sync::OnceLock;

/// What the stamp and the seal take of a body, in bytes.
pub const LENGTH: usize = 36;
const RUN_AT: usize = 16;
const PRODUCER_AT: usize = 20;
const SEQUENCE_AT: usize = 24;
const CHECKSUM_AT: usize = 32;

/// What a seal says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed {
    /// False if another run sealed it: something that lay in the queue before.
    pub ours: bool,
    pub producer: u32,
    pub sequence: u64,
}

/// A number for this run of the program, drawn once.
fn run() -> u32 {
    static RUN: OnceLock<u32> = OnceLock::new();
    *RUN.get_or_init(|| fastrand::u32(..))
}

/// The checksum of what follows the seal.
pub fn filler_crc(body: &[u8]) -> u32 {
    crc32fast::hash(body.get(LENGTH..).unwrap_or_default())
}

/// Seals the beginning of a body, whose stamp is written already. `beginning` has [`LENGTH`] bytes.
pub fn write(beginning: &mut [u8], producer: u32, sequence: u64, filler_crc: u32) {
    beginning[RUN_AT..PRODUCER_AT].copy_from_slice(&run().to_be_bytes());
    beginning[PRODUCER_AT..SEQUENCE_AT].copy_from_slice(&producer.to_be_bytes());
    beginning[SEQUENCE_AT..CHECKSUM_AT].copy_from_slice(&sequence.to_be_bytes());
    let checksum = checksum(&beginning[..CHECKSUM_AT], filler_crc);
    beginning[CHECKSUM_AT..LENGTH].copy_from_slice(&checksum.to_be_bytes());
}

/// Reads a seal; `None` if the body has none, or is not as it was.
pub fn read(body: &[u8]) -> Option<Sealed> {
    let (head, rest) = body.split_at_checked(CHECKSUM_AT)?;
    let written = rest.first_chunk::<4>()?;
    if checksum(head, filler_crc(body)) != u32::from_be_bytes(*written) {
        return None;
    }
    let number = |at: usize| {
        head.get(at..)?
            .first_chunk::<4>()
            .map(|it| u32::from_be_bytes(*it))
    };
    let sequence = head.get(SEQUENCE_AT..)?.first_chunk::<8>()?;
    Some(Sealed {
        ours: number(RUN_AT)? == run(),
        producer: number(PRODUCER_AT)?,
        sequence: u64::from_be_bytes(*sequence),
    })
}

/// The filler's checksum is the same for all messages of a size, so it is taken once and enters as a number.
fn checksum(head: &[u8], filler_crc: u32) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(head);
    hasher.update(&filler_crc.to_be_bytes());
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_changed_byte_breaks_the_seal() {
        let mut body: Vec<u8> = (0..100).collect();
        let filler = filler_crc(&body);
        write(&mut body[..LENGTH], 7, 1 << 40, filler);
        let sealed = Sealed {
            ours: true,
            producer: 7,
            sequence: 1 << 40,
        };
        assert_eq!(read(&body), Some(sealed));
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 0x10;
            assert_eq!(read(&damaged), None, "byte {at}");
        }
        assert_eq!(read(&body[..99]), None);
        assert_eq!(read(&[]), None);
    }
}
