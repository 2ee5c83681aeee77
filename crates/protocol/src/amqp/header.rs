//! The content header: how large a body is and which properties it has (AMQP 0-9-1 section 4.2.6.1).

/// A content header where it lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentHeader<'a> {
    /// Class of the method that it belongs to; always 60, basic.
    pub class: u16,
    /// Always 0.
    pub weight: u16,
    /// Size of the whole body, in bytes; what the peer claims.
    pub body_size: u64,
    /// Property flags and property list, for [`model::properties::BasicProperties`]; not looked at yet.
    pub properties: &'a [u8],
}

impl<'a> ContentHeader<'a> {
    /// Reads a header frame's payload; `None` if it is too short to be one.
    pub fn decode(payload: &'a [u8]) -> Option<Self> {
        let (fixed, properties) = payload.split_first_chunk::<12>()?;
        let [c0, c1, w0, w1, s0, s1, s2, s3, s4, s5, s6, s7] = *fixed;
        Some(Self {
            class: u16::from_be_bytes([c0, c1]),
            weight: u16::from_be_bytes([w0, w1]),
            body_size: u64::from_be_bytes([s0, s1, s2, s3, s4, s5, s6, s7]),
            properties,
        })
    }

    /// Appends the payload.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.class.to_be_bytes());
        out.extend_from_slice(&self.weight.to_be_bytes());
        out.extend_from_slice(&self.body_size.to_be_bytes());
        out.extend_from_slice(self.properties);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back() {
        let bytes = b"\0\x3c\0\0\0\0\0\0\0\0\x01\x00\x10\0\x02";
        let header = ContentHeader::decode(bytes).unwrap();
        assert_eq!(
            header,
            ContentHeader {
                class: 60,
                weight: 0,
                body_size: 256,
                properties: b"\x10\0\x02"
            }
        );
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out, bytes);
        assert_eq!(ContentHeader::decode(&bytes[..11]), None);
    }
}
