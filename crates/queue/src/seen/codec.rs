//! Records as bytes. The first octet says which record and in which version, then each key with 32 octets: number, key,
//! end, little-endian.

use super::{Record, SeenKey};
use model::{DeduplicationKey, Journaled};

const SEEN: u8 = 1;
const RESTATED: u8 = 2;

/// Octets of a key.
const KEY_BYTES: usize = 32;

impl Journaled for Record {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, keys) = match self {
            Self::Seen(keys) => (SEEN, keys),
            Self::Restated(keys) => (RESTATED, keys),
        };
        out.reserve(1 + KEY_BYTES * keys.len());
        out.push(kind);
        for seen in keys {
            out.extend_from_slice(&seen.number.to_le_bytes());
            out.extend_from_slice(&seen.key.0.to_le_bytes());
            out.extend_from_slice(&seen.until_ms.to_le_bytes());
        }
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (keys, rest) = rest.as_chunks::<KEY_BYTES>();
        if !rest.is_empty() {
            return None;
        }
        let keys = keys.iter().map(seen_key).collect::<Option<Vec<_>>>()?;
        match *kind {
            SEEN => Some(Self::Seen(keys)),
            RESTATED => Some(Self::Restated(keys)),
            _ => None,
        }
    }
}

fn seen_key(bytes: &[u8; KEY_BYTES]) -> Option<SeenKey> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    let (key, until) = rest.split_first_chunk::<16>()?;
    // There must be numbers for the keys to come.
    let number = Some(u64::from_le_bytes(*number)).filter(|it| *it <= u64::MAX / 2)?;
    Some(SeenKey {
        number,
        key: DeduplicationKey(u128::from_le_bytes(*key)),
        until_ms: u64::from_le_bytes(until.try_into().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were_and_what_is_cut_off_is_none() {
        let seen = SeenKey {
            number: 7,
            key: DeduplicationKey(u128::MAX - 5),
            until_ms: 9,
        };
        for record in [Record::Seen(vec![seen; 3]), Record::Restated(Vec::new())] {
            let mut bytes = Vec::new();
            record.encode(&mut bytes);
            assert_eq!(Record::decode(&bytes), Some(record));
            bytes.push(0);
            assert_eq!(Record::decode(&bytes), None);
        }
        let mut last = vec![SEEN];
        last.extend_from_slice(&[0xff; KEY_BYTES]);
        assert_eq!(Record::decode(&last), None);
        assert_eq!(Record::decode(&[]), None);
        assert_eq!(Record::decode(&[9]), None);
    }
}
