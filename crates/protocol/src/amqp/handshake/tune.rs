//! Agreement on frame size, channels and heartbeat.

use crate::amqp::method::{Arguments, ConnectionTune, ConnectionTuneOk};
use crate::amqp::reply::{Exception, ReplyCode};

/// The smallest frame that may be agreed on, in bytes (RabbitMQ since 4.1; the specification has 4,096).
pub const FRAME_MIN_SIZE: u32 = 8_192;
/// The fewest channels that may be agreed on.
const CHANNEL_MIN: u16 = 1;

/// What one side offers, or what both agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// The highest channel number; 0 is no limit.
    pub channel_max: u16,
    /// The largest frame, in bytes, its 8 bytes of framing included; 0 is no limit.
    pub frame_max: u32,
    /// How long a side may be silent before the other takes it for dead, in seconds; 0 is for ever.
    pub heartbeat_s: u16,
}

impl Tuning {
    /// The offer on the wire.
    pub fn tune(&self) -> ConnectionTune {
        ConnectionTune {
            channel_max: self.channel_max,
            frame_max: self.frame_max,
            heartbeat: self.heartbeat_s,
        }
    }

    /// What the client makes of the offer. Its heartbeat counts as it is, as in RabbitMQ.
    ///
    /// # Errors
    /// 530, if it asks for more than was offered (0 being the most of all) or for less than can be done.
    pub fn negotiate(&self, client: &ConnectionTuneOk) -> Result<Self, Exception> {
        check("frame_max", "", FRAME_MIN_SIZE, self.frame_max, client.frame_max)?;
        let detail = if client.channel_max == 0 {
            " (no limit)"
        } else {
            ""
        };
        let (server, asked) = (self.channel_max.into(), client.channel_max.into());
        check("channel_max", detail, CHANNEL_MIN.into(), server, asked)?;
        Ok(Self {
            channel_max: client.channel_max,
            frame_max: client.frame_max,
            heartbeat_s: client.heartbeat,
        })
    }
}

fn check(field: &str, detail: &str, min: u32, server: u32, client: u32) -> Result<(), Exception> {
    let (than, which, limit) = if client != 0 && client < min {
        ("lower", "minimum", min)
    } else if server != 0 && (client == 0 || client > server) {
        ("higher", "maximum", server)
    } else {
        return Ok(());
    };
    let text =
        format!("negotiated {field} = {client}{detail} is {than} than the {which} allowed value ({limit})");
    Err(Exception::new(ReplyCode::NotAllowed, text, ConnectionTune::ID))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: Tuning = Tuning {
        channel_max: 2047,
        frame_max: 131_072,
        heartbeat_s: 60,
    };

    fn negotiate(channel_max: u16, frame_max: u32) -> Result<Tuning, String> {
        let client = ConnectionTuneOk {
            channel_max,
            frame_max,
            heartbeat: 5,
        };
        OFFER
            .negotiate(&client)
            .map_err(|exception| exception.reply_text())
    }

    #[test]
    fn what_keeps_to_the_offer_is_taken() {
        let agreed = Tuning {
            channel_max: 1,
            frame_max: 8_192,
            heartbeat_s: 5,
        };
        assert_eq!(negotiate(1, 8_192), Ok(agreed));
        assert!(negotiate(2047, 131_072).is_ok());
        let unlimited = Tuning {
            channel_max: 0,
            frame_max: 0,
            heartbeat_s: 0,
        };
        assert!(unlimited.negotiate(&ConnectionTuneOk::default()).is_ok());
    }

    #[test]
    fn what_does_not_is_refused_in_rabbitmqs_words() {
        let refused = |channel_max, frame_max| negotiate(channel_max, frame_max).unwrap_err();
        assert_eq!(
            refused(2047, 4_096),
            "NOT_ALLOWED - negotiated frame_max = 4096 is lower than the minimum allowed value (8192)"
        );
        assert_eq!(
            refused(2047, 131_073),
            "NOT_ALLOWED - negotiated frame_max = 131073 is higher than the maximum allowed value (131072)"
        );
        assert_eq!(
            refused(2047, 0),
            "NOT_ALLOWED - negotiated frame_max = 0 is higher than the maximum allowed value (131072)"
        );
        assert_eq!(
            refused(0, 131_072),
            "NOT_ALLOWED - negotiated channel_max = 0 (no limit) is higher than the maximum allowed value (2047)"
        );
    }
}
