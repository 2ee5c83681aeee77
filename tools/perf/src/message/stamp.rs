//! The stamps in messages: which message it is, when it was sent, how late that was.
//!
//! The first twelve bytes of a body are PerfTest's: a sequence number and the time. So its consumers can time our
//! messages and ours can time its. Four bytes more, if there is room, say how long after its due moment the message was
//! sent; PerfTest leaves them zero, which is just what is true of its messages.

/// Where the time is in a body, in bytes from its beginning.
pub const TIME_AT: usize = 4;
/// Where the lag is.
pub const LAG_AT: usize = 12;
/// What a stamp with a lag takes.
pub const WITH_LAG: usize = 16;
/// The smallest body, which holds a stamp without a lag.
pub const SMALLEST: usize = 12;
/// The name of the header that holds the time where the body can't, as in PerfTest.
pub const HEADER: &str = "timestamp";

/// What a message says about its sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Nanoseconds of the monotonic clock, or milliseconds since 1970 with `--use-millis`.
    pub sent: u64,
    /// How long after its moment it was sent, in microseconds.
    pub lag_us: u32,
    /// The low half of its number, from its producer.
    pub sequence: u32,
}

/// Reads the stamp at the beginning of a body; `None` if the body is too short for one.
#[inline]
pub fn read(body: &[u8]) -> Option<Stamp> {
    let (sequence, rest) = body.split_first_chunk::<4>()?;
    let (sent, rest) = rest.split_first_chunk::<8>()?;
    let lag_us = rest.first_chunk::<4>().map_or(0, |lag| u32::from_be_bytes(*lag));
    Some(Stamp {
        sent: u64::from_be_bytes(*sent),
        lag_us,
        sequence: u32::from_be_bytes(*sequence),
    })
}

/// Reads the stamp from the header of a message whose body is somebody else's; `None` if it has none.
pub fn from_header(properties: &[u8]) -> Option<Stamp> {
    let headers = model::properties::BasicProperties::new(properties).headers()?;
    match model::table::Entries::new(headers).find(HEADER.as_bytes())? {
        model::table::RawValue::Long(sent) => Some(Stamp {
            sent: u64::try_from(sent).ok()?,
            lag_us: 0,
            sequence: 0,
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::properties::PropertiesBuilder;
    use model::table::{Table, Value};

    #[test]
    fn a_stamp_without_room_for_a_lag_has_none() {
        let body = [0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 5];
        let with_lag = Stamp {
            sent: 258,
            lag_us: 5,
            sequence: 9,
        };
        assert_eq!(read(&body), Some(with_lag));
        assert_eq!(
            read(&body[..15]),
            Some(Stamp {
                lag_us: 0,
                ..with_lag
            })
        );
        assert_eq!(read(&body[..11]), None);
    }

    #[test]
    fn the_header_of_perftest_is_read() {
        let headers = Table::new().with("other", "x").with(HEADER, Value::Long(77));
        let properties = PropertiesBuilder::new().headers(&headers).encode();
        assert_eq!(from_header(&properties).map(|stamp| stamp.sent), Some(77));
        assert_eq!(from_header(&PropertiesBuilder::new().encode()), None);
        let wrong = Table::new().with(HEADER, "now");
        assert_eq!(
            from_header(&PropertiesBuilder::new().headers(&wrong).encode()),
            None
        );
    }
}
