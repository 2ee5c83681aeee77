//! Response codes: how the stream protocol says yes and no.

use std::fmt;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal $text:literal,)*) => {
        /// What an answer, a closing or a refused publish says (RabbitMQ's `rabbit_stream.hrl`).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum ResponseCode {
            $($(#[$doc])* $name = $number,)*
        }

        impl ResponseCode {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The code of this number; `None` if there is none.
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// What it means, in a few words.
            pub fn text(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

codes! {
    /// It is done.
    Ok = 1 "ok",
    /// There is no stream of this name, or what has the name is no stream.
    StreamDoesNotExist = 2 "stream does not exist",
    /// The client has a subscription of this number.
    SubscriptionIdAlreadyExists = 3 "subscription id already exists",
    /// The client has no subscription of this number.
    SubscriptionIdDoesNotExist = 4 "subscription id does not exist",
    /// There is a stream of this name, as the client wants it.
    StreamAlreadyExists = 5 "stream already exists",
    /// The stream exists, but nobody who has it can be reached, or it has just gone.
    StreamNotAvailable = 6 "stream not available",
    /// Nobody logs in this way here.
    SaslMechanismNotSupported = 7 "SASL mechanism not supported",
    /// A wrong name or password.
    AuthenticationFailure = 8 "authentication failure",
    /// What was sent is no response of the mechanism.
    SaslError = 9 "SASL error",
    /// The mechanism has one more question.
    SaslChallenge = 10 "SASL challenge",
    /// The user may come from this machine only.
    AuthenticationFailureLoopback = 11 "authentication failure: the user may connect from localhost only",
    /// No such virtual host, or not for this user.
    VirtualHostAccessFailure = 12 "virtual host access failure",
    /// A frame that means nothing, or not now.
    UnknownFrame = 13 "unknown frame",
    /// A frame is longer than was agreed.
    FrameTooLarge = 14 "frame too large",
    /// The server's own fault.
    InternalError = 15 "internal error",
    /// No permission.
    AccessRefused = 16 "access refused",
    /// Arguments that do not fit, or not what is there.
    PreconditionFailed = 17 "precondition failed",
    /// The client has no publisher of this number.
    PublisherDoesNotExist = 18 "publisher does not exist",
    /// Nothing was stored under this reference, or the stream is empty.
    NoOffset = 19 "no offset",
    /// New credentials must come by the mechanism of the login (RabbitMQ since 3.12).
    SaslCannotChangeMechanism = 20 "SASL cannot change mechanism",
    /// New credentials must be those of the same user (RabbitMQ since 3.12).
    SaslCannotChangeUsername = 21 "SASL cannot change username",
}

impl ResponseCode {
    /// The number on the wire.
    pub const fn number(self) -> u16 {
        self as u16
    }
}

impl fmt::Display for ResponseCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.number(), self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_numbered_from_one_without_a_gap() {
        for (at, code) in ResponseCode::ALL.iter().enumerate() {
            assert_eq!(usize::from(code.number()), at + 1);
            assert_eq!(ResponseCode::from_number(code.number()), Some(*code));
        }
        assert_eq!(ResponseCode::from_number(0), None);
        assert_eq!(ResponseCode::from_number(22), None);
        assert_eq!(ResponseCode::UnknownFrame.to_string(), "13 (unknown frame)");
    }
}
