//! The fast way in for acknowledgements: with a consumer that acknowledges one by one they are as many as the
//! messages.

use super::frame::{END, METHOD, OVERHEAD};
use super::method::BasicAck;

/// What a `basic.ack` frame takes, in bytes.
const LENGTH: usize = OVERHEAD + 4 + 9;

/// A `basic.ack` and its channel; nobody has checked that it is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The channel that it came on.
    pub channel: u16,
    /// What it says.
    pub method: BasicAck,
}

/// The acknowledgement that `bytes` begin with and how many of them it takes; `None` if they do not begin with
/// a whole one. Like [`super::PublishScanner`] it judges nothing, and is for idle channels.
#[inline]
pub fn scan_ack(bytes: &[u8]) -> Option<(Ack, usize)> {
    let &[
        METHOD,
        c0,
        c1,
        0,
        0,
        0,
        13,
        0,
        60,
        0,
        80,
        t0,
        t1,
        t2,
        t3,
        t4,
        t5,
        t6,
        t7,
        bits,
        END,
    ] = bytes.first_chunk::<LENGTH>()?
    else {
        return None;
    };
    let delivery_tag = u64::from_be_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
    let method = BasicAck {
        delivery_tag,
        multiple: bits & 1 != 0,
    };
    Some((
        Ack {
            channel: u16::from_be_bytes([c0, c1]),
            method,
        },
        LENGTH,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amqp::encode;
    use crate::amqp::method::BasicReject;

    #[test]
    fn an_ack_is_seen_and_nothing_else() {
        let mut bytes = Vec::new();
        encode::ack(&mut bytes, 300, 1 << 40, true);
        let method = BasicAck {
            delivery_tag: 1 << 40,
            multiple: true,
        };
        assert_eq!(
            scan_ack(&bytes),
            Some((Ack { channel: 300, method }, bytes.len()))
        );
        for cut in 0..bytes.len() {
            assert_eq!(scan_ack(&bytes[..cut]), None);
        }
        bytes.clear();
        encode::method(
            &mut bytes,
            300,
            &BasicReject {
                delivery_tag: 1,
                requeue: true,
            },
        );
        assert_eq!(scan_ack(&bytes), None);
    }
}
