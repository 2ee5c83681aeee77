//! Where an entry lies, and what it looks like there.

use crc32fast::Hasher;

/// Where one entry of an owner lies. Plain numbers, to be stored by whoever needs to find the entry again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the owner's file.
    pub segment: u32,
    /// Byte in that file where the entry begins.
    pub offset: u32,
    /// Bytes of the entry.
    pub length: u32,
}

/// Bytes that each entry takes on disk besides its content: length and checksum, behind it.
pub(crate) const TRAILER: usize = 8;

impl Place {
    /// Bytes on disk.
    pub(crate) fn disk_bytes(&self) -> u64 {
        u64::from(self.length) + TRAILER as u64
    }

    /// Byte behind the entry.
    pub(crate) fn end(&self) -> u64 {
        u64::from(self.offset) + self.disk_bytes()
    }

    fn hasher(&self, owner: u64) -> Hasher {
        let mut hasher = Hasher::new();
        hasher.update(&owner.to_le_bytes());
        for number in [self.segment, self.offset, self.length] {
            hasher.update(&number.to_le_bytes());
        }
        hasher
    }

    /// What stands behind the entry. It says whose entry it is and where it belongs, so that a misdirected write or a
    /// place from elsewhere is noticed.
    pub(crate) fn trailer<'a>(&self, owner: u64, parts: impl Iterator<Item = &'a [u8]>) -> [u8; TRAILER] {
        let mut hasher = self.hasher(owner);
        for part in parts {
            hasher.update(part);
        }
        let mut trailer = [0; TRAILER];
        trailer[..4].copy_from_slice(&self.length.to_le_bytes());
        trailer[4..].copy_from_slice(&hasher.finalize().to_le_bytes());
        trailer
    }

    /// The content, if `bytes` are this entry as it was written.
    pub(crate) fn verify<'a>(&self, owner: u64, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (content, trailer) = bytes.split_at_checked(self.length as usize)?;
        (trailer == self.trailer(owner, std::iter::once(content))).then_some(content)
    }
}
