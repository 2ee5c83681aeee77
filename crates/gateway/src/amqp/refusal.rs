//! What the broker refuses, in AMQP's reply codes. The one place where the two meet.

use broker::{OpenRefusal, Refusal, RefusalKind};
use protocol::amqp::{Exception, MethodId, ReplyCode};

/// The exception for a refusal of `method`.
pub fn exception(refusal: &Refusal, method: MethodId) -> Exception {
    Exception::new(code(refusal.kind()), refusal.to_string(), method)
}

/// The exception for a virtual host that is not opened, which costs the connection.
pub fn of_vhost(refusal: &OpenRefusal, method: MethodId) -> Exception {
    Exception::new(ReplyCode::NotAllowed, refusal.to_string(), method)
}

fn code(kind: RefusalKind) -> ReplyCode {
    match kind {
        RefusalKind::NotFound => ReplyCode::NotFound,
        RefusalKind::AccessRefused => ReplyCode::AccessRefused,
        RefusalKind::ResourceLocked => ReplyCode::ResourceLocked,
        RefusalKind::PreconditionFailed => ReplyCode::PreconditionFailed,
        RefusalKind::NotAllowed => ReplyCode::NotAllowed,
        RefusalKind::NotImplemented => ReplyCode::NotImplemented,
        RefusalKind::CommandInvalid => ReplyCode::CommandInvalid,
        RefusalKind::Internal => ReplyCode::InternalError,
    }
}
